"""Typed curves beside a curve of the worst law that is dear: that one is asked where it may count.

Leaving out one of two bounds is sound. A few places tell whether the worst law's is worth its cost:
where reports are few the noise of the types weighs more than the worst law does.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import cached_property

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.curves import Curve
from dpcheckin.accounting.engine.typed.curve import TypedCurve

_FAR = 3.5  # deviations beyond which both bounds are computed: places are sparse there
# of the curve, and of what may be cut off, for which one more value of the worst law is computed
_GAIN, _LITTLE, _HALVINGS = 0.03, 50.0, 6
_PLENTY = 30.0  # how much more than asked for may be cut off where that saves half of the way
_NEAR, _EVERY = 3.5, 8  # which of the places are probed: near ones, every so many-th


class SparingCurve(TypedCurve):
    """The bound of the types, beside that of the worst law if that is smaller somewhere."""

    def coarser(self) -> Curve:
        return self._worst.coarser()  # sums that take longer are no preview

    @cached_property
    def _worst_counts(self) -> bool:
        near = self._places[self._places < _NEAR][::_EVERY]
        return any(
            self._worst.upper_at(place) < self._completed(place)
            for place in (self.spread * near).tolist()
        )

    def _completed(self, epsilon: float) -> float:
        """The bound of the types with what it leaves out; infinite where there is none."""
        typed = self._typed(epsilon)
        if math.isinf(typed):
            return typed
        return float(self._local.complete(np.array([typed]), np.array([math.exp(epsilon)]))[0])

    _negligible = 0.0  # what may be cut off

    def reach(self, tolerance: float) -> float:
        self._negligible = max(tolerance, self._negligible)
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
        return places[at] if at < len(places) else self._worst.reach(tolerance)

    def upper(self, step: float, points: int) -> Array:
        if self._worst_counts:
            return super().upper(step, points)
        end = (points - 1) * step
        found = self._finite(min(end, self._listed[-1]))
        if not found or found[0][0] > 0.0:
            return super().upper(step, points)
        rises, values = zip(*found, strict=True)
        typed = self._between(rises, values, step, points)
        far = math.ceil(_FAR * self.spread / step)
        if far < points:
            rises, values = zip(*self._with_worst(end), strict=True)
            rest = np.expm1(np.arange(far, points) * step)
            beside = np.interp(
                rest, rises, values, left=np.inf
            )  # it falls: right of the last it is not more
            typed[far:] = np.minimum(typed[far:], beside)
        return typed

    def _with_worst(self, end: float) -> list[tuple[float, float]]:
        """Whole bounds far out at alpha - 1: of the types, and of the worst law between them."""
        near = [place for place in self._listed if place <= _FAR * self.spread][-1:]
        places = [*near, *(x for x in self._listed if near[0] < x < end)]
        known = []
        for x in places:
            typed = self._completed(x)
            known.append((x, typed if math.isfinite(typed) else self._worst.upper_at(x)))
        known.append((end, self._worst.upper_at(end)))
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
        value = self._worst.upper_at(middle)
        share = (math.expm1(b) - math.expm1(middle)) / (math.expm1(b) - math.expm1(a))
        chord = share * above + (1.0 - share) * below
        if value >= chord:
            return []
        here = middle, value
        if halvings == 0 or chord - value < _GAIN * chord + _LITTLE * self._negligible:
            return [here]
        return [
            *self._filled(left, here, halvings - 1),
            here,
            *self._filled(here, right, halvings - 1),
        ]
