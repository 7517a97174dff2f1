"""The Poisson law's distribution function."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from dpcheckin.special.arrays import Floats, floats
from dpcheckin.special.binomial import deviance
from dpcheckin.special.gamma import stirling_error
from dpcheckin.special.tails import fallen


def pmf(count: ArrayLike, mean: ArrayLike) -> Floats:
    """P(Poisson(mean) = count) for whole counts from 0 on and means above 0.

    The relative error is at most 1e-14 + 1e-15·|log of the result|.

    >>> pmf([0, 2], 1.0).round(9).tolist()
    [0.367879441, 0.183939721]
    """
    k, m = np.broadcast_arrays(floats(count), floats(mean))
    out = np.asarray(np.exp(-m))
    some = k > 0
    k, m = k[some], m[some]
    exponent = -stirling_error(k) - deviance(k, m, k - m)
    out[some] = np.exp(exponent) / np.sqrt(2 * math.pi * k)
    return out


def cdf(count: ArrayLike, mean: ArrayLike) -> Floats:
    """P(Poisson(mean) ≤ count) for whole counts and means above 0.

    Of it and 1 less it, the smaller is computed, to the relative error of `pmf` and 1e-14.

    >>> cdf([-1, 0, 1000], 1.0).round(9).tolist()
    [0.0, 0.367879441, 1.0]
    """
    k, m = np.broadcast_arrays(floats(count), floats(mean))
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
            tail = np.minimum(b * pmf(a, b) * fallen(slope, a, none, none + 1.0, end), 1.0)
            out[chosen] = tail if upper else 1.0 - tail
    return out
