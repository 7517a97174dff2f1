"""Binomial laws: probabilities to nearly full relative precision, tails, quantiles, intervals.

Loader's saddle-point form (C. Loader, Fast and accurate computation of binomial probabilities,
2000): Stirling's formula with its error terms and two deviances, so that nothing cancels even for
10^9 trials. A tail is an incomplete beta integral.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from dpcheckin.special.arrays import Floats, floats
from dpcheckin.special.gamma import stirling_error
from dpcheckin.special.roots import root
from dpcheckin.special.tails import fallen

_TERMS = 14  # of the deviance's series: 0.25^28 is below round-off
_HIGHEST = 36.0  # log odds of the largest probability below 1


def pmf(count: ArrayLike, trials: ArrayLike, probability: float) -> Floats:
    """P(Binomial(trials, probability) = count); zero where count is not in 0, …, trials.

    The relative error is at most 1e-14 + 1e-15·|log of the result|, below 1e-300 more.

    >>> pmf([0, 1, 2, 3], 2, 0.25).round(12).tolist()
    [0.5625, 0.375, 0.0625, 0.0]
    """
    k, n = np.broadcast_arrays(floats(count), floats(trials))
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
    """P(Binomial(trials, probability) ≤ count) and P(… > count), count and trials whole numbers.

    The smaller of the two has the relative error of `pmf` and 1e-14; the other is what is left.

    Args:
        count: Any whole numbers, also below 0 or above `trials`.
        trials: 0 or more.
        probability: From 0 to 1; NaN raises.

    >>> [float(one.round(12)) for one in tails(1, 3, 0.5)]
    [0.5, 0.5]
    """
    if not 0.0 <= probability <= 1.0:
        raise ValueError(f"a probability, not {probability!r}")
    k, n = np.broadcast_arrays(floats(count), floats(trials))
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


def quantile(level: float, trials: int, probability: float) -> int:
    """The smallest count with cdf(count) ≥ level.

    >>> quantile(0.5, 10, 0.5)
    5
    """
    _check_level(level)
    return _first(trials, lambda count: float(cdf(count, trials, probability)) >= level)


def upper_quantile(level: float, trials: int, probability: float) -> int:
    """The smallest count with sf(count) ≤ level.

    >>> upper_quantile(0.001, 10, 0.5)
    9
    """
    _check_level(level)
    return _first(trials, lambda count: float(sf(count, trials, probability)) <= level)


def _check_level(level: float) -> None:
    if not 0.0 <= level <= 1.0:
        raise ValueError(f"a level is a probability, not {level!r}")


def _first(trials: int, enough: Callable[[int], bool]) -> int:
    low, high = -1, trials
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


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
