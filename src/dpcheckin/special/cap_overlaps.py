"""How much of the sphere two caps share, between certified bounds.

A cap of S^(d-1) is {u : <u, v> >= t}, 0 < t < 1. Seen from the plane of two centres, the part of u in that plane has
length at least r with probability (1 - r^2)^((d-2)/2), its direction is uniform, and in the direction at angle psi from
the further centre u is in both caps once r cos psi >= t: the overlap is 1/pi times the integral of (1 - t^2 / cos^2
psi)^((d-2)/2) over psi from angle/2 to arccos t. With t tan psi = sqrt(1 - t^2) sin beta the integrand is t (1 -
t^2)^((d-1)/2) cos^(d-1) beta / (t^2 + (1 - t^2) sin^2 beta), analytic up to the end, beta = pi/2, whatever the
dimension. An overlap at angle zero is the measure of the cap itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpcheckin.special import Floats
from dpcheckin.special.gamma import log_beta
from dpcheckin.special.roots import switch
from dpcheckin.special.sphere import cap_height

_NODES = 20
_FAR = 45.0  # beyond exp(-_FAR) of its first value the integrand is bounded, not integrated
# Rounding. Exponents up to 700 (what lies beyond is no number) are good to 4 units each.
_ROUNDING = 1e-12
_ANGLE = 4e-15  # of angles, in radians: a few units in the last place of pi


@dataclass(frozen=True, slots=True)
class Measure:
    """A share of the sphere, between bounds."""

    lower: float
    upper: float


@lru_cache(maxsize=1)
def _gauss() -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return nodes, weights


def overlap(dimension: int, height: float, angle: float) -> Measure:
    """Measure of the intersection of two caps.

    `dimension`: d of the space, 2 or more; the sphere is S^(d-1). `height`: t of both caps, above 0; nothing reaches a
    height of 1. `angle`: between the centres, in radians, from 0 to pi.
    """
    if height >= 1.0:
        return Measure(0.0, 0.0)
    power, t, a = (dimension - 1) / 2, height, (1.0 - height) * (1.0 + height)
    # the derivative by the angle is known, and so is what rounding of angles can do
    moved = _ANGLE * math.exp(_log_slope(dimension, t, max(angle - _ANGLE, 0.0))) / (2 * math.pi)
    start = t * math.tan(angle / 2) / math.sqrt(a) if angle < math.pi else 1.0
    if start >= 1.0:  # sin beta at the lower end
        return Measure(0.0, moved)
    first = math.asin(start)
    top = _log_rest(start)
    value, error = _integral(power, t, a, first, top)
    error += _ROUNDING * value
    log_scale = math.log(t / math.pi) + power * (_log_rest(t) + top)
    scale = math.exp(max(log_scale, -700.0))
    lower = (value - error) * scale if log_scale > -700.0 else 0.0
    return Measure(max(lower - moved, 0.0), (value + error) * scale + moved)


def _log_rest(x: float) -> float:
    """log(1 - x^2) with all its digits, 0 <= x < 1."""
    return math.log((1.0 - x) * (1.0 + x)) if x > 0.5 else math.log1p(-x * x)


def _log_slope(dimension: int, height: float, angle: float) -> float:
    """log of -2 pi times the derivative of the overlap: (1 - t^2 / cos^2(angle/2))^((d-2)/2)."""
    cosine = math.cos(angle / 2)
    if cosine <= height:
        return -math.inf
    return (dimension - 2) / 2 * _log_rest(height / cosine)


def _integral(power: float, t: float, a: float, first: float, top: float) -> tuple[float, float]:
    """The integral from `first` to pi/2 in units of exp(power * top), and a bound on its error.

    Gauss quadrature on panels as wide as the integrand allows. Where it is bounded by M inside the ellipse that the
    panel's ends and rho define, its Chebyshev coefficients are at most 2 M rho^-k, and the rule with N nodes errs only
    from degree 2N on: by at most 8 M rho^(-2N) / (1 - 1/rho) times half the panel's width.
    """
    last = math.asin(math.sqrt(-math.expm1(top - _FAR / power)))
    edges = [first]
    while edges[-1] < last:
        pole = math.sqrt(t * t / a + math.sin(edges[-1]) ** 2)
        edges.append(min(edges[-1] + min(0.8 * pole, 1.2 / math.sqrt(2 * power)), last))
    left, right = np.array(edges[:-1]), np.array(edges[1:])
    middle, half = (left + right) / 2, (right - left) / 2
    nodes, weights = _gauss()
    beta = middle[:, None] + half[:, None] * nodes
    sine2 = np.sin(beta) ** 2
    # each form where it keeps its digits
    log_cos2 = np.where(sine2 < 0.5, np.log1p(-np.minimum(sine2, 0.5)), 2 * np.log(np.cos(beta)))
    numerator = np.exp(power * (log_cos2 - top))
    value = float(((numerator / (t * t + a * sine2)) @ weights) @ half)
    error = np.full(half.size, np.inf)
    for rho in (1.6, 2.2, 3.0, 4.0, 5.5, 8.0):
        bound = _largest(power, t, a, top, middle, half, rho)
        bound *= 8 * half * rho ** (-2 * _NODES) / (1 - 1 / rho)
        error = np.minimum(error, bound)
    beyond = math.exp(-_FAR) * (math.pi / 2 - last) / (t * t + a * math.sin(last) ** 2)
    return value, float(error.sum()) + beyond


def _largest(power: float, t: float, a: float, top: float, middle: Floats, half: Floats, rho: float) -> Floats:
    """A bound on the integrand in the ellipse's bounding box, in units of exp(power * top).

    With beta = x + iy: |cos|^2 = cos^2 x + sinh^2 y and Re sin^2 = sin^2 x - sinh^2 y cos 2x, the one largest and the
    other smallest at the box's smallest |x|.
    """
    x = np.maximum(middle - half * (rho + 1 / rho) / 2, 0.0)
    rise = np.sinh(half * (rho - 1 / rho) / 2) ** 2
    sine2 = np.sin(x) ** 2
    lowest = t * t + a * (sine2 - rise * np.maximum(1 - 2 * sine2, 0.0))
    exponent = power * (np.log(1 - sine2 + rise) - top)
    fits = (lowest > 0.0) & (exponent < 600.0)
    bound = np.exp(np.minimum(exponent, 600.0)) / np.where(fits, lowest, 1.0)
    return np.where(fits, bound, np.inf)


@lru_cache(maxsize=256)
def height_bounds(dimension: int, measure: float) -> Measure | None:
    """Bounds on the height of the cap with this measure; None for half the sphere and more.

    The upper one is 1 for caps so small that no other number will do.

    `dimension`: d of the space, 2 or more. `measure`: of the cap, positive.
    """
    if measure >= 0.5:
        return None
    power = (dimension - 1) / 2
    guess = min(max(float(cap_height(measure, dimension)), 1e-8 / math.sqrt(power)), 1 - 1e-14)
    log_density = log_beta(0.5, power)
    for _ in range(4):  # of Newton's method: the inverse loses the digits of small heights
        measured = overlap(dimension, guess, 0.0)
        slope = math.exp((power - 1) * _log_rest(guess) - log_density)
        step = ((measured.lower + measured.upper) / 2 - measure) / slope if slope > 0.0 else 0.0
        guess = min(max(guess + step, guess / 2), (1 + guess) / 2, 1 - 1e-14)
    low, high, widening = 0.0, 1.0, 1e-13
    while widening < 0.5 and (low == 0.0 or high == 1.0):
        lower, upper = guess * (1 - widening), guess * (1 + widening)
        if low == 0.0 and overlap(dimension, lower, 0.0).lower >= measure:
            low = lower
        if high == 1.0 and upper < 1.0 and overlap(dimension, upper, 0.0).upper <= measure:
            high = upper
        widening *= 3.0
    return Measure(low, high) if low > 0.0 else None


def overlap_of_caps(dimension: int, measure: float, angle: float) -> Measure | None:
    """Measure of the intersection of two caps of this measure; None if it is not below 1/2.

    `dimension`: d of the space, 2 or more. `measure`: of each cap, positive and less than 1/2. `angle`: between the
    centres, in radians, from 0 to pi.
    """
    height = height_bounds(dimension, measure)
    if height is None:
        return None
    higher, lower = overlap(dimension, height.upper, angle), overlap(dimension, height.lower, angle)
    return Measure(higher.lower, lower.upper)


def widest_angle(dimension: int, height: float, weight: float) -> float:
    """The angle A with the least overlap(A) + weight * overlap(X), A + 2X = 2 pi, 0 <= weight <= 1.

    The derivative of the overlap is known and falls with the angle, so that the derivative of the sum changes sign
    once: no integral is needed. Small caps that do not meet at 2 pi / 3 are put there.

    `dimension`: d of the space, 2 or more. `height`: t of the caps. `weight`: of the overlap at X.
    """

    low, high = 2 * math.pi / 3, math.pi
    if _log_slope(dimension, height, low) == -math.inf:
        return low
    allowance = math.log(weight / 2) if weight > 0.0 else -math.inf

    def falls(angle: float) -> bool:
        return _log_slope(dimension, height, angle) > allowance + _log_slope(dimension, height, math.pi - angle / 2)

    return switch(falls, low, high, absolute=(high - low) * 2.0**-60)[0]
