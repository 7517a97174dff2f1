"""Rényi curves after sampling a cohort without replacement (Wang, Balle and Kasiviswanathan).

arXiv 1808.00087v2, Theorem 9.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dpcheckin.accounting.engine.arrays import FloatArray
from dpcheckin.accounting.renyi.conversion import RenyiCurve
from dpcheckin.errors import InvalidParameter
from dpcheckin.special.gamma import log_gamma


def wang_subsampled(base: RenyiCurve, fraction: float, epsilon_infinity: float) -> RenyiCurve:
    """Wang et al., Theorem 9: any Rényi curve on orders 2, 3, ..., then sampling a cohort."""
    if not 0.0 < fraction <= 1.0:
        raise InvalidParameter("fraction", fraction, "above 0 and at most 1")
    orders = base.orders
    if not np.array_equal(orders, np.arange(2.0, orders.size + 2.0)):
        raise InvalidParameter("orders", orders.tolist()[:3], "the integers 2, 3, 4, ...")
    j = orders
    log_base = (j - 1.0) * base.epsilons
    log_two = math.log(2.0)
    if math.isfinite(epsilon_infinity):
        log_reach = math.log(math.expm1(epsilon_infinity))
        factor = np.minimum(log_two, j * log_reach)
    else:
        factor = np.full(j.size, log_two)
    log_zeta = log_base + factor
    first = base.epsilons[0]
    if first > 0.0:
        log_zeta[0] = min(log_zeta[0], math.log(4.0 * math.expm1(min(first, 600.0))))
    terms = j * math.log(fraction) + log_zeta + _log_binomials(orders.size)
    top = terms.max(axis=1)
    out = np.logaddexp(0.0, top + np.log(np.exp(terms - top[:, None]).sum(axis=1)))
    # Sampling never hurts: the base curve itself stays a bound (quasi-convexity).
    return RenyiCurve(orders, np.minimum(out / (orders - 1.0), base.epsilons))


@lru_cache(maxsize=4)
def _log_binomials(count: int) -> FloatArray:
    """log C(a, j) for a and j in 2 .. count + 1, minus infinity where j exceeds a."""
    a = np.arange(2.0, count + 2.0)[:, None]
    j = np.arange(2.0, count + 2.0)[None, :]
    inside = log_gamma(a + 1.0) - log_gamma(j + 1.0) - log_gamma(np.maximum(a - j, 0.0) + 1.0)
    table = np.where(j <= a, inside, -np.inf)
    table.setflags(write=False)
    return np.asarray(table)
