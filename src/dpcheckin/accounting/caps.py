"""PrivUnit's cap of least variance: how large it is, and how often a report falls into it."""

from __future__ import annotations

import math

from scipy import special

from dpcheckin.accounting.parameters import count, local_epsilon_in_range


def privunit_parameters(local_epsilon: float, dimension: int) -> tuple[float, float, float]:
    """(p, q, t) of least variance: cap <u, v> >= t of measure q, hit with probability p.

    The estimator's scale is the mean of <report, u>; the larger it is, the smaller the variance.
    """
    epsilon = local_epsilon_in_range(local_epsilon)
    d = count("dimension", dimension, 2)
    e0 = math.exp(epsilon)

    def cap(t: float) -> float:
        return 0.5 * float(special.betainc((d - 1) / 2, 0.5, 1 - t * t))

    def hit_probability(q: float) -> float:
        return e0 * q / (1 - q + e0 * q)

    def minus_log_scale(t: float) -> float:
        q = cap(t)
        if q <= 0.0:
            return math.inf
        p = hit_probability(q)
        # (1 - t^2)^((d-1)/2) (p/q - (1-p)/(1-q)); constants in d left out
        lift = (p - q) / (q * (1 - q))
        return -((d - 1) / 2 * math.log1p(-t * t) + math.log(lift)) if lift > 0 else math.inf

    widest = min(0.999999, math.sqrt(2 * (epsilon + 5) / (d - 1)) + 1e-9)
    from scipy import optimize  # slow to load, and only PrivUnit needs it

    found = optimize.minimize_scalar(
        minus_log_scale, bounds=(0.0, widest), method="bounded", options={"xatol": 1e-12}
    )
    t = float(found.x) if found.fun < minus_log_scale(0.0) else 0.0
    q = cap(t)
    return hit_probability(q), q, t
