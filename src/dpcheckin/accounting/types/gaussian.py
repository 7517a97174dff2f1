"""Types of Gaussian reports: log-normal ratios at a slightly larger distance, and certified noise.

Type A is 1 - alpha W and type B is W - alpha, W log-normal. Which distance and how much noise make
a mixture of them lie above every report of the ball is proved by `certificates`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcheckin.accounting.certificates import CertifiedTypes, certified_scales
from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.noise import gaussian_profile
from dpcheckin.accounting.engine.seats import Law, Mixture
from dpcheckin.accounting.engine.typed.laws import Types
from dpcheckin.accounting.engine.typed.nested_laws import STEP, NestedLaw, Points, on_points

# of the answer, about, that may lie above the last point: of many reports, of one large one
_CUT, _CUT_FAR = 1e-5, 1e-4
_MOVED = 2e-5  # of the deviation of the sum, by which moving up what is lowest may raise it
_LOGS = np.linspace(-2.0, 60.0, 1 << 10)  # of W - 1, where the end of the points is looked for
# One large report makes the answer where that is likelier than many small ones. The types then only
# have the larger distance, and the worst law of the true distance has no more than the upper tail.
_ONE_MAY_COUNT, _ONLY_ONE_COUNTS = 0.03, 1e3
_ALONE = 2.5  # deviations of the sum that one report has to reach


@dataclass(frozen=True, slots=True)
class Crowd:
    """How many reports there are at most, and how fast the threshold rises with alpha."""

    reports: float
    seats: float

    @staticmethod
    def of(parts: Mixture[Law]) -> Crowd:
        """The largest of the seats of a round."""
        return Crowd(
            max(seats.count * seats.participation for _, seats in parts),
            max(seats.count + seats.empty for _, seats in parts),
        )


class LogNormalReports:
    """Laws of reports at one distance, on points that reach as far as a crowd asks for.

    Args:
        distance: Deviation of log W.
        crowd: Among whom the reports are.
    """

    def __init__(self, distance: float, crowd: Crowd) -> None:
        self._s, self._crowd = distance, crowd
        self._profiles = self._profile(1.0 + np.exp(_LOGS))
        deviation = math.sqrt(math.expm1(distance * distance))
        self._step = STEP * deviation
        self.deviation = deviation * math.sqrt(crowd.reports)
        self._bottom = self._from(_MOVED * self.deviation)

    def answers(self, rise: float) -> tuple[float, float]:
        """What many small reports, and what one large one, add to the answer, about."""
        threshold = rise * self._crowd.seats
        away = threshold / self.deviation
        many = 0.4 * self.deviation * math.exp(-0.5 * away * away) / (1.0 + away * away)
        if away < _ALONE:  # reports that reach it alone are not told from those that need not
            return many, 0.0
        single = self._crowd.reports * float(self._profile(np.array([1.0 + threshold]))[0])
        return many, single

    def points(self, rise: float) -> Points:
        """Points for this alpha - 1: what is cut off is a small part of the answer."""
        many, single = self.answers(rise)
        top = self._from(max(_CUT * many, _CUT_FAR * single))
        return Points(self._step, max((1.0 + rise) * self._bottom, 1.0 + rise), top)

    def _from(self, negligible: float) -> float:
        """Beyond this a report of all together adds at most so much (a guide)."""
        small = self._crowd.reports * self._profiles <= negligible
        return float(np.exp(_LOGS[int(np.argmax(small)) if small.any() else -1]))

    def first(self, rise: float, points: Points) -> NestedLaw:
        """Type A, 1 - alpha W."""
        alpha = 1.0 + rise
        return on_points(
            lambda x: alpha * self._below(-x / alpha),
            lambda x: alpha * self._above(-x / alpha),
            0.0,
            points,
        )

    def second(self, points: Points) -> NestedLaw:
        """Type B, W - alpha."""
        return on_points(self._above, self._below, 0.0, points)

    def worst(self, rise: float, points: Points) -> NestedLaw:
        """Z*, with the upper tail of the one and the lower tail of the other."""
        alpha = 1.0 + rise
        return on_points(
            self._above, lambda x: alpha * self._profile(1.0 - x / alpha), rise, points
        )

    def cut(self, points: Points) -> float:
        """What one report adds above the last point."""
        return float(self._above(points.runs[-1].points[-1:])[0])

    def _profile(self, alpha: Array) -> Array:
        return gaussian_profile(self._s, np.asarray(alpha, np.float64))

    def _above(self, x: Array) -> Array:
        """E(W - 1 - x)+ for x >= 0."""
        return self._profile(1.0 + x)

    def _below(self, x: Array) -> Array:
        """E(1 + x - W)+ for x <= 0."""
        ratio = np.maximum(1.0 + x, 1e-300)
        return np.where(x > -1.0, ratio * self._profile(1.0 / ratio), 0.0)


class GaussianTypes:
    """Types at every alpha that a certificate covers, and the worst law where one report counts.

    Args:
        distance: Of two inputs, in deviations of the noise.
        certified: Distances, noise and paid violations; of those that cover an alpha the one
            that makes the sum of a crowd scatter least is used.
        crowd: Among whom the reports are.
    """

    def __init__(
        self, distance: float, certified: tuple[CertifiedTypes, ...], crowd: Crowd
    ) -> None:
        self._true = LogNormalReports(distance, crowd)
        # few reports weigh less than the noise that close types ask for
        best = sorted(certified, key=lambda known: _variance(known, crowd))
        self._larger = [(known, LogNormalReports(known.scale, crowd)) for known in best]

    def __call__(self, rise: float) -> tuple[Types, ...]:
        found = []
        many, single = self._true.answers(rise)
        covers = (pair for pair in self._larger if 1.0 + rise <= pair[0].largest_alpha)
        chosen = next(covers, None)
        if chosen is not None and single < _ONLY_ONE_COUNTS * many:
            found.append(_types(*chosen, rise))
        if single > _ONE_MAY_COUNT * many:
            points = self._true.points(rise)
            worst = self._true.worst(rise, points)
            found.append(Types((worst,), worst, 0.0, self._true.cut(points)))
        return tuple(found)


def _variance(known: CertifiedTypes, crowd: Crowd) -> float:
    return crowd.reports * math.expm1(known.scale**2) + 2 * known.smoothing**2


def _types(known: CertifiedTypes, laws: LogNormalReports, rise: float) -> Types:
    points, middle = laws.points(rise), 1.0 + rise / 2
    first, second = laws.first(rise, points), laws.second(points)
    # beyond the last point the reports are cut off, and paid for like a violation
    return Types(
        (first, second),
        laws.worst(rise, points).sharing(first, second),
        known.smoothing * middle,
        known.violation * middle + laws.cut(points),
    )


def gaussian_types(distance: float, parts: Mixture[Law]) -> GaussianTypes | None:
    """The types for inputs at most this many deviations of the noise apart; None if uncertified.

    Args:
        distance: Of two inputs.
        parts: The round as a mixture of seats.
    """
    certified = certified_scales(distance)
    return GaussianTypes(distance, certified, Crowd.of(parts)) if certified else None
