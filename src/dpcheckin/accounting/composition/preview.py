"""Certified bounds of equal rounds by other ways: coarse grids, simpler reports, reports that are seen.

What comes from here is a guarantee like any other, mostly larger: something to show while a slider moves, and a second
bound where a fine grid has to give up.
"""

from __future__ import annotations

import math
from contextlib import suppress

from dpcheckin.accounting.composition.gate import loud_arithmetic, passed
from dpcheckin.accounting.engine.curves import COARSE, Grids
from dpcheckin.accounting.rounds.base import MOST_ROUNDS, TAIL_SHARE, Round
from dpcheckin.errors import InvalidParameter, NumericalFailure
from dpcheckin.numerals import count, open_probability

# Part of delta for what a report gives away beyond the epsilon it is simplified to.
SIMPLIFIED_SHARE = 0.05


class CoarseRounds:
    """Equal rounds, up to `most` of them, for deltas from `smallest` on; the curve is kept.

    >>> from dpcheckin.accounting import CheckInRound, any_pure, compose
    >>> one = CheckInRound(10_000, 0.01, any_pure(2.0))
    >>> fast = CoarseRounds(one, most=1_000, smallest=1e-5).epsilon(100, 1e-4)
    >>> 1.0 <= fast / compose([(one, 100)]).epsilon(1e-4).upper < 1.01
    True
    """

    @loud_arithmetic()
    def __init__(self, one: Round, most: int, smallest: float) -> None:
        self._one = one
        self._smallest = open_probability("delta", smallest)
        self._most = count("count", most, 1, MOST_ROUNDS)
        tolerance = TAIL_SHARE * smallest / most
        ((curve, _),) = one.curves(tolerance)
        self._grids = Grids([(curve.coarser(), 1)], tolerance, COARSE)

    @loud_arithmetic()
    def epsilon(self, repeats: int, delta: float) -> float:
        """An upper bound of epsilon after `repeats` rounds; infinite if `delta` is out of reach."""
        repeats = count("count", repeats, 0, self._most)
        if not self._smallest <= open_probability("delta", delta):
            raise InvalidParameter("delta", delta, f"at least {self._smallest:g}")
        if repeats == 0:
            return 0.0
        found = self._grids.upper_tail(repeats, delta).epsilon(delta, upper=True)
        found = min(found, repeats * self._one.largest_loss)
        return passed(found, [(self._one, repeats)], delta)


def coarse_epsilon(one: Round, repeats: int, delta: float) -> float:
    """An upper bound of epsilon at `delta` after `repeats` rounds like `one`, on a coarse grid."""
    return CoarseRounds(one, max(repeats, 1), delta).epsilon(repeats, delta)


@loud_arithmetic()
def rough_epsilon(one: Round, repeats: int, delta: float) -> float:
    """An upper bound of epsilon at `delta` after `repeats` rounds of the worst reports of their epsilon: there at once.

    For Gaussian noise it is an epsilon that holds but for a tiny delta; all slots of a window are taken to be as
    crowded as the emptiest. A guarantee, but easily several times too large.

    >>> from dpcheckin.accounting import CheckInRound, compose, gaussian
    >>> one = CheckInRound(10_000, 0.01, gaussian(2.0))
    >>> rough_epsilon(one, 100, 1e-6) >= compose([(one, 100)]).epsilon(1e-6).upper
    True
    """
    delta = open_probability("delta", delta)
    if count("count", repeats, 0, MOST_ROUNDS) == 0:
        return 0.0
    # a target that reports gives away its local delta once a round; the others' reports never do
    bound = coarse_epsilon(one.simpler(SIMPLIFIED_SHARE * delta / repeats), repeats, delta)
    alone = math.inf if one.pair is None else one.pair.every_report_seen(repeats, delta)
    return passed(min(bound, alone), [(one, repeats)], delta)


def other_bounds(one: Round, repeats: int, delta: float) -> float:
    """The smaller of both at `delta`, after `repeats` rounds like `one`; infinite where neither can beat a fine grid.

    For reports with heavy tails a fine grid is a long one, and what its round-off is charged with may be more than a
    coarser grid or the worst report of one's epsilon loses.
    """
    least = math.inf
    if one.pair is not None and not one.pair.three_atoms:
        for bound in (rough_epsilon, coarse_epsilon):
            with suppress(NumericalFailure):  # then there is the one that was found already
                least = min(least, bound(one, repeats, delta))
    return least
