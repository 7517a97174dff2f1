"""Reports of two parts: something open, drawn independently of the data, and a response that depends on it.

The local pair is that of the response, whatever was drawn; where responses differ, as on the levels of a tree, the
average of their pairs.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from dpcheckin import accounting
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import at_least, positive
from dpcheckin.randomizers.base import LARGEST_EPSILON, Argument, Randomizer
from dpcheckin.randomizers.formats import IntegerRows
from dpcheckin.randomizers.response import Counts, DaryResponse, FrequencyRandomizer, HadamardResponse, Reports
from dpcheckin.randomizers.source import RandomSource

DITHERS = 256
Figures = NDArray[np.float64]


@dataclass(frozen=True)
class DitheredLevels(Randomizer):
    """A number in [0, 1] as one of `steps` + 1 levels, shifted by an open dither: (dither, level).

    Many levels round little and hide little, few do the opposite. The dither is taken off again, so that what is left
    of rounding is spread evenly over one step whatever the number was (subtractive dither); its last bits stay secret,
    which makes the estimate unbiased without any remainder. Given the dither a report is d-ary response on the levels.

    Args:
        local_epsilon: epsilon of one report, in nats.
        steps: of the interval [0, 1], 1 or more.

    >>> DitheredLevels(local_epsilon=4.0, steps=10).report_format.limits
    (256, 11)
    """

    local_epsilon: float
    steps: int

    name, label = "levels", "dithered levels"
    arguments = (Argument("steps", "STEPS", 10),)

    def __post_init__(self) -> None:
        positive("local_epsilon", self.local_epsilon, LARGEST_EPSILON)
        at_least("steps", self.steps, 1)

    @property
    def response(self) -> DaryResponse:
        """What is done with a level."""
        return DaryResponse(self.local_epsilon, self.steps + 1)

    @property
    def pair(self) -> accounting.LocalPair:
        return self.response.pair

    @property
    def report_format(self) -> IntegerRows:
        return IntegerRows((DITHERS, self.steps + 1))

    def describe(self) -> str:
        return f"{self.steps + 1:,} dithered levels, local epsilon {self.local_epsilon:g}"

    def randomize(self, values: Figures, source: RandomSource) -> Reports:
        values = np.asarray(values, dtype=np.float64)
        if values.size and not (values.min() >= 0.0 and values.max() <= 1.0):
            raise InvalidParameter("values", "some", "numbers in [0, 1]")
        dither = source.integers(DITHERS, values.shape)
        shift = (dither + source.uniform(values.shape)) / DITHERS
        levels = np.floor(self.steps * values + shift).astype(np.int64).clip(0, self.steps)
        return np.stack([dither, self.response.randomize(levels, source)], axis=1)

    def _offset(self) -> tuple[float, float]:
        """The gap of d-ary response, and what a level is on average when it is a lie."""
        response = self.response
        lie = response.other_support
        return response.own_support - lie, lie * self.steps * (self.steps + 1) / 2

    def _square_of_lies(self) -> float:
        """What the square of a level is on average when it is a lie."""
        k = self.steps
        return self.response.other_support * k * (k + 1) * (2 * k + 1) / 6

    def estimate(self, reports: Reports) -> Figures:
        """An unbiased estimate of each client's number."""
        reports = np.asarray(reports)
        gap, lies = self._offset()
        levels = (reports[:, 1] - lies) / gap
        return np.asarray((levels - (reports[:, 0] + 0.5) / DITHERS + 0.5) / self.steps)

    def response_variance(self, reports: Reports) -> float:
        """Unbiased estimate, from the reports, of what d-ary response adds to the variance."""
        levels = np.asarray(reports)[:, 1].astype(np.float64)
        gap, lies = self._offset()
        squares = (levels**2 - self._square_of_lies()) / gap
        return float(np.mean(((levels - lies) / gap) ** 2 - squares)) / self.steps**2

    @property
    def rounding_variance(self) -> float:
        """What is left of rounding once the dither is taken off."""
        return 1.0 / (12 * self.steps**2)

    def noise_variance(self, mean: float, square: float, rounding: float = 1 / 6) -> float:
        """What a report adds to the variance, on average over numbers of these moments.

        Args:
            mean: of the numbers.
            square: mean of their squares.
            rounding: mean of f(1 - f), f the place of a number within its step; 1/6 if anywhere.
        """
        k = self.steps
        gap, lies = self._offset()
        level, level_square = k * mean, k * k * square + rounding
        second = gap * level_square + self._square_of_lies()
        first_square = gap**2 * level_square + 2 * gap * lies * level + lies**2
        return max(second - first_square, 0.0) / (gap * k) ** 2 + self.rounding_variance

    @property
    def range(self) -> float:
        """Largest minus smallest estimate that a report can have."""
        gap, _ = self._offset()
        return (self.steps / gap + (DITHERS - 1) / DITHERS) / self.steps


@dataclass(frozen=True)
class TreeResponse(Randomizer):
    """A leaf 0, …, leaves - 1 as (level, report about the node of that level).

    The level is drawn at random; on each the node is randomized by d-ary or Hadamard response, whichever varies less
    there. The average of the levels' pairs is proved for two leaves that differ on every level, and is smaller for
    others.

    Args:
        local_epsilon: epsilon of one report, in nats.
        leaves: how many there are, 2 or more.
        branching: children of a node, 2 or more; with as many as there are leaves the tree has one
            level.

    >>> TreeResponse(local_epsilon=1.0, leaves=64, branching=8).sizes
    (8, 64)
    """

    local_epsilon: float
    leaves: int
    branching: int

    name, label = "tree", "tree of levels"
    arguments = (Argument("leaves", "N", 64), Argument("branching", "CHILDREN", 4))

    def __post_init__(self) -> None:
        positive("local_epsilon", self.local_epsilon, LARGEST_EPSILON)
        at_least("leaves", self.leaves, 2)
        at_least("branching", self.branching, 2)
        if self.branching > self.leaves:
            raise InvalidParameter("branching", self.branching, f"at most {self.leaves:,} leaves")

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Leaves under a node of each level, the root's children first."""
        widths = [1]
        while widths[0] * self.branching < self.leaves:
            widths.insert(0, widths[0] * self.branching)
        return tuple(widths)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Nodes of each level."""
        return tuple(-(-self.leaves // width) for width in self.widths)

    @cached_property
    def levels(self) -> tuple[FrequencyRandomizer, ...]:
        """What randomizes the node of each level."""
        return tuple(_steadier(self.local_epsilon, size) for size in self.sizes)

    @property
    def pair(self) -> accounting.LocalPair:
        pairs = [level.pair for level in self.levels]
        name = f"tree of {self.leaves:,} leaves"
        return accounting.mixed([pair for pair in pairs if isinstance(pair, accounting.ThreeAtoms)], name)

    @cached_property
    def kinds(self) -> tuple[int, ...]:
        """How many reports there can be of each level."""
        return tuple(level.report_format.limits[0] for level in self.levels)

    @property
    def report_format(self) -> IntegerRows:
        return IntegerRows((len(self.sizes), max(self.kinds)))

    def describe(self) -> str:
        if len(self.sizes) == 1:
            return self.levels[0].describe()
        shape = " × ".join(map(str, self.sizes))
        return f"tree of levels {shape}, local epsilon {self.local_epsilon:g}"

    def randomize(self, values: NDArray[np.int64], source: RandomSource) -> Reports:
        values = np.asarray(values)
        if values.dtype.kind not in "iu":
            raise InvalidParameter("values", values.dtype, "integers")
        if values.size and not (values.min() >= 0 and values.max() < self.leaves):
            raise InvalidParameter("values", "some", f"leaves from 0 to {self.leaves - 1}")
        chosen = source.integers(len(self.sizes), len(values))
        reports = np.empty((len(values), 2), dtype=np.int64)
        reports[:, 0] = chosen
        for index, (level, width) in enumerate(zip(self.levels, self.widths, strict=True)):
            here = chosen == index
            reports[here, 1] = level.randomize(values[here] // width, source)
        return reports

    def well_formed(self, reports: Reports) -> NDArray[np.bool_]:
        reports = np.asarray(reports)
        inside = (reports[:, 0] >= 0) & (reports[:, 0] < len(self.sizes))
        most = np.array(self.kinds)[np.where(inside, reports[:, 0], 0)]
        return np.asarray(inside & (reports[:, 1] >= 0) & (reports[:, 1] < most))


def _steadier(local_epsilon: float, size: int) -> FrequencyRandomizer:
    plain = DaryResponse(local_epsilon, size)
    if size == 2:
        return plain
    coded = HadamardResponse(local_epsilon, size)
    even = np.full(size, 1.0 / size)
    return min((plain, coded), key=lambda response: float(response.variance(even)[0]))


@lru_cache(maxsize=64)
def _coefficients(salt: str, functions: int) -> NDArray[np.uint64]:
    """Three random words a function, the same on every machine."""
    stream = hashlib.shake_256(f"dpcheckin local hashing {salt}".encode())
    words = np.frombuffer(stream.digest(24 * functions), dtype="<u8")
    return words.reshape(functions, 3).astype(np.uint64)


@dataclass(frozen=True)
class LocalHashing(Randomizer):
    """Values of up to 64 bits, hashed by one of `functions` open functions, then d-ary response: (function, bucket).

    So the values may come from a domain that nobody could list (Wang, Blocki, Li, Jha, USENIX Security 2017). Two
    values share a bucket with probability exactly 1/buckets over the draw of the functions (multiply-shift on 32-bit
    halves; Dietzfelbinger, Hagerup, Katajainen, Penttonen 1997).

    Args:
        local_epsilon: epsilon of one report, in nats.
        buckets: a power of two, up to 2^24.
        functions: how many hash functions there are.
        salt: what the functions are drawn from.
    """

    local_epsilon: float
    buckets: int
    functions: int = 1024
    salt: str = ""

    name, label = "hash", "local hashing"
    description = "local hashing to {0.buckets:,} buckets, local epsilon {0.local_epsilon:g}"
    arguments = (Argument("buckets", "BUCKETS", 128),)

    def __post_init__(self) -> None:
        positive("local_epsilon", self.local_epsilon, LARGEST_EPSILON)
        at_least("functions", self.functions, 1)
        at_least("buckets", self.buckets, 2)
        if self.buckets & (self.buckets - 1) or self.buckets > 1 << 24:
            raise InvalidParameter("buckets", self.buckets, "a power of two up to 2**24")

    @property
    def response(self) -> DaryResponse:
        """What is done with the bucket."""
        return DaryResponse(self.local_epsilon, self.buckets)

    @property
    def pair(self) -> accounting.LocalPair:
        return self.response.pair

    @property
    def own_support(self) -> float:
        """Probability that a report falls into the bucket of the client's value."""
        return self.response.own_support

    @property
    def other_support(self) -> float:
        """The same for another value, over the draw of the hash functions."""
        return 1.0 / self.buckets

    @property
    def report_format(self) -> IntegerRows:
        return IntegerRows((self.functions, self.buckets))

    def hashed(self, values: NDArray[np.uint64], function: NDArray[np.int64] | int) -> NDArray[np.int64]:
        """The buckets of `values` under one `function`, or of each under its own."""
        words = _coefficients(self.salt, self.functions)[function]
        values = np.asarray(values, dtype=np.uint64)
        low, high = values & np.uint64(0xFFFFFFFF), values >> np.uint64(32)
        with np.errstate(over="ignore"):  # arithmetic modulo 2^64 is what is meant
            mixed = words[..., 0] * low + words[..., 2]
            if high.any():
                mixed = mixed + words[..., 1] * high
        shift = np.uint64(64 - (self.buckets.bit_length() - 1))
        return np.asarray(mixed >> shift).astype(np.int64)

    def randomize(self, values: NDArray[np.uint64], source: RandomSource) -> Reports:
        values = np.asarray(values)
        if values.dtype.kind not in "iu":
            raise InvalidParameter("values", values.dtype, "whole numbers of up to 64 bits")
        functions = source.integers(self.functions, len(values))
        buckets = self.hashed(values.astype(np.uint64), functions)
        return np.stack([functions, self.response.randomize(buckets, source)], axis=1)

    def tables(self, reports: Reports) -> NDArray[np.int64]:
        """How many reports fell into each bucket of each function."""
        reports = np.asarray(reports)
        cells = reports[:, 0] * self.buckets + reports[:, 1]
        flat = np.bincount(cells, minlength=self.functions * self.buckets)
        return flat.reshape(self.functions, self.buckets)

    def support(self, tables: NDArray[np.int64], values: NDArray[np.uint64]) -> Counts:
        """How many of the reports in `tables` fell into the buckets of each of the `values`."""
        total = np.zeros(len(values), dtype=np.int64)
        for function in range(self.functions):
            total += tables[function][self.hashed(values, function)]
        return total.astype(np.float64)
