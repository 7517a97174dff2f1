"""Equal rounds, many numbers of them: one curve, and one transform for each doubling.

The figures are those of `compose` and `lower_bound` to rounding, and certified in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpcheckin.accounting.composition.account import better, compose, curves_at_hand
from dpcheckin.accounting.composition.curves import bracket
from dpcheckin.accounting.composition.gate import loud_arithmetic, passed_bracket, passed_lower
from dpcheckin.accounting.composition.lower_bounds import (
    bad_cases,
    in_either_order,
    lower_bound,
    side_of,
)
from dpcheckin.accounting.engine.curves import Curve
from dpcheckin.accounting.engine.doubling import octaves, repeated
from dpcheckin.accounting.engine.grids import Grids
from dpcheckin.accounting.figures import Bracket, Brackets
from dpcheckin.accounting.parameters import count, open_probability
from dpcheckin.accounting.rounds.base import MOST_ROUNDS, TAIL_SHARE, Round
from dpcheckin.accounting.rounds.sums import DistributedRound


@loud_arithmetic()
def epsilon_by_rounds(
    one: Round, counts: Sequence[int], delta: float, *, near: int | None = None
) -> Brackets:
    """Certified epsilon after each number of equal rounds.

    Args:
        one: The round.
        counts: Numbers of rounds, in any order.
        delta: Of the statements, strictly between 0 and 1.
        near: A number of rounds that a statement was made about before: its curve of one round is
            used again. Certified as always, but not always to the same digits; counts far above it
            are bounded less tightly.

    >>> from dpcheckin.accounting import CheckInRound, any_pure
    >>> one = CheckInRound(10_000, 0.01, any_pure(2.0))
    >>> [round(x, 4) for x in epsilon_by_rounds(one, [1, 10, 100], 1e-4).upper.tolist()]
    [0.0043, 0.018, 0.0695]
    """
    delta = open_probability("delta", delta)
    asked = [count("rounds", n, 0, MOST_ROUNDS) for n in counts]
    shared = sorted({n for n in asked if n > 1})
    found: dict[int, Bracket] = {}
    if len(shared) > 1 and not one.is_function and one.renyi is None and not one.reserved:
        decade = 10.0 ** math.floor(math.log10(delta))
        smallest = TAIL_SHARE * decade / (near or shared[-1])
        curves = one.curves(smallest) if near is None else curves_at_hand(one, smallest)
        if len(curves) == 1 and curves[0][1] == 1:
            found = _composed(one, curves[0][0], shared, smallest, delta)
    return Brackets.of(
        [found[n] if n in found else compose([(one, n)]).epsilon(delta) for n in asked]
    )


def _composed(
    one: Round, curve: Curve, counts: Sequence[int], tolerance: float, delta: float
) -> dict[int, Bracket]:
    found = {}
    grids = Grids([(curve, 1)], tolerance)
    for octave in octaves(counts):
        sides = grids.sides(octave[0])
        above, below = sides.above[0][0], sides.below[0][0]
        pairs = zip(repeated(above, octave, delta), repeated(below, octave, delta), strict=True)
        for n, (up, low) in zip(octave, pairs, strict=True):
            most = n * one.largest_loss
            ends = low.epsilon(delta, upper=False), up.epsilon(delta, upper=True)
            ends = min(ends[0], most), min(ends[1], most)
            found[n] = passed_bracket(better(bracket(*ends), one, n, delta), [(one, n)], delta)
    return found


@loud_arithmetic()
def lower_by_rounds(one: Round, counts: Sequence[int], delta: float) -> list[float]:
    """What no guarantee can be smaller than, after each number of equal rounds.

    The figures are those of `lower_bound` but for what tails beyond any question lose: curves are
    good for the largest of the counts.

    Args:
        one: The round.
        counts: Numbers of rounds, in any order.
        delta: Of the statements, strictly between 0 and 1.

    >>> from dpcheckin.accounting import CheckInRound, any_pure
    >>> one = CheckInRound(10_000, 0.01, any_pure(2.0))
    >>> [round(x, 4) for x in lower_by_rounds(one, [1, 10, 100], 1e-4)]
    [0.0043, 0.0179, 0.0689]
    """
    delta = open_probability("delta", delta)
    asked = [count("rounds", n, 0, MOST_ROUNDS) for n in counts]
    if one.pair is None or isinstance(one, DistributedRound):
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
