"""What random check-ins cost in utility: dummy updates and excess risk (P2, arXiv 2007.06605v2).

Nothing here is a privacy statement.  The risk bounds keep the constants of the proofs, which the
theorems hide in O-tilde.  `fixed_window` (Theorem 3.5) and `averaged_window` (both parts of Theorem
4.2, with the exact E[1/|S|]) put them beside an experiment.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpcheckin.accounting.parameters import count, positive, probability
from dpcheckin.errors import InvalidParameter, OutsideTheorem
from dpcheckin.papers.convex_task import ConvexTask, UtilityCheck, checked, play
from dpcheckin.protocols.random_check_ins import RandomCheckIns, Window
from dpcheckin.randomizers import Gaussian
from dpcheckin.special import binomial


def fixed_window_dummies(population: int, slots: int, check_in_probability: float) -> float:
    """Proposition 3.4: expected empty slots, m (1 - p/m)^n.

    The paper prints (m (1 - p/m))^n, which would exceed the number of slots.

    >>> fixed_window_dummies(1000, 100, 0.1) < 100 / 2.7
    True
    """
    _counts(population, slots)
    probability("check_in_probability", check_in_probability)
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


def fixed_window(
    task: ConvexTask,
    population: int,
    slots: int,
    noise: float,
    check_in_probability: float = 1.0,
    repeats: int = 10,
    seed: int = 0,
) -> UtilityCheck:
    """P2 Theorem 3.5: last model, steps R (1 - p')/√((p σ² + L²) i).

    Args:
        task: the loss.
        population: clients, one record each.
        slots: of the window.
        noise: deviation of the noise in each coordinate.
        check_in_probability: of every client.
        repeats: runs.
        seed: of all chance.
    """
    bound = fixed_window_risk(
        population=population,
        slots=slots,
        check_in_probability=check_in_probability,
        **_of(task, noise),
    )
    plan = RandomCheckIns(population, slots, _gaussian(task, noise), Window.FIXED,
                          check_in_probability)  # fmt: skip
    dummies = fixed_window_dummies(population, slots, check_in_probability)
    filled = 1 - dummies / slots
    crowded = 1 - 2 * math.exp(-population * check_in_probability / slots)
    scale = math.sqrt(task.dimension * noise**2 + task.lipschitz**2)

    def step(i: int) -> float:
        return task.diameter * crowded / (scale * math.sqrt(i))

    excess = [play(task, plan, step, (seed, run), weight=1 / filled)[0] for run in range(repeats)]
    return checked("P2 Theorem 3.5", bound, excess, plan, {"expected_dummies": dummies})


def averaged_window(
    task: ConvexTask,
    population: int,
    slots: int,
    noise: float,
    smooth: bool = False,
    repeats: int = 10,
    seed: int = 0,
) -> UtilityCheck:
    """P2 Theorem 4.2: last model with steps R/√((E[1/|S|] p σ² + L²) i); `smooth`: mean model.

    Args:
        task: the loss.
        population: clients, one record each.
        slots: of the window.
        noise: deviation of the noise in each coordinate.
        smooth: the second part, for smooth losses.
        repeats: runs.
        seed: of all chance.
    """
    if slots > population:
        raise OutsideTheorem(
            f"P2 Thm 4.2 needs no more slots than clients, got {slots:,} for {population:,}: the "
            "steps that are skipped are not counted in its proof"
        )
    inverse = inverse_load(population, slots)
    known = {"population": population, "slots": slots, **_of(task, noise)}
    plan = RandomCheckIns(population, slots, _gaussian(task, noise), Window.AVERAGED)
    square = task.dimension * noise**2
    if smooth:
        bound = averaged_smooth_risk(**known, smoothness=task.smoothness)
        spread = math.sqrt(inverse * (task.lipschitz**2 + square))
        constant = 1 / (task.smoothness + spread * math.sqrt(slots / 2) / task.diameter)
    else:
        bound = averaged_risk(**known)
        constant = task.diameter / math.sqrt(inverse * square + task.lipschitz**2)

    def step(i: int) -> float:
        return constant if smooth else constant / math.sqrt(i)

    runs = [play(task, plan, step, (seed, run)) for run in range(repeats)]
    excess = [mean if smooth else last for last, mean in runs]
    details = {"inverse_load": inverse, "slots_over_clients": slots / population}
    name = "P2 Theorem 4.2, smooth losses" if smooth else "P2 Theorem 4.2"
    return checked(name, bound, excess, plan, details)


def _of(task: ConvexTask, noise: float) -> dict[str, Any]:
    positive("noise", noise)
    return {
        "diameter": task.diameter,
        "lipschitz": task.lipschitz,
        "dimension": task.dimension,
        "noise": noise,
    }


def _gaussian(task: ConvexTask, noise: float) -> Gaussian:
    return Gaussian(noise / task.lipschitz, task.lipschitz)


def _counts(population: int, slots: int) -> None:
    count("population", population)
    count("slots", slots)
