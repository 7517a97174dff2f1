"""An upper bound of epsilon that is there before anything else: the worst case of a simpler plan.

Reports that follow a profile are counted as the worst ones of their local epsilon (for Gaussian
noise: of an epsilon that holds but for a tiny delta), whose rounds have a short sum instead of a
lattice; all slots of a window are taken to be as crowded as the emptiest. What comes out is a
guarantee like any other, but easily several times too large: something to show until `quick` has
its figure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

from dpcheckin.accounting import checks
from dpcheckin.accounting.composition import MOST_ROUNDS
from dpcheckin.accounting.curves import RoundCurve
from dpcheckin.accounting.local_pairs import GaussianPair
from dpcheckin.accounting.quick import quick_epsilon
from dpcheckin.accounting.rounds import SMALLEST_DELTA, Round, SubsampleRound
from dpcheckin.accounting.seating import simple_curve
from dpcheckin.accounting.stand_in import epsilon_within, stand_in
from dpcheckin.accounting.window import WindowRound

SHARE = 0.05  # of delta, for what a Gaussian report gives away beyond its epsilon


def rough_epsilon(one: Round, count: int, delta: float) -> float:
    """An upper bound of epsilon after `count` equal rounds.

    >>> from dpcheckin.accounting import CheckInRound, compose, gaussian
    >>> one = CheckInRound(10_000, 0.01, gaussian(2.0))
    >>> rough_epsilon(one, 100, 1e-6) >= compose([(one, 100)]).epsilon(1e-6).upper
    True
    """
    delta = checks.open_probability("delta", delta)
    if checks.count("count", count, 0, MOST_ROUNDS) == 0:
        return 0.0
    # a target that reports gives away its local delta once a round; the others' reports never do
    bound = quick_epsilon(simpler(one, SHARE * delta / count), count, delta)
    if isinstance(one.pair, GaussianPair):
        # all reports of one client, unshuffled: one Gaussian report with so much less noise
        whole = GaussianPair(one.pair.noise_multiplier / math.sqrt(count))
        bound = min(bound, epsilon_within(whole, delta))
    return bound


def simpler(one: Round, local_delta: float) -> Round:
    """A round that is nowhere more private, with reports of at most three likelihood ratios."""
    pair = stand_in(one.pair, local_delta)
    if isinstance(one, WindowRound):
        known = {field.name: getattr(one, field.name) for field in fields(one)}
        return _EvenWindow(**{**known, "pair": pair})
    if isinstance(one, SubsampleRound) and one.colluding:
        most = min(one.cohort, one.honest)
        if most < one.honest or pair.full_shuffle_proved:
            # the curve grows with the honest part of the cohort: take all of it as honest
            return SubsampleRound(one.honest, most, pair)
    return replace(one, pair=pair)  # type: ignore[type-var]


@dataclass(frozen=True, slots=True)
class _EvenWindow(WindowRound):
    """A window in which every slot has as few other clients as the emptiest, but for bad luck."""

    def curve(self, smallest: float = SMALLEST_DELTA) -> RoundCurve:
        seats, unlucky = self.seats(smallest)
        return simple_curve(self.pair, seats, self.standing_so_far, smallest, unlucky)
