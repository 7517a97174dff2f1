"""Binomial and Poisson laws: probabilities and tails to nearly full relative precision.

Loader's saddle-point form (C. Loader, Fast and accurate computation of binomial probabilities, 2000): Stirling's
formula with its error terms and two deviances, so that nothing cancels even for 10^9 trials. A tail is that of a beta
or gamma density that falls from its edge on: the density there times ∫ exp(-slope·h + first·λ(-h) + second·λ(h·odds))
dh with λ(v) = log(1 + v) - v, three parts of one sign, so that no digits are lost. The exponent is concave; the
integral ends where it has fallen by `FALL`, and Gauss and Legendre's rule does the rest.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from dpcheckin.special import CONSTANTS, Floats
from dpcheckin.special.roots import whole_switch

# Probability below which a corner of a distribution is not enumerated but charged, in natural logarithms; exp(-85) =
# 1e-37 is nothing even after 10^6 rounds.
CORNER = 85.0
_TERMS = 14  # of the deviance's series: 0.25^28 is below round-off

SERIES_FROM = 16.0
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
# Stirling's error of 1, 2, …, 15, where the series is not good enough (a test computes them anew)
_WHOLE = np.array([math.inf, *CONSTANTS["stirling_errors"]])
FALL = 40.0  # exp(-40) = 4e-18
# Gauss and Legendre's 28 nodes on [0, 1], and the weights of the first half: NumPy's are good to
# 1e-13 only (a test computes these anew)
NODES, _HALF = np.array(CONSTANTS["legendre_nodes"]), np.array(CONSTANTS["legendre_weights"])
WEIGHTS = np.concatenate([_HALF, _HALF[::-1]])
_NEAR = 1 / 81  # largest r² of λ's series, which has so many terms,
_LAMBDA_TERMS = 9
_ENOUGH = ((2, 1e-8), (4, 1e-4))  # or fewer for smaller ones
_ROWS = 512  # tails that are summed at once, within a processor's cache


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


def stirling_error(x: Floats) -> Floats:
    """log x! - log(sqrt(2 pi x) (x/e)^x) for x ≥ 1 (whole numbers below 16), to 1e-16.

    >>> stirling_error(np.array([1.0, 1e9])).round(12).tolist()
    [0.081061466795, 8.3e-11]
    """
    inverse = 1.0 / x
    square = inverse * inverse
    series = np.full_like(x, _STIRLING[-1])
    for term in _STIRLING[-2::-1]:
        series *= square
        series += term
    series *= inverse
    small = x < SERIES_FROM
    if small.any():
        series[small] = _WHOLE[x[small].astype(np.int64)]
    return series


def log1p_less(v: Floats) -> Floats:
    """λ(v) = log(1 + v) - v for v > -1, to 3e-15 relative.

    >>> round(float(log1p_less(np.array([1e-9]))[0]) * 1e18, 9)
    -0.5
    """
    r = v / (2.0 + v)
    square = r * r
    largest = float(square.max(initial=0.0))
    # log(1 + v) = 2 artanh(r) = 2r + 2r³/3 + …, and 2r - v = -r v
    terms = next((n for n, most in _ENOUGH if largest < most), _LAMBDA_TERMS)
    series = np.full_like(v, 1.0 / (2 * terms + 1))
    for j in range(terms - 1, 0, -1):
        series *= square
        series += 1.0 / (2 * j + 1)
    series *= square
    series *= 2.0
    series -= v
    series *= r
    if largest > _NEAR:
        far = square > _NEAR
        beyond = v[far]
        series[far] = np.log1p(beyond) - beyond
    return series


def fallen(slope: Floats, first: Floats, second: Floats, odds: Floats, end: float) -> Floats:
    """∫ exp(-slope·h + first·λ(∓h) + second·λ(±h·odds)) dh from 0 to `end`, to 1e-14 relative.

    The upper sign where `end` is 1, a density on an interval; the lower one where it is infinite, and then `second` is
    zero. Neither factor is negative, nor the slope but so little that the exponent rises by no more than 1; the `odds`
    of the remaining part of the interval are positive.
    """
    sign = -1.0 if end == 1.0 else 1.0
    out = np.empty(slope.size)
    for start in range(0, slope.size, _ROWS):
        rows = slice(start, start + _ROWS)
        out[rows] = _rows(slope[rows], first[rows], second[rows], odds[rows], end, sign)
    return out


def _rows(slope: Floats, first: Floats, second: Floats, odds: Floats, end: float, sign: float) -> Floats:
    width = _width(slope, first, second, odds, end, sign)
    h = width[:, None] * NODES
    exponent = first[:, None] * log1p_less(sign * h) - slope[:, None] * h
    if second.any():
        exponent += second[:, None] * log1p_less(h * odds[:, None])
    return np.asarray(width * (np.exp(exponent) @ WEIGHTS))


def _width(slope: Floats, first: Floats, second: Floats, odds: Floats, end: float, sign: float) -> Floats:
    """Where the exponent is below -FALL, or the end: Newton's tangents of a concave function."""
    bend = first + second * odds * odds
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # of slope h + bend h²/2 = FALL, without cancellation
        width = 2 * FALL / (slope + np.sqrt(slope * slope + 2 * bend * FALL))
        for _ in range(4):
            h = np.minimum(width, 0.999 * end)
            there = h * odds
            # few digits are needed here
            value = first * (np.log1p(sign * h) - sign * h) - slope * h
            value += second * (np.log1p(there) - there)
            steep = slope + first * h / (1 + sign * h) + second * odds * there / (1 + there)
            width = np.where(steep > 0.0, h + (FALL + value) / steep, end)
    return np.asarray(np.minimum(np.where(np.isnan(width), end, width), end))
