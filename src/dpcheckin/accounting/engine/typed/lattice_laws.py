"""Laws of reports on a lattice: types of additive noise, whose ratios are not few.

Keeping the potential E(X - x)+ at the lattice points is mean preserving and larger in convex order.
What lies below the first point is moved up to it; what lies above the last is cut off and paid for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from dpcheckin.accounting.engine.arrays import FFT_LEVEL, UNIT, Array, Complex
from dpcheckin.accounting.engine.seats import Profile

STEP = 0.06  # in deviations of a report: a lattice adds a sixth of its square to the variance
MOST_NODES = 1 << 15


@dataclass(frozen=True, eq=False)
class LatticeLaw:
    """Masses at first * step, (first + 1) * step, …"""

    step: float
    first: int
    masses: Array

    @cached_property
    def values(self) -> Array:
        """The lattice points."""
        return (self.first + np.arange(self.masses.size)) * self.step

    @cached_property
    def variance(self) -> float:
        return float(self.masses @ self.values**2)

    @property
    def furthest(self) -> float:
        return float(max(-self.values[0], self.values[-1]))

    def growth(self, theta: Array) -> Array:
        values, masses = self._grouped
        return np.asarray(np.expm1(np.outer(theta, values)) @ masses)

    @cached_property
    def _grouped(self) -> tuple[Array, Array]:
        """About as many points as matter for a guide: single near zero, ever more together."""
        steps = np.unique(np.geomspace(1, self.masses.size, 120).astype(np.int64))
        zero = -self.first
        starts = np.unique(np.clip(np.concatenate([zero - steps, [zero], zero + steps]), 0, None))
        starts = starts[starts < self.masses.size]
        masses = np.add.reduceat(self.masses, starts)
        there = masses > 0.0
        moments = np.add.reduceat(self.masses * self.values, starts)
        return moments[there] / masses[there], masses[there]

    def transform(self, theta: float, period: float, last: int) -> tuple[Complex, Array]:
        size = round(period / self.step)
        weights = self.masses * np.exp(theta * self.values)
        if size > 4 * (weights.size + last):
            return self._few_frequencies(weights, size, last)
        signal = np.bincount(np.arange(self.first, self.first + weights.size) % size, weights, size)
        spectrum = np.conj(scipy.fft.rfft(signal))
        places = np.arange(last + 1) % size
        turned = 2 * places > size
        found = spectrum[np.where(turned, size - places, places)]
        found[turned] = np.conj(found[turned])
        error = FFT_LEVEL * math.log2(size) * math.sqrt(size) * float(np.linalg.norm(signal))
        # the mass at zero is there twice: one minus it is small, and so is what is left of one
        return found - 1.0, np.full(last + 1, error)

    def _few_frequencies(self, weights: Array, size: int, last: int) -> tuple[Complex, Array]:
        """The same for few points and few frequencies of a long period: a chirp transform.

        With j n = (j^2 + n^2 - (j - n)^2) / 2 the transform is a convolution of the two lengths
        only. Angles are whole numbers of half turns of the period, so that none is rounded twice.
        """
        chirps = _Chirps.of(size, weights.size, last)
        length = chirps.spectrum.size
        turned = scipy.fft.fft(weights * chirps.points, length)
        found = scipy.fft.ifft(turned * chirps.spectrum)[: last + 1] * chirps.frequencies
        if self.first:
            found *= _half_turns(2 * self.first * np.arange(last + 1), size)
        # two transforms are multiplied (Cauchy-Schwarz), the product transformed back; angles
        level, whole = FFT_LEVEL * math.log2(length), float(weights.sum())
        error = 3 * level * float(np.linalg.norm(weights)) * math.sqrt(weights.size + last)
        error += level * math.sqrt(length) * whole + 40 * UNIT * whole
        return found - 1.0, np.full(last + 1, error)


@dataclass(frozen=True, slots=True, eq=False)
class _Chirps:
    """The factors of a chirp transform that do not depend on what is transformed."""

    points: Complex
    frequencies: Complex
    spectrum: Complex

    @staticmethod
    @lru_cache(maxsize=8)  # the laws of one sum have them in common
    def of(size: int, points: int, last: int) -> _Chirps:
        """Those of so many points and of the frequencies 0 to `last` of a period of `size`."""
        squares = np.arange(max(points, last + 1)) ** 2
        turns = _half_turns(squares, size)
        # place -m of a circle is place length - m: where j - n is below zero
        length = scipy.fft.next_fast_len(points + last)
        chirp = np.zeros(length, dtype=np.complex128)
        chirp[: last + 1] = np.conj(turns[: last + 1])
        chirp[length - points + 1 :] = np.conj(turns[points - 1 : 0 : -1])
        return _Chirps(turns[:points], turns[: last + 1], scipy.fft.fft(chirp))


def _half_turns(counts: NDArray[np.int64], size: int) -> Complex:
    """exp(i pi counts / size)."""
    return np.asarray(np.exp((1j * math.pi / size) * (counts % (2 * size))))


@dataclass(frozen=True, slots=True)
class Grid:
    """Lattice points from -bottom to top."""

    step: float
    bottom: int
    top: int


def on_lattice(above: Profile, below: Profile, joint: float, grid: Grid) -> LatticeLaw:
    """A law of mean zero on the lattice, above that with these potentials but for what is cut off.

    Args:
        above: E(X - x)+, asked for x above `joint`.
        below: E(x - X)+, asked for x up to `joint`.
        joint: Where the two meet.
        grid: The lattice points.
    """
    last_left = min(math.floor(joint / grid.step), grid.top - 1)
    left = np.arange(-grid.bottom, last_left + 1) * grid.step
    right = np.arange(last_left + 1, grid.top + 1) * grid.step
    low, high = below(left), above(right)
    # E(X - x)+ - E(x - X)+ = -x joins the two halves
    lower_half = np.diff(np.append(low, high[0] + right[0]))
    upper_half = np.diff(np.insert(high, 0, low[-1] - left[-1]))
    masses = np.empty(left.size + right.size)
    masses[0], masses[1 : left.size] = lower_half[0], np.diff(lower_half)
    masses[left.size : -1], masses[-1] = np.diff(upper_half), -upper_half[-1]
    return LatticeLaw(grid.step, -grid.bottom, np.maximum(masses, 0.0) / grid.step)
