"""Binomial probabilities to nearly full relative precision, without loading a statistics package.

Loader's saddle-point form (C. Loader, Fast and accurate computation of binomial probabilities,
2000): Stirling's formula with its error terms and two deviances, so that nothing cancels even for
10^9 trials. Every command needs these few lines; importing `scipy.stats` for them costs more time
than the accounting itself.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from dpcheckin.accounting.loss import Array

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
_SERIES_FROM = 16.0
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
_TERMS = 11  # of the deviance's series: 0.1^24 is below round-off


def pmf(count: ArrayLike, trials: ArrayLike, probability: float) -> Array:
    """P(Binomial(trials, probability) = count); zero where count is not in 0, …, trials.

    >>> pmf([0, 1, 2, 3], 2, 0.25).round(12).tolist()
    [0.5625, 0.375, 0.0625, 0.0]
    """
    k, n = np.broadcast_arrays(
        np.asarray(count, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    )
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
    mean, gap = _mean_and_gap(k, n, probability)
    exponent = (
        _stirling_error(n)
        - _stirling_error(k)
        - _stirling_error(rest)
        - _deviance(k, mean, gap)
        - _deviance(rest, n * (1.0 - probability), -gap)
    )
    out[inner] = np.exp(exponent) * np.sqrt(n / (2 * math.pi * k * rest))
    return out


def _mean_and_gap(k: Array, n: Array, p: float) -> tuple[Array, Array]:
    """n p, and k - n p with the rounding error of the product put back (Dekker's exact product).

    Twelve deviations from the mean of 10^9 trials that error alone is worth 1e-11 of the result.
    """
    mean = n * p
    n_high, p_high = _upper_half(n), _upper_half(np.float64(p))
    n_low, p_low = n - n_high, p - p_high
    error = ((n_high * p_high - mean) + n_high * p_low + n_low * p_high) + n_low * p_low
    return mean, (k - mean) - error


def _upper_half(x: Array | np.float64) -> Array:
    shifted = x * 134_217_729.0  # 2^27 + 1
    return np.asarray(shifted - (shifted - x))


def _stirling_error(x: Array) -> Array:
    """log x! - log(sqrt(2 pi x) (x/e)^x), for x >= 1."""
    inverse = 1.0 / x
    square = inverse * inverse
    series = np.zeros_like(x)
    for term in reversed(_STIRLING):
        series = series * square + term
    series *= inverse
    small = x < _SERIES_FROM
    few = x[small]
    if few.size:
        series[small] = gammaln(few + 1) - (few + 0.5) * np.log(few) + few - _HALF_LOG_TWO_PI
    return series


def _deviance(x: Array, mean: Array, gap: Array) -> Array:
    """x log(x / mean) - gap, gap = x - mean, without cancellation near x = mean."""
    v = gap / (x + mean)
    square, series = v * v, np.zeros_like(v)
    for j in range(_TERMS, 0, -1):
        series = (series + 1.0 / (2 * j + 1)) * square
    value = gap * v + 2 * x * v * series
    far = np.abs(v) >= 0.1
    if far.any():
        value[far] = x[far] * np.log(x[far] / mean[far]) - gap[far]
    return np.asarray(value)
