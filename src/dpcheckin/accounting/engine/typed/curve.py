"""Curves of rounds whose reports have few types: the smaller of two bounds at every alpha.

The profile of every two datasets is convex and lies below each value computed here, so it lies
below chords between them and below the smaller of two bounds: few values are enough, and a value
that cannot be computed is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.curves import FURTHEST, UPPER_SLACK, Curve, Unshuffled
from dpcheckin.accounting.engine.seats import Law, Mixture, Seats
from dpcheckin.accounting.engine.three_atoms import fewer
from dpcheckin.accounting.engine.typed.laws import Types
from dpcheckin.accounting.engine.typed.sums import typed_upper
from dpcheckin.errors import NumericalFailure

TypesAt = Callable[[float], Sequence[Types]]
"""From alpha - 1 to types that suffice there, none where nothing better than the worst is known."""
LowerCurve = Callable[[float, int], tuple[Array, Array]]
"""Lower bounds at 0, step, 2 step, ..., forward and backward."""
# places in deviations of the loss: dense where a composition looks, ever sparser in the tail
_FAR = 8.0 * np.geomspace(1.0, 50.0, 28)
PLACES = np.concatenate([np.arange(0.0, 3.5, 1 / 16), np.arange(3.5, 8.0, 0.25), _FAR])
FEWER_PLACES = np.concatenate([np.arange(0.0, 3.5, 0.1), np.arange(3.5, 8.0, 0.5), _FAR[::2]])
_FEW = np.concatenate([np.arange(0.0, 3.5, 0.25), [4.0, 5.0, 6.5], _FAR[::3]])


class TypedCurve(Curve):
    """The bound of the types beside the bound of the worst law.

    Args:
        worst: The curve with the worst law in every seat.
        parts: The round as a mixture of seats.
        local: What holds without shuffling; with the probability that no seat is empty.
        types: Types at alpha - 1; each of several is a bound, and the smallest counts.
        below: Lower bounds of what some data lose.
        most_lower: How many of them are worth computing.
        places: Where the types' bound is computed, in deviations of the loss.
    """

    def __init__(
        self,
        worst: Curve,
        parts: Mixture[Law],
        local: Unshuffled,
        types: TypesAt,
        below: LowerCurve,
        most_lower: int = 250,
        places: Array = PLACES,
    ) -> None:
        self._places, self.most_lower = places, most_lower
        self._worst, self._local, self._types, self._below = worst, local, types, below
        self._parts = fewer(parts)
        self._known: dict[float, float] = {}

    def coarser(self) -> Curve:
        return TypedCurve(
            self._worst.coarser(), self._parts, self._local, self._types, self._below, places=_FEW
        )

    @property
    def worst(self) -> Curve:
        """The curve with the worst law in every seat."""
        return self._worst

    @cached_property
    def spread(self) -> float:  # type: ignore[override]
        known = self._types(0.0)
        if not known:
            return self._worst.spread
        variance = min(max(law.variance for law in types.laws) for types in known)
        total = sum(
            w * s.count * s.participation * variance / s.population**2 for w, s in self._parts
        )
        return min(math.sqrt(total), self._worst.spread) or self._worst.spread

    def _typed(self, epsilon: float) -> float:
        """The bound of the types without what happens when no seat is empty; may be infinite."""
        if epsilon not in self._known:
            self._known[epsilon] = self._computed(math.expm1(epsilon))
        return self._known[epsilon]

    def _computed(self, rise: float) -> float:
        return min((self._with(types, rise) for types in self._types(rise)), default=math.inf)

    def _with(self, types: Types, rise: float) -> float:
        try:
            return UPPER_SLACK * math.fsum(
                weight * typed_upper(seats, _seated(types, seats), rise)
                for weight, seats in self._parts
            )
        except NumericalFailure:
            return math.inf

    def reach(self, tolerance: float) -> float:
        furthest = self._worst.reach(tolerance)
        loss = 3 * self.spread
        spent = self._local.rate * self._local.local_delta
        if loss == 0.0:  # every loss is too large to be told from an infinite one
            return furthest
        while loss < furthest and self.upper_at(loss) - spent > tolerance:
            loss *= 1.2
        return min(loss, furthest)

    def upper_at(self, epsilon: float) -> float:
        worst, typed = self._worst.upper_at(epsilon), self._typed(epsilon)
        if math.isinf(typed):
            return worst
        whole = self._local.complete(np.array([typed]), np.array([math.exp(epsilon)]))
        return min(worst, float(whole[0]))

    def lower_at(self, epsilon: float) -> float:
        step, at = (epsilon, 1) if epsilon > 0.0 else (1.0, 0)
        below = max(float(side[at]) for side in self._below(step, 2))
        return min(below, self.upper_at(epsilon))

    def upper(self, step: float, points: int) -> Array:
        worst = self._worst.upper(step, points)
        found = self._finite((points - 1) * step)
        if not found or found[0][0] > 0.0:
            return worst
        rises, values = zip(*found, strict=True)
        return np.minimum(worst, self._between(rises, values, step, points))

    @cached_property
    def _listed(self) -> list[float]:
        """Where the types' bound may be computed."""
        return [float(x) for x in self.spread * self._places if x <= FURTHEST]

    def _finite(self, end: float) -> list[tuple[float, float]]:
        """alpha - 1 at the places up to `end`, with the types' bound there if there is one."""
        places = [*(x for x in self._listed if x < end), end]
        found = [(math.expm1(x), self._typed(x)) for x in places]
        return [(rise, value) for rise, value in found if math.isfinite(value)]

    def _between(
        self, rises: Sequence[float], values: Sequence[float], step: float, points: int
    ) -> Array:
        """Bounds on a grid from those at a few places."""
        grid = np.arange(points) * step
        # chords of a convex function lie above it, and beyond the last value it does not rise
        typed = np.interp(np.expm1(grid), rises, values)
        return self._local.complete(typed, np.exp(grid))

    def lower(self, step: float, points: int) -> Array:
        return self._capped(0, step, points)

    def lower_backward(self, step: float, points: int) -> Array | None:
        return self._capped(1, step, points)

    def _capped(self, side: int, step: float, points: int) -> Array:
        below = self._below(step, points)[side]
        return self._local.capped(below, np.exp(np.arange(points) * step))


def _seated(types: Types, seats: Seats[Law]) -> Types:
    """The types of these seats; where no seat can be empty the theorem has the worst law only."""
    if seats.empty > 0.0 or seats.absent > 0.0:
        return types
    if types.violation > 0.0:
        raise NumericalFailure("where no seat is empty the worst law has to be above every report")
    return Types((types.worst,), types.worst)


def nobody_absent(parts: Mixture[Law], rate: float) -> float:
    """Probability that the target reports and no seat is empty, where seats can be."""
    return math.fsum(
        weight * rate * math.exp((seats.count - 1) * math.log1p(-seats.absent))
        for weight, seats in parts
        if seats.empty < 1.0 and 0.0 < seats.absent < 1.0
    )
