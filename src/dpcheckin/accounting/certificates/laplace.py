"""Which noise puts every Laplace report below two types: proved when it is asked for.

The claim, for ε₀, α = (1 + β)/(1 - β) and τ = τ₀(1 + α)/2: for all inputs a, b, x of an interval
there is a weight w with, for every real u,

    E G_τ(Z_x - u) ≤ (1 - w) E G_τ(A' - u) + w E G_τ(B' - u) + κ(1 + α)/2,

A' and B' being the types of the two ends, stretched by `STRETCH` about their mean and put on the
points of a lattice. It is examined in balanced units, divided by (1 + α)/2, and centred: X = Z + 2β
in these. Potentials are then jointly convex in (β, x), so that the claim at two β with one weight
carries over to all between, for types that are mixed likewise (docs/laplace-certificate.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from dpcheckin.accounting.certificates.laplace_potential import (
    Array,
    Places,
    reports_at,
    types_at,
)
from dpcheckin.accounting.certificates.smoothing import KERNEL, kernel, lowest

SMALLEST, LARGEST = 0.08, 12.0  # ε₀: below nothing is gained, above noise costs more than it gains
STRETCH = 5e-4
VIOLATION = 1e-12  # κ
TILT_STEP = 0.05  # distance of the β that are examined
ROUNDING = 4e-13  # of a difference of two potentials in balanced units
_TRIES, _FINER = 1.1, 12  # steps of the search for a scale, and how many downward
_FINEST, _GROWTH, _WIDEST = 0.03, 0.25, 0.3  # of the places between the ends


def deviation(local_epsilon: float) -> float:
    """Standard deviation of the ratio of the densities at the two ends."""
    e0 = math.exp(local_epsilon)
    return math.sqrt(e0 / 2 + 0.5 / e0**2 + (e0 - 1 / e0**2) / 6 - 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Tilt:
    """Potentials at one β on the points: types from below, reports from above.

    Calls E(X - x)₊ for x ≥ 0, puts E(x - X)₊ for x < 0, in balanced units.
    """

    first: Array
    second: Array
    reports: Array


class LaplaceClaim:
    """The claim for one local epsilon, examined interval by interval of β.

    Args:
        local_epsilon: Length of the interval over the scale of the noise.
        points: Where the types may have mass, ascending, as far as their support and further.
        stretch: How much wider the types are than those of the two ends.
    """

    def __init__(self, local_epsilon: float, points: Array, stretch: float = STRETCH) -> None:
        self.local_epsilon, self.points, self._stretch = local_epsilon, points, stretch
        small = min(1.0, local_epsilon)
        self._places = Places.of(local_epsilon, _FINEST * small, _GROWTH, _WIDEST * small)
        self.tilt = cache(self._tilt)
        self.smoothing = cache(self._smoothing)

    def _tilt(self, index: int) -> Tilt:
        beta = TILT_STEP * index
        alpha, unit = (1 + beta) / (1 - beta), 1 / (1 - beta)
        mean, x = -2 * beta * unit, self.points * unit
        wide = 1.0 + self._stretch
        first, second = (
            wide * self._centred(one, x / wide, x / wide + mean) / unit
            for one in types_at(self.local_epsilon, alpha, x / wide + mean)
        )
        t = x + mean
        return Tilt(
            first,
            second,
            self._centred(reports_at(self._places, alpha, t), x, t) / unit,
        )

    @staticmethod
    def _centred(values: Array, x: Array, t: Array) -> Array:
        """Calls for t ≥ 0 and puts for t < 0 as calls for x ≥ 0 and puts for x < 0."""
        values = np.where((x >= 0.0) & (t < 0.0), values - x, values)
        return np.where((x < 0.0) & (t >= 0.0), values + x, values)

    def _smoothing(self, index: int) -> float | None:
        """A τ₀ with which the claim holds for β from `index` to `index` + 1 steps, None if none."""
        if index > 0:
            before = self.smoothing(index - 1)
            if before is None:
                return None
            return before if self.holds(index, before) else self._raised(index, before)
        scale = deviation(self.local_epsilon)
        guess = max(0.5 * scale, 0.1 * math.exp(self.local_epsilon) - 4.0)
        found = self._raised(index, guess / _TRIES)
        for _ in range(_FINER):
            if found is None or not self.holds(index, found / _TRIES):
                break
            found /= _TRIES
        return found

    def _raised(self, index: int, scale: float) -> float | None:
        for _ in range(8):
            scale *= _TRIES
            if self.holds(index, scale):
                return scale
        return None

    def holds(self, index: int, smoothing: float) -> bool:
        """Is the claim proved for β between `index` and `index` + 1 steps, with this τ₀?"""
        weights = kernel(self.points, smoothing)
        ends = [self._smoothed(self.tilt(i), weights) for i in (index, index + 1)]
        chosen = self._weights(ends)[:, None]
        return all(
            float(one.least(chosen, self.points, smoothing).min()) >= -VIOLATION for one in ends
        )

    @staticmethod
    def _smoothed(tilt: Tilt, weights: Array) -> _Difference:
        plain, other = tilt.first - tilt.reports, tilt.second - tilt.first
        tails = float(tilt.reports[:, 0].max() + tilt.reports[:, -1].max())
        error = KERNEL * (np.abs(plain) @ weights + np.abs(other) @ weights) + ROUNDING + tails
        return _Difference(plain, other, plain @ weights, other @ weights, error)

    @staticmethod
    def _weights(ends: list[_Difference]) -> Array:
        """One for each row, in the middle of those that no point rules out; any are sound."""
        low, high = np.zeros(ends[0].plain.shape[0]), np.ones(ends[0].plain.shape[0])
        for one in ends:
            gap, slope = one.smooth - one.error + VIOLATION / 2, one.other_smooth
            with np.errstate(divide="ignore", invalid="ignore"):
                bound = -gap / slope
            low = np.maximum(low, np.where(slope > 0, bound, 0.0).max(axis=1))
            high = np.minimum(high, np.where(slope < 0, bound, 1.0).min(axis=1))
        return np.clip((low + high) / 2, 0.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Difference:
    """Type A minus reports and type B minus A at one β, before and after smoothing."""

    plain: Array
    other: Array
    smooth: Array
    other_smooth: Array
    error: Array

    def least(self, weights: Array, points: Array, smoothing: float) -> Array:
        """By how much the mixture is above each report, at least."""
        value = self.smooth + weights * self.other_smooth
        plain = self.plain + weights * self.other - ROUNDING
        return lowest(value - self.error, value + self.error, plain, points, smoothing)
