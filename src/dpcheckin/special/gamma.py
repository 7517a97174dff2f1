"""Gamma, beta and Bessel functions: logarithms, and the loss of Skellam noise."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from dpcheckin.special import Floats
from dpcheckin.special.binomial import SERIES_FROM, stirling_error


def log_gamma(x: ArrayLike) -> Floats:
    """log Γ(x) for x > 0, as exact as the C library's; ValueError for what is not above 0.

    >>> log_gamma([1.0, 5.0]).round(6).tolist()
    [0.0, 3.178054]
    """
    points = np.asarray(x, np.float64)
    if not np.all(points > 0.0):
        raise ValueError("log Γ is asked for numbers above 0")
    return np.fromiter(map(math.lgamma, points.ravel().tolist()), np.float64, points.size).reshape(points.shape)


def log_beta(a: float, b: float) -> float:
    """log B(a, b) for a, b > 0, to 2e-14 and 1e-15 of the result.

    Nothing cancels where one number is large: B(1/2, 10^9) has all its digits.

    >>> round(log_beta(0.5, 1e9), 9)
    -9.789267975
    """
    if not (a > 0.0 and b > 0.0):
        raise ValueError("log B is asked for numbers above 0")
    whole, few, many = a + b, min(a, b), max(a, b)
    if many < SERIES_FROM:
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(whole)
    if few >= SERIES_FROM:  # all three by Stirling's formula, in parts of one sign
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
    # of a large argument the first terms say it all
    told = [row for j, row in enumerate(_debye()) if math.fsum(map(abs, row)) > 1e-19 * x**j]
    for coefficients in reversed(told):
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
def _cumulative(variance: float, shift: int, cut: float = 1e-20) -> tuple[Floats, Floats, Floats]:
    """Losses (decreasing) of P = noise + shift against Q = noise, with their running masses."""
    log = math.log(2.0 / cut)
    reach = math.ceil(math.sqrt(2.0 * variance * log) + log) + shift + 1
    half = ive(np.arange(reach + shift + 1), variance)
    masses = np.concatenate([half[:0:-1], half])
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
