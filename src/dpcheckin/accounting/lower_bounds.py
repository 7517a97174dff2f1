"""Proven lower bounds: exact divergences of particular bad cases, never guarantees.

The others all hold one value. For k-ary response with k >= 3 a third value is worst, and the pair
has the form of the theorem's own with a small weight on the rest; for the other randomizers they
hold one of the two values in question, and the likelihood ratio is an average of i.i.d. terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from dpcheckin.accounting.engine import binomial
from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.compose import compose
from dpcheckin.accounting.engine.curves import LOWER_SLACK
from dpcheckin.accounting.engine.lattice_curve import HomogeneousCurve
from dpcheckin.accounting.engine.loss import Atoms, LossDistribution, dominated, single
from dpcheckin.accounting.engine.sampling import refined
from dpcheckin.accounting.engine.seats import Law, RealPair, Seats
from dpcheckin.accounting.engine.three_atoms import atoms, reseated
from dpcheckin.accounting.pairs import (
    LocalPair,
    OthersData,
    ThreeAtoms,
    binary_response,
    dary_response,
)
from dpcheckin.accounting.parameters import open_probability
from dpcheckin.accounting.rounds import LocalRound, Round
from dpcheckin.accounting.shuffled import CheckInRound, ShuffleRound, SubsampleRound
from dpcheckin.accounting.statements import Adjacency, Bracket, LowerBound
from dpcheckin.accounting.sums import DistributedRound
from dpcheckin.accounting.windows import WindowRound
from dpcheckin.errors import InvalidParameter

Run = Sequence[tuple[Round, int]]
MOST_COMBINATIONS = 200_000


def lower_bound(rounds: Run, delta: float) -> LowerBound:
    """The best lower bound known for these rounds.

    For "any pure randomizer" it is the larger of binary and 3-ary response: some randomizer of
    that kind loses at least this much.

    Args:
        rounds: Rounds and how often each takes place.
        delta: Of the statement, strictly between 0 and 1.

    >>> from dpcheckin.accounting import any_pure
    >>> bound = lower_bound([(CheckInRound(10_000, 0.01, any_pure(2.0)), 100)], delta=1e-4)
    >>> round(bound.epsilon.lower, 4)
    0.0689
    """
    delta = open_probability("delta", delta)
    for one, _ in rounds:
        if one.pair is None:
            raise InvalidParameter("rounds", one, "rounds of a kind whose bad data are known")
    if any(isinstance(one, DistributedRound) for one, _ in rounds):
        return _stated(_summed(rounds, delta), delta, OthersData.ONE_OF_TWO)
    candidates: list[tuple[float, str]] = []
    tried: list[list[tuple[Round, int, LocalPair | None]]] = []
    for realise in _CASES:
        pairs = [
            (one, n, realise(one.pair))
            for one, n in rounds
            if n > 0 and one.participation > 0 and one.pair is not None
        ]
        if pairs not in tried:
            tried.append(pairs)
            with threadpool_limits(1):
                value = _composed([(one, n, pair) for one, n, pair in pairs if pair], delta)
            third = any(pair and _third_value(pair) for _, _, pair in pairs)
            basis = OthersData.THIRD_VALUE if third else OthersData.ONE_OF_TWO
            candidates.append((value, basis.value))
    value, name = max(candidates)
    return _stated(value, delta, OthersData(name))


def _stated(value: float, delta: float, others: OthersData) -> LowerBound:
    return LowerBound(Bracket(value, math.inf), delta, Adjacency.REPLACE_ONE, (others.value,))


def _summed(rounds: Run, delta: float) -> float:
    """Everybody else on one end of the ball, in every round: an exact pair, both directions."""
    total = max(sum(n for _, n in rounds), 1)
    curves = []
    for one, n in rounds:
        if not isinstance(one, DistributedRound):
            raise InvalidParameter(
                "rounds", one, "sums only: no bad case of such a mixture is known"
            )
        curves.append((one.bad_case(delta / total), n))
    with threadpool_limits(1):
        return refined(curves, delta, may_be_infinite=True)[0]


def _third_value(pair: LocalPair) -> LocalPair | None:
    if pair.others_data is OthersData.ANY_PURE:
        # in the limit of many clients 3-ary response is worse than binary once e0 > 2
        return dary_response(pair.local_epsilon, 3) if pair.local_epsilon > 0.55 else None
    return pair if pair.others_data is OthersData.THIRD_VALUE else None


def _one_of_the_two(pair: LocalPair) -> LocalPair | None:
    if pair.others_data is OthersData.ANY_PURE:
        return binary_response(pair.local_epsilon) if pair.local_epsilon < 0.85 else None
    return pair


# rounds for which a case says nothing take the other: each round may have its own bad data
_CASES: tuple[Callable[[LocalPair], LocalPair | None], ...] = (
    lambda pair: _third_value(pair) or _one_of_the_two(pair),
    lambda pair: _one_of_the_two(pair) or _third_value(pair),
)


def _composed(parts: Sequence[tuple[Round, int, LocalPair]], delta: float) -> float:
    if not parts:
        return 0.0
    total = sum(n for _, n, _ in parts)
    smallest = 1e-3 * delta / total
    # all others hold the one value or the other: pairs of laws that need not be alike
    most = max(len(pair.directions) for _, _, pair in parts)
    return max(
        _in_either_order([(_side(one, p, smallest, i), n) for one, n, p in parts], delta)
        for i in range(most)
    )


def _in_either_order(sides: Sequence[tuple[_Side, int]], delta: float) -> float:
    total = sum(n for _, n in sides)
    variance = sum(n * side.spread**2 for side, n in sides) / total
    reach = max(side.reach for side, _ in sides)
    if reach == 0.0:  # reports that say nothing
        return 0.0
    resolution, longest = (400, 40_000) if all(s.explicit for s, _ in sides) else (40, 4000)
    fine = max(math.sqrt(variance) / resolution, reach / longest)
    # the two datasets in either order: which of the two is told from the other more surely depends
    ways: tuple[list[tuple[LossDistribution, int]], ...] = ([], [])
    for side, n in sides:
        points = 2 * math.ceil((side.reach / fine + 2) / 2) + 1
        forward, backward = side.curves(fine, points)
        for way, one, other in ((ways[0], forward, backward), (ways[1], backward, forward)):
            # of a single round only the one curve counts
            way.append((dominated(2 * fine, one, other if total > 1 else None), n))
    if all(side.symmetric for side, _ in sides):
        ways = ways[:1]
    tails = [single(way[0][0]) if total == 1 else compose(way, delta=delta) for way in ways]
    return max(tail.epsilon(delta, upper=False) for tail in tails)


@dataclass(frozen=True, slots=True)
class _Side:
    """Both directions of one round's bad case, as lower bounds on a grid."""

    spread: float
    reach: float
    explicit: bool  # given by atoms, where every point of the grid is cheap?
    symmetric: bool  # are both orders of the two datasets alike?
    curves: Callable[[float, int], tuple[Array, Array]]


def _side(one: Round, pair: LocalPair, smallest: float, direction: int) -> _Side:
    seats = _seats(one, pair)
    real = pair.directions[min(direction, len(pair.directions) - 1)]
    if isinstance(pair, ThreeAtoms) and pair.others_data is OthersData.THIRD_VALUE:
        return _third(reseated([(1.0, seats)], _ThirdValue(pair))[0][1], smallest)
    if real.atoms is not None and _combinations(seats, real.atoms[0].size) <= MOST_COMBINATIONS:
        return _enumerated(seats, *real.atoms, smallest)
    curve = HomogeneousCurve(seats, real, smallest)
    reports = seats.count * seats.participation
    widest = 12 * curve.spread if reports > 50 else 30 * curve.spread + 1.0
    return _Side(curve.spread, min(widest, pair.local_epsilon), False, False, curve.curves)


@dataclass(frozen=True, slots=True)
class _ThirdValue:
    """k-ary response seen from a third value: it is reported with e0 * hit and weighs 1/e0."""

    pair: ThreeAtoms

    @property
    def local_epsilon(self) -> float:
        return self.pair.local_epsilon

    @property
    def local_delta(self) -> float:
        return self.pair.local_delta

    @property
    def second_moment(self) -> float:
        return self.pair.second_moment

    @property
    def hit(self) -> float:
        return self.pair.hit

    @property
    def rest(self) -> float:
        return self.pair.hit * math.exp(self.pair.local_epsilon)

    @property
    def rest_weight(self) -> float:
        return math.exp(-self.pair.local_epsilon)

    @property
    def directions(self) -> tuple[RealPair, ...]:
        return self.pair.directions

    def profile(self, alpha: Array) -> Array:
        return self.pair.profile(alpha)

    def simplified(self, local_delta: float) -> ThreeAtoms:
        return self.pair


def _third(seats: Seats[_ThirdValue], smallest: float) -> _Side:
    _, merged = atoms(seats)

    def curves(step: float, points: int) -> tuple[Array, Array]:
        values = LOWER_SLACK * merged.curve(step, points)
        return values, values

    return _Side(merged.spread, merged.largest_loss(smallest), True, True, curves)


def _combinations(seats: Seats[Law], ratios: int) -> int:
    return math.comb(seats.count + ratios, ratios)


def _enumerated(seats: Seats[Law], ratios: Array, masses: Array, smallest: float) -> _Side:
    """Every number of reports of each ratio: nothing is lost to a lattice among a few clients."""
    weights = np.append(ratios, 1.0)
    chances = np.append(seats.participation * masses, 1.0 - seats.participation)
    left, base, total = np.array([seats.count]), np.ones(1), np.full(1, seats.empty)
    for i, (weight, chance) in enumerate(zip(weights[:-1], chances[:-1], strict=True)):
        counts = np.concatenate([np.arange(most + 1) for most in left])
        rows = np.repeat(np.arange(left.size), left + 1)
        share = min(chance / max(float(chances[i:].sum()), 1e-300), 1.0)
        base = base[rows] * binomial.pmf(counts, left[rows], share)
        total, left = total[rows] + weight * counts, left[rows] - counts
    there = base > 0.0
    p, q = (base * (total + left))[there] / seats.population, base[there]
    with np.errstate(divide="ignore"):
        losses = np.log(p) - np.log(q)
    ahead, behind = losses > 0, losses < 0
    forward = Atoms(p[ahead], losses[ahead], 0.0)
    backward = Atoms(q[behind], -losses[behind], 0.0)

    def curves(step: float, points: int) -> tuple[Array, Array]:
        return (
            LOWER_SLACK * forward.curve(step, points),
            LOWER_SLACK * backward.curve(step, points),
        )

    reach = max(forward.largest_loss(smallest), backward.largest_loss(smallest))
    return _Side(max(forward.spread, backward.spread), reach, True, False, curves)


def _seats(one: Round, pair: LocalPair) -> Seats[Law]:
    """Seats of the honest case without dropouts (allowed by every round's assumptions)."""
    if isinstance(one, CheckInRound):
        n = one.honest
        return Seats(n, pair, 0.0, float(n), one.rate, 1 - one.rate)
    if isinstance(one, SubsampleRound):  # colluders who say nothing are one case of colluding
        n = one.population
        return Seats(one.cohort, pair, float(n - one.cohort), float(n))
    if isinstance(one, WindowRound):
        # others and dummies hold one value; who of a slot's clients was taken is not told
        places, scale = one.elapsed or one.slots, one.slots / one.standing
        return Seats(places, pair, scale - places, scale)
    if isinstance(one, LocalRound):
        return Seats(1, pair, 0.0, 1.0, one.rate, 1 - one.rate)
    if isinstance(one, ShuffleRound):
        return Seats(one.honest, pair, 0.0, float(one.honest))
    raise InvalidParameter("rounds", one, "rounds of a kind whose bad data are known")
