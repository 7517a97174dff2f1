"""One-round curves on grids: how fine, how long, from above and from below.

`FINE` is what statements are made of. `COARSE` is for figures that are wanted at once: without the
lower end every approximation is pessimistic, so they are guarantees too, only a little larger
(typically 0.1%, more for Gaussian reports of huge crowds).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from dpcheckin.accounting.engine.compose import Parts, WindowTooLong, compose
from dpcheckin.accounting.engine.curves import Curve
from dpcheckin.accounting.engine.loss import Tail, dominated, dominating
from dpcheckin.errors import NumericalFailure

Curves = Sequence[tuple[Curve, int]]


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How much a composition may cost.

    Args:
        longest_grid: Most grid points of one round.
        longest_window: Most grid points of all rounds together.
        deviations: That a window takes.
        resolution: Grid points per deviation of one round's loss; None for what the curve is worth.
    """

    longest_grid: int
    longest_window: int
    deviations: int
    resolution: int | None = None

    def affordable(self, total: int) -> float:
        """Grid points per deviation of one round at which a window holds so many rounds.

        Args:
            total: Number of rounds.
        """
        return self.longest_window / (self.deviations * math.sqrt(total))

    def of(self, curve: Curve, total: int) -> float:
        """Grid points per deviation that a curve is worth.

        Args:
            curve: Of one round.
            total: Number of rounds.
        """
        if self.resolution is not None:
            return self.resolution
        # few rounds leave room for a finer grid in an FFT of about 2^17 points
        return min(max(curve.resolution, 2**17 / (17 * math.sqrt(total))), curve.finest)


# A window takes some 17 deviations: beyond two million rounds, no grid that holds them all resolves
# one of them as finely as it is worth.
FINE = Accuracy(24_000, 2**22, 17)
COARSE = Accuracy(4_000, 2**17, 20, 12)


class Sides:
    """Loss distributions from above and from below, each made when it is first asked for.

    Args:
        above: Makes those from above.
        below: Makes those from below.
    """

    def __init__(self, above: Callable[[], Parts], below: Callable[[], Parts]) -> None:
        self._make_above, self._make_below = above, below

    @cached_property
    def above(self) -> Parts:
        return self._make_above()

    @cached_property
    def below(self) -> Parts:
        return self._make_below()


class Grids:
    """One-round curves on a grid for each number of rounds; grids that are alike are made once.

    Args:
        curves: Curves, and how many rounds have each.
        tolerance: What of each may be cut off and charged in a round.
        accuracy: How fine and how long grids may be.
    """

    def __init__(self, curves: Curves, tolerance: float, accuracy: Accuracy = FINE) -> None:
        self._curves, self._accuracy = curves, accuracy
        self._reaches = [curve.reach(tolerance) for curve, _ in curves]
        self._made: dict[float, Sides] = {}

    def sides(self, total: int) -> Sides:
        """From above and from below.

        Args:
            total: Number of rounds that the composition will have.
        """
        return self._with(self._step(total))

    def upper_tail(self, total: int, delta: float) -> Tail:
        """So many rounds with one curve, from above; wider steps where they spread too far.

        Args:
            total: Number of rounds.
            delta: Where the question is asked.
        """
        step, longest = self._step(total), self._accuracy.longest_window
        while True:
            ((one, _),) = self._with(step).above
            try:
                return compose([(one, total)], delta=delta, longest=2 * longest)
            except WindowTooLong as wide:  # the spread is a guess, and tails are heavy here
                step *= max(2.0, wide.points / longest)

    def _with(self, step: float) -> Sides:
        if step not in self._made:
            self._made[step] = self._made_with(step)
        return self._made[step]

    def _made_with(self, step: float) -> Sides:
        # lower bounds may be on a coarser grid where each point is dear
        factor = max(
            1,
            *(
                round(reach / step / c.most_lower)
                for (c, _), reach in zip(self._curves, self._reaches, strict=True)
            ),
        )
        sizes = [math.ceil(reach / step) + 3 for reach in self._reaches]

        def above() -> Parts:
            found = []
            for (curve, n), points in zip(self._curves, sizes, strict=True):
                other = None if curve.symmetric else curve.swapped()
                backward = None if other is None else other.upper(step, points)
                found.append((dominating(step, curve.upper(step, points), backward), n))
            return found

        def below() -> Parts:
            found = []
            for (curve, n), points in zip(self._curves, sizes, strict=True):
                fine = 2 * math.ceil((points / factor + 1) / 2) + 1
                lower = curve.lower(factor * step, fine)
                backward = curve.lower_backward(factor * step, fine)
                found.append((dominated(2 * factor * step, lower, backward), n))
            return found

        return Sides(above, below)

    def _step(self, total: int) -> float:
        """A step small against the loss of a typical round, with a grid of bounded length."""
        curves = self._curves
        rounds = sum(n for _, n in curves)
        variance = sum(n * curve.spread**2 for curve, n in curves) / rounds
        accuracy = self._accuracy
        worth = min(accuracy.of(curve, total) for curve, _ in curves)
        resolution = min(worth, accuracy.affordable(total))
        step = max(math.sqrt(variance) / resolution, max(self._reaches) / accuracy.longest_grid)
        if not (math.isfinite(step)):
            raise NumericalFailure("the loss of one round could not be bounded")
        if step == 0.0:
            return 1.0
        if len(curves) == 1 and curves[0][0].quantum > step:
            quantum = curves[0][0].quantum
            step = quantum / math.ceil(quantum / step)  # losses then lie near grid points
        return step
