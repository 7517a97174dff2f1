"""Where a round is bounded: points so dense that chords between them cost next to nothing.

E e^(theta L) of a pair is an integral of its profile, with weight theta (theta + 1) alpha^(theta-1) and that of the
mirror image. So what a chord costs, T rounds at the abscissa of their composition, is the area between chord and
profile times T and that weight, by E e^(theta L). A profile is convex: between two points it lies above the continued
chords of its neighbours, and cells are halved where that leaves room for much.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.proof.composition import Law, Point, hull, place
from dpcheckin.accounting.proof.ways import Kind

MOST_POINTS = 400
_FIRST = np.array([0.0, 0.15, 0.3, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0])
_FARTHER = 1.25


class Points:
    """The points of one kind of round, of which there are `count`."""

    def __init__(self, kind: Kind, count: int) -> None:
        self.kind, self.count = kind, count
        self._known: dict[Fraction, Point] = {}
        self._deviation = kind.deviation()
        self._decimals = max(8, 7 - math.floor(math.log10(self._deviation)))

    def at(self, loss: float, *, below: bool = False) -> Point:
        """The point at about this `loss`, or at a little less if it has to be `below`."""
        rise = math.expm1(loss) - (2.0 * 10.0**-self._decimals if below and loss else 0.0)
        alpha = f"{1 + max(rise, 0.0):.{self._decimals}f}".rstrip("0").rstrip(".")
        key = Fraction(alpha)
        if key not in self._known:
            self._known[key] = self.kind.point(alpha)
        return self._known[key]

    def begin(self, negligible: float) -> None:
        """The first points, to where a round's delta is `negligible`."""
        report = self.kind.report
        end = math.log(report.e0) + 2 * 10.0**-self._decimals  # beyond, a report's own delta is left
        spent = self.kind.presence * report.delta
        places = list(self._deviation * _FIRST)
        while True:
            x = places.pop(0)
            if not x < end:
                self.at(end)
                return
            if float(place(self.at(x))[1]) - spent <= negligible:
                return
            if not places:
                places.append(_FARTHER * x)

    def hull(self) -> list[Point]:
        return hull([self._known[alpha] for alpha in sorted(self._known)])

    def refine(self, theta: float, cost: float) -> float:
        """Halve cells where chords, at the abscissa `theta`, `cost` more in epsilon; what all of them still cost."""
        points = self.hull()
        if len(points) < 2:
            return 0.0
        room = self.count / theta * _room(points, theta)
        spare = MOST_POINTS - len(points)
        worth = np.argsort(room)[::-1][: max(spare, 0)]
        before = len(self._known)
        for i in worth[room[worth] > cost / room.size]:
            left, right = (float(place(p)[0] - 1) for p in (points[i], points[i + 1]))
            self.at(0.5 * (math.log1p(left) + math.log1p(right)))
        if len(self._known) == before:
            return 0.0
        return float(room.sum())


def _room(points: list[Point], theta: float) -> Array:
    """For each cell by what part its chord raises E e^(theta L), about."""
    rises = np.array([float(place(p)[0] - 1) for p in points])
    law = Law(points)
    slopes = [float(s) for s in law.slopes]
    first = float(place(points[0])[1])
    left = np.array([-1 + first - slopes[0], *slopes[:-2]])
    here, right = np.array(slopes[:-1]), np.array(slopes[1:])
    width = np.diff(rises)
    # the triangle between a chord and its neighbours; a third of it is what a parabola leaves
    height = width * (here - left) * (right - here) / np.maximum(right - left, 1e-300)
    middle = np.log1p(0.5 * (rises[1:] + rises[:-1]))
    weight = theta * (theta + 1) * (np.exp((theta - 1) * middle) + np.exp(-(theta + 2) * middle))
    grown = float(np.exp(law.logs(np.array([theta]))[0]))
    return np.asarray(np.maximum(height * width / 6, 0.0) * weight / grown)
