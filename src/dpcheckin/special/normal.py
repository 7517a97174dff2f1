"""The normal law: its distribution function, the logarithm of that, and quantiles.

Everything comes from one function of z ≥ 0, the upper tail without its Gaussian factor, exp(z²/2)·Φ(-z), which falls
smoothly from 1/2 to 1/(z√2π). Times z + 5 it is a polynomial of degree 24 in t = (z - 5)/(z + 5), to 1e-17: a Chebyshev
series, written in powers of t. A test computes the coefficients anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from dpcheckin.special import CONSTANTS, Floats

_MIDDLE = 5.0  # z at t = 0
# coefficient of t^(5i + j) in row i, column j
_TAIL = np.array(CONSTANTS["scaled_normal_tail"]).reshape(5, 5)
# with r = sqrt(-2 log p) and s = (r - 1.5)/(r + 1.5), a quantile is about -r times a polynomial in
# (s - 0.4025)/0.523, for every p ≤ 1/2 that a double can be
_GUESS = CONSTANTS["normal_quantile_guess"]
_ROOT = math.sqrt(2 * math.pi)
_CLOSE = 0.1  # deviations of two laws whose divergence would lose its digits
_NEAR = 30.0  # beyond, one of the two probabilities is as good as nothing
_NODES, _WEIGHTS = (half[4:] for half in np.polynomial.legendre.leggauss(8))
_TURN, _LEVELS = 8.0, 24
_FAR = 60.0  # deviations beyond which a double holds no probability


_BLOCK = 4096  # numbers that stay in a processor's cache with all that is made of them


def _by_blocks(function: Callable[[Floats], Floats], values: ArrayLike) -> Floats:
    points = np.asarray(values, np.float64)
    flat, out = points.ravel(), np.empty(points.size)
    for start in range(0, flat.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        out[block] = function(flat[block])
    return out.reshape(points.shape)


def _scaled_tail(z: Floats) -> Floats:
    """exp(z²/2)·Φ(-z) for a row of z ≥ 0, to 2e-15 relative; 0 at infinity."""
    t = 1.0 - 2 * _MIDDLE / (z + _MIDDLE)
    # a few products of matrices instead of fifty passes over the row
    powers = np.empty((5, z.size))
    powers[0], powers[1] = 1.0, t
    np.multiply(t, t, out=powers[2])
    np.multiply(powers[2], t, out=powers[3])
    np.multiply(powers[2], powers[2], out=powers[4])
    fifth = powers[4] * t
    parts = _TAIL @ powers
    value: Floats = parts[4]
    for row in parts[3::-1]:
        value *= fifth
        value += row
    value /= z + _MIDDLE
    return value


def ndtr(x: ArrayLike) -> Floats:
    """Φ(x), the probability of a standard normal number below x; NaN stays NaN.

    The relative error is at most (x² + 30)·2⁻⁵³ for x ≤ 0 (4e-15 at 0, 2e-13 at -37) as long as the result is a normal
    double, and 2⁻¹⁰⁷⁴ besides; for x > 0 the absolute error is 4e-15 times the upper tail and one rounding.

    >>> ndtr([0.0, -1.0, 40.0, -40.0]).round(6).tolist()
    [0.5, 0.158655, 1.0, 0.0]
    """
    return _by_blocks(_ndtr, x)


def _ndtr(x: Floats) -> Floats:
    z = np.abs(x)
    near = np.minimum(z, _FAR)
    tail = np.exp(-0.5 * near * near) * _scaled_tail(z)
    return np.where(x > 0.0, 1.0 - tail, tail)


def log_ndtr(x: ArrayLike) -> Floats:
    """log Φ(x), also where Φ(x) is far too small for a double; NaN stays NaN.

    For x ≤ 0 the error is at most 4e-15 + 2⁻⁵²·|log Φ(x)|, for x > 0 (x² + 30)·2⁻⁵³ relative, as long as the result is
    a normal double.

    >>> log_ndtr([0.0, -50.0, -1e200]).round(3).tolist()
    [-0.693, -1254.831, -inf]
    """
    return _by_blocks(_log_ndtr, x)


def _log_ndtr(x: Floats) -> Floats:
    z = np.abs(x)
    scaled = _scaled_tail(z)
    with np.errstate(over="ignore", divide="ignore"):
        square = 0.5 * z * z
        logs = np.log(scaled) - square
    above = x > 0.0
    logs[above] = np.log1p(-np.exp(-square[above]) * scaled[above])
    return logs


def ndtri(p: ArrayLike) -> Floats:
    """The x with Φ(x) = p; -inf and inf at 0 and 1, NaN outside [0, 1].

    The error is at most 4e-15·max(1, |x|) for p ≤ 1/2, subnormal p included; for p above, it is that of 1 - p, which is
    exact.

    >>> ndtri([0.025, 0.975, 0.0]).round(6).tolist()
    [-1.959964, 1.959964, -inf]
    """
    return _by_blocks(_ndtri, p)


def _ndtri(p: Floats) -> Floats:
    tail = np.minimum(p, 1.0 - p)
    inside = tail > 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(tail)
        z = np.sqrt(-2.0 * logs)
    whole = bool(inside.all())
    logs, r = (logs, z) if whole else (logs[inside], z[inside])
    known = _started(r)
    # one step of Halley's method, whose error is the cube of what it begins with
    scaled = _scaled_tail(known)
    excess = np.log(scaled) - 0.5 * known * known - logs
    hazard = 1.0 / (_ROOT * scaled)
    newton = excess / hazard
    known += newton / (1.0 + 0.5 * newton * (hazard - known))
    if whole:
        z = known
    else:
        z[inside] = known
    return np.where(p > 0.5, z, -z)


def _started(r: Floats) -> Floats:
    s = ((r - 1.5) / (r + 1.5) - 0.4025) / 0.523
    value = np.full_like(r, _GUESS[-1])
    for factor in _GUESS[-2::-1]:
        value *= s
        value += factor
    value *= r
    return np.maximum(value, 0.0)


def gaussian_profile(distance: float, alpha: Floats) -> Floats:
    """H_alpha of two unit-variance normal laws ``distance`` apart, alpha >= 0 (Balle-Wang).

    To 1e-12 relative as long as it is a normal double. It is also E(W - alpha)+ for W log-normal with mean 1 and
    logarithmic deviation ``distance``.

    >>> round(float(gaussian_profile(1e-6, np.array([1.0]))[0]) * math.sqrt(2 * math.pi), 18)
    1e-06
    """
    out = np.asarray(1.0 - alpha, np.float64)
    inside = alpha > 0.0
    out[inside] = gaussian_profile_at(distance, np.log(alpha[inside]))
    return out


def gaussian_profile_at(distance: float, logs: Floats) -> Floats:
    """The same at this distance and alpha = exp(logs), which may be far too large for a double."""
    middle = -logs / distance
    first = log_ndtr(distance / 2 + middle)
    gap = logs + log_ndtr(middle - distance / 2) - first
    if distance < _CLOSE:
        near = np.abs(middle) < _NEAR
        gap[near] = _close_gap(distance, logs[near], first[near])
    far = middle <= -distance / 2  # log alpha is what the two Gaussian factors differ by
    if far.any():
        nearer = -distance / 2 - middle[far]
        gap[far] = _far_gap(distance, nearer)
    # exp(first) - exp(first + gap) without losing the digits of a small difference
    return np.asarray(np.exp(first) * -np.expm1(np.minimum(gap, 0.0)))


def _far_gap(distance: float, z: Floats) -> Floats:
    """log of the scaled tail at z + distance less that at z; for small distances its slope is integrated."""
    if distance >= _CLOSE:
        return np.asarray(np.log(_scaled_tail(z + distance)) - np.log(_scaled_tail(z)))
    total = np.zeros_like(z)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        for sign in (-1.0, 1.0):
            total += weight * _fall(z + 0.5 * distance * (1.0 + sign * node))
    return np.asarray(-0.5 * distance * total)


def _fall(z: Floats) -> Floats:
    """1/(√2π·scaled tail) - z, minus the slope of that tail's logarithm, to 2e-13; far out by Laplace's fraction."""
    fraction = np.array(z)
    for term in range(_LEVELS, 1, -1):
        fraction = z + term / np.maximum(fraction, 1.0)
    with np.errstate(invalid="ignore"):
        return np.where(z > _TURN, 1.0 / np.maximum(fraction, 1.0), 1.0 / (_ROOT * _scaled_tail(z)) - z)


def _close_gap(distance: float, logs: Floats, first: Floats) -> Floats:
    """log alpha + log Phi(u - distance) - log Phi(u), u = distance / 2 - log alpha / distance.

    The difference of the last two is the integral of the density between, by Gauss and Legendre.
    """
    middle, half = -logs / distance, distance / 2
    ripple = np.zeros_like(logs)
    for node, weight in zip(half * _NODES, _WEIGHTS, strict=True):
        ripple += 2 * weight * math.exp(-(node**2) / 2) * np.cosh(node * middle)
    density = np.exp(-0.5 * middle**2 - first) / math.sqrt(2 * math.pi)
    return np.asarray(logs + np.log1p(-half * density * ripple))
