"""Proven lower bounds: exact divergences of particular bad cases, never guarantees.

The others all hold one value. For k-ary response with k >= 3 a third value is worst, and the pair has the form of the
theorem's own with a small weight on the rest; for PrivUnit it is a third direction, unless clients are few; for the
other randomizers they hold one of the two values in question, and the likelihood ratio is an average of i.i.d. terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpcheckin.accounting.composition.gate import loud_arithmetic, passed_lower
from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.compose import compose
from dpcheckin.accounting.engine.curves import FINE, LOWER_SLACK, crossing
from dpcheckin.accounting.engine.loss import Atoms, LossDistribution, dominated
from dpcheckin.accounting.engine.lower.lattice import HomogeneousCurve
from dpcheckin.accounting.engine.sampling import refined
from dpcheckin.accounting.engine.seats import Seats
from dpcheckin.accounting.figures import Profile
from dpcheckin.accounting.pairs.local import LocalPair
from dpcheckin.accounting.pairs.pure_types import OthersData
from dpcheckin.accounting.rounds.base import MOST_ROUNDS, Round, Rounds, Run, as_run
from dpcheckin.accounting.statements import Adjacency, Bracket, LowerBound
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import count, open_probability
from dpcheckin.special import binomial

FEW_ROUNDS = 30


@loud_arithmetic()
def lower_bound(rounds: Rounds, delta: float) -> LowerBound:
    """The best lower bound known for these rounds; asked again it is there at once.

    For "any pure randomizer" it is the larger of binary and 3-ary response: some randomizer of that kind loses at least
    this much.

    Args:
        rounds: Rounds and how often each takes place; a round alone takes place once.
        delta: Of the statement, strictly between 0 and 1.

    >>> from dpcheckin.accounting import CheckInRound, any_pure
    >>> bound = lower_bound([(CheckInRound(10_000, 0.01, any_pure(2.0)), 100)], delta=1e-4)
    >>> round(bound.epsilon.lower, 4)
    0.0689
    """
    return _known(as_run(rounds), open_probability("delta", delta))


def clear_cache() -> None:
    """Forget all answers; whoever measures times wants that."""
    _known.cache_clear()


@lru_cache(1024)
def _known(rounds: tuple[tuple[Round, int], ...], delta: float) -> LowerBound:
    for one, _ in rounds:
        if one.pair is None:
            raise InvalidParameter("rounds", one, "rounds of a kind whose bad data are known")
    total = max(sum(n for _, n in rounds), 1)
    sums = [(one.bad_sum(delta / total), n) for one, n in rounds]
    curves = [(curve, n) for curve, n in sums if curve is not None]
    value, others = 0.0, OthersData.ONE_OF_TWO
    if curves:  # everybody else on one end of the ball, in every round: an exact pair, both directions
        other = next((one for (one, _), (curve, _) in zip(rounds, sums, strict=True) if curve is None), None)
        if other is not None:
            raise InvalidParameter("rounds", other, "sums only: no bad case of such a mixture is known")
        value = refined(curves, delta, may_be_infinite=True)[0]
    else:
        cases = [(_composed(parts, delta), _others(parts).value) for parts in bad_cases(rounds)]
        value, name = max(cases)
        others = OthersData(name)
    epsilon = Bracket(passed_lower(value, rounds), math.inf)
    return LowerBound(epsilon, delta, Adjacency.REPLACE_ONE, (others.value,))


def _others(parts: Sequence[tuple[Round, int, LocalPair]]) -> OthersData:
    """Where the others of a case are, in the first round in which that is anything but one of the two values."""
    third = (pair.others_data for _, _, pair in parts if pair.others_data is not OthersData.ONE_OF_TWO)
    return next(third, OthersData.ONE_OF_TWO)


def bad_cases(rounds: Run) -> list[list[tuple[Round, int, LocalPair]]]:
    """The cases that differ, each with the pair that every round has in it.

    Rounds for which a case says nothing take the other: each round may have its own bad data.
    """
    known = [
        (one, n, one.pair.at_third_value(), one.pair.at_one_of_two(_seats(one, one.pair)))
        for one, n in rounds
        if n > 0 and one.participation > 0 and one.pair is not None
    ]
    cases: list[list[tuple[Round, int, LocalPair]]] = []
    for pairs in (
        [(one, n, third or ends) for one, n, third, ends in known],
        [(one, n, ends or third) for one, n, third, ends in known],
    ):
        case = [(one, n, pair) for one, n, pair in pairs if pair]
        if case not in cases:
            cases.append(case)
    return cases


def _composed(parts: Sequence[tuple[Round, int, LocalPair]], delta: float) -> float:
    if not parts:
        return 0.0
    total = sum(n for _, n, _ in parts)
    smallest = 1e-3 * delta / total
    # all others hold the one value or the other: pairs of laws that need not be alike
    most = max(len(pair.directions) for _, _, pair in parts)
    return max(in_either_order([(side_of(one, p, smallest, i), n) for one, n, p in parts], delta) for i in range(most))


def in_either_order(sides: Sequence[tuple[Side, int]], delta: float) -> float:
    """The larger of two lower bounds on epsilon: the two datasets as they are, and swapped.

    `sides`: what the rounds reveal in a bad case, and how often each takes place. `delta`: of the statement.
    """
    if sum(n for _, n in sides) == 1:  # one round needs no grid
        return max(sides[0][0].epsilon(delta, way) for way in (0, 1))
    # the two datasets in either order: which of the two is told from the other more surely depends
    ways = _ways(sides)
    if all(side.symmetric for side, _ in sides):
        ways = ways[:1]
    return max((compose(way, delta=delta).epsilon(delta, upper=False) for way in ways), default=0.0)


def _ways(sides: Sequence[tuple[Side, int]]) -> list[list[tuple[LossDistribution, int]]]:
    """Both orders of the two datasets as loss distributions; none for reports that say nothing."""
    total = sum(n for _, n in sides)
    variance = sum(n * side.spread**2 for side, n in sides) / total
    reach = max(side.reach for side, _ in sides)
    if reach == 0.0:
        return []
    # few rounds leave room for a finer grid
    resolution, longest = (400.0, 40_000) if total > FEW_ROUNDS else (1600.0, 160_000)
    # `dominated` takes every other point
    resolution = min(resolution, 2 * FINE.affordable(total))
    fine = max(math.sqrt(variance) / resolution, reach / longest)
    ways: list[list[tuple[LossDistribution, int]]] = [[], []]
    for side, n in sides:
        points = 2 * math.ceil((side.reach / fine + 2) / 2) + 1
        forward, backward = side.curves(fine, points)
        for way, one, other in ((ways[0], forward, backward), (ways[1], backward, forward)):
            way.append((dominated(2 * fine, one, other), n))
    return ways


@loud_arithmetic()
def lower_by_rounds(one: Round, counts: Sequence[int], delta: float) -> list[float]:
    """What no guarantee can be smaller than, after each number of equal rounds.

    The figures are those of `lower_bound` but for what tails beyond any question lose: curves are good for the largest
    of the counts.

    `one`: the round. `counts`: numbers of rounds, in any order. `delta`: of the statements, strictly between 0 and 1.

    >>> from dpcheckin.accounting import CheckInRound, any_pure
    >>> one = CheckInRound(10_000, 0.01, any_pure(2.0))
    >>> [round(x, 4) for x in lower_by_rounds(one, [1, 10, 100], 1e-4)]
    [0.0043, 0.0179, 0.0689]
    """
    delta = open_probability("delta", delta)
    asked = [count("rounds", n, 0, MOST_ROUNDS) for n in counts]
    if one.pair is None or one.lower_seats(one.pair) is None:
        return [lower_bound([(one, n)], delta).epsilon.lower for n in asked]
    smallest = 1e-3 * delta / max(*asked, 1)
    best = [0.0] * len(asked)
    for (_, _, pair), *_ in filter(None, bad_cases([(one, 1)])):
        for direction in range(len(pair.directions)):
            side = side_of(one, pair, smallest, direction)
            for i, n in enumerate(asked):
                found = in_either_order([(side, n)], delta) if n else 0.0
                best[i] = max(best[i], passed_lower(found, [(one, n)]))
    return best


@loud_arithmetic()
def bad_case_profiles(rounds: Rounds, smallest: float) -> tuple[tuple[Profile, Profile], ...]:
    """For each known bad case lower bounds of its two profiles, one for each order of the datasets.

    Between its places a profile is linear in exp(epsilon); it says nothing beyond the last. Empty where no bad data are
    known.

    `rounds`: rounds and how often each takes place. `smallest`: where the curves may end.
    """
    run = as_run(rounds)
    if any(one.pair is None or one.lower_seats(one.pair) is None for one, _ in run):
        return ()
    found = []
    for parts in bad_cases(run):
        total = sum(n for _, n, _ in parts)
        for i in range(max((len(pair.directions) for _, _, pair in parts), default=0)):
            sides = [(side_of(one, p, 1e-3 * smallest / total, i), n) for one, n, p in parts]
            ways = _ways(sides)
            if ways:
                found.append((_profile(ways[0], smallest), _profile(ways[1], smallest)))
    return tuple(found)


def _profile(parts: Sequence[tuple[LossDistribution, int]], smallest: float) -> Profile:
    tails = [compose(parts, delta=delta) for delta in np.geomspace(0.3, smallest, 4)]
    step = parts[0][0].step
    end = max(tail.epsilon(smallest, upper=False) for tail in tails)
    epsilons = np.asarray(np.arange(max(math.ceil(end / step), 1) + 1) * step, np.float64)
    deltas = np.max([tail.deltas(epsilons, upper=False) for tail in tails], axis=0)
    deltas[-1] = 0.0  # nothing is said beyond
    return Profile(epsilons, np.asarray(deltas, np.float64))


@dataclass(frozen=True, slots=True)
class Side:
    """Both directions of one round's bad case, as lower bounds on a grid."""

    spread: float
    reach: float
    symmetric: bool  # are both orders of the two datasets alike?
    curves: Callable[[float, int], tuple[Array, Array]]

    def epsilon(self, delta: float, way: int) -> float:
        """A lower bound of one round's epsilon at this `delta`, the two datasets in this order (`way`)."""

        def curve(epsilon: float) -> float:
            step, at = (epsilon, 1) if epsilon > 0.0 else (1.0, 0)
            return float(self.curves(step, 2)[way][at])

        return crossing(curve, delta, self.reach, up=False)


def side_of(one: Round, pair: LocalPair, smallest: float, direction: int) -> Side:
    """What one round reveals in a bad case.

    `one`: the round. `pair`: what a report gives away in that case. `smallest`: where the curves may end. `direction`:
    which of the pair's two laws the others' reports have.
    """
    parts = one.lower_parts(pair)
    sides = [_side(seats, pair, smallest, direction) for _, seats in parts]
    if len(parts) == 1 and parts[0][0] == 1.0:
        return sides[0]

    def curves(step: float, points: int) -> tuple[Array, Array]:
        total = np.zeros((2, points))
        for (weight, _), side in zip(parts, sides, strict=True):
            total += weight * np.array(side.curves(step, points))
        return total[0], total[1]

    symmetric, reach = all(side.symmetric for side in sides), max((side.reach for side in sides), default=0.0)
    return Side(max((side.spread for side in sides), default=0.0), reach, symmetric, curves)


def _side(seats: Seats, pair: LocalPair, smallest: float, direction: int) -> Side:
    """What these seats reveal."""
    if views := pair.bad_views(seats):
        return _symmetric(views, smallest)
    if outputs := pair.few_outputs(seats, direction):
        return _enumerated(seats, *outputs, smallest)
    real = pair.directions[min(direction, len(pair.directions) - 1)]
    curve = HomogeneousCurve(seats, real, smallest)
    reach = min(curve.reach, pair.local_epsilon)
    return Side(curve.spread, reach, False, curve.curves)


def _symmetric(views: Sequence[Atoms], smallest: float) -> Side:
    """Several statistics of one view: at every epsilon the one that tells most counts."""

    def curves(step: float, points: int) -> tuple[Array, Array]:
        values = LOWER_SLACK * np.max([view.curve(step, points) for view in views], axis=0)
        return values, values

    reach = max(view.largest_loss(smallest) for view in views)
    return Side(max(view.spread for view in views), reach, True, curves)


def _enumerated(seats: Seats, ratios: Array, masses: Array, smallest: float) -> Side:
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
        return (LOWER_SLACK * forward.curve(step, points), LOWER_SLACK * backward.curve(step, points))

    reach = max(forward.largest_loss(smallest), backward.largest_loss(smallest))
    return Side(max(forward.spread, backward.spread), reach, False, curves)


def _seats(one: Round, pair: LocalPair) -> Seats:
    seats = one.lower_seats(pair)
    if seats is None:
        raise InvalidParameter("rounds", one, "rounds of a kind whose bad data are known")
    return seats
