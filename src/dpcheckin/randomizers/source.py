"""Where chance comes from: seeded in simulations, the operating system in real reports.

The two are different types on purpose. `SeededSource` is fast and repeatable, and must never make a report that leaves
a device; `SecureSource` draws every bit from the operating system and cannot be repeated. Randomizers take either and
ask it for the same few draws, as NumPy arrays or, for a seeded source made with `arrays="torch"`, as torch tensors.
"""

from __future__ import annotations

import importlib
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.special.normal import ndtri

Array = Any
"""A NumPy array or a torch tensor; the few operations used are spelled alike in both."""


_TOP = 1.0 - 2.0**-53  # the largest float below 1


def _lowest_bit(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """2^k, k zeros behind the last one of each word; 0 for 0."""
    return (words & (~words + np.uint64(1))).astype(np.float64)


class RandomSource(ABC):
    """The draws a randomizer may make."""

    xp: Any
    """The array library of `normal`: the numpy or the torch module."""

    is_secure: bool
    smallest: float
    """No event of a smaller probability than this can be drawn."""

    @abstractmethod
    def uniform(self, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        """Uniform in the open interval (0, 1), always NumPy; dense near 0, so a rare case has to be the lower end."""

    @abstractmethod
    def integers(self, high: int, size: int | tuple[int, ...]) -> NDArray[np.int64]:
        """Uniform in 0, …, high - 1, in an array of this `size`; always NumPy."""

    @abstractmethod
    def normal(self, shape: tuple[int, ...]) -> Array:
        """Standard normals in the array library `xp`."""

    def sign(self, probability: NDArray[np.float64]) -> NDArray[np.float64]:
        """+1 with the given probability, else -1."""
        return np.where(self.uniform(probability.shape) < probability, 1.0, -1.0)

    def as_array(self, values: NDArray[np.float64], like: Array) -> Array:
        """NumPy values as an array of the same library and type as `like`."""
        if self.xp is np:
            return values.astype(like.dtype, copy=False)
        return self.xp.from_numpy(np.ascontiguousarray(values)).to(like.dtype)


class SeededSource(RandomSource):
    """Repeatable chance for simulations; the seed may be a tuple such as (seed, round, chunk).

    Args:
        seed: a number, or a tuple such as (seed, round, chunk).
        arrays: 'numpy' or 'torch': the library of `normal`.

    >>> SeededSource((7, 0)).integers(6, 3).tolist() == SeededSource((7, 0)).integers(6, 3).tolist()
    True
    """

    is_secure = False
    smallest = 2.0**-107

    def __init__(self, seed: int | Sequence[int], arrays: str = "numpy") -> None:
        if arrays not in ("numpy", "torch"):
            raise InvalidParameter("arrays", arrays, "'numpy' or 'torch'")
        sequence = np.random.SeedSequence(seed)
        self.generator = np.random.Generator(np.random.PCG64(sequence))
        self.xp = np if arrays == "numpy" else importlib.import_module("torch")
        self._torch: Any = None
        if arrays == "torch":
            state = int(sequence.spawn(1)[0].generate_state(1, np.uint64)[0]) >> 1
            self._torch = self.xp.Generator().manual_seed(state)

    def uniform(self, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        # (j + 1/2) / 2^53, which inverse distribution functions can take; but the last one is rounded to 1
        drawn = np.minimum(self.generator.random(size) + 2.0**-54, _TOP)
        if (rare := drawn < 2.0**-40).any():
            inside = self.generator.random(int(rare.sum())) - 0.5
            drawn[rare] = np.maximum(drawn[rare] + inside * 2.0**-53, self.smallest)
        return drawn

    def integers(self, high: int, size: int | tuple[int, ...]) -> NDArray[np.int64]:
        return self.generator.integers(high, size=size)

    def normal(self, shape: tuple[int, ...]) -> Array:
        if self.xp is np:
            return self.generator.standard_normal(shape)
        return self.xp.empty(shape).normal_(generator=self._torch)


class SecureSource(RandomSource):
    """Chance from the operating system, for reports that leave a device."""

    is_secure = True
    smallest = 2.0**-900
    xp = np

    def _words(self, count: int) -> NDArray[np.uint64]:
        return np.frombuffer(bytearray(os.urandom(8 * count)), dtype=np.uint64)

    def uniform(self, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        # 53 binary digits from the first that is not 0: P(uniform < p) is p for every float p
        shape = (size,) if isinstance(size, int) else size
        words = self._words(int(np.prod(shape, dtype=np.int64)))
        digits = 0.5 + (words >> np.uint64(12)).astype(np.float64) * 2.0**-53
        words &= np.uint64(0xFFF)
        scale = _lowest_bit(words)
        left, zeros = np.flatnonzero(words == 0), 2.0**12
        while left.size:
            scale[left] = zeros
            if zeros * self.smallest > 1.0:
                break
            more = self._words(left.size)
            scale[left] *= np.where(more == 0, 1.0, _lowest_bit(more))
            left, zeros = left[more == 0], zeros * 2.0**64
        return (digits / scale).reshape(shape)

    def integers(self, high: int, size: int | tuple[int, ...]) -> NDArray[np.int64]:
        if not 1 <= high <= 2**62:
            raise InvalidParameter("high", high, "an integer from 1 to 2**62")
        shape = (size,) if isinstance(size, int) else size
        count = int(np.prod(shape, dtype=np.int64))
        limit = (2**64 // high) * high  # rejection keeps every residue equally likely
        kept = np.empty(0, dtype=np.uint64)
        while kept.size < count:
            words = self._words(count - kept.size)
            fresh = words if limit == 2**64 else words[words < np.uint64(limit)]
            kept = np.concatenate([kept, fresh])
        return (kept % np.uint64(high)).astype(np.int64).reshape(shape)

    def normal(self, shape: tuple[int, ...]) -> Array:
        # Inversion: the two halves are symmetric, so the lower tail's full precision serves both.
        half = ndtri(self.uniform(shape) / 2.0)
        flips = (self._words((half.size + 63) // 64)).view(np.uint8)
        signs = np.unpackbits(flips)[: half.size].reshape(shape)
        return np.where(signs == 1, half, -half)
