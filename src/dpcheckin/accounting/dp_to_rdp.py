"""REFUTED: P1 Lemma 1, "every (epsilon, delta)-DP mechanism has this Rényi divergence".

There is no such bound for delta > 0: a mechanism that publishes its input with probability delta
is (0, delta)-DP and has infinite Rényi divergence of every order.  The formula (Asoodeh et al.,
arXiv 2008.06529v2) is the SMALLEST Rényi divergence an (epsilon, delta) pair that is tight can
have, so it may be used to turn Rényi into (epsilon, delta), not the other way round.

It is here, and only here, so that the catalogue can print what P1's baseline, approach 1 and
approach 2 printed.  Nothing in this module may become a guarantee.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0


def smallest_renyi(epsilon: FloatArray, delta: FloatArray, orders: FloatArray) -> FloatArray:
    """P1 Eq. 2 for all combinations: shape (len(epsilon), len(orders)).

    The minimum over r in (delta, 1) of a convex function, by golden section in the logarithm of
    (r - delta) / (1 - r).
    """
    e = np.atleast_1d(np.asarray(epsilon, dtype=np.float64))[:, None]
    d = np.atleast_1d(np.asarray(delta, dtype=np.float64))[:, None]
    a = np.asarray(orders, dtype=np.float64)[None, :]
    shape = np.broadcast_shapes(e.shape, d.shape, a.shape)

    def log_moment(logit: FloatArray) -> FloatArray:
        # r = delta + (1 - delta) * u, u = sigmoid(logit); P = (r, 1 - r),
        # Q = ((r - delta) e^-eps, 1 - (r - delta) e^-eps).
        log_u = -np.logaddexp(0.0, -logit)
        log_1_u = -np.logaddexp(0.0, logit)
        log_p = np.log(d + (1.0 - d) * np.exp(log_u))
        log_p_rest = np.log1p(-d) + log_1_u
        log_q = np.log1p(-d) + log_u - e
        log_q_rest = np.log1p(-np.exp(log_q))
        return np.asarray(
            np.logaddexp(a * log_p + (1.0 - a) * log_q, a * log_p_rest + (1.0 - a) * log_q_rest)
        )

    low = np.full(shape, -40.0)
    high = np.full(shape, 40.0)
    left = high - _GOLDEN * (high - low)
    right = low + _GOLDEN * (high - low)
    f_left, f_right = log_moment(left), log_moment(right)
    for _ in range(45):
        smaller = f_left < f_right
        high = np.where(smaller, right, high)
        low = np.where(smaller, low, left)
        left = high - _GOLDEN * (high - low)
        right = low + _GOLDEN * (high - low)
        f_left, f_right = log_moment(left), log_moment(right)
    return np.asarray(np.maximum(0.0, np.minimum(f_left, f_right)) / (a - 1.0))
