"""Modified Bessel functions of whole order: the masses of the Skellam law."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from dpcheckin.special.arrays import Floats, floats
from dpcheckin.special.gamma import log_gamma

_LARGE = 60.0
_ORDERS = 14  # of the expansion for large arguments


def ive(order: ArrayLike, x: float) -> Floats:
    """exp(-x) I_k(x) for whole orders k ≥ 0 and x > 0.

    The relative error is at most 2e-14 + 2e-15·|log of the result| as long as the result is a
    normal double; beneath, it becomes zero.

    >>> ive([0, 1], 2.0).round(9).tolist()
    [0.308508323, 0.215269289]
    """
    k = floats(order)
    if not (0.0 < x < math.inf and np.all(k >= 0) and np.all(k == np.floor(k))):
        raise ValueError(f"whole orders from 0 on and an argument above 0, not {x!r}")
    flat = k.ravel()
    found = _by_series(flat, x) if x < _LARGE else _by_expansion(flat, x)
    return found.reshape(k.shape)


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
        for one in reversed(coefficients):
            inner = inner * square + one
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
