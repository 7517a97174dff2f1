"""Curves of rounds whose reports have few types: the smaller of two bounds at every alpha.

The profile of every two datasets is convex and lies below each value computed here, so it lies below chords between
them and below the smaller of two bounds: few values are enough, and a value that cannot be computed, or costs more than
it is worth, is left out.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.curves import FURTHEST, LOWER_SLACK, UPPER_SLACK, Curve, Unshuffled, fewer, place
from dpcheckin.accounting.engine.loss import Atoms
from dpcheckin.accounting.engine.seats import Hits, Mixture, Seats
from dpcheckin.accounting.engine.three_atoms import atoms
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
_SPARSE = 3.5  # deviations beyond which both bounds are computed: places are sparse there
# of the curve, and of what may be cut off, for which one more value of the worst law is computed
_GAIN, _LITTLE, _HALVINGS = 0.03, 50.0, 6
_PLENTY = 30.0  # how much more than asked for may be cut off where that saves half of the way
_NEAR, _EVERY = 3.5, 8  # which of the places are probed: near ones, every so many-th


@dataclass(frozen=True, slots=True)
class BadCase:
    """What some data lose: lower bounds at 0, step, 2 step, ..., forward and backward, and how many are worth it."""

    curves: LowerCurve
    most: int = 100_000


class TypedCurve(Curve):
    """The bound of the types beside the bound of the worst law.

    `worst`: the curve with the worst law in every seat. `parts`: the round as a mixture of seats. `local`: what holds
    without shuffling; with the probability that no seat is empty. `types`: types at alpha - 1; each of several is a
    bound, and the smallest counts. `below`: what some data lose. `places`: where the types' bound is computed, in
    deviations of the loss.
    """

    def __init__(
        self, worst: Curve, parts: Mixture, local: Unshuffled, types: TypesAt, below: BadCase, places: Array = PLACES
    ) -> None:
        self._places, self.most_lower = places, below.most
        self.worst, self._local, self._types, self._below = worst, local, types, below
        self._parts = fewer(parts)
        self._known: dict[float, float] = {}

    def coarser(self) -> Curve:
        below = replace(self._below, most=250)
        return TypedCurve(self.worst.coarser(), self._parts, self._local, self._types, below, _FEW)

    @cached_property
    def spread(self) -> float:  # type: ignore[override]
        known = self._types(0.0)
        if not known:
            return self.worst.spread
        variance = min(max(law.variance for law in types.laws) for types in known)
        total = sum(w * s.count * s.participation * variance / s.population**2 for w, s in self._parts)
        return min(math.sqrt(total), self.worst.spread) or self.worst.spread

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
                weight * typed_upper(seats, self.seated(types, seats), rise) for weight, seats in self._parts
            )
        except NumericalFailure:
            return math.inf

    def seated(self, types: Types, seats: Seats) -> Types:
        """The types of these seats; where no seat can be empty the theorem has the worst law only."""
        if seats.empty > 0.0 or seats.absent > 0.0:
            return types
        if types.violation > 0.0:
            raise NumericalFailure("where no seat is empty the worst law has to be above every report")
        return Types((types.worst,), types.worst)

    def reach(self, tolerance: float) -> float:
        furthest = self.worst.reach(tolerance)
        loss = 3 * self.spread
        spent = self._local.rate * self._local.local_delta
        if loss == 0.0:  # every loss is too large to be told from an infinite one
            return furthest
        while loss < furthest and self.upper_at(loss) - spent > tolerance:
            loss *= 1.2
        return min(loss, furthest)

    def _completed(self, epsilon: float) -> float:
        """The bound of the types with what it leaves out; infinite where there is none."""
        typed = self._typed(epsilon)
        if math.isinf(typed):
            return typed
        return float(self._local.complete(np.array([typed]), np.array([math.exp(epsilon)]))[0])

    def upper_at(self, epsilon: float) -> float:
        return min(self.worst.upper_at(epsilon), self._completed(epsilon))

    def lower_at(self, epsilon: float) -> float:
        step, at = place(epsilon)
        below = max(float(side[at]) for side in self._below.curves(step, 2))
        return min(below, self.upper_at(epsilon))

    def upper(self, step: float, points: int) -> Array:
        worst = self.worst.upper(step, points)
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

    def _between(self, rises: Sequence[float], values: Sequence[float], step: float, points: int) -> Array:
        """Bounds on a grid from those at a few places."""
        grid = np.arange(points) * step
        # chords of a convex function lie above it, and beyond the last value it does not rise
        typed = np.interp(np.expm1(grid), rises, values)
        return self._local.complete(typed, np.exp(grid))

    def lower(self, step: float, points: int) -> tuple[Array, Array | None]:
        alphas = np.exp(np.arange(points) * step)
        forward, backward = (self._local.capped(side, alphas) for side in self._below.curves(step, points))
        return forward, backward


class TypesFirstCurve(TypedCurve):
    """Typed curves beside a curve of the worst law that is dear: that one is asked where it may count.

    A few places tell which of the two is worth its cost: where reports are few the noise of the types weighs more than
    the worst law does.
    """

    def coarser(self) -> Curve:
        return self.worst.coarser()  # sums that take longer are no preview

    @cached_property
    def _near(self) -> list[tuple[float, float]]:
        """Both bounds at a few places: of the worst law, and of the types."""
        near = self._places[self._places < _NEAR][::_EVERY]
        return [(self.worst.upper_at(place), self._completed(place)) for place in (self.spread * near).tolist()]

    @cached_property
    def _worst_counts(self) -> bool:
        return any(worst < typed for worst, typed in self._near)

    @cached_property
    def _types_count(self) -> bool:
        return any(typed < worst for worst, typed in self._near)

    _negligible = 0.0  # what may be cut off

    def reach(self, tolerance: float) -> float:
        self._negligible = max(tolerance, self._negligible)
        if not self._types_count:
            return self.worst.reach(tolerance)
        if self._worst_counts:
            return super().reach(tolerance)
        near, far = self._within(_PLENTY * tolerance), self._within(tolerance)
        # what is cut off is charged: far out rounding is left, and a longer grid is a coarser one
        return near if far > 2.0 * near else far

    def _within(self, tolerance: float) -> float:
        """A loss beyond which no more than this is left."""
        enough = tolerance + self._local.rate * self._local.local_delta
        places = [place for place in self._listed if place >= 3.0 * self.spread]
        # where a report gives away no more by itself no sum is asked: most have no digits there
        alone = self._local.complete(np.full(len(places), np.inf), np.exp(places))
        end = int(np.searchsorted(-alone, -enough))
        # the bound falls, so few of the places are asked; all of them will be of use again
        at = bisect_left(places, True, hi=end, key=lambda x: self._completed(x) <= enough)
        return places[at] if at < len(places) else self.worst.reach(tolerance)

    def upper(self, step: float, points: int) -> Array:
        if not self._types_count:
            return self.worst.upper(step, points)
        if self._worst_counts:
            return super().upper(step, points)
        end = (points - 1) * step
        found = self._finite(min(end, self._listed[-1]))
        if not found or found[0][0] > 0.0:
            return super().upper(step, points)
        rises, values = zip(*found, strict=True)
        typed = self._between(rises, values, step, points)
        far = math.ceil(_SPARSE * self.spread / step)
        if far < points:
            rises, values = zip(*self._with_worst(end), strict=True)
            rest = np.expm1(np.arange(far, points) * step)
            beside = np.interp(rest, rises, values, left=np.inf)  # it falls: right of the last it is not more
            typed[far:] = np.minimum(typed[far:], beside)
        return typed

    def _with_worst(self, end: float) -> list[tuple[float, float]]:
        """Whole bounds far out at alpha - 1: of the types, and of the worst law between them."""
        near = [place for place in self._listed if place <= _SPARSE * self.spread][-1:]
        places = [*near, *(x for x in self._listed if near[0] < x < end)]
        known = []
        for x in places:
            typed = self._completed(x)
            known.append((x, typed if math.isfinite(typed) else self.worst.upper_at(x)))
        known.append((end, self.worst.upper_at(end)))
        found = [known[0]]
        for after in known[1:]:
            found += [*self._filled(found[-1], after, _HALVINGS), after]
        return [(math.expm1(x), value) for x, value in found]

    def _filled(
        self, left: tuple[float, float], right: tuple[float, float], halvings: int
    ) -> list[tuple[float, float]]:
        """The worst law's bounds between two places, as many as are well below chords."""
        (a, above), (b, below) = left, right
        middle = math.sqrt(a * b)
        value = self.worst.upper_at(middle)
        share = (math.expm1(b) - math.expm1(middle)) / (math.expm1(b) - math.expm1(a))
        chord = share * above + (1.0 - share) * below
        if value >= chord:
            return []
        here = middle, value
        if halvings == 0 or chord - value < _GAIN * chord + _LITTLE * self._negligible:
            return [here]
        return [*self._filled(left, here, halvings - 1), here, *self._filled(here, right, halvings - 1)]


def with_types(
    types: TypesAt, worst: Curve, parts: Mixture, local: Unshuffled, below: BadCase, dear: bool = False
) -> Curve:
    """The curve of a round (`parts`) whose others are of these `types`, nowhere above that of the `worst` law.

    `local` is what holds without shuffling, `below` what some data lose. Where each value of either bound takes long
    (`dear`), few are computed.
    """
    # the types need an empty seat: the probability that the target reports and there is none
    full = math.fsum(
        weight * local.rate * math.exp((seats.count - 1) * math.log1p(-seats.absent))
        for weight, seats in parts
        if seats.empty < 1.0 and 0.0 < seats.absent < 1.0
    )
    whole = replace(local, unprotected=max(local.unprotected, full))
    if dear:
        return TypesFirstCurve(worst, parts, whole, types, below, FEWER_PLACES)
    return TypedCurve(worst, parts, whole, types, below)


def merged_case(parts: Mixture, third: Hits) -> BadCase:
    """What is lost in a round of these `parts` when all others hold a `third` value, reports of its kind merged."""
    views: list[tuple[float, Atoms]] = []

    def below(step: float, points: int) -> tuple[Array, Array]:
        if not views:
            views.extend((min(weight, 1.0), atoms(seats, third)[1]) for weight, seats in parts)
        total = np.zeros(points)
        for weight, merged in views:
            total += weight * LOWER_SLACK * merged.curve(step, points)
        return total, total

    return BadCase(below)
