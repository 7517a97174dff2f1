"""Curves given as functions, and sampling when the number of those who took part is seen.

Given k check-ins out of n the target is among them with probability q = k/n: the curve of one round is q h(1 + (alpha -
1)/q) on alpha >= 1 and its mirror image (sampling without replacement, replace-one; Balle, Barthe and Gaboardi, arXiv
1807.01647v2, Theorem 9 as a curve). k is visible and independent of the data, so the curves are averaged over k ~
Bin(n, rate).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcheckin.accounting.engine.arrays import Array, FloatArray
from dpcheckin.accounting.engine.compose import WindowTooLong, compose
from dpcheckin.accounting.engine.curves import FINE, Curve, CurveFunction, left_of, right_of
from dpcheckin.accounting.engine.loss import dominated, dominating
from dpcheckin.errors import InvalidParameter, NumericalFailure
from dpcheckin.special import binomial

FUNCTION_SLACK = 1e-10  # of curves given as functions; their own arithmetic is far better
TAIL, LEAST_TAIL = 1e-20, 1e-300
BINS, FEWEST_BINS, NARROW = 192, 8, 5e-5  # of visible numbers; relatively narrower ones gain nothing
LARGEST_LOSS = 600.0


class FunctionCurve(Curve):
    """A curve whose bounds are functions of alpha >= 1, as sampling theorems give them.

    `upper`: upper bounds of the hockey-stick divergence. `lower`: lower bounds. `largest_loss`: loss beyond which the
    upper curve is constant; its value there is charged. `backward`: the same two bounds for the swapped pair; None for
    a symmetric one. `accuracy`: relative width of the composed bracket at which refining the grid stops.
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
        return _SparseCurve(self._upper, self._lower, self.largest_loss, self._backward, self.accuracy)

    def swapped(self) -> FunctionCurve:
        if self._backward is None:
            return self
        ahead = (self._upper, self._lower)
        return type(self)(*self._backward, self.largest_loss, ahead, self.accuracy)

    def reach(self, tolerance: float) -> float:
        return self.largest_loss

    def area(self, points: FloatArray) -> float:
        """Integral of the upper curve over alpha, from chords between the points."""
        return float(np.trapezoid(self._upper(points), points))

    def upper(self, step: float, points: int) -> Array:
        alpha = left_of(np.exp(np.arange(points) * step))
        return (1.0 + FUNCTION_SLACK) * self._upper(alpha)

    def lower(self, step: float, points: int) -> tuple[Array, Array | None]:
        alpha = right_of(np.exp(np.arange(points) * step))
        backward = None if self._backward is None else (1.0 - FUNCTION_SLACK) * self._backward[1](alpha)
        return (1.0 - FUNCTION_SLACK) * self._lower(alpha), backward


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

    def lower(self, step: float, points: int) -> tuple[Array, Array | None]:
        return np.zeros(points), None


@dataclass(frozen=True, slots=True, eq=False)
class VisibleCounts:
    """k ~ Bin(n, rate) in groups [low, high] with their probabilities."""

    low: FloatArray
    high: FloatArray
    probability: FloatArray
    tail_below: float
    tail_above: float

    @property
    def tail(self) -> float:
        """Probability of being outside all groups."""
        return self.tail_below + self.tail_above


def seen_counts(chances: Sequence[float] | FloatArray) -> VisibleCounts:
    """A visible number with any distribution that does not depend on data: the `chances` of 0, 1, 2, ... reports.

    >>> seen_counts([0.5, 0.0, 0.5]).high.tolist()
    [0.0, 2.0]
    """
    masses = np.asarray(chances, dtype=np.float64)
    if not (masses.ndim == 1 and np.all(masses >= 0.0) and abs(float(masses.sum()) - 1.0) < 1e-9):
        raise InvalidParameter("chances", masses.ravel()[:3].tolist(), "numbers from 0 on that add up to 1")
    numbers = np.flatnonzero(masses)
    return VisibleCounts(numbers.astype(np.float64), numbers.astype(np.float64), masses[numbers], 0.0, 0.0)


def left_out(smallest: float) -> float:
    """A probability that is next to nothing beside a delta `smallest`, and at most `TAIL`."""
    return max(min(TAIL, 1e-3 * smallest), LEAST_TAIL)


def visible_counts(population: int, rate: float, groups: int = BINS, smallest: float = 1.0) -> VisibleCounts:
    """The visible number of check-ins of a `population` at this `rate` in `groups`.

    On either side a probability is left out that is next to nothing beside a delta `smallest`.
    """
    if not population >= 1:
        raise InvalidParameter("population", population, "at least 1")
    if not 0.0 <= rate <= 1.0:
        raise InvalidParameter("rate", rate, "between 0 and 1")
    if rate in (0.0, 1.0):
        only = np.array([population * rate])
        return VisibleCounts(only, only, np.ones(1), 0.0, 0.0)
    tail = left_out(smallest)
    mean, log_tail = population * rate, -math.log(tail)
    reach = math.sqrt(2.0 * mean * log_tail) + 2.0 * log_tail / 3.0 + 1.0  # Bernstein
    first, last = max(0, math.floor(mean - reach)), min(population, math.ceil(mean + reach))
    # narrow groups where the mass is, wide ones in the tails
    core = 5.0 * math.sqrt(mean) + 2.0
    groups = min(groups, max(math.ceil(2.0 * core / (NARROW * mean)), FEWEST_BINS))
    knots = np.concatenate(
        [
            np.linspace(first - 1, mean - core, groups // 8),
            np.linspace(mean - core, mean + core, groups),
            np.linspace(mean + core, last, groups // 8),
        ]
    )
    edges = np.unique(np.clip(np.rint(knots), first - 1, last).astype(np.int64))
    # differences of the nearer tail: those of the other one would lose the digits far out
    lower, upper = binomial.tails(edges, population, rate)
    below, above = np.diff(lower), -np.diff(upper)
    probability = np.where(edges[1:] < mean, below, above)
    return VisibleCounts(
        low=(edges[:-1] + 1).astype(np.float64),
        high=edges[1:].astype(np.float64),
        probability=np.asarray(probability),
        tail_below=0.0 if first == 0 else tail,
        tail_above=0.0 if last == population else tail,
    )


def sampled(profile: CurveFunction, fraction: float, alpha: FloatArray) -> FloatArray:
    """q h(1 + (`alpha` - 1)/q): the curve after sampling a `fraction` q without replacement, h the `profile`."""
    if fraction <= 0.0:
        return np.zeros_like(alpha)
    return fraction * profile(1.0 + (alpha - 1.0) / fraction)


def sampled_backward(profile: CurveFunction, fraction: float, alpha: FloatArray) -> FloatArray:
    """H_`alpha`(Q || (1-q) Q + q P) = (1 - a (1-q)) h(a q / (1 - a (1-q))), h the `profile`, q the `fraction`."""
    left = 1.0 - alpha * (1.0 - fraction)
    some = left > 0.0
    value = np.zeros_like(alpha)
    value[some] = left[some] * profile(np.maximum(alpha[some] * fraction / left[some], 1.0))
    return value


def mixture(
    population: int,
    counts: VisibleCounts,
    upper_profile: Callable[[float], CurveFunction],
    lower_profile: Callable[[float], CurveFunction],
    smallest: float,
) -> FunctionCurve:
    """Average over visible k: k/n grows with k, the profile shrinks, so groups use both ends.

    `population`: number of clients n. `counts`: the visible numbers, in groups. `upper_profile`: upper bound of the
    profile of a sum of k reports, as a function of k. `lower_profile`: lower bound likewise. `smallest`: a delta of
    which a millionth is negligible.
    """
    groups = list(zip(counts.low, counts.high, counts.probability, strict=True))
    above = [(w, high / population, upper_profile(max(low, 1.0))) for low, high, w in groups if high > 0.0 and w > 0.0]
    below = [(w, low / population, lower_profile(high)) for low, high, w in groups if low > 0.0 and w > 0.0]
    upper = averaged(above, sampled, counts.tail)
    floor = counts.tail + 2.0 * left_out(smallest)  # the second for what profiles leave out
    return FunctionCurve(upper, averaged(below, sampled), reach(upper, 1e-6 * smallest + floor))


def averaged(
    parts: Sequence[tuple[float, float, CurveFunction]],
    after: Callable[[CurveFunction, float, FloatArray], FloatArray],
    left_out: float = 0.0,
) -> CurveFunction:
    """The mean over `parts` (weight, fraction, profile) of curves `after` sampling, and what is `left_out`."""

    def curve(alpha: FloatArray) -> FloatArray:
        total = np.full_like(alpha, left_out)
        for weight, fraction, profile in parts:
            total += weight * after(profile, fraction, alpha)
        return total

    return curve


def reach(curve: CurveFunction, negligible: float, largest: float = LARGEST_LOSS) -> float:
    """Smallest loss up to `largest` at which the `curve` is `negligible` (it is charged to delta from there on)."""
    low, high = 0.0, largest
    for _ in range(6):  # many places at a time: the price of a curve is that of its first value
        losses = np.linspace(low, high, 65)
        over = np.flatnonzero(curve(np.exp(losses)) > negligible)
        last = int(over[-1]) if over.size else 0
        if last == losses.size - 1:
            return high
        low, high = float(losses[last]), float(losses[last + 1])
    return high


# Curves given as functions are cheap: their grid is refined until the bracket is narrow.
LARGEST_GRID = 400_000
FunctionParts = Sequence[tuple[FunctionCurve, int]]


def refined(
    parts: FunctionParts, delta: float, *, both_orders: bool = True, may_be_infinite: bool = False
) -> tuple[float, float]:
    """Bounds on the composed epsilon of curves given as functions: (lower, upper).

    `parts`: curves, and how many rounds have each. `delta`: at which epsilon is asked for. `both_orders`: take the
    larger of both orders of an asymmetric pair. `may_be_infinite`: return an infinite upper bound instead of raising;
    lower bounds need none.
    """
    parts = [(curve, count) for curve, count in parts if count > 0 and curve.largest_loss > 0.0]
    if not parts:
        return 0.0, 0.0
    orders = [parts]
    if both_orders and not all(curve.symmetric for curve, _ in parts):
        orders.append([(curve.swapped(), count) for curve, count in parts])
    found = [_narrowed(order, delta) for order in orders]
    lower, upper = max(low for low, _ in found), max(high for _, high in found)
    if math.isinf(upper) and not may_be_infinite:
        raise NumericalFailure(
            f"delta = {delta:g} is below the mass of unbounded loss of these rounds; no finite epsilon can be stated"
        )
    return lower, upper


def _narrowed(parts: FunctionParts, delta: float) -> tuple[float, float]:
    reach = max(curve.largest_loss for curve, _ in parts)
    accuracy = max(curve.accuracy for curve, _ in parts)
    step = _first_step(parts, reach)
    lower, upper = _at_step(parts, delta, step)
    for _ in range(5):
        gap = upper - lower
        if gap <= accuracy * max(upper, 1e-4) or reach / (step / 2) > LARGEST_GRID:
            break
        step /= 2
        try:
            low, high = _at_step(parts, delta, step)
        except WindowTooLong:  # what was found is certified as it is
            break
        lower, upper = max(lower, low), min(upper, high)
        if upper - lower > 0.7 * gap:
            break  # the curves themselves, not the grid, leave the rest of the gap
    return lower, upper


def _first_step(parts: FunctionParts, reach: float) -> float:
    """A step that resolves both one round and the composed standard deviation."""
    points = np.expm1(np.geomspace(reach * 1e-6, reach, 400)) + 1.0
    # E_Q[(W - 1)_+^2] = 2 * integral of H_alpha; twice that for a symmetric pair.
    variance = sum(4.0 * count * curve.area(points) for curve, count in parts)
    deviation = math.sqrt(max(variance, 1e-24))
    return float(np.clip(deviation / 800.0, reach / (LARGEST_GRID / 8), reach / 60.0))


def _at_step(parts: FunctionParts, delta: float, step: float) -> tuple[float, float]:
    above, below = [], []
    alone = sum(count for _, count in parts) == 1  # then only the forward curve counts
    for curve, count in parts:
        points = math.ceil(curve.largest_loss / step) + 2
        fine = 2 * points - 1
        other = None if curve.symmetric else curve.swapped()
        backward = None if other is None else other.upper(step, points)
        above.append((dominating(step, curve.upper(step, points), backward), count))
        forward, backward = curve.lower(step / 2, fine)
        below.append((dominated(step, forward, None if alone else backward), count))
    longest = 2 * FINE.longest_window
    upper = compose(above, delta=delta, longest=longest).epsilon(delta, upper=True)
    lower = compose(below, delta=delta, longest=longest).epsilon(delta, upper=False)
    return min(lower, upper), upper
