"""Binomial laws: probabilities to nearly full relative precision, windows, and coarser laws.

Loader's saddle-point form (C. Loader, Fast and accurate computation of binomial probabilities,
2000): Stirling's formula with its error terms and two deviances, so that nothing cancels even for
10^9 trials. Every command needs these few lines; importing `scipy.stats` for them costs more time
than the accounting itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dpcheckin.accounting.engine.arrays import Array

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
        logs = scipy.special.gammaln(few + 1)
        series[small] = logs - (few + 0.5) * np.log(few) + few - _HALF_LOG_TWO_PI
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


# Probability below which a corner of a distribution is not enumerated but charged as loss without
# bound, in natural logarithms; exp(-85) = 1e-37 is nothing even after 10^6 rounds.
CORNER = 85.0


def window(trials: int, probability: float) -> tuple[int, int]:
    """Counts outside which a binomial has mass at most 2 exp(-CORNER), by Chernoff's bound."""
    if probability <= 0.0:
        return 0, 0
    if probability >= 1.0:
        return trials, trials
    ends = []
    for outward in (0, trials):
        inner, outer = int(trials * probability), outward
        if _relative_entropy(outward, trials, probability) <= CORNER:
            ends.append(outward)
            continue
        while abs(outer - inner) > 1:
            middle = (inner + outer) // 2
            if _relative_entropy(middle, trials, probability) <= CORNER:
                inner = middle
            else:
                outer = middle
        ends.append(outer)
    return ends[0], ends[1]


def _relative_entropy(count: int, trials: int, probability: float) -> float:
    x, total = count / trials, 0.0
    if count > 0:
        total += count * math.log(x / probability)
    if count < trials:
        total += (trials - count) * (math.log1p(-x) - math.log1p(-probability))
    return total


@dataclass(frozen=True, slots=True)
class Scatter:
    """A centred binomial: one row for every number of trials if `exact`, else one for all."""

    shifts: Array
    weights: Array
    exact: bool


def exact_scatter(fewest: int, most: int, probability: float) -> Scatter:
    """Bin(k, probability) minus its mean, one row each for k = most, most - 1, …, fewest."""
    trials = np.arange(most, fewest - 1, -1)
    ones = np.arange(most + 1)
    weights = pmf(ones[None, :], trials[:, None], probability)
    return Scatter(ones[None, :] - trials[:, None] * probability, weights, True)


def coarse_scatter(
    trials: int, probability: float, points: int, widest: int, harmless: int
) -> Scatter:
    """One law larger in convex order than Bin(k, probability) minus its mean for every k <= trials.

    More trials spread a centred binomial, and moving mass to the neighbouring nodes in proportion
    spreads it further.

    Args:
        trials: The largest number of trials.
        probability: Of one success.
        points: Nodes to use, about.
        widest: Counts up to which the binomial is summed; a wider one becomes its two ends.
        harmless: A distance of nodes that does no harm.
    """
    first, last = window(trials, probability)
    finest = max(1, math.ceil((last - first) / max(points - 2, 1)))
    cell = max(finest, min(harmless, last - first + 1), 1)
    shifts, weights = _on_nodes(trials, probability, first, last, cell, widest)
    return Scatter(shifts, weights, False)


def _on_nodes(
    trials: int, probability: float, first: int, last: int, cell: int, widest: int
) -> tuple[Array, Array]:
    """A centred binomial moved, mean preserving, onto nodes `cell` apart."""
    centre = trials * probability
    if last - first <= cell or last - first > widest:
        # the two ends of the window
        left, right = first - centre, last - centre
        return np.array([left, right]), np.array([right, -left]) / (right - left)
    ones = np.arange(first, last + 1)
    mass = pmf(ones, trials, probability)
    below = (ones - first) // cell
    nodes = first + cell * np.arange(int(below[-1]) + 2)
    share = (ones - nodes[below]) / cell
    weights = np.bincount(below, mass * (1 - share), nodes.size)
    weights = weights + np.bincount(below + 1, mass * share, nodes.size)
    weights = weights / weights.sum()
    return np.asarray(nodes - float(weights @ nodes)), np.asarray(weights)
