"""Masses on a lattice and their transforms: what laws of additive noise are made of.

Such a law is a few lattices (`nested_laws`), one within the other. A transform of one of them is an
FFT, or a chirp transform where the period is long and few frequencies are asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from dpcheckin.accounting.engine.arrays import FFT_LEVEL, UNIT, Array, Complex
from dpcheckin.errors import NumericalFailure
from dpcheckin.special import fourier

_BLOCK = 8  # its square is the number of points that are kept out of an FFT,
_LITTLE = 0.01  # unless all together weigh less than this
_LONGEST = 2**61  # points of a period: integers count no more


@dataclass(frozen=True, eq=False)
class LatticeMasses:
    """Masses at first * step, (first + 1) * step, …"""

    step: float
    first: int
    masses: Array

    @cached_property
    def values(self) -> Array:
        """The lattice points."""
        return (self.first + np.arange(self.masses.size)) * self.step

    @cached_property
    def key(self) -> tuple[float, int, bytes]:
        """What tells it from others."""
        return self.step, self.first, self.masses.tobytes()

    @cached_property
    def _transforms(self) -> dict[tuple[float, float, int], tuple[Complex, float]]:
        """What was asked for: laws have pieces in common, each for one line."""
        return {}

    def transform(self, theta: float, period: float, last: int) -> tuple[Complex, float]:
        """Sums of mass exp(z x), z = theta + 2 pi i m / period, m = 0 .. last, and their error.

        The period has to be a multiple of the step.
        """
        asked = theta, period, last
        if asked not in self._transforms:
            if not period / self.step <= _LONGEST:
                raise NumericalFailure("no lattice reaches from a report to so large a sum")
            self._transforms[asked] = self._computed(theta, round(period / self.step), last)
        return self._transforms[asked]

    def _computed(self, theta: float, size: int, last: int) -> tuple[Complex, float]:
        weights = self.masses * np.exp(theta * self.values)
        if float(weights.sum()) < _LITTLE:
            return self._transformed(weights, size, last)
        block = self._block(weights)
        found, error = self._direct(weights[block], self.first + block.start, size, last)
        weights[block] = 0.0
        rest, doubt = self._transformed(weights, size, last)
        return found + rest, error + doubt

    @staticmethod
    def _block(weights: Array) -> slice:
        """The few points that hold most: an FFT would err in proportion to them."""
        if weights.size <= _BLOCK**2:
            return slice(0, weights.size)
        sums = np.concatenate([[0.0], np.cumsum(weights)])
        start = int(np.argmax(sums[_BLOCK**2 :] - sums[: -(_BLOCK**2)]))
        return slice(start, start + _BLOCK**2)

    @staticmethod
    def _direct(weights: Array, first: int, size: int, last: int) -> tuple[Complex, float]:
        """The sums as they stand, with exp(i j (k + l)) = exp(i j k) exp(i j l)."""
        frequencies = np.arange(last + 1)[:, None]
        padded = np.zeros(_BLOCK * math.ceil(weights.size / _BLOCK))
        padded[: weights.size] = weights
        table = padded.reshape(-1, _BLOCK)
        rows = first + _BLOCK * np.arange(table.shape[0])
        inner = _half_turns(2 * frequencies * np.arange(_BLOCK), size) @ table.T
        found = (inner * _half_turns(2 * frequencies * rows, size)).sum(1)
        # two exponentials, products, and sums of at most so many terms each
        return found, (2 * _BLOCK + 30) * UNIT * float(weights.sum())

    def _transformed(self, weights: Array, size: int, last: int) -> tuple[Complex, float]:
        if size > 4 * (weights.size + last):
            return self._few_frequencies(weights, size, last)
        signal = np.bincount(np.arange(self.first, self.first + weights.size) % size, weights, size)
        spectrum = np.conj(fourier.rfft(signal))
        places = np.arange(last + 1) % size
        turned = 2 * places > size
        found = spectrum[np.where(turned, size - places, places)]
        found[turned] = np.conj(found[turned])
        error = FFT_LEVEL * math.log2(size) * math.sqrt(size) * float(np.linalg.norm(signal))
        return found, error

    def _few_frequencies(self, weights: Array, size: int, last: int) -> tuple[Complex, float]:
        """The same for few points and few frequencies of a long period: a chirp transform.

        With j n = (j^2 + n^2 - (j - n)^2) / 2 the transform is a convolution of the two lengths
        only. Angles are whole numbers of half turns of the period, so that none is rounded twice.
        """
        chirps = _Chirps.of(size, weights.size, last)
        length = chirps.spectrum.size
        turned = fourier.fft(weights * chirps.points, length)
        found = fourier.ifft(turned * chirps.spectrum)[: last + 1] * chirps.frequencies
        if self.first:
            found *= _half_turns(2 * self.first * np.arange(last + 1), size)
        # two transforms are multiplied (Cauchy-Schwarz), the product transformed back; angles
        level, whole = FFT_LEVEL * math.log2(length), float(weights.sum())
        error = 3 * level * float(np.linalg.norm(weights)) * math.sqrt(weights.size + last)
        error += level * math.sqrt(length) * whole + 40 * UNIT * whole
        return found, error


@dataclass(frozen=True, slots=True, eq=False)
class _Chirps:
    """The factors of a chirp transform that do not depend on what is transformed."""

    points: Complex
    frequencies: Complex
    spectrum: Complex

    @staticmethod
    @lru_cache(maxsize=64)  # the laws of one sum have them in common
    def of(size: int, points: int, last: int) -> _Chirps:
        """Those of so many points and of the frequencies 0 to `last` of a period of `size`."""
        squares = np.arange(max(points, last + 1)) ** 2
        turns = _half_turns(squares, size)
        # place -m of a circle is place length - m: where j - n is below zero
        length = fourier.next_fast_len(points + last)
        chirp = np.zeros(length, dtype=np.complex128)
        chirp[: last + 1] = np.conj(turns[: last + 1])
        chirp[length - points + 1 :] = np.conj(turns[points - 1 : 0 : -1])
        return _Chirps(turns[:points], turns[: last + 1], fourier.fft(chirp))


def _half_turns(counts: NDArray[np.int64], size: int) -> Complex:
    """exp(i pi counts / size)."""
    return np.asarray(np.exp((1j * math.pi / size) * (counts % (2 * size))))
