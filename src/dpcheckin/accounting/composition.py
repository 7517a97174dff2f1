"""Rounds composed: from one-round curves to a certified (epsilon, delta) for all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache

from threadpoolctl import threadpool_limits

from dpcheckin.accounting import checks, loss
from dpcheckin.accounting.bracket import Bracket
from dpcheckin.accounting.curves import RoundCurve
from dpcheckin.accounting.local_pairs import ThreeAtoms
from dpcheckin.accounting.loss import LossDistribution, Tail
from dpcheckin.accounting.rounds import SMALLEST_DELTA, LocalRound, Round
from dpcheckin.errors import InvalidParameter, NumericalFailure

MOST_ROUNDS = 10**9
LONGEST_GRID = 24_000
# Part of delta that may be spent on tails that are cut off instead of computed.
TAIL_SHARE = 1e-4


def compose(rounds: Sequence[tuple[Round, int]]) -> Composition:
    """The composition of (round, how many times) pairs, in any order, adaptively.

    >>> from dpcheckin.accounting import CheckInRound, any_pure
    >>> run = compose([(CheckInRound(10_000, 0.01, any_pure(2.0)), 100)])
    >>> round(run.epsilon(1e-4).upper, 4)
    0.0735
    """
    return Composition(rounds)


class Composition:
    """Answers questions about a sequence of rounds; results are kept between questions."""

    def __init__(self, rounds: Sequence[tuple[Round, int]]) -> None:
        if not rounds:
            raise InvalidParameter("rounds", [], "at least one round")
        merged: dict[Round, int] = {}
        for one, repeats in rounds:
            if not isinstance(one, Round):
                raise InvalidParameter("rounds", one, "pairs of a round and a count")
            repeats = checks.count("count", repeats, 0, MOST_ROUNDS)
            merged[one] = merged.get(one, 0) + repeats
        self.rounds = tuple((one, repeats) for one, repeats in merged.items() if repeats)
        self.total = sum(repeats for _, repeats in self.rounds)
        self._only: dict[float, RoundCurve] = {}
        self._parts: dict[int, tuple[list[tuple[LossDistribution, int]], ...]] = {}

    def epsilon(self, delta: float) -> Bracket:
        """Smallest epsilon for this delta, between certified bounds (upper may be infinite)."""
        delta = checks.open_probability("delta", delta)
        if not self.rounds:
            return Bracket(0.0, 0.0)
        found = self._single_epsilon(delta) if self.total == 1 else self._composed_epsilon(delta)
        if found.upper > 2 * found.lower:  # the grids may be to blame
            return Bracket(found.lower, min(found.upper, self._by_other_means(delta)))
        return found

    def _composed_epsilon(self, delta: float) -> Bracket:
        # the products inside are small: more threads would only wait for each other
        with threadpool_limits(1):
            above, below = self._distributions(delta)
            upper = loss.compose(above, delta=delta).epsilon(delta, upper=True)
            lower = loss.compose(below, delta=delta).epsilon(delta, upper=False)
        return Bracket(lower, min(upper, self._plain_sum()))

    def _by_other_means(self, delta: float) -> float:
        """Guarantees on coarser grids and for simpler reports, infinite if there are none.

        For reports with heavy tails a fine grid is a long one, and what its round-off is charged
        with may be more than a coarser grid or the worst report of one's epsilon loses.
        """
        one, count = self.rounds[0]
        if len(self.rounds) > 1 or isinstance(one, LocalRound) or isinstance(one.pair, ThreeAtoms):
            return math.inf
        # they are made of compositions themselves
        from dpcheckin.accounting.quick import quick_epsilon
        from dpcheckin.accounting.rough import rough_epsilon

        least = math.inf
        for bound in (rough_epsilon, quick_epsilon):
            with suppress(NumericalFailure):  # then there is the one that was found already
                least = min(least, bound(one, count, delta))
        return least

    def delta(self, epsilon: float) -> Bracket:
        """delta for this epsilon, between certified bounds."""
        epsilon = checks.non_negative("epsilon", epsilon)
        if not self.rounds or epsilon >= self._plain_sum():
            return Bracket(0.0, 0.0)
        if self.total == 1:
            with threadpool_limits(1):
                return self._single(SMALLEST_DELTA).at(epsilon)
        magnitude = 1e-9
        with threadpool_limits(1):
            for _ in range(12):
                above, below = self._distributions(magnitude)
                upper = _tail(above, epsilon).delta(epsilon, upper=True)
                # the tails cut off must not be what the answer consists of
                if upper >= magnitude or magnitude <= 1e-30:
                    break
                magnitude = max(upper * 0.1, magnitude * 1e-4, 1e-30)
            lower = _tail(below, epsilon).delta(epsilon, upper=False)
        return Bracket(lower, upper)

    def _single(self, smallest: float) -> RoundCurve:
        """The curve of the only round: one round needs no grid."""
        if smallest not in self._only:
            self._only[smallest] = self.rounds[0][0].curve(smallest)
        return self._only[smallest]

    def _single_epsilon(self, delta: float) -> Bracket:
        with threadpool_limits(1):
            smallest = TAIL_SHARE * 10.0 ** math.floor(math.log10(delta))
            curve, most = self._single(smallest), self._plain_sum()
            sides = [
                _crossing(curve.lower_at, delta, most, up=False),
                _crossing(curve.upper_at, delta, most, up=True),
            ]
        return Bracket(min(sides), sides[1])

    def _plain_sum(self) -> float:
        """What local privacy alone gives: the sum of local epsilons, if there is no delta."""
        if not all(one.pair.pure for one, _ in self.rounds):
            return math.inf
        return math.fsum(n * one.pair.local_epsilon for one, n in self.rounds)

    def _distributions(
        self, delta: float
    ) -> tuple[list[tuple[LossDistribution, int]], list[tuple[LossDistribution, int]]]:
        key = math.floor(math.log10(delta))
        if key not in self._parts:
            self._parts[key] = self._discretised(10.0**key)
        above, below = self._parts[key]
        return above, below

    def _discretised(
        self, delta: float
    ) -> tuple[list[tuple[LossDistribution, int]], list[tuple[LossDistribution, int]]]:
        tolerance = TAIL_SHARE * delta / self.total
        curves = [(one.curve(tolerance), n) for one, n in self.rounds]
        step, reaches = _step(curves, self.total, tolerance)
        # lower bounds may be on a coarser grid where each point is dear
        factor = max(
            1,
            *(
                round(reach / step / c.most_lower)
                for (c, _), reach in zip(curves, reaches, strict=True)
            ),
        )
        above, below = [], []
        for (curve, n), reach in zip(curves, reaches, strict=True):
            points = math.ceil(reach / step) + 3
            above.append((loss.dominating(step, curve.upper(step, points)), n))
            fine = 2 * math.ceil((points / factor + 1) / 2) + 1
            below.append((loss.dominated(2 * factor * step, curve.lower(factor * step, fine)), n))
        return above, below


def _crossing(curve: Callable[[float], float], delta: float, most: float, *, up: bool) -> float:
    """Where a falling curve passes delta, rounded up or down; `most` if it is the end of it."""
    curve = cache(curve)  # asked again, a bound may come out as another, and as good a one
    if curve(0.0) <= delta:
        return 0.0
    high = min(1.0, most)
    while curve(high) > delta:
        if high >= most or high >= 600.0:
            return most if up else min(high, most)
        high = min(2 * high, most)
    from scipy import optimize  # slow to load, and only single rounds need it

    root = float(optimize.brentq(lambda e: curve(e) - delta, 0.0, high, xtol=1e-300, rtol=1e-9))
    step = 1e-9 * max(root, 1e-300)
    # step to the safe side of the root until it is one
    while (curve(root) > delta) if up else (root > 0.0 and curve(root) < delta):
        root = min(root + step, high) if up else max(root - step, 0.0)
        step *= 2
    return root


def _tail(parts: list[tuple[LossDistribution, int]], epsilon: float) -> Tail:
    return loss.compose(parts, epsilon=epsilon)


def _step(
    curves: list[tuple[RoundCurve, int]], total: int, tolerance: float
) -> tuple[float, list[float]]:
    """A step small against the loss of a typical round, with a grid of bounded length."""
    reaches = [curve.reach(tolerance) for curve, _ in curves]
    variance = sum(n * curve.spread**2 for curve, n in curves) / total
    # few rounds leave room for a finer grid in an FFT of about 2^17 points
    finer = 2**17 / (17 * math.sqrt(total))
    resolution = min(min(max(c.resolution, finer), c.finest) for c, _ in curves)
    step = max(math.sqrt(variance) / resolution, max(reaches) / LONGEST_GRID)
    if not (math.isfinite(step)):
        raise NumericalFailure("the loss of one round could not be bounded")
    if step == 0.0:
        return 1.0, reaches
    if len(curves) == 1 and curves[0][0].quantum > step:
        quantum = curves[0][0].quantum
        step = quantum / math.ceil(quantum / step)  # losses then lie near grid points
    return step, reaches
