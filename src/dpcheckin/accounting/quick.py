"""Upper bounds at once, for many numbers of rounds: what a page shows while a slider moves.

The same theorem and the same certified composition as `composition`, on coarser grids and without
the lower end. Every approximation is pessimistic, so a figure from here *is* a guarantee; it is
only a little larger (typically 0.1%, more for Gaussian reports of huge crowds) than the one that
`compose` finds with more time.
"""

from __future__ import annotations

import math

import numpy as np
from threadpoolctl import threadpool_limits

from dpcheckin.accounting import checks, distributed, loss
from dpcheckin.accounting.bracket import Bracket
from dpcheckin.accounting.composition import MOST_ROUNDS, TAIL_SHARE
from dpcheckin.accounting.curve_composition import CurveRound
from dpcheckin.accounting.curves import RoundCurve
from dpcheckin.accounting.loss import Array
from dpcheckin.accounting.rounds import Round
from dpcheckin.errors import InvalidParameter

RESOLUTION = 12  # grid points per standard deviation of one round's loss
LONGEST_GRID = 4_000
LONGEST_WINDOW = 2**17  # grid points of the composed distribution
GROUPS = 64  # of the visible number of reports


class QuickCurve:
    """Up to `most` rounds with one curve, for deltas from `smallest` on; the curve is kept."""

    def __init__(
        self, curve: RoundCurve, most: int, smallest: float, largest_loss: float = math.inf
    ) -> None:
        """`largest_loss` is one that no round exceeds."""
        self._smallest = checks.open_probability("delta", smallest)
        self._most = checks.count("count", most, 1, MOST_ROUNDS)
        with threadpool_limits(1):
            self._curve, self._spread = curve, curve.spread
            self._reach = curve.reach(_tolerance(most, smallest))
        self._largest_loss = largest_loss
        self._grids: dict[float, loss.LossDistribution] = {}

    def epsilon(self, count: int, delta: float) -> float:
        """An upper bound of epsilon after so many rounds; infinite if delta is out of reach."""
        count = checks.count("count", count, 0, self._most)
        if not self._smallest <= checks.open_probability("delta", delta):
            raise InvalidParameter("delta", delta, f"at least {self._smallest:g}")
        if count == 0:
            return 0.0
        with threadpool_limits(1):
            tail = self._composed(count, delta)
            return min(tail.epsilon(delta, upper=True), count * self._largest_loss)

    def _composed(self, count: int, delta: float) -> loss.Tail:
        step = max(
            self._spread / RESOLUTION,
            self._reach / LONGEST_GRID,
            # a long composition is wide: its window, some 20 deviations, must stay affordable
            20 * self._spread * math.sqrt(count) / LONGEST_WINDOW,
        )
        step = step or 1.0  # nothing is lost at all
        while True:
            try:
                return loss.compose(
                    [(self._made(step), count)], delta=delta, longest=2 * LONGEST_WINDOW
                )
            except loss.WindowTooLong as wide:  # the spread is a guess, and tails are heavy here
                step *= max(2.0, wide.points / LONGEST_WINDOW)

    def _made(self, step: float) -> loss.LossDistribution:
        if step not in self._grids:
            points = math.ceil(self._reach / step) + 3
            self._grids[step] = loss.dominating(step, self._curve.upper(step, points))
        return self._grids[step]


class QuickRounds(QuickCurve):
    """Rounds that the empty-seat theorem speaks about.

    >>> from dpcheckin.accounting import CheckInRound, any_pure, compose
    >>> one = CheckInRound(10_000, 0.01, any_pure(2.0))
    >>> fast = QuickRounds(one, most=1_000, smallest=1e-5).epsilon(100, 1e-4)
    >>> 1.0 <= fast / compose([(one, 100)]).epsilon(1e-4).upper < 1.01
    True
    """

    def __init__(self, one: Round, most: int, smallest: float) -> None:
        with threadpool_limits(1):
            curve = one.curve(_tolerance(most, smallest)).coarser()
        super().__init__(
            curve, most, smallest, one.pair.local_epsilon if one.pair.pure else math.inf
        )


class QuickSums(QuickCurve):
    """Rounds of distributed check-in with Gaussian noise: only sums and their sizes are seen.

    >>> fast = QuickSums(10_000, 0.01, 1.0, most=1_000, smallest=1e-5).epsilon(100, 1e-4)
    >>> 1.0 <= fast / distributed.epsilon(10_000, 0.01, 1.0, 100, 1e-4).upper < 1.05
    True
    """

    def __init__(
        self, population: int, rate: float, noise_multiplier: float, most: int, smallest: float
    ) -> None:
        one = distributed.round_curve(
            population, rate, noise_multiplier, 2.0, smallest=smallest / most, groups=GROUPS
        )
        super().__init__(_Drawn(one), most, smallest)


def _tolerance(most: int, smallest: float) -> float:
    return TAIL_SHARE * smallest / most


class _Drawn(RoundCurve):
    """The upper bound of a curve that is known as a function, at a few places."""

    def __init__(self, one: CurveRound) -> None:
        self._upper, self._reach = one.upper, one.largest_loss
        losses = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 40) * self._reach])
        area = float(np.trapezoid(self._upper(np.exp(losses)), losses))
        self.spread = 2.0 * math.sqrt(max(area, 0.0))  # of a symmetric pair; a guide only

    def reach(self, tolerance: float) -> float:
        return self._reach

    def at(self, epsilon: float) -> Bracket:
        return Bracket(0.0, float(self._upper(np.array([math.exp(epsilon)]))[0]))

    def upper(self, step: float, points: int) -> Array:
        losses = np.arange(points) * step
        near = np.linspace(0.0, 8.0 * self.spread, 80)
        far = 8.0 * self.spread * np.geomspace(1.05, 1e4, 80)
        wanted = np.unique(np.minimum(np.concatenate([near, far]), losses[-1]))
        rises = np.expm1(wanted)
        # chords of a convex function lie above it
        return np.asarray(np.interp(np.expm1(losses), rises, self._upper(1.0 + rises)))

    def lower(self, step: float, points: int) -> Array:
        return np.zeros(points)


def quick_epsilon(one: Round, count: int, delta: float) -> float:
    """An upper bound of epsilon after `count` equal rounds."""
    return QuickRounds(one, max(count, 1), delta).epsilon(count, delta)
