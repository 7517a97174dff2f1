"""Gamma, beta and Bessel functions: logarithms, Stirling's error, tails of densities.

The tail of a beta or gamma density that falls from its edge on is the density there times ∫ exp(-slope·h +
first·λ(-h) + second·λ(h·odds)) dh with λ(v) = log(1 + v) - v: three parts of one sign, so that no digits are lost
whatever the parameters. The exponent is concave; the integral ends where it has fallen by `FALL`, and Gauss and
Legendre's rule does the rest.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from dpcheckin.special import Floats

_SERIES_FROM = 16.0
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
# Stirling's error of 1, 2, …, 15, where the series is not good enough (a test computes them anew)
_WHOLE = np.array([
    math.inf, 0.08106146679532726, 0.0413406959554093, 0.02767792568499834, 0.020790672103765093,
    0.016644691189821193, 0.013876128823070748, 0.01189670994589177, 0.010411265261972096, 0.009255462182712733,
    0.00833056343336287, 0.007573675487951841, 0.00694284010720953, 0.006408994188004207, 0.0059513701127588475,
    0.005554733551962801,
])  # fmt: skip


def log_gamma(x: ArrayLike) -> Floats:
    """log Γ(x) for x > 0, as exact as the C library's; ValueError for what is not above 0.

    >>> log_gamma([1.0, 5.0]).round(6).tolist()
    [0.0, 3.178054]
    """
    points = np.asarray(x, np.float64)
    if not np.all(points > 0.0):
        raise ValueError("log Γ is asked for numbers above 0")
    return np.fromiter(map(math.lgamma, points.ravel().tolist()), np.float64, points.size).reshape(points.shape)


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
    if few >= _SERIES_FROM:  # all three by Stirling's formula, in parts of one sign
        one, other, both = map(float, stirling_error(np.array([few, many, whole], np.float64)))
        parts = (few - 0.5) * math.log(few / whole) + (many - 0.5) * math.log1p(-few / whole)
        return parts + 0.5 * math.log(2 * math.pi / whole) + one + other - both
    errors = stirling_error(np.array([many, whole], np.float64))
    # log Γ(many) - log Γ(whole) by Stirling's formula, the large parts taken together
    ratio = float(errors[0] - errors[1]) + few * (1.0 - math.log(whole))
    ratio -= (many - 0.5) * math.log1p(few / many)
    return math.lgamma(few) + ratio


def log_sum(logs: ArrayLike, weights: ArrayLike = 1.0) -> float:
    """log of the sum of weights · exp(logs), without overflow; the weights are not negative.

    >>> round(log_sum([1000.0, 1000.0]), 6)
    1000.693147
    """
    exponents, factors = np.broadcast_arrays(np.asarray(logs, np.float64), np.asarray(weights, np.float64))
    top = float(exponents[factors > 0.0].max(initial=-math.inf))
    if math.isinf(top):
        return top
    kept = factors > 0.0
    return top + math.log(float(np.sum(factors[kept] * np.exp(exponents[kept] - top))))


FALL = 40.0  # exp(-40) = 4e-18
# Gauss and Legendre's 28 nodes on [0, 1], and the weights of the first half: NumPy's are good to
# 1e-13 only (a test computes these anew)
NODES = np.array([
    0.001778751213022775, 0.009348417314563623, 0.022870359685530903, 0.04218348680393396, 0.06705373871280247,
    0.09717931454141042, 0.1321945609931841, 0.17167445298056752, 0.21513976409429914, 0.2620628875224409,
    0.31187424195546065, 0.363969186182411, 0.41771535893330963, 0.47246035505798284, 0.5275396449420171,
    0.5822846410666904, 0.6360308138175891, 0.6881257580445393, 0.7379371124775591, 0.7848602359057009,
    0.8283255470194325, 0.8678054390068158, 0.9028206854585896, 0.9329462612871975, 0.9578165131960661,
    0.9771296403144691, 0.9906515826854364, 0.9982212487869773,
])  # fmt: skip
_HALF = np.array([
    0.0045621412965472586, 0.01056605629638563, 0.01645071389115219, 0.022136467379502114, 0.027553672837858374,
    0.0326364619834998, 0.03732310711728439, 0.041556708614450606, 0.04528587219651642, 0.04846532899896496,
    0.05105648378903038, 0.05302788296142321, 0.05435559612914707, 0.0550235065082376,
])  # fmt: skip
WEIGHTS = np.concatenate([_HALF, _HALF[::-1]])
_NEAR = 1 / 81  # largest r² of λ's series, which has so many terms,
_TERMS = 9
_ENOUGH = ((2, 1e-8), (4, 1e-4))  # or fewer for smaller ones
_ROWS = 512  # tails that are summed at once, within a processor's cache


def log1p_less(v: Floats) -> Floats:
    """λ(v) = log(1 + v) - v for v > -1, to 3e-15 relative.

    >>> round(float(log1p_less(np.array([1e-9]))[0]) * 1e18, 9)
    -0.5
    """
    r = v / (2.0 + v)
    square = r * r
    largest = float(square.max(initial=0.0))
    # log(1 + v) = 2 artanh(r) = 2r + 2r³/3 + …, and 2r - v = -r v
    terms = next((n for n, most in _ENOUGH if largest < most), _TERMS)
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


_LARGE = 60.0
_ORDERS = 14  # of the expansion for large arguments


def ive(order: ArrayLike, x: float) -> Floats:
    """exp(-x) I_k(x) for every whole order k ≥ 0 and x > 0.

    The relative error is at most 2e-14 + 2e-15·|log of the result| as long as the result is a normal double; beneath,
    it becomes zero.

    >>> ive([0, 1], 2.0).round(9).tolist()
    [0.308508323, 0.215269289]
    """
    k = np.asarray(order, np.float64)
    if not (0.0 < x < math.inf and np.all(k >= 0) and np.all(k == np.floor(k))):
        raise ValueError(f"whole orders from 0 on and an argument above 0, not {x!r}")
    flat = k.ravel()
    scaled = _by_series(flat, x) if x < _LARGE else _by_expansion(flat, x)
    return scaled.reshape(k.shape)


def _by_series(k: Floats, x: float) -> Floats:
    """The power series, whose terms are all positive."""
    quarter = 0.25 * x * x
    total = term = np.ones_like(k)
    j = 1
    while float(term.max(initial=0.0)) > 1e-18 * float(total.min(initial=1.0)) or j < x / 2:
        term = term * (quarter / (j * (k + j)))
        total = total + term
        j += 1
    return np.asarray(np.exp(k * math.log(0.5 * x) - x - log_gamma(k + 1.0)) * total)


def _by_expansion(k: Floats, x: float) -> Floats:
    """Debye's expansion, uniform in the order: powers of 1/sqrt(k² + x²) (DLMF 10.41.3)."""
    whole = np.hypot(k, x)
    square = (k / whole) ** 2
    series = np.zeros_like(k)
    for coefficients in reversed(_debye()):
        inner = np.zeros_like(k)
        for coefficient in reversed(coefficients):
            inner = inner * square + coefficient
        series = series / whole + inner
    # sqrt(k² + x²) - x - k arsinh(k/x), where the first two are close
    exponent = k * (k / (whole + x)) - k * np.arcsinh(k / x)
    return np.asarray(np.exp(exponent) / np.sqrt(2 * math.pi * whole) * series)


@lru_cache(maxsize=1)
def _debye() -> tuple[tuple[float, ...], ...]:
    """Coefficients of U_j(t) / t^j in powers of t² (DLMF 10.41.9), j = 0, 1, …

    U_{j+1} = t²(1 - t²)U_j'/2 + (1/8)∫(1 - 5t²)U_j dt.
    """
    rows: list[tuple[float, ...]] = [(1.0,)]
    for j in range(_ORDERS):
        row = [0.0] * (j + 2)
        for i, c in enumerate(rows[-1]):
            power = j + 2 * i
            row[i] += c * (power / 2 + 1 / (8 * (power + 1)))
            row[i + 1] -= c * (power / 2 + 5 / (8 * (power + 3)))
        rows.append(tuple(row))
    return tuple(rows)


@lru_cache(maxsize=256)
def _cumulative(variance: float, shift: int, cut: float) -> tuple[Floats, Floats, Floats]:
    """Losses (decreasing) of P = noise + shift against Q = noise, with their running masses."""
    log = math.log(2.0 / cut)
    reach = math.ceil(math.sqrt(2.0 * variance * log) + log) + shift + 1
    masses = ive(np.abs(np.arange(-reach - shift, reach + shift + 1)), variance)
    p, q = masses[: -shift or None], masses[shift:]  # P(j) = noise(j - shift), Q(j) = noise(j)
    keep = (p > 0.0) & (q > 0.0)
    p, q = p[keep][::-1], q[keep][::-1]
    return np.log(p) - np.log(q), np.cumsum(p), np.cumsum(q)


def skellam_profile(variance: float, shift: int, alpha: Floats, cut: float = 1e-20) -> Floats:
    """H_alpha, for each alpha, of Skellam noise of this variance moved by an integer `shift`, and 2 `cut` for tails."""
    losses, p, q = _cumulative(variance, shift, cut)
    count = np.searchsorted(-losses, -np.log(alpha), side="left")  # losses above log(alpha)
    taken = np.maximum(count - 1, 0)
    value = np.where(count > 0, p[taken] - alpha * q[taken], 0.0)
    return np.maximum(value, 0.0) + 2.0 * cut
