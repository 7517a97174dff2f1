"""Proven lower bounds: exact divergences of particular bad cases, never guarantees.

The others all hold one value. For k-ary response with k >= 3 a third value is worst, and the pair
has the form of the theorem's own with a small weight on the rest; for PrivUnit it is a third
direction, unless clients are few; for the other randomizers they hold one of the two values in
question, and the likelihood ratio is an average of i.i.d. terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from dpcheckin.accounting.cap_pairs import CapPair
from dpcheckin.accounting.curve_composition import Profile
from dpcheckin.accounting.engine import binomial
from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.compose import affordable_resolution, compose
from dpcheckin.accounting.engine.curves import LOWER_SLACK, crossing
from dpcheckin.accounting.engine.loss import Atoms, LossDistribution, dominated
from dpcheckin.accounting.engine.lower.homogeneous import HomogeneousCurve
from dpcheckin.accounting.engine.lower.leaning_sums import leaning_atoms
from dpcheckin.accounting.engine.sampling import refined
from dpcheckin.accounting.engine.seats import Law, Seats
from dpcheckin.accounting.engine.threads import one_thread
from dpcheckin.accounting.engine.three_atoms import atoms, reseated
from dpcheckin.accounting.gate import honest_seats, loud_arithmetic, passed_lower
from dpcheckin.accounting.gaussian_pairs import GaussianPair
from dpcheckin.accounting.pairs import (
    LocalPair,
    ThreeAtoms,
    binary_response,
    dary_response,
)
from dpcheckin.accounting.parameters import open_probability
from dpcheckin.accounting.rounds import Round, Rounds, Run, as_run
from dpcheckin.accounting.statements import Adjacency, Bracket, LowerBound
from dpcheckin.accounting.sums import DistributedRound
from dpcheckin.accounting.types.cases import OthersData, ThirdValue, third_value
from dpcheckin.errors import InvalidParameter, NumericalFailure

MOST_COMBINATIONS = 200_000
_THIRD = (OthersData.THIRD_VALUE, OthersData.MERGED_THIRD)
FEW_ROUNDS = 30
FEW_SEATS = 100  # among so few, PrivUnit's others may do more harm at one of the two directions
MOST_MERGED, MOST_OUTPUTS = 60_000, 50  # of a continuous report cut into intervals


@loud_arithmetic()
def lower_bound(rounds: Rounds, delta: float) -> LowerBound:
    """The best lower bound known for these rounds; asked again it is there at once.

    For "any pure randomizer" it is the larger of binary and 3-ary response: some randomizer of
    that kind loses at least this much.

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
    if any(isinstance(one, DistributedRound) for one, _ in rounds):
        value = passed_lower(_summed(rounds, delta), rounds)
        return _stated(value, delta, OthersData.ONE_OF_TWO)
    candidates: list[tuple[float, str]] = []
    for parts in bad_cases(rounds):
        with one_thread():
            value = _composed(parts, delta)
        third = (
            pair.others_data
            for _, _, pair in parts
            if pair.others_data is not OthersData.ONE_OF_TWO
        )
        candidates.append((value, next(third, OthersData.ONE_OF_TWO).value))
    value, name = max(candidates)
    return _stated(passed_lower(value, rounds), delta, OthersData(name))


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
    with one_thread():
        return refined(curves, delta, may_be_infinite=True)[0]


def _third_value(_: Round, pair: LocalPair) -> LocalPair | None:
    if pair.others_data is OthersData.ANY_PURE:
        # in the limit of many clients 3-ary response is worse than binary once e0 > 2
        return dary_response(pair.local_epsilon, 3) if pair.local_epsilon > 0.55 else None
    if isinstance(pair, CapPair):
        return pair if pair.third_direction else None
    return pair if pair.others_data in _THIRD else None


def _one_of_the_two(one: Round, pair: LocalPair) -> LocalPair | None:
    if pair.others_data is OthersData.ANY_PURE:
        return binary_response(pair.local_epsilon) if pair.local_epsilon < 0.85 else None
    if isinstance(pair, CapPair):
        if pair.third_direction and _seats(one, pair).count > FEW_SEATS:
            return None
        return replace(pair, others_data=OthersData.ONE_OF_TWO)
    return pair


# rounds for which a case says nothing take the other: each round may have its own bad data
_CASES: tuple[Callable[[Round, LocalPair], LocalPair | None], ...] = (
    lambda one, pair: _third_value(one, pair) or _one_of_the_two(one, pair),
    lambda one, pair: _one_of_the_two(one, pair) or _third_value(one, pair),
)


def bad_cases(rounds: Run) -> list[list[tuple[Round, int, LocalPair]]]:
    """The cases that differ, each with the pair that every round has in it."""
    cases: list[list[tuple[Round, int, LocalPair]]] = []
    for realise in _CASES:
        pairs = [
            (one, n, realise(one, one.pair))
            for one, n in rounds
            if n > 0 and one.participation > 0 and one.pair is not None
        ]
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
    return max(
        in_either_order([(side_of(one, p, smallest, i), n) for one, n, p in parts], delta)
        for i in range(most)
    )


def in_either_order(sides: Sequence[tuple[Side, int]], delta: float) -> float:
    """The larger of two lower bounds on epsilon: the two datasets as they are, and swapped.

    Args:
        sides: What the rounds reveal in a bad case, and how often each takes place.
        delta: Of the statement.
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
    resolution = min(resolution, 2 * affordable_resolution(total))
    fine = max(math.sqrt(variance) / resolution, reach / longest)
    ways: list[list[tuple[LossDistribution, int]]] = [[], []]
    for side, n in sides:
        points = 2 * math.ceil((side.reach / fine + 2) / 2) + 1
        forward, backward = side.curves(fine, points)
        for way, one, other in ((ways[0], forward, backward), (ways[1], backward, forward)):
            way.append((dominated(2 * fine, one, other), n))
    return ways


@loud_arithmetic()
def bad_case_profiles(rounds: Rounds, smallest: float) -> tuple[tuple[Profile, Profile], ...]:
    """For each known bad case lower bounds of its two profiles, one for each order of the datasets.

    Between its places a profile is linear in exp(epsilon); it says nothing beyond the last. Empty
    where no bad data are known.

    Args:
        rounds: Rounds and how often each takes place.
        smallest: Where the curves may end.
    """
    run = as_run(rounds)
    if any(one.pair is None or isinstance(one, DistributedRound) for one, _ in run):
        return ()
    found = []
    with one_thread():
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
        """A lower bound of one round's epsilon, the two datasets in this order."""

        def curve(epsilon: float) -> float:
            step, at = (epsilon, 1) if epsilon > 0.0 else (1.0, 0)
            return float(self.curves(step, 2)[way][at])

        return crossing(curve, delta, self.reach, up=False)


def side_of(one: Round, pair: LocalPair, smallest: float, direction: int) -> Side:
    """What one round reveals in a bad case.

    Args:
        one: The round.
        pair: What a report gives away in that case.
        smallest: Where the curves may end.
        direction: Which of the pair's two laws the others' reports have.
    """
    seats = _seats(one, pair)
    real = pair.directions[min(direction, len(pair.directions) - 1)]
    if isinstance(pair, ThreeAtoms) and pair.others_data in _THIRD:
        return _symmetric([_merged(seats, third_value(pair, pair.third_hit))], smallest)
    if isinstance(pair, CapPair) and pair.others_data is OthersData.THIRD_DIRECTION:
        return _third_direction(seats, pair, smallest)
    if real.atoms is not None and _combinations(seats, real.atoms[0].size) <= MOST_COMBINATIONS:
        return _enumerated(seats, *real.atoms, smallest)
    if isinstance(pair, GaussianPair) and (outputs := _worth_merging(seats, pair)):
        return _enumerated(seats, *pair.merged(outputs), smallest)
    curve = HomogeneousCurve(seats, real, smallest)
    reach = min(curve.reach, pair.local_epsilon)
    return Side(curve.spread, reach, False, curve.curves)


def _merged(seats: Seats[Law], law: ThirdValue) -> Atoms:
    return atoms(reseated([(1.0, seats)], law)[0][1])[1]


def _symmetric(views: Sequence[Atoms], smallest: float) -> Side:
    """Several statistics of one view: at every epsilon the one that tells most counts."""

    def curves(step: float, points: int) -> tuple[Array, Array]:
        values = LOWER_SLACK * np.max([view.curve(step, points) for view in views], axis=0)
        return values, values

    reach = max(view.largest_loss(smallest) for view in views)
    return Side(max(view.spread for view in views), reach, True, curves)


def _third_direction(seats: Seats[Law], pair: CapPair, smallest: float) -> Side:
    """Others between the two directions of PrivUnit, and two statistics of what is seen.

    One looks at reports in two caps at once, the other counts them as saying nothing, but knows how
    many reports are in no cap: that is better where reports are few, or caps hardly overlap.
    """
    third = pair.third_direction
    if third is None:
        raise NumericalFailure("no third direction is known for caps of this measure")
    hit = third.leaning.strong
    rest = max(1 - 2 * hit - third.neutral, 1e-300)
    merged = _merged(seats, ThirdValue(pair, hit, rest, third.rest / rest))
    return _symmetric([leaning_atoms(seats, third.leaning), merged], smallest)


def _combinations(seats: Seats[Law], ratios: int) -> int:
    return math.comb(seats.count + ratios, ratios)


def _worth_merging(seats: Seats[Law], pair: GaussianPair) -> int:
    """Into how many outputs to merge Gaussian reports for an enumeration; 0 if a lattice is better.

    It is, unless clients are so few that the outputs are many, or tails so heavy that the lattice
    is long, slow and still too short.
    """
    outputs = MOST_OUTPUTS
    while _combinations(seats, outputs) > MOST_MERGED:
        outputs -= 1
    least = 50 if pair.s < 1.4 else 7 if pair.s < 2.0 else 5
    return outputs if outputs >= least else 0


def _enumerated(seats: Seats[Law], ratios: Array, masses: Array, smallest: float) -> Side:
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
    return Side(max(forward.spread, backward.spread), reach, False, curves)


def _seats(one: Round, pair: LocalPair) -> Seats[Law]:
    seats = honest_seats(one, pair)
    if seats is None:
        raise InvalidParameter("rounds", one, "rounds of a kind whose bad data are known")
    return seats
