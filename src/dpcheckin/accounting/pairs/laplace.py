"""Laplace reports: a number of an interval, and noise; types of the others' reports, and the proof that they suffice.

The types are those of the two ends: A is 1 - alpha W and B is W - alpha, W the ratio of the densities there. How much
noise makes a mixture of them lie above every report is proved when it is asked for. The claim, for ε₀,
α = (1 + β)/(1 - β) and τ = τ₀(1 + α)/2: for all inputs a, b, x of an interval there is a weight w with, for every u,

    E G_τ(Z_x - u) ≤ (1 - w) E G_τ(A' - u) + w E G_τ(B' - u) + κ(1 + α)/2,

A' and B' being the two types, stretched by `STRETCH` about their mean and put on the points of a lattice. It is
examined in balanced units, divided by (1 + α)/2, and centred: X = Z + 2β in these. Potentials are then jointly convex
in (β, x), so that the claim at two β with one weight carries over to all between, for types that are mixed likewise
(docs/laplace-certificate.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import ClassVar

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.seats import Mixture, RealPair
from dpcheckin.accounting.engine.typed.laws import Types
from dpcheckin.accounting.engine.typed.nested_laws import NestedLaw, Points, on_points
from dpcheckin.accounting.pairs.local import LocalPair
from dpcheckin.accounting.pairs.potentials import KERNEL, Places, kernel, lowest, reports_at, types_at
from dpcheckin.accounting.pairs.pure_types import Family
from dpcheckin.numerals import local_epsilon_in_range

SMALLEST, LARGEST = 0.08, 12.0  # ε₀: below nothing is gained, above noise costs more than it gains
STRETCH = 5e-4
VIOLATION = 1e-12  # κ
TILT_STEP = 0.05  # distance of the β that are examined
ROUNDING = 4e-13  # of a difference of two potentials in balanced units
_TRIES, _FINER = 1.1, 12  # steps of the search for a scale, and how many downward
_FINEST, _GROWTH, _WIDEST = 0.03, 0.25, 0.3  # of the places between the ends
_STEP, _OCTAVE = 0.06, 32  # of the points near zero, in deviations of a report; and further out
_LAST_TILT = 0.95  # beta, beyond which nothing is examined


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

    `local_epsilon`: length of the interval over the scale of the noise. `points`: where the types may have mass,
    ascending, as far as their support and further. `stretch`: how much wider the types are than those of the two ends.
    """

    def __init__(self, local_epsilon: float, points: Array, stretch: float = STRETCH) -> None:
        self.local_epsilon, self.points, self._stretch = local_epsilon, points, stretch
        small = min(1.0, local_epsilon)
        self._places = Places.of(local_epsilon, _FINEST * small, _GROWTH, _WIDEST * small)
        self.tilt = cache(self._tilt)
        self.smoothing = cache(self._smoothing)

    def _tilt(self, index: float) -> Tilt:
        beta = TILT_STEP * index
        alpha, unit = (1 + beta) / (1 - beta), 1 / (1 - beta)
        mean, x = -2 * beta * unit, self.points * unit
        wide = 1.0 + self._stretch
        first, second = (
            wide * self._centred(one, x / wide, x / wide + mean) / unit
            for one in types_at(self.local_epsilon, alpha, x / wide + mean)
        )
        t = x + mean
        return Tilt(first, second, self._centred(reports_at(self._places, alpha, t), x, t) / unit)

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

    def holds(self, index: float, smoothing: float, steps: int = 1) -> bool:
        """Is the claim proved for β between `index` and `index` + `steps` steps, 0 or 1, with τ₀ = `smoothing`?"""
        weights = kernel(self.points, smoothing)
        ends = [self._smoothed(self.tilt(i), weights) for i in sorted({index, index + steps})]
        chosen = self._weights(ends)[:, None]
        return all(float(one.least(chosen, self.points, smoothing).min()) >= -VIOLATION for one in ends)

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


class LaplaceTypes:
    """Types at every alpha for which they are proved.

    `local_epsilon`: length of the interval over the scale of the noise.
    """

    def __init__(self, local_epsilon: float) -> None:
        self._local_epsilon = local_epsilon
        # with two points to spare, as bounds of reports reach to the next one
        reach = float(np.expm1(local_epsilon)) * (1.0 + STRETCH + 2.5 / _OCTAVE)
        self._step = _STEP * deviation(local_epsilon)
        # in balanced units X lies between -(1 + beta) and 1 - beta times e0 - 1
        self._reach = 2.0 * (reach + self._step), reach + 2.0 * self._step
        self.claim = LaplaceClaim(local_epsilon, np.concatenate([run.points for run in self._points(1.0).runs]))

    def _points(self, unit: float) -> Points:
        bottom, top = self._reach
        return Points(unit * self._step, unit * bottom, unit * top, _OCTAVE)

    def __call__(self, rise: float) -> tuple[Types, ...]:
        beta = rise / (2.0 + rise)
        if beta >= _LAST_TILT:
            return ()
        index = int(beta / TILT_STEP)
        smoothing = self.claim.smoothing(index)
        if smoothing is None:
            return ()
        share, unit = beta / TILT_STEP - index, 1.0 + rise / 2
        left, right = self.claim.tilt(index), self.claim.tilt(index + 1)
        points = self._points(unit)
        return (
            Types(
                (
                    self._law((1.0 - share) * left.first + share * right.first, unit, points),
                    self._law((1.0 - share) * left.second + share * right.second, unit, points),
                ),
                self._worst(rise, points),
                smoothing * unit,
                VIOLATION * unit,
            ),
        )

    def _law(self, potentials: Array, unit: float, points: Points) -> NestedLaw:
        """The law on the points that has these potentials, in balanced units."""

        def potential(x: Array) -> Array:
            return np.asarray(unit * np.interp(x / unit, self.claim.points, potentials))

        return on_points(potential, potential, -0.5 * points.step, points)

    def _worst(self, rise: float, points: Points) -> NestedLaw:
        """Z*, with the upper tail of the one and the lower tail of the other."""
        alpha, epsilon = 1.0 + rise, self._local_epsilon
        return on_points(
            lambda x: laplace_profile(epsilon, 1.0 + x),
            lambda x: alpha * laplace_profile(epsilon, 1.0 - x / alpha),
            rise,
            points,
        )


def laplace_profile(local_epsilon: float, alpha: Array) -> Array:
    """H_`alpha` of Laplace noise of this `local_epsilon` at the two ends of the interval, alpha > 0."""
    logs = np.log(alpha)
    inner = -np.expm1(np.minimum((logs - local_epsilon) / 2, 0.0))
    return np.where(logs <= -local_epsilon, 1 - alpha, np.where(logs < local_epsilon, inner, 0.0))


@lru_cache(maxsize=32)
def laplace_types(local_epsilon: float) -> LaplaceTypes:
    """The types of Laplace reports; asked again, what was proved is remembered.

    `local_epsilon`: length of the interval over the scale of the noise.
    """
    return LaplaceTypes(local_epsilon)


@dataclass(frozen=True)
class LaplacePair(LocalPair):
    """Laplace noise on a number of an interval, whose length is epsilon times the noise's scale."""

    local_epsilon: float
    local_delta: float = 0.0
    full_shuffle_proved: bool = False
    family: Family = Family.LAPLACE
    dear: ClassVar[bool] = True

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"Laplace with local epsilon {self.local_epsilon:g}"

    @property
    def typed(self) -> bool:
        return self.family is Family.LAPLACE and SMALLEST <= self.local_epsilon <= LARGEST

    def profile(self, alpha: Array | Sequence[float] | float) -> Array:
        a = np.asarray(alpha, dtype=np.float64)
        inside = laplace_profile(self.local_epsilon, np.maximum(a, 1e-300))
        return np.where(a <= 0, 1.0 - np.minimum(a, 0.0), inside)

    @property
    def second_moment(self) -> float:
        epsilon = self.local_epsilon
        if epsilon < 1e-4:  # the two terms would cancel
            return epsilon**2 * (0.5 + epsilon / 12)
        return 2 / 3 * (math.expm1(epsilon) + 2 * math.expm1(-epsilon / 2))

    @property
    def directions(self) -> tuple[RealPair, ...]:
        epsilon = self.local_epsilon
        smallest, largest = math.exp(-epsilon), math.exp(epsilon)

        def tails(ratio: float) -> tuple[float, float]:
            if ratio < smallest:
                return 1.0, 1.0
            if ratio >= largest:
                return 0.0, 0.0
            log = math.log(ratio)
            return 0.5 * math.exp(-0.5 * (epsilon + log)), 1 - 0.5 * math.exp(0.5 * (log - epsilon))

        (real,) = super().directions
        return (replace(real, tails=tails),)

    def spare(self, clients: int) -> float:
        return math.exp(-0.5 * self.local_epsilon)  # noise about the middle of the interval

    def others_types(self, parts: Mixture) -> LaplaceTypes | None:
        return laplace_types(self.local_epsilon) if self.typed else None


def laplace(local_epsilon: float) -> LaplacePair:
    """Laplace noise on one number, with epsilon = range / scale."""
    return LaplacePair(local_epsilon_in_range(local_epsilon))
