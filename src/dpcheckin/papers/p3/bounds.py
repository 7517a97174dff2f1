"""Rényi bounds of the subsampled shuffle model (P3): a fixed cohort, pure local randomizers.

P3 is Girgis, Data and Diggavi, arXiv 2107.08763v1: Theorem 1 (upper), Theorem 2 (lower: binary response, every moment
exact), Lemma 2 with Wang, Balle and Kasiviswanathan's subsampling bound (arXiv 1808.00087v2, Theorem 9) on top of the
same authors' shuffle bound (arXiv 2105.05180v2, Theorem 1). All upper bounds here are sound; the empty-seat theorem
with a fixed cohort is tighter in every case computed. Theorem 3 (convergence) is in `papers.p3.utility`. Orders go from
2 to max_order.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dpcheckin.accounting.engine.arrays import FloatArray
from dpcheckin.accounting.renyi import RenyiCurve, wang_subsampled
from dpcheckin.numerals import count, positive
from dpcheckin.special import binomial
from dpcheckin.special.gamma import log_gamma


def upper_rdp(population: int, cohort: int, local_epsilon: float, max_order: int = 300) -> RenyiCurve:
    """Theorem 1: a cohort of the population, reports of this local_epsilon, orders 2..max_order.

    >>> mnist = upper_rdp(60_000, 2_000, 2.0, 300).times(6_000)
    >>> round(mnist.epsilon(1e-5).epsilon, 2)
    5.79
    """
    _check(population, cohort, local_epsilon, max_order)
    rate = cohort / population
    return _curve(printed_log_moments(rate, cohort, local_epsilon, max_order))


def printed_log_moments(rate: float, cohort: int, local_epsilon: float, max_order: int) -> FloatArray:
    """The logarithm's argument in Theorem 1 for a cohort and local_epsilon, the rate left free, orders 2..max_order."""
    return np.logaddexp(0.0, printed_log_excess(rate, cohort, local_epsilon, max_order))


def printed_log_excess(rate: float, cohort: int, local_epsilon: float, max_order: int) -> FloatArray:
    """Logarithm of what Theorem 1 adds to 1 for a cohort and local_epsilon, the rate left free, orders 2..max_order."""
    e0 = math.exp(local_epsilon)
    stretch = e0 - 1.0 / e0  # (e^{2 eps0} - 1) / e^{eps0}
    effective = math.floor((cohort - 1) / (2.0 * e0)) + 1
    orders = np.arange(2, max_order + 1, dtype=np.float64)
    pairs = orders * (orders - 1.0) / 2.0
    second = 4.0 * pairs * rate**2 * (e0 - 1.0) ** 2 / (effective * e0)
    per_term = math.log(rate) + 0.5 * math.log(2.0 * stretch**2 / effective)
    higher = _log_tail_sums(max_order, per_term)
    step = rate * stretch
    # (1 + x)^a - 1 - a x >= 0; for large a the first term dominates and may overflow: use logs.
    power = orders * math.log1p(step)
    rest = np.expm1(np.minimum(power, 600.0)) - orders * step
    # a (a-1)/2 x^2 is below the difference and keeps its digits where the difference loses them
    rest = np.maximum(rest, pairs * step**2)
    log_rest = np.where(power < 600.0, np.log(rest), power) - (cohort - 1.0) / (8.0 * e0)
    return np.asarray(np.logaddexp(np.log(second), np.logaddexp(higher, log_rest)))


@lru_cache(maxsize=1024)
def _log_tail_sums(max_order: int, per_term: float) -> FloatArray:
    """log sum_{j=3..a} C(a,j) j Gamma(j/2) exp(j * per_term), a = 2..max_order; kept for other rounds and deltas."""
    out = np.full(max_order - 1, -np.inf)
    j = np.arange(3, max_order + 1, dtype=np.float64)
    base = np.log(j) + log_gamma(j / 2.0) - log_gamma(j + 1.0) + j * per_term
    log_factorial = log_gamma(np.arange(max_order + 1) + 1.0)
    for a in range(3, max_order + 1):
        m = a - 2
        terms = base[:m] + log_factorial[a] - log_factorial[a - 3 :: -1][:m]
        top = float(terms.max())
        out[a - 2] = top + math.log(float(np.exp(terms - top).sum()))
    out.setflags(write=False)
    return out


def lower_rdp(population: int, cohort: int, local_epsilon: float, max_order: int = 300) -> RenyiCurve:
    """Theorem 2 with all moments exact: binary response of this local_epsilon, everybody else on one value.

    A cohort of the population, orders 2..max_order. A lower bound on the Rényi divergence. (Appendix D swaps the rate
    and its complement in the second law; the moments printed after it, and used here, have them the right way round.)
    """
    _check(population, cohort, local_epsilon, max_order)
    e0 = math.exp(local_epsilon)
    p = 1.0 / (e0 + 1.0)
    spread = 60.0 * math.sqrt(cohort * p * (1.0 - p)) + 60.0
    low = max(0, math.floor(cohort * p - spread))
    high = min(cohort, math.ceil(cohort * p + spread))
    m = np.arange(low, high + 1, dtype=np.float64)
    weight = binomial.pmf(m, cohort, p)
    x = (1.0 / population) * (e0 - 1.0 / e0) * (m - cohort * p)
    log_ratio = np.log1p(x)
    orders = np.arange(2, max_order + 1, dtype=np.float64)
    # (1 + x)^a - 1 - a x is never negative, so cutting tails (and powers) keeps a lower bound.
    excess = [
        float(np.dot(weight, np.maximum(0.0, np.expm1(np.minimum(a * log_ratio, 600.0)) - a * x))) for a in orders
    ]
    return _curve(np.log1p(np.asarray(excess)))


def shuffle_rdp(reports: int, local_epsilon: float, max_order: int) -> RenyiCurve:
    """Shuffling alone (arXiv 2105.05180v2, Theorem 1) of reports of this local_epsilon, orders 2..max_order."""
    _check(reports, reports, local_epsilon, max_order)
    e0 = math.exp(local_epsilon)
    effective = math.floor((reports - 1) / (2.0 * e0)) + 1
    stretch = e0 - 1.0 / e0
    orders = np.arange(2, max_order + 1, dtype=np.float64)
    second = orders * (orders - 1.0) / 2.0 * (e0 - 1.0) ** 2 / (effective * e0)
    higher = _log_tail_sums(max_order, 0.5 * math.log(stretch**2 / (2.0 * effective)))
    rest = local_epsilon * orders - (reports - 1) / (8.0 * e0)
    log_moment = np.logaddexp(np.log1p(second), np.logaddexp(higher, rest))
    # No randomizer of this kind leaks more than its local epsilon at any order.
    return _curve(np.minimum(log_moment, local_epsilon * (orders - 1.0)))


def lemma_2_rdp(population: int, cohort: int, local_epsilon: float, max_order: int = 300) -> RenyiCurve:
    """Shuffle bound, then Wang et al. (black in Figure 5): population, cohort, local_epsilon, orders 2..max_order."""
    _check(population, cohort, local_epsilon, max_order)
    base = shuffle_rdp(cohort, local_epsilon, max_order)
    return wang_subsampled(base, cohort / population, local_epsilon)


def _curve(log_moment: FloatArray) -> RenyiCurve:
    orders = np.arange(2, log_moment.size + 2, dtype=np.float64)
    return RenyiCurve(orders, log_moment / (orders - 1.0))


def _check(population: int, cohort: int, local_epsilon: float, max_order: int) -> None:
    count("cohort", cohort, largest=population)
    positive("local_epsilon", local_epsilon)
    count("max_order", max_order, smallest=2)
