"""Rényi curves, of sums whose number of reports is seen too, after sampling, and their conversion to (epsilon, delta).

A `RenyiCurve` holds divergences at a grid of orders. It adds up over rounds and is converted by Canonne, Kamath and
Steinke (arXiv 2004.00010v4, Proposition 12; the same formula is P1 Lemma 3 and P4 Lemma 2). Sampling a cohort without
replacement is that of Wang, Balle and Kasiviswanathan (arXiv 1808.00087v2, Theorem 9). The opposite direction, from
(epsilon, delta) to Rényi, does not exist as a guarantee and lives, marked as refuted, in `dpcheckin.papers.p1.bounds`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from dpcheckin.accounting.engine.arrays import FloatArray
from dpcheckin.accounting.engine.sampling import VisibleCounts, visible_counts
from dpcheckin.accounting.statements import AGGREGATORS_COLLUDE, Bracket, LocalGuarantee
from dpcheckin.errors import InvalidParameter, NumericalFailure
from dpcheckin.numerals import open_probability, positive
from dpcheckin.special.gamma import log_gamma


@dataclass(frozen=True, slots=True)
class Converted:
    """An epsilon read off a Rényi curve, and the order at which it was found."""

    epsilon: float
    order: float
    at_largest_order: bool
    """True when the largest order of the grid won: a longer grid may give a smaller epsilon."""


@dataclass(frozen=True, slots=True, eq=False)
class RenyiCurve:
    """Rényi divergences ``epsilons[i]`` of order ``orders[i]`` (all orders above 1).

    >>> gaussian = RenyiCurve(np.arange(2.0, 60.0), np.arange(2.0, 60.0) / (2 * 5.0**2))
    >>> round(gaussian.times(10).epsilon(1e-5).epsilon, 3)
    2.814
    """

    orders: FloatArray
    epsilons: FloatArray

    def __post_init__(self) -> None:
        if self.orders.shape != self.epsilons.shape or self.orders.ndim != 1:
            raise InvalidParameter("epsilons", self.epsilons.shape, "one value for each order")
        if self.orders.size == 0 or not np.all(self.orders > 1.0):
            raise InvalidParameter("orders", self.orders.tolist()[:3], "at least one, all above 1")
        if np.any(np.isnan(self.epsilons)) or np.any(self.epsilons < 0.0):
            raise InvalidParameter("epsilons", "NaN or negative", "divergences are at least 0")

    def times(self, rounds: float) -> RenyiCurve:
        """Adaptive composition of ``rounds`` equal rounds: divergences add up."""
        if not rounds >= 0:
            raise InvalidParameter("rounds", rounds, "at least 0")
        return RenyiCurve(self.orders, self.epsilons * rounds)

    def epsilon(self, delta: float) -> Converted:
        """The least epsilon over the grid of orders for this ``delta`` (never below 0)."""
        open_probability("delta", delta)
        a = self.orders
        values = self.epsilons + np.log1p(-1.0 / a) - (np.log(delta) + np.log(a)) / (a - 1.0)
        best = int(np.argmin(values))
        return Converted(
            epsilon=max(0.0, float(values[best])), order=float(a[best]), at_largest_order=best == a.size - 1
        )

    def profile(self, alpha: FloatArray) -> FloatArray:
        """Upper bounds of the hockey-stick divergence that follow from the curve, alpha >= 1."""
        a, losses = self.orders[:, None], np.log(np.atleast_1d(alpha))[None, :]
        logs = (a - 1.0) * (self.epsilons[:, None] - losses) + a * np.log1p(-1.0 / a) - np.log(a - 1.0)
        return np.asarray(np.exp(np.minimum(logs.min(axis=0), 0.0)))


def ternary_of(base: RenyiCurve, epsilon_infinity: float = math.inf) -> FloatArray:
    """log zeta(j)^j, j = 2, 3, ...: ternary |chi|^j-DP of what has the `base` curve, up to `epsilon_infinity`.

    E_R |(P - Q)/R|^j for any three mutually adjacent datasets (Wang et al., Proposition 21; P1 Definition 5).
    """
    orders = base.orders
    if not np.array_equal(orders, np.arange(2.0, orders.size + 2.0)):
        raise InvalidParameter("orders", orders.tolist()[:3], "the integers 2, 3, 4, ...")
    factor = np.full(orders.size, math.log(2.0))
    if math.isfinite(epsilon_infinity):
        factor = np.minimum(factor, orders * math.log(math.expm1(epsilon_infinity)))
    log_zeta = (orders - 1.0) * base.epsilons + factor
    first = base.epsilons[0]
    if first > 0.0:
        log_zeta[0] = min(log_zeta[0], math.log(4.0 * math.expm1(min(first, 600.0))))
    return np.asarray(log_zeta)


def of_ternary(log_zeta: FloatArray, fraction: float) -> RenyiCurve:
    """The curve when a `fraction` is sampled without replacement, from `log_zeta` as above (P3 Lemma 2, P1 Eq. 5)."""
    if not 0.0 < fraction <= 1.0:
        raise InvalidParameter("fraction", fraction, "above 0 and at most 1")
    orders = np.arange(2.0, log_zeta.size + 2.0)
    terms = orders * math.log(fraction) + log_zeta + _log_binomials(orders.size)
    top = terms.max(axis=1)
    out = np.logaddexp(0.0, top + np.log(np.exp(terms - top[:, None]).sum(axis=1)))
    return RenyiCurve(orders, out / (orders - 1.0))


def wang_subsampled(base: RenyiCurve, fraction: float, epsilon_infinity: float) -> RenyiCurve:
    """Wang et al., Theorem 9: the `base` curve on orders 2, 3, … up to `epsilon_infinity`, a `fraction` sampled."""
    out = of_ternary(ternary_of(base, epsilon_infinity), fraction)
    # Sampling never hurts: the base curve itself stays a bound (quasi-convexity).
    return RenyiCurve(base.orders, np.minimum(out.epsilons, base.epsilons))


@lru_cache(maxsize=4)
def _log_binomials(count: int) -> FloatArray:
    """log C(a, j) for a and j in 2 .. count + 1, minus infinity where j exceeds a."""
    a = np.arange(2.0, count + 2.0)[:, None]
    j = np.arange(2.0, count + 2.0)[None, :]
    inside = log_gamma(a + 1.0) - log_gamma(j + 1.0) - log_gamma(np.maximum(a - j, 0.0) + 1.0)
    table = np.where(j <= a, inside, -np.inf)
    table.setflags(write=False)
    return np.asarray(table)


MAX_ORDER = 128
# Part of delta that pays for noise drawn from a table instead of the law itself, where it is enough.
DRAWING_SHARE = 0.01


def over_counts(
    counts: VisibleCounts,
    orders: FloatArray,
    log_moment: Callable[[float, float], FloatArray],
    outside: tuple[FloatArray, FloatArray],
) -> RenyiCurve:
    """P1 Theorem 2: the curve of what has these log-moments given the number of reports, which is seen.

    `counts`: the numbers, in groups, with any distribution. `log_moment(fewest, most)`: (order - 1) times the curve at
    these `orders` of a round with so many reports; nobody's is 0. `outside`: the same for fewer, and more, than all
    groups have.
    """
    total = np.full(orders.size, -np.inf)
    for low, high, weight in zip(counts.low, counts.high, counts.probability, strict=True):
        if weight > 0.0:
            given = log_moment(max(low, 1.0), high) if high > 0.0 else np.zeros(orders.size)
            total = np.logaddexp(total, math.log(weight) + given)
    for tail, worst in zip((counts.tail_below, counts.tail_above), outside, strict=True):
        if tail > 0.0:
            total = np.logaddexp(total, math.log(tail) + worst)
    return RenyiCurve(orders, np.maximum(total, 0.0) / (orders - 1.0))


def summed_rdp(population: int, rate: float, of_sum: Callable[[float, FloatArray], FloatArray]) -> RenyiCurve:
    """Rényi loss of a sum over a `population` at this `rate` whose number of reports is seen: sampled, mixed over that.

    ``of_sum(reports, orders)`` bounds the loss when the noise of so many reports is in the sum.
    """
    return sampled_rdp(population, visible_counts(population, rate), of_sum)


def sampled_rdp(
    population: int,
    counts: VisibleCounts,
    base: Callable[[float, FloatArray], FloatArray],
    epsilon_infinity: float = math.inf,
) -> RenyiCurve:
    """P1 Eq. 5 and Remark 3: rounds of a `population` whose number of reports is seen, with any `base` mechanism.

    `counts`: the number of reports, by any distribution. ``base(reports, orders)`` bounds the Rényi loss of the base
    mechanism on so many of them, and falls with them. `epsilon_infinity`: what it never exceeds.
    """
    orders = np.arange(2.0, MAX_ORDER + 1.0)

    def log_moment(fewest: float, most: float) -> FloatArray:
        one = wang_subsampled(RenyiCurve(orders, base(fewest, orders)), most / population, epsilon_infinity)
        return (orders - 1.0) * one.epsilons

    # Outside the groups: not sampled at all, with one report or with the most of the groups.
    few, many = ((orders - 1.0) * base(most, orders) for most in (1.0, max(float(counts.high[-1]), 1.0)))
    return over_counts(counts, orders, log_moment, (few, many))


def skellam_rdp(orders: FloatArray, variance: float, l1: float, l2: float) -> FloatArray:
    """Rényi bound of Skellam noise of this variance (Agarwal et al., Theorem 3.5), integer orders.

    alpha l2^2/(2v) + min( ((2 alpha - 1) l2^2 + 6 l1)/(4 v^2), 3 l1/(2 v) ).
    """
    positive("variance", variance)
    extra = np.minimum(((2.0 * orders - 1.0) * l2**2 + 6.0 * l1) / (4.0 * variance**2), 3.0 * l1 / (2.0 * variance))
    return np.asarray(orders * l2**2 / (2.0 * variance) + extra)


@dataclass(frozen=True)
class SkellamSide:
    """Distributed check-in of integer vectors with Skellam noise, composed by Rényi curves.

    `population`: number of clients. `rate`: probability that a client checks in. `variance`: of the noise of one
    coordinate of one report. `l1`: how far a replaced report moves the sum in the l1 norm. `l2`: the same in the l2
    norm. `drawing_error`: how far all noise of one round together may be, in total variation, from the Skellam law. It
    moves delta by (1 + e^epsilon) of it a round.
    """

    population: int
    rate: float
    variance: float
    l1: float
    l2: float
    drawing_error: float = 0.0

    def of_noise(self, orders: FloatArray, variance: float) -> FloatArray:
        """Rényi bound of one replaced report under noise of this variance.

        `orders`: whole numbers from 2 on. `variance`: of the noise in the sum.
        """
        return skellam_rdp(orders, variance, self.l1, self.l2)

    @cached_property
    def renyi_curve(self) -> RenyiCurve:
        """Of one round."""
        return summed_rdp(
            self.population, self.rate, lambda reports, orders: self.of_noise(orders, reports * self.variance)
        )

    def epsilon(self, rounds: int, delta: float) -> Bracket:
        """Epsilon of so many equal `rounds` at `delta`; ``upper`` is a guarantee for the noise that is drawn."""
        composed = self.renyi_curve.times(rounds)
        for share in (DRAWING_SHARE, 0.1, 0.5, 0.9):
            found = composed.epsilon((1.0 - share) * delta).epsilon * (1.0 + 1e-9)
            paid = (1.0 + math.exp(min(found, 600.0))) * rounds * self.drawing_error
            if paid <= share * delta:
                return Bracket(composed.epsilon(delta).epsilon * (1.0 - 1e-9), found)
        raise NumericalFailure(f"the noise is drawn too coarsely for epsilon = {found:.4g} at delta = {delta:g}")

    def local(self, rounds: int, delta: float) -> LocalGuarantee:
        """What is left of `rounds` at `delta` when each client's reports are seen, with who checked in when."""
        return LocalGuarantee(
            report_epsilon=self.exposed_epsilon(1.0, 1, delta),
            report_delta=delta,
            epsilon=self.exposed_epsilon(self.rate, rounds, delta) if rounds else 0.0,
            rounds=rounds,
            when=AGGREGATORS_COLLUDE,
        )

    def exposed_epsilon(self, rate: float, rounds: int, delta: float) -> float:
        """Epsilon at `delta` of `rounds` in which the client reports at this `rate` and each report is seen."""
        orders = np.arange(2.0, MAX_ORDER + 1.0)
        moments = (orders - 1.0) * self.of_noise(orders, self.variance)
        absent = math.log1p(-rate) if rate < 1.0 else -math.inf
        seen = np.logaddexp(absent, math.log(rate) + moments)
        curve = RenyiCurve(orders, np.maximum(seen, 0.0) / (orders - 1.0))
        return curve.times(rounds).epsilon((1.0 - DRAWING_SHARE) * delta).epsilon * (1.0 + 1e-9)
