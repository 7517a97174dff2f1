"""Upper bounds at once, for many numbers of rounds: what a page shows while a slider moves.

The same theorem and the same certified composition as `composition`, on coarser grids and without
the lower end. Every approximation is pessimistic, so a figure from here *is* a guarantee; it is
only a little larger (typically 0.1%, up to a few per cent for Gaussian reports) than the one that
`compose` finds with more time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from threadpoolctl import threadpool_limits

from dpcheckin.accounting import checks, loss
from dpcheckin.accounting.composition import MOST_ROUNDS, TAIL_SHARE
from dpcheckin.accounting.rounds import Round
from dpcheckin.errors import InvalidParameter

RESOLUTION = 12  # grid points per standard deviation of one round's loss
LONGEST_GRID = 4_000
LONGEST_WINDOW = 2**17  # grid points of the composed distribution


def quick_epsilons(one: Round, counts: Sequence[int], delta: float) -> list[float]:
    """An upper bound of epsilon after each number of rounds (infinite if delta is out of reach).

    >>> from dpcheckin.accounting import CheckInRound, any_pure, compose
    >>> one = CheckInRound(10_000, 0.01, any_pure(2.0))
    >>> fast, = quick_epsilons(one, [100], 1e-4)
    >>> 1.0 <= fast / compose([(one, 100)]).epsilon(1e-4).upper < 1.01
    True
    """
    delta = checks.open_probability("delta", delta)
    if not counts:
        raise InvalidParameter("counts", list(counts), "at least one number of rounds")
    counts = [checks.count("count", n, 0, MOST_ROUNDS) for n in counts]
    with threadpool_limits(1):
        return _epsilons(one, counts, delta)


def _epsilons(one: Round, counts: Sequence[int], delta: float) -> list[float]:
    most = max(counts)
    if most == 0:
        return [0.0] * len(counts)
    tolerance = TAIL_SHARE * delta / most
    curve = one.curve(tolerance).coarser()
    spread, reach = curve.spread, curve.reach(tolerance)
    grids: dict[float, loss.LossDistribution] = {}
    found = []
    for n in counts:
        # a long composition is wide: its window, some 20 deviations, must stay affordable
        step = max(
            spread / RESOLUTION, reach / LONGEST_GRID, 20 * spread * math.sqrt(n) / LONGEST_WINDOW
        )
        if step not in grids:
            points = math.ceil(reach / step) + 3 if step > 0.0 else 3
            width = step or 1.0
            grids[step] = loss.dominating(width, curve.upper(width, points))
        plain = n * one.pair.local_epsilon if one.pair.pure else math.inf
        if n == 0:
            found.append(0.0)
            continue
        tail = loss.compose([(grids[step], n)], delta=delta)
        found.append(min(tail.epsilon(delta, upper=True), plain))
    return found
