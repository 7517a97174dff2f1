"""The Poisson-sampled Gaussian sum of central DP-SGD, when one record is added or removed.

With the record the law of the sum is P = (1 - q) N(0, s^2) + q N(1, s^2), without it Q = N(0, s^2).
Both curves follow from that of the plain Gaussian pair, h, exactly:

    H_a(P || Q) = q h(1 + (a - 1) / q)
    H_a(Q || P) = (1 - a (1 - q)) h(a q / (1 - a (1 - q)))   while a (1 - q) < 1, and 0 from there.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpcheckin.accounting import checks, curve_composition
from dpcheckin.accounting.bracket import Bracket
from dpcheckin.accounting.check_in_alone import sampled
from dpcheckin.accounting.curve_composition import Curve, CurveRound
from dpcheckin.accounting.distributed import reach
from dpcheckin.accounting.normal import gaussian_profile
from dpcheckin.errors import InvalidParameter

FloatArray = NDArray[np.float64]

ROUNDING = 1e-9  # more than differences of normal tails lose
LARGEST_LOSS = 600.0


def epsilon(rate: float, noise_multiplier: float, rounds: int, delta: float) -> Bracket:
    """Epsilon of ``rounds`` steps, the larger of adding and removing; ``upper`` is a guarantee.

    >>> one = epsilon(1.0, 2.0, 1, 1e-5)  # the Gaussian mechanism itself
    >>> 1.993 < one.lower <= one.upper < 1.994
    True
    """
    checks.probability("rate", rate)
    checks.open_probability("delta", delta)
    if not (noise_multiplier > 0.0 and math.isfinite(noise_multiplier)):
        raise InvalidParameter("noise_multiplier", noise_multiplier, "a positive, finite number")
    if rate == 0.0 or rounds == 0:
        return Bracket(0.0, 0.0)
    with_it = partial(present, rate, noise_multiplier)
    without = partial(absent, rate, noise_multiplier)
    furthest = reach(with_it, 1e-6 * delta / rounds, LARGEST_LOSS)
    found = [
        curve_composition.epsilon([(_bounds(one, other, furthest), rounds)], delta)
        for one, other in ((with_it, without), (without, with_it))
    ]
    return Bracket(max(r.lower for r in found), max(r.upper for r in found))


def present(rate: float, noise_multiplier: float, alpha: FloatArray) -> FloatArray:
    """H_alpha of the sum with the record from that without."""
    return sampled(partial(gaussian_profile, 1.0 / noise_multiplier), rate, alpha)


def absent(rate: float, noise_multiplier: float, alpha: FloatArray) -> FloatArray:
    """H_alpha of the sum without the record from that with it."""
    left = 1.0 - alpha * (1.0 - rate)
    some = left > 0.0
    value = np.zeros_like(alpha)
    value[some] = left[some] * gaussian_profile(
        1.0 / noise_multiplier, np.maximum(alpha[some] * rate / left[some], 1.0)
    )
    return value


def _bounds(one: Curve, other: Curve, furthest: float) -> CurveRound:
    def scaled(curve: Curve, factor: float) -> Curve:
        return lambda alpha: factor * curve(alpha)

    up, down = 1.0 + ROUNDING, 1.0 - ROUNDING
    return CurveRound(
        scaled(one, up), scaled(one, down), furthest, scaled(other, up), scaled(other, down)
    )
