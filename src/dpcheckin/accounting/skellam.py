"""Distributed check-in with Skellam noise: integers, secure modular sums, exact closure.

The sum of k reports, each with Skellam noise of the given variance, carries exactly Skellam noise
of k times that variance (Agarwal, Kairouz and Liu, arXiv 2110.04995v1).  One integer per client:
the exact curve of the farthest shift (the noise is log-concave, so the largest shift dominates).
Vectors: the Rényi bound of their Theorem 3.5 with l1 and l2 sensitivities.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import ive

from dpcheckin.accounting import curve_composition, distributed
from dpcheckin.accounting.bracket import Bracket
from dpcheckin.accounting.check_in_alone import visible_counts
from dpcheckin.accounting.curve_composition import Curve
from dpcheckin.accounting.rdp_conversion import RenyiCurve
from dpcheckin.errors import InvalidParameter, NumericalFailure

FloatArray = NDArray[np.float64]

_TAIL = 1e-20


@lru_cache(maxsize=256)
def _cumulative(variance: float, shift: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Losses (decreasing) of P = noise + shift against Q = noise, with their running masses."""
    log = math.log(2.0 / _TAIL)
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
    return np.maximum(value, 0.0) + 2.0 * _TAIL


def integer_epsilon(
    population: int, rate: float, bound: int, variance: float, rounds: int, delta: float
) -> Bracket:
    """One integer in [-bound, bound] per client: epsilon composed as loss distributions."""
    if not bound >= 1:
        raise InvalidParameter("bound", bound, "at least 1")
    _check(variance)
    counts = visible_counts(population, rate)

    def profile(k: float) -> Curve:
        return partial(skellam_profile, k * variance, 2 * bound)

    def lower(k: float) -> Curve:
        def below(alpha: FloatArray) -> FloatArray:
            return np.maximum(skellam_profile(k * variance, 2 * bound, alpha) - 2.0 * _TAIL, 0.0)

        return below

    one = distributed.mixture(population, counts, profile, lower, delta / max(rounds, 1))
    return curve_composition.epsilon([(one, rounds)], delta)


def sum_rdp(orders: FloatArray, variance: float, l1: float, l2: float) -> FloatArray:
    """Rényi bound of Skellam noise of this variance (Agarwal et al., Theorem 3.5), integer orders.

    alpha l2^2/(2v) + min( ((2 alpha - 1) l2^2 + 6 l1)/(4 v^2), 3 l1/(2 v) ).
    """
    _check(variance, math.inf)
    extra = np.minimum(
        ((2.0 * orders - 1.0) * l2**2 + 6.0 * l1) / (4.0 * variance**2), 3.0 * l1 / (2.0 * variance)
    )
    return np.asarray(orders * l2**2 / (2.0 * variance) + extra)


def vector_rdp(
    population: int, rate: float, variance: float, *, l1: float, l2: float
) -> RenyiCurve:
    """Distributed check-in of integer vectors whose replacement moves by at most l1, l2."""
    _check(variance, math.inf)
    if not (l1 > 0.0 and l2 > 0.0):
        raise InvalidParameter("l1, l2", (l1, l2), "positive sensitivities")
    return distributed.summed_rdp(
        population, rate, lambda reports, orders: sum_rdp(orders, reports * variance, l1, l2)
    )


def vector_epsilon(
    population: int,
    rate: float,
    variance: float,
    rounds: int,
    delta: float,
    *,
    l1: float,
    l2: float,
    drawing_error: float = 0.0,
) -> Bracket:
    """Epsilon of ``rounds`` rounds of integer vectors; ``upper`` is a guarantee for what is drawn.

    ``drawing_error`` is how far all noise of one round together may be, in total variation, from
    the Skellam law.  It moves delta by (1 + e^eps) of it a round and is paid from one percent of
    delta.
    """
    curve = _vector_rdp(population, rate, variance, l1, l2)
    found = curve.times(rounds).epsilon(0.99 * delta).epsilon * (1.0 + 1e-9)
    paid = (1.0 + math.exp(min(found, 600.0))) * rounds * drawing_error
    if paid > 0.01 * delta:
        raise NumericalFailure(
            f"the noise is drawn too coarsely for epsilon = {found:.4g} at delta = {delta:g}"
        )
    return Bracket(curve.times(rounds).epsilon(delta).epsilon * (1.0 - 1e-9), found)


def vector_local_epsilon(
    rate: float, variance: float, rounds: int, delta: float, *, l1: float, l2: float
) -> float:
    """What is left when each client's reports are seen one by one, with who checked in when."""
    _check(variance, math.inf)
    orders = np.arange(2.0, distributed.MAX_ORDER + 1.0)
    moments = (orders - 1.0) * sum_rdp(orders, variance, l1, l2)
    seen = np.logaddexp(math.log1p(-rate) if rate < 1.0 else -math.inf, math.log(rate) + moments)
    curve = RenyiCurve(orders, np.maximum(seen, 0.0) / (orders - 1.0))
    return curve.times(rounds).epsilon(0.99 * delta).epsilon * (1.0 + 1e-9)


@lru_cache(maxsize=64)
def _vector_rdp(population: int, rate: float, variance: float, l1: float, l2: float) -> RenyiCurve:
    return vector_rdp(population, rate, variance, l1=l1, l2=l2)


def _check(variance: float, most: float = 1e10) -> None:
    """The exact curve is tabulated and needs an end; the Rényi bound is a formula and has none."""
    if not 0.0 < variance <= most or math.isinf(variance):
        raise InvalidParameter("variance", variance, f"above 0, finite and at most {most:g}")
