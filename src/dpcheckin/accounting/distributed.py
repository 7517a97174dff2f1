"""Distributed check-in with Gaussian noise: only the sum of the reports and their number are seen.

Each client checks in with probability ``rate`` and adds N(0, (noise_multiplier C)^2 I) to a vector
of norm at most C.  Given k check-ins, replacing one client moves the sum by at most 2C under noise
of standard deviation noise_multiplier C sqrt(k), and the client is among the k with probability
k/n.  So one round has the curve E_k[(k/n) h_k(1 + (alpha-1) n/k)] on alpha >= 1 and its mirror
image, h_k the Gaussian profile at distance 2/(noise_multiplier sqrt(k)); k = 0 reveals nothing
(tight per round and order; see docs/errata.md for P1 Theorem 4's missing k = 0 term).  Any
dimension.  Skellam noise is in :mod:`dpcheckin.accounting.skellam`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpcheckin.accounting import curve_composition
from dpcheckin.accounting.bracket import Bracket
from dpcheckin.accounting.check_in_alone import BINS, VisibleCounts, sampled, visible_counts
from dpcheckin.accounting.curve_composition import Curve, CurveRound
from dpcheckin.accounting.normal import gaussian_profile
from dpcheckin.accounting.rdp_conversion import RenyiCurve
from dpcheckin.accounting.subsampled_shuffle import wang_subsampled
from dpcheckin.errors import InvalidParameter

FloatArray = NDArray[np.float64]

MAX_ORDER = 128
LARGEST_LOSS = 40.0


def epsilon(
    population: int,
    rate: float,
    noise_multiplier: float,
    rounds: int,
    delta: float,
    *,
    sensitivity: float = 2.0,
) -> Bracket:
    """Epsilon of ``rounds`` rounds, composed as loss distributions; ``upper`` is a guarantee.

    >>> epsilon(1_000, 0.1, 1.0, 100, 1e-5).upper < theorem_4(1_000, 0.1, 1.0, 100, 1e-5)
    True
    """
    one = round_curve(
        population, rate, noise_multiplier, sensitivity, smallest=delta / max(rounds, 1)
    )
    return curve_composition.epsilon([(one, rounds)], delta)


def round_curve(
    population: int,
    rate: float,
    noise_multiplier: float,
    sensitivity: float,
    *,
    smallest: float,
    groups: int = BINS,
) -> CurveRound:
    """Bounds on one round's curve; losses with curve below 1e-6 * ``smallest`` are not resolved."""
    _check(noise_multiplier, sensitivity)
    counts = visible_counts(population, rate, groups)

    def profile(k: float) -> Curve:
        return partial(gaussian_profile, sensitivity / (noise_multiplier * math.sqrt(k)))

    return mixture(population, counts, profile, profile, smallest)


def mixture(
    population: int,
    counts: VisibleCounts,
    upper_profile: Callable[[float], Curve],
    lower_profile: Callable[[float], Curve],
    smallest: float,
) -> CurveRound:
    """Average over visible k: k/n grows with k, the profile shrinks, so groups use both ends.

    ``upper_profile(k)`` and ``lower_profile(k)`` give the two bounds on the profile of a sum of k.
    """
    above = [
        (w, high / population, upper_profile(max(low, 1.0)))
        for low, high, w in zip(counts.low, counts.high, counts.probability, strict=True)
        if high > 0.0 and w > 0.0
    ]
    below = [
        (w, low / population, lower_profile(high))
        for low, high, w in zip(counts.low, counts.high, counts.probability, strict=True)
        if low > 0.0 and w > 0.0
    ]

    def upper(alpha: FloatArray) -> FloatArray:
        total = np.full_like(alpha, counts.tail)
        for weight, fraction, profile in above:
            total += weight * sampled(profile, fraction, alpha)
        return total

    def lower(alpha: FloatArray) -> FloatArray:
        total = np.zeros_like(alpha)
        for weight, fraction, profile in below:
            total += weight * sampled(profile, fraction, alpha)
        return total

    return CurveRound(upper, lower, reach(upper, 1e-6 * smallest + counts.tail))


def reach(curve: Curve, negligible: float, largest: float = LARGEST_LOSS) -> float:
    """Smallest loss at which the curve is negligible (it is charged to delta from there on)."""
    low, high = 0.0, largest
    for _ in range(6):  # many places at a time: the price of a curve is that of its first value
        losses = np.linspace(low, high, 65)
        over = np.flatnonzero(curve(np.exp(losses)) > negligible)
        last = int(over[-1]) if over.size else 0
        if last == losses.size - 1:
            return high
        low, high = float(losses[last]), float(losses[last + 1])
    return high


def lower_epsilon(
    population: int, rate: float, noise_multiplier: float, rounds: int, delta: float
) -> float:
    """A certified lower bound on epsilon: everybody else on one end of the ball, every round.

    The pair is exact, so both of its directions are composed as they are (the guarantee composes a
    symmetric pair that dominates both, and lies a few percent above).
    """
    _check(noise_multiplier, 2.0)
    counts = visible_counts(population, rate)
    parts = [
        (w, low / population, 2.0 / (noise_multiplier * math.sqrt(high)))
        for low, high, w in zip(counts.low, counts.high, counts.probability, strict=True)
        if low > 0.0 and w > 0.0
    ]

    def moved(alpha: FloatArray) -> FloatArray:  # H_alpha((1-q)Q + qP || Q)
        total = np.zeros_like(alpha)
        for weight, q, distance in parts:
            total += weight * sampled(partial(gaussian_profile, distance), q, alpha)
        return total

    def still(alpha: FloatArray) -> FloatArray:  # H_alpha(Q || (1-q)Q + qP)
        total = np.zeros_like(alpha)
        for weight, q, distance in parts:
            left = 1.0 - alpha * (1.0 - q)
            some = left > 0.0
            inner = np.ones_like(alpha)
            inner[some] = alpha[some] * q / left[some]
            total += weight * np.where(some, left * gaussian_profile(distance, inner), 0.0)
        return total

    furthest = reach(moved, 1e-6 * delta / max(rounds, 1))
    results = [
        curve_composition.epsilon(
            [(CurveRound(one, one, furthest, other, other), rounds)], delta
        ).lower
        for one, other in ((moved, still), (still, moved))
    ]
    return max(results)


def theorem_4_rdp(
    population: int, rate: float, noise_multiplier: float, *, sensitivity: float = 2.0
) -> RenyiCurve:
    """P1 Theorem 4 (arXiv 2206.03151v2) with the k = 0 term it omits: a guarantee."""
    _check(noise_multiplier, sensitivity)

    def gaussian(reports: float, orders: FloatArray) -> FloatArray:
        return orders * sensitivity**2 / (2.0 * reports * noise_multiplier**2)

    return summed_rdp(population, rate, gaussian)


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


def theorem_4(
    population: int, rate: float, noise_multiplier: float, rounds: int, delta: float
) -> float:
    """Epsilon by P1 Theorem 4 (k = 0 included), composed and converted."""
    return theorem_4_rdp(population, rate, noise_multiplier).times(rounds).epsilon(delta).epsilon


def fixed_cohort_rdp(population: int, cohort: int, noise_multiplier: float) -> RenyiCurve:
    """The blue line of P1 Figure 5: a cohort of fixed size, sampled without replacement."""
    _check(noise_multiplier, 2.0)
    orders = np.arange(2.0, MAX_ORDER + 1.0)
    base = RenyiCurve(orders, 2.0 * orders / (cohort * noise_multiplier**2))
    return wang_subsampled(base, cohort / population, math.inf)


def _check(noise_multiplier: float, sensitivity: float) -> None:
    if not (noise_multiplier > 0.0 and math.isfinite(noise_multiplier)):
        raise InvalidParameter("noise_multiplier", noise_multiplier, "a positive, finite number")
    if not (sensitivity > 0.0 and math.isfinite(sensitivity)):
        raise InvalidParameter("sensitivity", sensitivity, "a positive, finite number")
