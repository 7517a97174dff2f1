"""Rényi curves of sums whose number of reports is seen, and Skellam noise by its Rényi curve."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcheckin.accounting.engine.arrays import FloatArray
from dpcheckin.accounting.engine.sampling import visible_counts
from dpcheckin.accounting.figures import Bracket
from dpcheckin.accounting.parameters import positive
from dpcheckin.accounting.renyi.conversion import RenyiCurve
from dpcheckin.accounting.renyi.sampling import wang_subsampled
from dpcheckin.accounting.statements import AGGREGATORS_COLLUDE, LocalGuarantee
from dpcheckin.errors import NumericalFailure

MAX_ORDER = 128
# Part of delta that pays for noise drawn from a table instead of the law itself.
DRAWING_SHARE = 0.01


def summed_rdp(
    population: int, rate: float, of_sum: Callable[[float, FloatArray], FloatArray]
) -> RenyiCurve:
    """Rényi loss of a sum whose number of reports is seen: sampled, then mixed over that number.

    ``of_sum(reports, orders)`` bounds the loss when the noise of so many reports is in the sum.
    """
    counts = visible_counts(population, rate)
    orders = np.arange(2.0, MAX_ORDER + 1.0)
    total = np.full(orders.size, -np.inf)
    for low, high, weight in zip(counts.low, counts.high, counts.probability, strict=True):
        if weight <= 0.0:
            continue
        if high <= 0.0:
            total = np.logaddexp(total, math.log(weight))
            continue
        base = RenyiCurve(orders, of_sum(max(low, 1.0), orders))
        one = wang_subsampled(base, high / population, math.inf)
        total = np.logaddexp(total, math.log(weight) + (orders - 1.0) * one.epsilons)
    # Outside the groups: not sampled at all, with one report or with the most of the groups.
    for tail, fewest in ((counts.tail_below, 1.0), (counts.tail_above, float(counts.high[-1]))):
        if tail > 0.0:
            worst = (orders - 1.0) * of_sum(fewest, orders)
            total = np.logaddexp(total, math.log(tail) + worst)
    return RenyiCurve(orders, np.maximum(total, 0.0) / (orders - 1.0))


def skellam_rdp(orders: FloatArray, variance: float, l1: float, l2: float) -> FloatArray:
    """Rényi bound of Skellam noise of this variance (Agarwal et al., Theorem 3.5), integer orders.

    alpha l2^2/(2v) + min( ((2 alpha - 1) l2^2 + 6 l1)/(4 v^2), 3 l1/(2 v) ).
    """
    positive("variance", variance)
    extra = np.minimum(
        ((2.0 * orders - 1.0) * l2**2 + 6.0 * l1) / (4.0 * variance**2), 3.0 * l1 / (2.0 * variance)
    )
    return np.asarray(orders * l2**2 / (2.0 * variance) + extra)


@dataclass(frozen=True)
class SkellamSide:
    """Distributed check-in of integer vectors with Skellam noise, composed by Rényi curves.

    Args:
        population: Number of clients.
        rate: Probability that a client checks in.
        variance: Of the noise of one coordinate of one report.
        l1: How far a replaced report moves the sum in the l1 norm.
        l2: The same in the l2 norm.
        drawing_error: How far all noise of one round together may be, in total variation, from the
            Skellam law. It moves delta by (1 + e^epsilon) of it a round.
    """

    population: int
    rate: float
    variance: float
    l1: float
    l2: float
    drawing_error: float = 0.0

    def of_noise(self, orders: FloatArray, variance: float) -> FloatArray:
        """Rényi bound of one replaced report under noise of this variance.

        Args:
            orders: whole numbers from 2 on.
            variance: of the noise in the sum.
        """
        return skellam_rdp(orders, variance, self.l1, self.l2)

    @cached_property
    def renyi_curve(self) -> RenyiCurve:
        """Of one round."""
        return summed_rdp(
            self.population,
            self.rate,
            lambda reports, orders: self.of_noise(orders, reports * self.variance),
        )

    def epsilon(self, rounds: int, delta: float) -> Bracket:
        """Epsilon of equal rounds; ``upper`` is a guarantee for the noise that is drawn."""
        composed = self.renyi_curve.times(rounds)
        found = composed.epsilon((1.0 - DRAWING_SHARE) * delta).epsilon * (1.0 + 1e-9)
        paid = (1.0 + math.exp(min(found, 600.0))) * rounds * self.drawing_error
        if paid > DRAWING_SHARE * delta:
            raise NumericalFailure(
                f"the noise is drawn too coarsely for epsilon = {found:.4g} at delta = {delta:g}"
            )
        return Bracket(composed.epsilon(delta).epsilon * (1.0 - 1e-9), found)

    def local(self, rounds: int, delta: float) -> LocalGuarantee:
        """What is left when each client's reports are seen one by one, with who checked in when."""
        return LocalGuarantee(
            report_epsilon=self.exposed_epsilon(1.0, 1, delta),
            report_delta=delta,
            epsilon=self.exposed_epsilon(self.rate, rounds, delta) if rounds else 0.0,
            rounds=rounds,
            when=AGGREGATORS_COLLUDE,
        )

    def exposed_epsilon(self, rate: float, rounds: int, delta: float) -> float:
        """Epsilon of rounds in which the client reports at this rate and each report is seen."""
        orders = np.arange(2.0, MAX_ORDER + 1.0)
        moments = (orders - 1.0) * self.of_noise(orders, self.variance)
        absent = math.log1p(-rate) if rate < 1.0 else -math.inf
        seen = np.logaddexp(absent, math.log(rate) + moments)
        curve = RenyiCurve(orders, np.maximum(seen, 0.0) / (orders - 1.0))
        return curve.times(rounds).epsilon((1.0 - DRAWING_SHARE) * delta).epsilon * (1.0 + 1e-9)
