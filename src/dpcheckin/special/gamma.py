"""Logarithms of factorials and of their quotients, and Stirling's error."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from dpcheckin.special.arrays import Floats, floats

_SERIES_FROM = 16.0
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
# Stirling's error of 1, 2, …, 15, where the series is not good enough (a test computes them anew)
_WHOLE = np.array(
    [
        math.inf,
        0.08106146679532726,
        0.0413406959554093,
        0.02767792568499834,
        0.020790672103765093,
        0.016644691189821193,
        0.013876128823070748,
        0.01189670994589177,
        0.010411265261972096,
        0.009255462182712733,
        0.00833056343336287,
        0.007573675487951841,
        0.00694284010720953,
        0.006408994188004207,
        0.0059513701127588475,
        0.005554733551962801,
    ]
)


def log_gamma(x: ArrayLike) -> Floats:
    """log Γ(x) for x > 0, as exact as the C library's; ValueError for what is not above 0.

    >>> log_gamma([1.0, 5.0]).round(6).tolist()
    [0.0, 3.178054]
    """
    points = floats(x)
    if not np.all(points > 0.0):
        raise ValueError("log Γ is asked for numbers above 0")
    return np.fromiter(map(math.lgamma, points.ravel().tolist()), np.float64, points.size).reshape(
        points.shape
    )


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
    small = x < _SERIES_FROM
    if small.any():
        series[small] = _WHOLE[x[small].astype(np.int64)]
    return series


def log_beta(a: float, b: float) -> float:
    """log B(a, b) for a, b > 0, to 2e-14 and 1e-15 of the result.

    Nothing cancels where one number is large: B(1/2, 10^9) has all its digits.

    >>> round(log_beta(0.5, 1e9), 9)
    -9.789267975
    """
    if not (a > 0.0 and b > 0.0):
        raise ValueError("log B is asked for numbers above 0")
    whole, few, many = a + b, min(a, b), max(a, b)
    if many < _SERIES_FROM:
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(whole)
    errors = stirling_error(np.array([many, whole]))
    # log Γ(many) - log Γ(whole) by Stirling's formula, the large parts taken together
    ratio = float(errors[0] - errors[1]) + few * (1.0 - math.log(whole))
    ratio -= (many - 0.5) * math.log1p(few / many)
    return math.lgamma(few) + ratio


def log_sum(logs: ArrayLike, weights: ArrayLike = 1.0) -> float:
    """log of the sum of weights · exp(logs), without overflow; the weights are not negative.

    >>> round(log_sum([1000.0, 1000.0]), 6)
    1000.693147
    """
    exponents, factors = np.broadcast_arrays(floats(logs), floats(weights))
    top = float(exponents[factors > 0.0].max(initial=-math.inf))
    if math.isinf(top):
        return top
    kept = factors > 0.0
    return top + math.log(float(np.sum(factors[kept] * np.exp(exponents[kept] - top))))
