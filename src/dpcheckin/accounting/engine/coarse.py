"""Many equal rounds on coarse grids: figures that are wanted at once.

The same certified composition. On a coarse grid, without the lower end, every approximation is
pessimistic: a figure is a guarantee, only a little larger (typically 0.1%, more for Gaussian
reports of huge crowds) than the one found with more time.
"""

from __future__ import annotations

import math

from dpcheckin.accounting.engine.compose import WindowTooLong, compose
from dpcheckin.accounting.engine.curves import Curve
from dpcheckin.accounting.engine.loss import LossDistribution, Tail, dominating
from dpcheckin.accounting.engine.threads import one_thread

RESOLUTION = 12  # grid points per standard deviation of one round's loss
LONGEST_GRID = 4_000
LONGEST_WINDOW = 2**17  # grid points of the composed distribution


class CoarseComposition:
    """Rounds with one curve, any number of them; the curve is kept.

    Args:
        curve: Of one round; a coarse one will do.
        tolerance: What of it may be cut off and charged in each round.
        largest_loss: A loss that no round exceeds.
    """

    def __init__(self, curve: Curve, tolerance: float, largest_loss: float = math.inf) -> None:
        with one_thread():
            self._curve, self._spread = curve, curve.spread
            self._reach = curve.reach(tolerance)
        self._largest_loss = largest_loss
        self._grids: dict[float, LossDistribution] = {}

    def epsilon(self, count: int, delta: float) -> float:
        """An upper bound of epsilon after so many rounds; infinite if delta is out of reach."""
        if count == 0:
            return 0.0
        with one_thread():
            tail = self._composed(count, delta)
            return min(tail.epsilon(delta, upper=True), count * self._largest_loss)

    def _composed(self, count: int, delta: float) -> Tail:
        step = max(
            self._spread / RESOLUTION,
            self._reach / LONGEST_GRID,
            # a long composition is wide: its window, some 20 deviations, must stay affordable
            20 * self._spread * math.sqrt(count) / LONGEST_WINDOW,
        )
        step = step or 1.0  # nothing is lost at all
        while True:
            try:
                return compose([(self._made(step), count)], delta=delta, longest=2 * LONGEST_WINDOW)
            except WindowTooLong as wide:  # the spread is a guess, and tails are heavy here
                step *= max(2.0, wide.points / LONGEST_WINDOW)

    def _made(self, step: float) -> LossDistribution:
        if step not in self._grids:
            points = math.ceil(self._reach / step) + 3
            self._grids[step] = dominating(step, self._curve.upper(step, points))
        return self._grids[step]
