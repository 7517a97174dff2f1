"""Lower bounds after many numbers of equal rounds: one curve of one round, composed for each."""

from __future__ import annotations

from collections.abc import Sequence

from dpcheckin.accounting.engine.threads import one_thread
from dpcheckin.accounting.gate import loud_arithmetic, passed_lower
from dpcheckin.accounting.lower_bounds import bad_cases, in_either_order, lower_bound, side_of
from dpcheckin.accounting.parameters import count, open_probability
from dpcheckin.accounting.rounds import MOST_ROUNDS, Round
from dpcheckin.accounting.sums import DistributedRound


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
    with one_thread():
        for (_, _, pair), *_ in filter(None, bad_cases([(one, 1)])):
            for direction in range(len(pair.directions)):
                side = side_of(one, pair, smallest, direction)
                for i, n in enumerate(asked):
                    found = in_either_order([(side, n)], delta) if n else 0.0
                    best[i] = max(best[i], passed_lower(found, [(one, n)]))
    return best
