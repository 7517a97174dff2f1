"""Proven lower bounds: exact divergences of particular bad cases, never guarantees.

The others all hold one value. For k-ary response with k >= 3 a third value is worst, and the pair
has the form of the theorem's own with a small weight on the rest; for the other randomizers they
hold one of the two values in question, and the likelihood ratio is an average of i.i.d. terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from threadpoolctl import threadpool_limits

from dpcheckin.accounting import checks, loss, seats
from dpcheckin.accounting.bracket import Bracket
from dpcheckin.accounting.curves import LOWER_SLACK, ProfileCurve, Unshuffled
from dpcheckin.accounting.guarantee import REPLACE_ONE, Guarantee
from dpcheckin.accounting.kinds import Kind
from dpcheckin.accounting.lattice import LatticeModel
from dpcheckin.accounting.local_pairs import LocalPair, ThreeAtoms, binary_response, dary_response
from dpcheckin.accounting.loss import Array, LossDistribution
from dpcheckin.accounting.rounds import CheckInRound, LocalRound, Round, SubsampleRound
from dpcheckin.accounting.seats import Atoms, SeatModel
from dpcheckin.accounting.window import WindowRound
from dpcheckin.errors import InvalidParameter


def lower_bound(rounds: Sequence[tuple[Round, int]], delta: float) -> Guarantee:
    """The best lower bound known for these rounds (kind LOWER_BOUND).

    For "any pure randomizer" it is the larger of binary and 3-ary response: some randomizer of
    that kind loses at least this much.

    >>> from dpcheckin.accounting import any_pure
    >>> bound = lower_bound([(CheckInRound(10_000, 0.01, any_pure(2.0)), 100)], delta=1e-4)
    >>> round(bound.epsilon.lower, 4)
    0.0689
    """
    delta = checks.open_probability("delta", delta)
    candidates, tried = [], []
    for realise in _CASES:
        pairs = [
            (one, n, realise(one.pair)) for one, n in rounds if n > 0 and one.participation > 0
        ]
        if pairs not in tried:
            tried.append(pairs)
            with threadpool_limits(1):
                value = _composed([(one, n, pair) for one, n, pair in pairs if pair], delta)
            third = any(pair and _third_value(pair) for _, _, pair in pairs)
            candidates.append((value, _THIRD if third else _ONE_OF_TWO))
    value, name = max(candidates)
    return Guarantee(
        kind=Kind.LOWER_BOUND,
        epsilon=Bracket(value, math.inf),
        delta=delta,
        adjacency=REPLACE_ONE,
        basis=(name,),
        assumptions=(),
    )


def _third_value(pair: LocalPair) -> LocalPair | None:
    if not isinstance(pair, ThreeAtoms) or pair.local_delta > 0:
        return None
    if pair.name == "any pure randomizer":
        # in the limit of many clients 3-ary response is worse than binary once e0 > 2
        return dary_response(pair.local_epsilon, 3) if pair.local_epsilon > 0.55 else None
    return pair if _has_third_value(pair) else None


def _one_of_the_two(pair: LocalPair) -> LocalPair | None:
    if pair.name == "any pure randomizer":
        return binary_response(pair.local_epsilon) if pair.local_epsilon < 0.85 else None
    return pair


_THIRD = "k-ary response, all others hold a third value"
_ONE_OF_TWO = "all others hold one of the two values"
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
    sides = [(_Side(one, pair, smallest), n) for one, n, pair in parts]
    variance = sum(n * side.spread**2 for side, n in sides) / total
    reach = max(side.reach for side, _ in sides)
    resolution, longest = (400, 40_000) if all(s.explicit for s, _ in sides) else (40, 4000)
    fine = max(math.sqrt(variance) / resolution, reach / longest)
    # the two datasets in either order: which of the two is told from the other more surely depends
    ways: tuple[list[tuple[LossDistribution, int]], ...] = ([], [])
    for side, n in sides:
        points = 2 * math.ceil((side.reach / fine + 2) / 2) + 1
        forward, backward = side.curves(fine, points)
        for way, one, other in ((ways[0], forward, backward), (ways[1], backward, forward)):
            # of a single round only the one curve counts
            way.append((loss.dominated(2 * fine, one, other if total > 1 else None), n))
    if all(side.explicit for side, _ in sides):  # a third value: both orders are alike
        ways = ways[:1]
    return max(loss.compose(way, delta=delta).epsilon(delta, upper=False) for way in ways)


class _Side:
    """Both directions of one round's bad case."""

    def __init__(self, one: Round, pair: LocalPair, smallest: float) -> None:
        steps, offset, scale, take = _seats(one)
        self._atoms: Atoms | None = None
        if isinstance(pair, ThreeAtoms) and _has_third_value(pair):
            self._third(steps, offset, scale, take, pair, smallest)
        else:
            self._average(steps, offset, scale, take, pair, smallest)

    def _third(
        self,
        steps: int,
        offset: float,
        scale: float,
        take: float,
        pair: ThreeAtoms,
        smallest: float,
    ) -> None:
        # symbols a and b each with probability hit, the value itself with e0 * hit and weight 1/e0
        model = SeatModel(
            steps=steps,
            offset=offset,
            scale=scale,
            log_ratio=pair.local_epsilon,
            hits=2 * take * pair.hit,
            rest=take * pair.hit * math.exp(pair.local_epsilon),
            rest_weight=math.exp(-pair.local_epsilon),
        )
        _, merged = seats.atoms(model)
        self._atoms = merged
        self.spread = seats.spread(merged)
        self.reach = seats.largest_loss(merged, smallest)

    def _average(
        self,
        steps: int,
        offset: float,
        scale: float,
        take: float,
        pair: LocalPair,
        smallest: float,
    ) -> None:
        model = LatticeModel(
            steps=steps,
            offset=offset,
            scale=scale,
            take=take,
            ones=1 - take,
            finite_profile=lambda a: np.maximum(pair.profile(a) - pair.local_delta, 0.0),
            second_moment=pair.second_moment,
            largest_ratio=math.exp(pair.local_epsilon) if pair.local_epsilon < 700 else math.inf,
        )
        nothing = Unshuffled(pair.profile, 0.0, 1.0, 0.0)
        self._curve = ProfileCurve([(1.0, model)], nothing, pair.local_epsilon, smallest)
        self.spread = self._curve.spread
        widest = 12 * self.spread if steps * take > 50 else 30 * self.spread + 1.0
        self.reach = min(widest, pair.local_epsilon)

    @property
    def explicit(self) -> bool:
        """Given by atoms, where every point of the grid is cheap?"""
        return self._atoms is not None

    def curves(self, step: float, points: int) -> tuple[Array, Array]:
        if self._atoms is None:
            return self._curve.homogeneous(step, points)
        values = LOWER_SLACK * seats.curve_on_grid(self._atoms, step, points)
        return values, values


def _has_third_value(pair: ThreeAtoms) -> bool:
    return pair.name.endswith("-ary response") and pair.neutral > 0


def _seats(one: Round) -> tuple[int, float, float, float]:
    """Seats of the honest case without dropouts (allowed by every round's assumptions)."""
    n = one.honest
    if isinstance(one, CheckInRound):
        return n, 0.0, float(n), one.rate
    if isinstance(one, SubsampleRound):  # colluders who say nothing are one case of colluding
        return one.cohort, float(one.population - one.cohort), float(one.population), 1.0
    if isinstance(one, WindowRound):
        # others and dummies hold one value; who of a slot's clients was taken is not told
        places, scale = one.elapsed or one.slots, one.slots / one.standing
        return places, scale - places, scale, 1.0
    if isinstance(one, LocalRound):
        return 1, 0.0, 1.0, one.rate
    if one.participation == 1.0:
        return n, 0.0, float(n), 1.0
    raise InvalidParameter("rounds", one, "rounds of a kind whose bad data are known")
