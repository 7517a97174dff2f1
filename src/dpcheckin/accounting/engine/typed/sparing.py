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

    def reach(self, tolerance: float) -> float:
        if self._worst_counts:
            return super().reach(tolerance)
        near, far = self._within(_PLENTY * tolerance), self._within(tolerance)
        # what is cut off is charged: far out rounding is left, and a longer grid is a coarser one
        return near if far > 2.0 * near else far

    def _within(self, tolerance: float) -> float:
        """A loss beyond which no more than this is left."""
        enough = tolerance + self._local.rate * self._local.local_delta
        places = [place for place in self._listed if place >= 3.0 * self.spread]
        # the bound falls, so few of the places are asked; all of them will be of use again
        at = bisect_left(places, True, key=lambda place: self._completed(place) <= enough)
        return places[at] if at < len(places) else self._worst.reach(tolerance)

    def upper(self, step: float, points: int) -> Array:
        far = math.ceil(_FAR * self.spread / step)
        if self._worst_counts:
            return super().upper(step, points)
        found = self._finite(min((points - 1) * step, self._listed[-1]))
        if not found or found[0][0] > 0.0:
            return super().upper(step, points)
        rises, values = zip(*found, strict=True)
        typed = self._between(rises, values, step, points)
        if far < points:
            typed[far:] = np.minimum(typed[far:], self._worst.tail(far, step, points))
        return typed
