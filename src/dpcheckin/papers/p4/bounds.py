"""Rényi divergences of shuffled Gaussian reports against one fixed background, all orders at once.

Everybody of the population but one user holds the same value; the one user moves by `sensitivity` (1 in the papers, 2
for the two ends of the unit ball). The likelihood ratio of the two shuffled outputs is a mean of independent terms,
log-normal for those who report and 1 for those who stay away, and its moments are power-series coefficients; P4 Theorem
1 (arXiv 2206.09569v1) and P1 Theorem 3 (arXiv 2206.03151v2) write them as sums over integer partitions. This is exact
for ONE pair of datasets, a lower bound on the mechanism's divergence and no guarantee (docs/errata.md).

How: let M_m be the m-th moment of a mean of n terms with moments g_k. Raising a power series to the n-th power gives m
M_m = sum_k (k(n+1) - m) C(m,k) n^-k g_k M_{m-k}, and the excess D = M - 1 obeys it with (g_k - 1) + g_k D_{m-k} in
place of g_k M_{m-k}. For m <= n + 1 every term is positive: nothing cancels. For larger orders two means are merged by
binomial weights, again all positive.
"""

from __future__ import annotations

import math

import numpy as np

from dpcheckin.accounting.engine.arrays import FloatArray
from dpcheckin.accounting.renyi import RenyiCurve, wang_subsampled
from dpcheckin.numerals import count, positive, probability
from dpcheckin.special import binomial
from dpcheckin.special.gamma import log_gamma

SUBSAMPLED_ORDERS = 60


def full_shuffle_rdp(
    population: int, noise_multiplier: float, max_order: int, *, sensitivity: float = 2.0
) -> RenyiCurve:
    """Everybody in the population reports: orders 2..max_order of the homogeneous pair (P4 Theorem 1).

    With this noise_multiplier. P4 Table 1 has sensitivity 1 and orders up to 30; the best order lies far above:

    >>> short = full_shuffle_rdp(60_000, 9.48, 30, sensitivity=1.0)
    >>> long = full_shuffle_rdp(60_000, 9.48, 400, sensitivity=1.0)
    >>> print(f"{short.epsilon(1 / 60_000).epsilon:.5f} {long.epsilon(1 / 60_000).epsilon:.5f}")
    0.22820 0.01009
    """
    return check_in_rdp(population, 1.0, noise_multiplier, max_order, sensitivity=sensitivity)


def corollary_1_rdp(noise_multiplier: float, max_order: int, *, sensitivity: float = 1.0) -> RenyiCurve:
    """Corollary 1: what shuffling never exceeds, lambda / 2 sigma^2 (one report seen), orders 2..max_order.

    For a noise_multiplier and sensitivity.

    >>> one = corollary_1_rdp(2.0, 40)
    >>> bool(np.all(full_shuffle_rdp(7, 2.0, 40, sensitivity=1.0).epsilons <= one.epsilons))
    True
    """
    orders = np.arange(2.0, count("max_order", max_order, smallest=2) + 1.0)
    shift = positive("sensitivity", sensitivity) / positive("noise_multiplier", noise_multiplier)
    return RenyiCurve(orders, orders * shift**2 / 2.0)


def check_in_rdp(
    population: int, rate: float, noise_multiplier: float, max_order: int, *, sensitivity: float = 2.0
) -> RenyiCurve:
    """Everybody in the population reports at this rate: orders 2..max_order for a noise_multiplier and sensitivity."""
    _check(population, noise_multiplier, max_order, sensitivity)
    probability("rate", rate)
    term = _term_log_excess(max_order, sensitivity / noise_multiplier, rate)
    return _curve(_mean_log_excess(term, population))


def subsample_rdp(
    population: int, cohort: int, noise_multiplier: float, max_order: int, *, sensitivity: float = 2.0
) -> RenyiCurve:
    """A random cohort of the population reports: orders 2..max_order for a noise_multiplier and sensitivity."""
    _check(population, noise_multiplier, max_order, sensitivity)
    count("cohort", cohort, largest=population)
    term = _term_log_excess(max_order, sensitivity / noise_multiplier, 1.0)
    reporting = _mean_log_excess(term, cohort)
    absent = np.full(max_order + 1, -np.inf)
    return _curve(_merge(reporting, absent, cohort / population))


def _check(population: int, noise_multiplier: float, max_order: int, sensitivity: float) -> None:
    count("population", population)
    positive("noise_multiplier", noise_multiplier)
    positive("sensitivity", sensitivity)
    count("max_order", max_order, smallest=2)


def _term_log_excess(max_order: int, shift: float, rate: float) -> FloatArray:
    """log(g_k - 1) of one term, k = 0..max_order: rate * expm1((k^2 - k) shift^2 / 2)."""
    k = np.arange(max_order + 1, dtype=np.float64)
    x = k * (k - 1.0) * shift**2 / 2.0
    out = np.full(max_order + 1, -np.inf)
    if rate > 0.0:
        out[2:] = math.log(rate) + x[2:] + np.log(-np.expm1(-x[2:]))
    return out


def _mean_log_excess(term: FloatArray, count: int) -> FloatArray:
    """log D of the mean of ``count`` independent terms with log excess ``term``."""
    if term.size - 1 <= count:
        return _by_recurrence(term, count)
    # Orders beyond count + 1 would need negative weights: double and add instead.
    power, weight = term, 1
    result: FloatArray | None = None
    taken = 0
    remaining = count
    while remaining:
        if remaining & 1:
            if result is None:
                result, taken = power, weight
            else:
                result = _merge(result, power, taken / (taken + weight))
                taken += weight
        remaining >>= 1
        if remaining:
            power, weight = _merge(power, power, 0.5), 2 * weight
    assert result is not None  # count >= 1
    return result


def _by_recurrence(term: FloatArray, count: int) -> FloatArray:
    top = term.size - 1
    n = float(count)
    log_factorial = log_gamma(np.arange(top + 1) + 1.0)
    k = np.arange(1, top + 1, dtype=np.float64)
    base = -log_factorial[1:] - k * math.log(n)
    lead = k * (n + 1.0)
    own = base + term[1:]  # the part (g_k - 1)
    both = base + np.logaddexp(0.0, term[1:])  # the part g_k D_{m-k}
    previous = np.full(top + 1, -np.inf)  # log D_j - log j!
    for m in range(2, top + 1):
        weight = lead[:m] - m  # never negative for m <= n + 1
        first = own[:m] - log_factorial[m - 1 :: -1]
        second = both[:m] + previous[m - 1 :: -1]
        previous[m] = _log_weighted_sum(weight, first, second) - math.log(m)
    return np.asarray(previous + log_factorial)


def _merge(one: FloatArray, other: FloatArray, share: float) -> FloatArray:
    """log D of ``share`` * A + (1 - share) * B for independent A, B: binomial weights."""
    if share == 1.0:
        return one
    top = one.size - 1
    log_factorial = log_gamma(np.arange(top + 1) + 1.0)
    i = np.arange(top + 1, dtype=np.float64)
    weight_one = i * math.log(share) - log_factorial
    weight_other = i * math.log1p(-share) - log_factorial
    own = weight_one + one
    both = weight_one + np.logaddexp(0.0, one)
    other_part = weight_other + other
    ones = np.ones(top + 1)
    out = np.full(top + 1, -np.inf)
    for m in range(2, top + 1):
        first = own[: m + 1] + weight_other[m::-1]
        second = both[: m + 1] + other_part[m::-1]
        out[m] = _log_weighted_sum(ones[: m + 1], first, second) + log_factorial[m]
    return out


def _log_weighted_sum(weight: FloatArray, first: FloatArray, second: FloatArray) -> float:
    """log of sum(weight * (exp(first) + exp(second))), -inf when there is nothing to sum."""
    top = max(float(first.max()), float(second.max()))
    if top == -math.inf:
        return top
    total = float(np.dot(weight, np.exp(first - top) + np.exp(second - top)))
    return top + math.log(total) if total > 0.0 else -math.inf


def _curve(log_excess: FloatArray) -> RenyiCurve:
    orders = np.arange(2, log_excess.size, dtype=np.float64)
    # log(1 + D): tiny excesses stay exact, huge ones do not overflow
    return RenyiCurve(orders, np.logaddexp(0.0, log_excess[2:]) / (orders - 1.0))


def subsampled_rdp(rate: float, reports: int, noise_multiplier: float) -> RenyiCurve:
    """P4 Theorem 2 / P1 Theorem 5: Wang et al. on the homogeneous pair at distance 1.

    For reports with a noise_multiplier, drawn at a rate. Unproved (the pair is a lower bound); wrong for data of norm
    at most 1, where two values can be 2 apart; no counterexample is known for data of diameter 1.
    """
    base = full_shuffle_rdp(reports, noise_multiplier, SUBSAMPLED_ORDERS, sensitivity=1.0)
    return wang_subsampled(base, rate, math.inf)


def equation_17_moment(population: int, rate: float, noise_multiplier: float, order: int) -> float:
    """The sum of P4 Equation 17 as printed: k from 1, the rate in the place of k/n. Refuted.

    For a population, a noise_multiplier and one order.

    >>> equation_17_moment(10, 0.01, 1.0, 2) < 0.1  # no moment is below 1
    True
    """
    total = 0.0
    for k in range(1, population + 1):
        chance = float(binomial.pmf(k, population, rate))
        curve = subsampled_rdp(rate, k, noise_multiplier)
        total += chance * math.exp((order - 1.0) * float(curve.epsilons[order - 2]))
    return total


def theorem_3_rdp(population: int, rate: float, noise_multiplier: float, kept: int) -> RenyiCurve:
    """P4 Theorem 3 (Eq. 18) for a population n and noise_multiplier with (1 - Delta) n rate = kept. Refuted."""
    mean = population * rate
    one = subsampled_rdp(rate, 1, noise_multiplier)
    many = subsampled_rdp(rate, kept + 1, noise_multiplier)
    few = (one.orders - 1.0) * one.epsilons - (mean - kept) ** 2 / (2.0 * mean)
    log_moment = np.logaddexp(few, (many.orders - 1.0) * many.epsilons)
    return RenyiCurve(many.orders, np.maximum(log_moment, 0.0) / (many.orders - 1.0))


def theorem_3(population: int, rate: float, noise_multiplier: float, rounds: int, delta: float) -> float:
    """P4 Theorem 3 at delta, best of 20 splits: population, rate, noise_multiplier, rounds. Refuted."""
    whole = math.floor(population * rate)
    points = np.unique(np.rint(np.linspace(0.0, whole, 20)).astype(int))
    return min(
        theorem_3_rdp(population, rate, noise_multiplier, int(kept)).times(rounds).epsilon(delta).epsilon
        for kept in points
    )
