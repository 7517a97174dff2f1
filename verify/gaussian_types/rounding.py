"""Log-normal option values with one-sided errors: every number here is certified up or down.

A call E(Y - k)₊ and a put E(k - Y)₊ of a log-normal Y with mean 1 are differences of two products with the normal
distribution function. What is trusted below: `ndtr` is right to 1e-13 relative down to -14 and to 1e-12 down to -37 (it
promises less, and a test compares it with mpmath); `log`, `exp`, `expm1`, `sqrt` and `cos` are right to four units in
the last place. An argument of `ndtr` computed with those is off by at most 4e-14 for arguments up to 40, and the
distribution function moves by a factor of at most exp(40 · 4e-14) < 1 + 2e-12 then; below -37 it is less than 1e-290.
`PRODUCT` covers the three relative errors, `TINY` the rest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpcheckin.special.normal import ndtr

Array = NDArray[np.float64]

PRODUCT = 4e-12  # relative error of one product with the normal distribution function
SUMS = 1e-11  # relative error of masses, of sums of positive terms and of their quotients
TINY = 1e-290  # what underflow may hide
SMALLEST_SPREAD = 1e-3  # below it the arguments of the distribution function lose digits
_FLOOR = 1e-300


def _terms(strike: Array, spread: float | Array) -> tuple[Array, Array, Array]:
    """Strike kept positive, d = (log k)/spread + spread/2, and spread as an array."""
    positive = np.maximum(strike, _FLOOR)
    width = np.asarray(spread, dtype=float)
    return positive, np.log(positive) / width + width / 2, width


def call_upper(strike: Array, spread: float | Array) -> Array:
    """Upper bound of E(Y - strike)₊, Y log-normal(-spread²/2, spread²)."""
    k, d, width = _terms(strike, spread)
    first, second = ndtr(width - d), k * ndtr(-d)
    value = first - second + PRODUCT * (first + second) + TINY
    return np.where(strike > 0, value, (1 - strike) * (1 + SUMS))


def put_upper(strike: Array, spread: float | Array) -> Array:
    """Upper bound of E(strike - Y)₊, Y log-normal(-spread²/2, spread²)."""
    k, d, width = _terms(strike, spread)
    first, second = k * ndtr(d), ndtr(d - width)
    value = first - second + PRODUCT * (first + second) + TINY
    return np.where(strike > 0, value, 0.0)


def call_lower(strike: Array, spread: float | Array) -> Array:
    """Lower bound of E(Y - strike)₊, Y log-normal(-spread²/2, spread²)."""
    k, d, width = _terms(strike, spread)
    first, second = ndtr(width - d), k * ndtr(-d)
    value = np.maximum(first - second - PRODUCT * (first + second) - TINY, 0.0)
    return np.where(strike > 0, value, (1 - strike) * (1 - SUMS))


def put_lower(strike: Array, spread: float | Array) -> Array:
    """Lower bound of E(strike - Y)₊, Y log-normal(-spread²/2, spread²)."""
    k, d, width = _terms(strike, spread)
    first, second = k * ndtr(d), ndtr(d - width)
    value = np.maximum(first - second - PRODUCT * (first + second) - TINY, 0.0)
    return np.where(strike > 0, value, 0.0)


def density_upper(low: Array, high: Array, spread: float) -> Array:
    """Upper bound of the density of Y over [low, high]; Y lives on the positive half line.

    The density rises up to its mode exp(-3·spread²/2) and falls after it, so its largest value on an interval is at the
    mode or at the end that is nearest to it. Near the mode the density is flat, and everywhere a relative error of
    1e-14 in the point moves it by less than 1e-11.
    """
    mode = float(np.exp(-1.5 * spread * spread))
    point = np.maximum(np.minimum(np.maximum(low, mode), high), _FLOOR)
    d = np.log(point) / spread + spread / 2
    value = np.exp(-0.5 * d * d) / point * (1.0 / (np.sqrt(2 * np.pi) * spread))
    return np.where(high > 0, value * (1 + SUMS) + TINY, 0.0)


def normal_masses(edges: Array, shift: float) -> Array:
    """Masses of N(shift, 1) between neighbouring edges, right to SUMS relative.

    Differences are taken in the smaller tail. Edges at least 0.1 apart leave at least 3% of the larger of the two
    numbers subtracted, so 1e-13 becomes less than 1e-11.
    """
    z = edges - shift
    right, left = ndtr(-z[:-1]) - ndtr(-z[1:]), ndtr(z[1:]) - ndtr(z[:-1])
    return np.asarray(np.where(z[:-1] > 0, right, left))
