"""Upper bounds at once, for many numbers of rounds: what a page shows while a slider moves.

The same theorem and the same certified composition as `composition`, on coarser grids and without
the lower end. Every approximation is pessimistic, so a figure from here *is* a guarantee; it is
only a little larger (typically 0.1%, more for Gaussian reports of huge crowds) than the one that
`compose` finds with more time.
"""

from __future__ import annotations

import math

from threadpoolctl import threadpool_limits

from dpcheckin.accounting import checks, loss
from dpcheckin.accounting.composition import MOST_ROUNDS, TAIL_SHARE
from dpcheckin.accounting.rounds import Round
from dpcheckin.errors import InvalidParameter

RESOLUTION = 12  # grid points per standard deviation of one round's loss
LONGEST_GRID = 4_000
LONGEST_WINDOW = 2**17  # grid points of the composed distribution


class QuickRounds:
    """Up to `most` rounds of one kind, for deltas from `smallest` on.

    The curve of a single round is computed once and kept.

    >>> from dpcheckin.accounting import CheckInRound, any_pure, compose
    >>> one = CheckInRound(10_000, 0.01, any_pure(2.0))
    >>> fast = QuickRounds(one, most=1_000, smallest=1e-5).epsilon(100, 1e-4)
    >>> 1.0 <= fast / compose([(one, 100)]).epsilon(1e-4).upper < 1.01
    True
    """

    def __init__(self, one: Round, most: int, smallest: float) -> None:
        self._smallest = checks.open_probability("delta", smallest)
        self._most = checks.count("count", most, 1, MOST_ROUNDS)
        tolerance = TAIL_SHARE * self._smallest / self._most
        with threadpool_limits(1):
            self._curve = one.curve(tolerance).coarser()
            self._spread, self._reach = self._curve.spread, self._curve.reach(tolerance)
        self._plain = one.pair.local_epsilon if one.pair.pure else math.inf
        self._grids: dict[float, loss.LossDistribution] = {}

    def epsilon(self, count: int, delta: float) -> float:
        """An upper bound of epsilon after so many rounds; infinite if delta is out of reach."""
        count = checks.count("count", count, 0, self._most)
        if not self._smallest <= checks.open_probability("delta", delta):
            raise InvalidParameter("delta", delta, f"at least {self._smallest:g}")
        if count == 0:
            return 0.0
        with threadpool_limits(1):
            tail = loss.compose([(self._grid(count), count)], delta=delta)
            return min(tail.epsilon(delta, upper=True), count * self._plain)

    def _grid(self, count: int) -> loss.LossDistribution:
        step = max(
            self._spread / RESOLUTION,
            self._reach / LONGEST_GRID,
            # a long composition is wide: its window, some 20 deviations, must stay affordable
            20 * self._spread * math.sqrt(count) / LONGEST_WINDOW,
        )
        step = step or 1.0  # nothing is lost at all
        if step not in self._grids:
            points = math.ceil(self._reach / step) + 3
            self._grids[step] = loss.dominating(step, self._curve.upper(step, points))
        return self._grids[step]


def quick_epsilon(one: Round, count: int, delta: float) -> float:
    """An upper bound of epsilon after `count` equal rounds."""
    return QuickRounds(one, max(count, 1), delta).epsilon(count, delta)
