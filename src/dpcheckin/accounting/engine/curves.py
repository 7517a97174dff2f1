"""One-round curves delta(epsilon), whatever engine computes them: bounds above and below.

A curve adds to what an engine finds what happens when no seat is empty (a multiple of the local
profile) and mass without counterpart (the local delta), and is capped by what holds without any
shuffling. Curves are read on the safe side of what rounding makes of alpha = exp(epsilon).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.accounting.engine.arrays import Array, FloatArray
from dpcheckin.accounting.engine.seats import Profile, RealPair
from dpcheckin.special.roots import root

# Curves are widened by this relative amount, far more than the rounding of sums and differences.
UPPER_SLACK, LOWER_SLACK = 1 + 1e-11, 1 - 1e-9
FUNCTION_SLACK = 1e-10  # of curves given as functions; their own arithmetic is far better
# Rounding of exp(epsilon), and of what sampling turns it into, 1 + (alpha - 1)/q.
_ALPHA_SLACK = 1e-15

FURTHEST = 600.0  # losses beyond are not told apart: their exponentials overflow

CurveFunction = Callable[[FloatArray], FloatArray]


def left_of(alpha: NDArray[np.floating[Any]]) -> FloatArray:
    """Numbers surely not above the true alphas, all at least 1: a falling curve is larger there."""
    return np.asarray(np.maximum(alpha * (1.0 - _ALPHA_SLACK), 1.0), np.float64)


def right_of(alpha: NDArray[np.floating[Any]]) -> FloatArray:
    """Numbers surely not below the true alphas: a falling curve is smaller there."""
    return np.asarray(alpha * (1.0 + _ALPHA_SLACK), np.float64)


@dataclass(frozen=True, slots=True)
class Unshuffled:
    """What holds without shuffling: a report costs no more than its local profile.

    Args:
        profile: The local profile.
        unprotected: Probability that no seat is empty, when nothing better is proved then.
        rate: A bound on the probability that the client's report is there at all.
        local_delta: Mass of a report without counterpart.
    """

    profile: Profile
    unprotected: float
    rate: float
    local_delta: float

    def complete(self, upper: Array, alphas: Array) -> Array:
        """The theorem's finite part completed to a full upper bound."""
        local = self.profile(left_of(alphas))
        whole = upper + self.unprotected * local + self.rate * self.local_delta
        return np.asarray(np.minimum(whole, self.rate * local * UPPER_SLACK))

    def capped(self, lower: Array, alphas: Array) -> Array:
        """A lower bound of the finite part, capped as the upper one is."""
        local = self.profile(right_of(alphas)) - self.local_delta
        return np.asarray(np.minimum(lower, self.rate * np.maximum(local, 0.0) * LOWER_SLACK))


class Curve(ABC):
    """delta(epsilon) of one round for epsilon >= 0."""

    spread: float  # standard deviation of the loss, a guide for the grid
    quantum: float = 0.0  # spacing of the losses if they are nearly equidistant
    resolution: int = 160  # grid points per standard deviation that are worth computing
    finest: int = 640  # as many if there are few rounds
    most_lower: int = 100_000  # points of the lower bound that are worth computing
    symmetric: bool = True  # is the pair closed under swapping?

    def coarser(self) -> Curve:
        """A curve nowhere below this one's upper bound that is much quicker to compute.

        Its lower bounds say nothing.
        """
        return self

    def swapped(self) -> Curve:
        """The curve of the swapped pair."""
        return self

    @abstractmethod
    def reach(self, tolerance: float) -> float:
        """A loss beyond which the curve's changeable part is at most `tolerance`."""

    @abstractmethod
    def upper_at(self, epsilon: float) -> float:
        """Upper bound at one place, with no grid in between."""

    @abstractmethod
    def lower_at(self, epsilon: float) -> float:
        """Lower bound at one place."""

    @abstractmethod
    def upper(self, step: float, points: int) -> Array:
        """Upper bounds at epsilon = 0, step, 2 step, ..."""

    def tail(self, first: int, step: float, points: int) -> Array:
        """The same from first * step on."""
        return self.upper(step, points)[first:]

    @abstractmethod
    def lower(self, step: float, points: int) -> Array:
        """Lower bounds of the finite part at the same places."""

    def lower_backward(self, step: float, points: int) -> Array | None:
        """The same for the swapped pair; None if it is the same."""
        return None


class LocalCurve(Curve):
    """Nothing but the local profile, at the rate of reporting: exact, in closed form."""

    def __init__(self, local: Unshuffled, largest_loss: float, real: RealPair | None) -> None:
        """`real` is a pair of laws where the profile, the larger of two directions, is none."""
        self._local, self._largest, self._real = local, largest_loss, real
        top = min(largest_loss, 40.0)
        losses = np.linspace(0.0, top, 2000)
        # variance of the loss from the profile: 2 * integral of loss-weighted tail (a guide)
        values = local.rate * (local.profile(np.exp(losses)) - local.local_delta)
        self.spread = math.sqrt(max(2 * float(np.sum(values) * (losses[1] - losses[0])), 1e-30))

    def reach(self, tolerance: float) -> float:
        loss = self.spread
        while loss < min(self._largest, 700.0):
            value = self._local.rate * float(self._local.profile(np.array([math.exp(loss)]))[0])
            if value - self._local.rate * self._local.local_delta <= tolerance:
                return loss
            loss *= 1.2
        return min(self._largest, 700.0)

    def upper_at(self, epsilon: float) -> float:
        return float(self.upper(epsilon, 2)[1])

    def lower_at(self, epsilon: float) -> float:
        return float(self.lower(epsilon, 2)[1])

    def upper(self, step: float, points: int) -> Array:
        alphas = np.exp(np.minimum(np.arange(points) * step, 700.0))
        return self._local.rate * self._local.profile(left_of(alphas)) * UPPER_SLACK

    def lower(self, step: float, points: int) -> Array:
        alphas = right_of(np.exp(np.minimum(np.arange(points) * step, 700.0)))
        if self._real is not None:
            return np.asarray(self._local.rate * self._real.above(alphas) * LOWER_SLACK)
        finite = self._local.profile(alphas) - self._local.local_delta
        return np.asarray(self._local.rate * np.maximum(finite, 0.0) * LOWER_SLACK)

    def lower_backward(self, step: float, points: int) -> Array | None:
        if self._real is None:
            return None
        alphas = right_of(np.exp(np.minimum(np.arange(points) * step, 700.0)))
        return np.asarray(self._local.rate * alphas * self._real.below(1.0 / alphas) * LOWER_SLACK)


class FunctionCurve(Curve):
    """A curve whose bounds are functions of alpha >= 1, as sampling theorems give them.

    Args:
        upper: Upper bounds of the hockey-stick divergence.
        lower: Lower bounds.
        largest_loss: Loss beyond which the upper curve is constant; its value there is charged.
        backward: The same two bounds for the swapped pair; None for a symmetric one.
        accuracy: Relative width of the composed bracket at which refining the grid stops.
    """

    def __init__(
        self,
        upper: CurveFunction,
        lower: CurveFunction,
        largest_loss: float,
        backward: tuple[CurveFunction, CurveFunction] | None = None,
        accuracy: float = 2e-3,
    ) -> None:
        self._upper, self._lower, self._backward = upper, lower, backward
        self.largest_loss, self.accuracy = largest_loss, accuracy
        self.symmetric = backward is None

    @cached_property
    def spread(self) -> float:  # type: ignore[override]
        losses = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 40) * self.largest_loss])
        area = float(np.trapezoid(self._upper(np.exp(losses)), losses))
        return 2.0 * math.sqrt(max(area, 0.0))  # of a symmetric pair; a guide only

    def coarser(self) -> FunctionCurve:
        return _SparseCurve(
            self._upper, self._lower, self.largest_loss, self._backward, self.accuracy
        )

    def swapped(self) -> FunctionCurve:
        if self._backward is None:
            return self
        ahead = (self._upper, self._lower)
        return type(self)(*self._backward, self.largest_loss, ahead, self.accuracy)

    def reach(self, tolerance: float) -> float:
        return self.largest_loss

    def lower_backward(self, step: float, points: int) -> Array | None:
        return None if self.symmetric else self.swapped().lower(step, points)

    def area(self, points: FloatArray) -> float:
        """Integral of the upper curve over alpha, from chords between the points."""
        return float(np.trapezoid(self._upper(points), points))

    def upper_at(self, epsilon: float) -> float:
        return float(self.upper(epsilon, 2)[1])

    def lower_at(self, epsilon: float) -> float:
        return float(self.lower(epsilon, 2)[1])

    def upper(self, step: float, points: int) -> Array:
        alpha = left_of(np.exp(np.arange(points) * step))
        return (1.0 + FUNCTION_SLACK) * self._upper(alpha)

    def lower(self, step: float, points: int) -> Array:
        alpha = right_of(np.exp(np.arange(points) * step))
        return (1.0 - FUNCTION_SLACK) * self._lower(alpha)


class _SparseCurve(FunctionCurve):
    """The same curve known at few places: chords of a convex function lie above it."""

    def upper(self, step: float, points: int) -> Array:
        losses = np.arange(points) * step
        near = np.linspace(0.0, 8.0 * self.spread, 80)
        far = 8.0 * self.spread * np.geomspace(1.05, 1e4, 80)
        wanted = np.unique(np.minimum(np.concatenate([near, far]), losses[-1]))
        rises = np.expm1(wanted)
        values = (1.0 + FUNCTION_SLACK) * self._upper(left_of(1.0 + rises))
        return np.asarray(np.interp(np.expm1(losses), rises, values))

    def lower(self, step: float, points: int) -> Array:
        return np.zeros(points)


def no_loss(local: Unshuffled | None = None) -> Curve:
    """A round without finite losses, but for what `local` gives away without bound."""
    return _NoLoss(local or Unshuffled(np.zeros_like, 0.0, 0.0, 0.0))


class _NoLoss(Curve):
    spread = 0.0

    def __init__(self, local: Unshuffled) -> None:
        self._local = local

    def reach(self, tolerance: float) -> float:
        return 0.0

    def upper_at(self, epsilon: float) -> float:
        return float(self._local.complete(np.zeros(1), np.array([math.exp(epsilon)]))[0])

    def lower_at(self, epsilon: float) -> float:
        return 0.0

    def upper(self, step: float, points: int) -> Array:
        return self._local.complete(np.zeros(points), np.exp(np.arange(points) * step))

    def lower(self, step: float, points: int) -> Array:
        return np.zeros(points)


def crossing(curve: Callable[[float], float], delta: float, most: float, *, up: bool) -> float:
    """Where a falling curve passes delta, rounded up or down; `most` if it is the end of it."""
    curve = cache(curve)  # asked again, a bound may come out as another, and as good a one
    if curve(0.0) <= delta:
        return 0.0
    high = min(1.0, most)
    while curve(high) > delta:
        if high >= most or high >= FURTHEST:
            return most if up else min(high, most)
        high = min(2 * high, most, FURTHEST)
    place = root(lambda e: curve(e) - delta, 0.0, high, relative=1e-9)
    step = 1e-9 * max(place, 1e-300)
    # step to the safe side of the root until it is one
    while (curve(place) > delta) if up else (place > 0.0 and curve(place) < delta):
        place = min(place + step, high) if up else max(place - step, 0.0)
        step *= 2
    return place
