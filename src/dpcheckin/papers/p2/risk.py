"""What random check-ins cost in utility: dummy updates and excess risk (P2, arXiv 2007.06605v2).

Nothing here is a privacy statement.  The risk bounds keep the constants of the proofs, which the
theorems hide in O-tilde.
"""

from __future__ import annotations

import math

import numpy as np

from dpcheckin.errors import InvalidParameter, OutsideTheorem
from dpcheckin.special import binomial


def fixed_window_dummies(population: int, slots: int, check_in_probability: float) -> float:
    """Proposition 3.4: expected empty slots, m (1 - p/m)^n.

    The paper prints (m (1 - p/m))^n, which would exceed the number of slots.

    >>> fixed_window_dummies(1000, 100, 0.1) < 100 / 2.7
    True
    """
    _counts(population, slots)
    if not 0.0 <= check_in_probability <= 1.0:
        raise InvalidParameter("check_in_probability", check_in_probability, "between 0 and 1")
    if slots == 1 and check_in_probability == 1.0:
        return 0.0
    return slots * math.exp(population * math.log1p(-check_in_probability / slots))


def sliding_window_dummies(population: int, slots: int) -> float:
    """Proposition 4.4: (n - m + 1)(1 - 1/m)^m, at most (n - m + 1)/e.

    Updates happen at times m..n; the paper's proof sums over m..n-m+1.
    """
    _counts(population, slots)
    if slots > population:
        raise InvalidParameter("slots", slots, f"at most the population {population:,}")
    empty = 0.0 if slots == 1 else math.exp(slots * math.log1p(-1.0 / slots))
    return (population - slots + 1) * empty


def fixed_window_risk(
    *,
    population: int,
    slots: int,
    check_in_probability: float,
    diameter: float,
    lipschitz: float,
    dimension: int,
    noise: float,
) -> float:
    """Theorem 3.5: excess population risk of the last iterate with the paper's step sizes."""
    _counts(population, slots)
    empty = 2.0 * math.exp(-population * check_in_probability / slots)
    if empty >= 1.0:
        raise OutsideTheorem(
            f"P2 Thm 3.5 needs 2 exp(-n p/m) < 1, got {empty:.3g}; "
            "raise the check-in probability or use fewer slots"
        )
    scale = math.sqrt(dimension * noise**2 + lipschitz**2)
    log_term = (2.0 + math.log(slots)) / math.sqrt(slots)
    return diameter * scale * (1.0 / (1.0 - empty) + 1.0) * log_term


def averaged_risk(
    *,
    population: int,
    slots: int,
    diameter: float,
    lipschitz: float,
    dimension: int,
    noise: float,
) -> float:
    """Theorem 4.2, first part: convex losses, last iterate.

    The proof puts m/n for E[1/load; load > 0], which is up to 1.296 times larger; summed exactly
    here.
    """
    _counts(population, slots)
    inverse = inverse_load(population, slots)
    scale = math.sqrt(inverse * dimension * noise**2 + lipschitz**2)
    return 2.0 * diameter * scale * (2.0 + math.log(slots)) / math.sqrt(slots)


def averaged_smooth_risk(
    *,
    population: int,
    slots: int,
    diameter: float,
    lipschitz: float,
    dimension: int,
    noise: float,
    smoothness: float,
) -> float:
    """Theorem 4.2, second part: smooth losses, average iterate; E[1/load] summed exactly."""
    _counts(population, slots)
    inverse = inverse_load(population, slots)
    deviation = math.sqrt(inverse * (lipschitz**2 + dimension * noise**2))
    return diameter * deviation * math.sqrt(2.0 / slots) + smoothness * diameter**2 / slots


def inverse_load(population: int, slots: int) -> float:
    """E[1/load; load > 0] of one slot, load ~ Bin(population, 1/slots).

    >>> round(inverse_load(415, 100) * 415 / 100, 3)
    1.293
    """
    _counts(population, slots)
    load = np.arange(1, population + 1)
    return float(np.dot(binomial.pmf(load, population, 1.0 / slots), 1.0 / load))


def _counts(population: int, slots: int) -> None:
    if not population >= 1:
        raise InvalidParameter("population", population, "at least 1")
    if not slots >= 1:
        raise InvalidParameter("slots", slots, "at least 1")
