"""Profiles of additive noise: two normal laws, and integers with Skellam noise.

The hockey-stick divergence of two normal laws is a difference of two probabilities that are nearly
equal when the laws are close, which is what much noise or a large sum makes them; written as it is
in books it would lose the digits that a certificate needs.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dpcheckin.accounting.engine.arrays import FloatArray
from dpcheckin.special.bessel import ive
from dpcheckin.special.normal import log_ndtr

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
    out[inside] = gaussian_profile_at(distance, np.log(alpha[inside]))
    return out


def gaussian_profile_at(distance: float, logs: FloatArray) -> FloatArray:
    """The same at alpha = exp(logs), which may be far too large for a double."""
    first = log_ndtr(distance / 2 - logs / distance)
    gap = logs + log_ndtr(-distance / 2 - logs / distance) - first
    if distance < _CLOSE:
        near = np.abs(logs) < _NEAR * distance
        gap[near] = _close_gap(distance, logs[near], first[near])
    # exp(first) - exp(first + gap) without losing the digits of a small difference
    return np.asarray(np.exp(first) * -np.expm1(np.minimum(gap, 0.0)))


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


SKELLAM_TAIL = 1e-20


@lru_cache(maxsize=256)
def _cumulative(variance: float, shift: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Losses (decreasing) of P = noise + shift against Q = noise, with their running masses."""
    log = math.log(2.0 / SKELLAM_TAIL)
    reach = math.ceil(math.sqrt(2.0 * variance * log) + log) + shift + 1
    masses = ive(np.abs(np.arange(-reach - shift, reach + shift + 1)), variance)
    p, q = masses[: -shift or None], masses[shift:]  # P(j) = noise(j - shift), Q(j) = noise(j)
    keep = (p > 0.0) & (q > 0.0)
    p, q = p[keep][::-1], q[keep][::-1]
    return np.log(p) - np.log(q), np.cumsum(p), np.cumsum(q)


def skellam_profile(variance: float, shift: int, alpha: FloatArray) -> FloatArray:
    """H_alpha of integer Skellam noise moved by ``shift``, plus 2e-20 for the cut tails."""
    losses, p, q = _cumulative(variance, shift)
    count = np.searchsorted(-losses, -np.log(alpha), side="left")  # losses above log(alpha)
    taken = np.maximum(count - 1, 0)
    value = np.where(count > 0, p[taken] - alpha * q[taken], 0.0)
    return np.maximum(value, 0.0) + 2.0 * SKELLAM_TAIL
