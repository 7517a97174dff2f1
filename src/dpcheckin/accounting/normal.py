"""The hockey-stick divergence of two normal laws, to nearly all digits of a double.

It is a difference of two probabilities that are nearly equal when the laws are close, which is what
much noise or a large sum makes them; written as it is in books it would lose the digits that a
certificate needs.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

FloatArray = NDArray[np.float64]

_CLOSE = 0.1  # deviations
_NEAR = 30.0  # beyond, one of the two probabilities is as good as nothing
_NODES, _WEIGHTS = (half[4:] for half in np.polynomial.legendre.leggauss(8))


def gaussian_profile(distance: float, alpha: FloatArray) -> FloatArray:
    """H_alpha of two unit-variance normal laws ``distance`` apart, alpha >= 0 (Balle-Wang).

    It is also E(W - alpha)+ for W log-normal with mean 1 and logarithmic deviation ``distance``.

    >>> round(float(gaussian_profile(1e-6, np.array([1.0]))[0]) * math.sqrt(2 * math.pi), 18)
    1e-06
    """
    out = np.asarray(1.0 - alpha, np.float64)
    inside = alpha > 0.0
    logs = np.log(alpha[inside])
    first = log_ndtr(distance / 2 - logs / distance)
    gap = logs + log_ndtr(-distance / 2 - logs / distance) - first
    if distance < _CLOSE:
        near = np.abs(logs) < _NEAR * distance
        gap[near] = _close_gap(distance, logs[near], first[near])
    # exp(first) - exp(first + gap) without losing the digits of a small difference
    out[inside] = np.exp(first) * -np.expm1(np.minimum(gap, 0.0))
    return out


def _close_gap(distance: float, logs: FloatArray, first: FloatArray) -> FloatArray:
    """log alpha + log Phi(u - distance) - log Phi(u), u = distance / 2 - log alpha / distance.

    The difference of the last two is the integral of the density between, by Gauss and Legendre.
    """
    middle, half = -logs / distance, distance / 2
    ripple = np.zeros_like(logs)
    for node, weight in zip(half * _NODES, _WEIGHTS, strict=True):
        ripple += 2 * weight * math.exp(-(node**2) / 2) * np.cosh(node * middle)
    density = np.exp(-0.5 * middle**2 - first) / math.sqrt(2 * math.pi)
    return np.asarray(logs + np.log1p(-half * density * ripple))
