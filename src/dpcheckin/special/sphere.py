"""Caps of a sphere: their measure by their height, and their height by their measure.

With t = sin θ the measure of {u : ⟨u, v⟩ ≥ t} in d dimensions is ∫ cos^(d-2) from θ to π/2, over B(1/2, (d-1)/2). In
the angle the integrand is smooth for every dimension, and relative to its value at θ its logarithm is a sum of two
parts of one sign.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from dpcheckin.special import Floats
from dpcheckin.special.binomial import FALL, NODES, WEIGHTS
from dpcheckin.special.gamma import log_beta
from dpcheckin.special.normal import log_ndtr, ndtri

_MANY = 512  # heights from which on a polynomial through some of them is quicker
_ROWS = 512
_FURTHEST, _FLAT = 8.5, 64
"""Normal deviations that uniform doubles can have, and the dimension from which on one short series
serves them all: heights are nearly normal there."""
_POLE = math.pi / 2 - 1e-9  # from here on a height is 1


def cap_measure(height: ArrayLike, dimension: int) -> Floats:
    """P(⟨u, v⟩ ≥ height) for u uniform on the sphere of this dimension, 0 ≤ height ≤ 1; NaN raises.

    The relative error is at most 3e-14 and 1e-15·|log of the result|, beside what one rounding of the height makes of
    it.

    >>> cap_measure([0.0, 0.5, 1.0], 3).round(12).tolist()
    [0.5, 0.25, 0.0]
    """
    t = np.asarray(height, np.float64)
    if not (dimension >= 2 and np.all((t >= 0.0) & (t <= 1.0))):
        raise ValueError("heights are from 0 to 1, dimensions 2 or more")
    return np.exp(_log_measure(np.arcsin(t.ravel()), np.arccos(t.ravel()), dimension)[0]).reshape(t.shape)


def cap_height(measure: ArrayLike, dimension: int) -> Floats:
    """The height t with P(⟨u, v⟩ ≥ t) = measure in this dimension, 0 ≤ measure ≤ 1/2; NaN raises.

    The error is at most 1e-13, and the measure of the cap is the one asked for to 1e-12 relative where a double can
    hold such a height.

    >>> cap_height([0.5, 0.25], 3).round(12).tolist()
    [0.0, 0.5]
    """
    q = np.asarray(measure, np.float64)
    if not (dimension >= 2 and np.all((q >= 0.0) & (q <= 0.5))):
        raise ValueError("measures are from 0 to 1/2, dimensions 2 or more")
    some = np.maximum(q.ravel(), 5e-324)
    deviations = -ndtri(some)
    angles = _angles(np.log(some), deviations, dimension) if q.size <= _MANY else _interpolated(deviations, dimension)
    return np.where(q > 0.0, np.sin(np.clip(angles, 0.0, _POLE)).reshape(q.shape), 1.0)


def _log_measure(angle: Floats, rest: Floats, dimension: int) -> tuple[Floats, Floats]:
    """Logarithm of the measure beyond an angle θ, and the density there over the measure.

    `rest` is π/2 - θ, which has digits of its own.
    """
    power = dimension - 2
    tangent = np.tan(angle)
    whole = np.empty_like(angle)
    bend = power * (1.0 + tangent * tangent)
    with np.errstate(divide="ignore", over="ignore"):
        slope = power * tangent
        width = np.minimum(2 * FALL / (slope + np.sqrt(slope * slope + 2 * bend * FALL)), rest)
    for start in range(0, angle.size, _ROWS):
        rows = slice(start, start + _ROWS)
        turn = width[rows, None] * NODES
        # 1 - cos(θ + turn)/cos θ
        fallen = 2 * np.sin(0.5 * turn) ** 2 + tangent[rows, None] * np.sin(turn)
        with np.errstate(divide="ignore"):
            logs = np.log1p(-np.minimum(fallen, 1.0)) if power else np.zeros_like(fallen)
        whole[rows] = width[rows] * (np.exp(power * logs) @ WEIGHTS)
    with np.errstate(divide="ignore"):
        # the cosine of θ from the angle that keeps its digits
        cosine = np.where(angle < 0.8, -0.5 * np.log1p(tangent * tangent), np.log(np.sin(rest)))
        logs = np.log(whole) + (power * cosine if power else 0.0)
    return logs - log_beta(0.5, (dimension - 1) / 2), 1.0 / np.maximum(whole, 1e-300)


def _angles(logs: Floats, deviations: Floats, dimension: int) -> Floats:
    """θ of caps with these log measures, from normal deviations as a start: Halley's method.

    In θ the logarithm is concave, and the first step from either side stays within the sphere.
    """
    power = dimension - 2
    angle = np.arctan(np.maximum(deviations, 0.0) / math.sqrt(dimension - 1.5))
    for _ in range(60):
        rest = math.pi / 2 - angle
        measured, hazard = _log_measure(angle, rest, dimension)
        newton = (measured - logs) / hazard
        bent = 1.0 + 0.5 * newton * (hazard - power * np.tan(angle))
        step = np.clip(newton / np.maximum(bent, 0.5), -0.5 * angle - 1e-3, 0.5 * rest)
        before, angle = angle, np.clip(angle + step, 0.0, _POLE)
        if float(np.max(np.abs(angle - before), initial=0.0)) <= 4e-16:
            break
    return angle


def _interpolated(deviations: Floats, dimension: int) -> Floats:
    """The same through a Chebyshev series in the normal deviations, long enough for round-off."""
    low, high = float(deviations.min()), float(deviations.max())
    if dimension >= _FLAT and low >= 0.0 and high <= _FURTHEST:
        low, high = 0.0, _FURTHEST
    series, middle, half = _series(low, high, dimension)
    return np.asarray(np.polynomial.chebyshev.chebval((deviations - middle) / half, series))


@lru_cache(maxsize=16)
def _series(low: float, high: float, dimension: int) -> tuple[Floats, float, float]:
    """Coefficients over an interval of deviations, its middle, and half its length."""
    middle, half = 0.5 * (low + high), max(0.5 * (high - low), 1e-300)
    for degree in (24, 48, 96, 192):
        nodes = math.pi * (np.arange(degree) + 0.5) / degree
        places = middle + half * np.cos(nodes)
        angles = _angles(log_ndtr(-places), places, dimension)
        series = np.cos(np.outer(np.arange(degree), nodes)) @ angles * (2 / degree)
        if float(np.abs(series[-4:]).max()) <= 1e-15:
            break
    series[0] /= 2
    large = np.flatnonzero(np.abs(series) > 1e-17)  # the rest would only cost time
    return series[: int(large[-1]) + 1 if large.size else 1], middle, half
