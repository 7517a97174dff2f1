"""Binomial, Poisson and hypergeometric laws: probabilities to nearly full relative precision, tails, intervals.

Loader's saddle-point form (C. Loader, Fast and accurate computation of binomial probabilities, 2000): Stirling's
formula with its error terms and two deviances, so that nothing cancels even for 10^9 trials. A tail is an incomplete
beta or gamma integral.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from dpcheckin.special import Floats
from dpcheckin.special.gamma import fallen, stirling_error
from dpcheckin.special.roots import root, whole_switch

# Probability below which a corner of a distribution is not enumerated but charged, in natural logarithms; exp(-85) =
# 1e-37 is nothing even after 10^6 rounds.
CORNER = 85.0
_TERMS = 14  # of the deviance's series: 0.25^28 is below round-off
_HIGHEST = 36.0  # log odds of the largest probability below 1
_BLOCK = 1 << 16  # counts whose masses are summed at once


def pmf(count: ArrayLike, trials: ArrayLike, probability: float) -> Floats:
    """P(Binomial(trials, probability) = count); zero where count is not in 0, …, trials.

    The relative error is at most 1e-14 + 1e-15·|log of the result|, below 1e-300 more.

    >>> pmf([0, 1, 2, 3], 2, 0.25).round(12).tolist()
    [0.5625, 0.375, 0.0625, 0.0]
    """
    k, n = np.broadcast_arrays(np.asarray(count, np.float64), np.asarray(trials, np.float64))
    out = np.zeros(k.shape)
    if probability <= 0.0 or probability >= 1.0:
        out[k == (0.0 if probability <= 0.0 else n)] = 1.0
        return out
    possible = (k >= 0) & (k <= n) & (k == np.floor(k))
    none, every = possible & (k == 0), possible & (k == n)
    out[none] = np.exp(n[none] * math.log1p(-probability))
    out[every] = np.exp(n[every] * math.log(probability))
    inner = possible & ~none & ~every
    k, n = k[inner], n[inner]
    rest = n - k
    mean, gap = mean_and_gap(k, n, probability)
    exponent = (
        stirling_error(n)
        - stirling_error(k)
        - stirling_error(rest)
        - deviance(k, mean, gap)
        - deviance(rest, n * (1.0 - probability), -gap)
    )
    out[inner] = np.exp(exponent) * np.sqrt(n / (2 * math.pi * k * rest))
    return out


def mean_and_gap(k: Floats, n: Floats, p: float) -> tuple[Floats, Floats]:
    """n p, and k - n p with the rounding error of the product put back (Dekker's exact product).

    Twelve deviations from the mean of 10^9 trials that error alone is worth 1e-11 of the result.
    """
    mean = n * p
    n_high, p_high = _upper_half(n), _upper_half(np.float64(p))
    n_low, p_low = n - n_high, p - p_high
    error = ((n_high * p_high - mean) + n_high * p_low + n_low * p_high) + n_low * p_low
    return mean, (k - mean) - error


def _upper_half(x: Floats | np.float64) -> Floats:
    shifted = x * 134_217_729.0  # 2^27 + 1
    return np.asarray(shifted - (shifted - x))


def deviance(x: Floats, mean: Floats, gap: Floats) -> Floats:
    """x log(x / mean) - gap, gap = x - mean, without cancellation near x = mean."""
    v = gap / (x + mean)
    square, series = v * v, np.zeros_like(v)
    for j in range(_TERMS, 0, -1):
        series = (series + 1.0 / (2 * j + 1)) * square
    value = gap * v + 2 * x * v * series
    far = np.abs(v) >= 0.25
    if far.any():
        value[far] = x[far] * np.log(x[far] / mean[far]) - gap[far]
    return np.asarray(value)


def tails(count: ArrayLike, trials: ArrayLike, probability: float) -> tuple[Floats, Floats]:
    """P(Binomial(trials, probability) ≤ count) and P(… > count), also for counts below 0 or above trials; NaN raises.

    The smaller of the two has the relative error of `pmf` and 1e-14; the other is what is left.

    >>> [float(one.round(12)) for one in tails(1, 3, 0.5)]
    [0.5, 0.5]
    """
    if not 0.0 <= probability <= 1.0:
        raise ValueError(f"a probability, not {probability!r}")
    k, n = np.broadcast_arrays(np.asarray(count, np.float64), np.asarray(trials, np.float64))
    if not (np.all(k == np.floor(k)) and np.all(n == np.floor(n)) and np.all(n >= 0)):
        raise ValueError("counts and trials are whole numbers")
    below = np.where(k >= n, 1.0, 0.0)
    above = np.where(k >= n, 0.0, 1.0)
    inside = (k >= 0) & (k < n)
    if probability in (0.0, 1.0):
        below[inside], above[inside] = 1.0 - probability, probability
    elif inside.any():
        below[inside], above[inside] = _inner_tails(k[inside], n[inside], probability)
    return below, above


def _inner_tails(k: Floats, n: Floats, p: float) -> tuple[Floats, Floats]:
    """Both tails for 0 ≤ k < n: P(> k) is the integral of a beta density from 0 to p.

    Integrated is the side of p that its mean (k + 1) / (n + 1) is not on.
    """
    _, gap = mean_and_gap(k, n - 1, p)
    edge = n * pmf(k, n - 1, p)  # the density at p
    left, q = gap >= 2 * p - 1, 1.0 - p
    inner, outer = np.where(left, p, q), np.where(left, q, p)
    first, second = np.where(left, k, n - 1 - k), np.where(left, n - 1 - k, k)
    slope = np.where(left, gap, -gap) / outer
    part = np.minimum(edge * inner * fallen(slope, first, second, inner / outer, 1.0), 1.0)
    return np.where(left, 1.0 - part, part), np.where(left, part, 1.0 - part)


def cdf(count: ArrayLike, trials: ArrayLike, probability: float) -> Floats:
    """P(Binomial(trials, probability) ≤ count), see `tails`."""
    return tails(count, trials, probability)[0]


def sf(count: ArrayLike, trials: ArrayLike, probability: float) -> Floats:
    """P(Binomial(trials, probability) > count), see `tails`."""
    return tails(count, trials, probability)[1]


def window(trials: int, probability: float) -> tuple[int, int]:
    """Counts outside which Binomial(trials, probability) has mass at most 2 exp(-CORNER), by Chernoff's bound."""
    if probability <= 0.0:
        return 0, 0
    if probability >= 1.0:
        return trials, trials
    ends = []
    for outward in (0, trials):
        if _relative_entropy(outward, trials, probability) <= CORNER:
            ends.append(outward)
            continue
        inner = whole_switch(
            lambda count: _relative_entropy(count, trials, probability) <= CORNER, int(trials * probability), outward
        )
        ends.append(inner + 1 if outward else inner - 1)
    return ends[0], ends[1]


def _relative_entropy(count: int, trials: int, probability: float) -> float:
    x, total = count / trials, 0.0
    if count > 0:
        total += count * math.log(x / probability)
    if count < trials:
        total += (trials - count) * (math.log1p(-x) - math.log1p(-probability))
    return total


def quantile(level: float, trials: int, probability: float) -> int:
    """The smallest count with cdf(count, trials, probability) ≥ level.

    >>> quantile(0.5, 10, 0.5)
    5
    """
    return _first(level, trials, lambda count: float(cdf(count, trials, probability)) >= level)


def upper_quantile(level: float, trials: int, probability: float) -> int:
    """The smallest count with sf(count, trials, probability) ≤ level.

    >>> upper_quantile(0.001, 10, 0.5)
    9
    """
    return _first(level, trials, lambda count: float(sf(count, trials, probability)) <= level)


def _first(level: float, trials: int, enough: Callable[[int], bool]) -> int:
    if not 0.0 <= level <= 1.0:
        raise ValueError(f"a level is a probability, not {level!r}")
    return whole_switch(enough, trials, -1)


def least_probability(seen: int, trials: int, miss: float) -> float:
    """The probability at which `seen` or more of `trials` have probability `miss` (Clopper).

    >>> round(least_probability(3, 3, 0.125), 12)
    0.5
    """
    _check_seen(seen, trials, miss)
    if seen == 0:
        return 0.0
    return _solved(lambda p: float(sf(seen - 1, trials, p)), miss)


def largest_probability(seen: int, trials: int, miss: float) -> float:
    """The probability at which `seen` or fewer of `trials` have probability `miss` (Pearson).

    >>> round(largest_probability(0, 3, 0.125), 12)
    0.5
    """
    _check_seen(seen, trials, miss)
    if seen == trials or float(cdf(seen, trials, _probability(_HIGHEST))) > miss:
        return 1.0
    return _solved(lambda p: float(cdf(seen, trials, p)), miss)


def _check_seen(seen: int, trials: int, miss: float) -> None:
    if not 0 <= seen <= trials:
        raise ValueError(f"{seen!r} of {trials!r}")
    if not 0.0 < miss < 1.0:
        raise ValueError(f"a probability strictly between 0 and 1, not {miss!r}")


def _solved(chance: Callable[[float], float], miss: float) -> float:
    """The p at which a monotone chance is `miss`; in logarithms it is nearly a line."""

    def excess(log_odds: float) -> float:
        return math.log(max(chance(_probability(log_odds)), 1e-320)) - math.log(miss)

    return _probability(root(excess, -700.0, _HIGHEST, relative=1e-15, absolute=1e-15))


def _probability(log_odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-log_odds))


def poisson_pmf(count: ArrayLike, mean: ArrayLike) -> Floats:
    """P(Poisson(mean) = count) for whole counts from 0 on and means above 0.

    The relative error is at most 1e-14 + 1e-15·|log of the result|.

    >>> poisson_pmf([0, 2], 1.0).round(9).tolist()
    [0.367879441, 0.183939721]
    """
    k, m = np.broadcast_arrays(np.asarray(count, np.float64), np.asarray(mean, np.float64))
    out = np.asarray(np.exp(-m))
    some = k > 0
    k, m = k[some], m[some]
    exponent = -stirling_error(k) - deviance(k, m, k - m)
    out[some] = np.exp(exponent) / np.sqrt(2 * math.pi * k)
    return out


def poisson_cdf(count: ArrayLike, mean: ArrayLike) -> Floats:
    """P(Poisson(mean) ≤ count) for whole counts and means above 0.

    Of it and 1 less it, the smaller is computed, to the relative error of `poisson_pmf` and 1e-14.

    >>> poisson_cdf([-1, 0, 1000], 1.0).round(9).tolist()
    [0.0, 0.367879441, 1.0]
    """
    k, m = np.broadcast_arrays(np.asarray(count, np.float64), np.asarray(mean, np.float64))
    if not (np.all(k == np.floor(k)) and np.all(m > 0.0) and np.all(np.isfinite(m))):
        raise ValueError("counts are whole numbers, means are positive")
    out = np.zeros(k.shape)
    # the integral of a gamma density from the mean on, or up to it where that is less
    for upper in (True, False):
        chosen = (k >= 0) & ((k + 1 <= m) == upper)
        if chosen.any():
            a, b = k[chosen], m[chosen]
            slope, none = (b - a if upper else a - b), np.zeros_like(a)
            end = math.inf if upper else 1.0
            tail = np.minimum(b * poisson_pmf(a, b) * fallen(slope, a, none, none + 1.0, end), 1.0)
            out[chosen] = tail if upper else 1.0 - tail
    return out


def hypergeometric_pmf(count: Floats, population: int, marked: int, drawn: int) -> Floats:
    """P(count of the marked are among those drawn from the population without replacement), to 5e-14 down to 1e-20.

    Three binomial probabilities (Loader): nothing cancels for populations of 10^9. Impossible counts have probability
    zero; drawn are some, not all.

    >>> hypergeometric_pmf(np.arange(4.0), 6, 3, 3).round(6).tolist()
    [0.05, 0.45, 0.45, 0.05]
    """
    rate = drawn / population
    here = pmf(count, marked, rate)
    rest = pmf(drawn - count, population - marked, rate)
    return np.asarray(here * rest / float(pmf(drawn, population, rate)))


def hypergeometric_masses(edges: list[int], population: int, marked: int, drawn: int) -> list[float]:
    """P(edge < count ≤ next edge) for neighbouring, rising edges; population, marked, drawn as for the masses.

    >>> [round(one, 6) for one in hypergeometric_masses([-1, 0, 3], 6, 3, 3)]
    [0.05, 0.95]
    """
    masses = []
    for left, right in pairwise(edges):
        starts = range(left + 1, right + 1, _BLOCK)
        blocks = (np.arange(a, min(a + _BLOCK, right + 1), dtype=np.float64) for a in starts)
        masses.append(sum(float(hypergeometric_pmf(one, population, marked, drawn).sum()) for one in blocks))
    return masses
