"""What random check-ins cost in utility: dummy updates and excess risk (P2, arXiv 2007.06605v2).

Nothing here is a privacy statement. The risk bounds keep the constants of the proofs, which the theorems hide in
O-tilde. `fixed_window` (Theorem 3.5) and `averaged_window` (both parts of Theorem 4.2, with the exact E[1/|S|]) put
them beside an experiment. `noise` is the deviation of the noise in each coordinate.
"""

from __future__ import annotations

import math

import numpy as np

from dpcheckin.errors import InvalidParameter, OutsideTheorem
from dpcheckin.numerals import count, positive, probability
from dpcheckin.papers.convex_task import ConvexTask, UtilityCheck, checked
from dpcheckin.protocols.random_check_ins import RandomCheckIns, Window
from dpcheckin.randomizers import Gaussian
from dpcheckin.special import binomial


def fixed_window_dummies(population: int, slots: int, check_in_probability: float) -> float:
    """Proposition 3.4: expected empty slots, m (1 - p/m)^n, of a population n, m slots and p = check_in_probability.

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
    """Proposition 4.4: (n - m + 1)(1 - 1/m)^m, at most (n - m + 1)/e, of a population n and m slots.

    Updates happen at times m..n; the paper's proof sums over m..n-m+1.
    """
    _counts(population, slots)
    if slots > population:
        raise InvalidParameter("slots", slots, f"at most the population {population:,}")
    empty = 0.0 if slots == 1 else math.exp(slots * math.log1p(-1.0 / slots))
    return (population - slots + 1) * empty


def fixed_window_risk(
    task: ConvexTask, population: int, slots: int, noise: float, check_in_probability: float = 1.0
) -> float:
    """Theorem 3.5 for a task, a population, slots, noise and check_in_probability: excess risk of the last iterate."""
    _counts(population, slots)
    positive("noise", noise)
    empty = 2.0 * math.exp(-population * check_in_probability / slots)
    if empty >= 1.0:
        raise OutsideTheorem(
            f"P2 Thm 3.5 needs 2 exp(-n p/m) < 1, got {empty:.3g}; raise the check-in probability or use fewer slots"
        )
    scale = math.sqrt(task.dimension * noise**2 + task.lipschitz**2)
    log_term = (2.0 + math.log(slots)) / math.sqrt(slots)
    return task.diameter * scale * (1.0 / (1.0 - empty) + 1.0) * log_term


def averaged_risk(task: ConvexTask, population: int, slots: int, noise: float) -> float:
    """Theorem 4.2, first part, for a task, a population, slots and noise: convex losses, last iterate.

    The proof puts m/n for E[1/load; load > 0], which is up to 1.296 times larger; summed exactly here.
    """
    positive("noise", noise)
    scale = math.sqrt(inverse_load(population, slots) * task.dimension * noise**2 + task.lipschitz**2)
    return 2.0 * task.diameter * scale * (2.0 + math.log(slots)) / math.sqrt(slots)


def averaged_smooth_risk(task: ConvexTask, population: int, slots: int, noise: float) -> float:
    """Theorem 4.2, second part, for a task, a population, slots and noise: smooth losses, average iterate."""
    positive("noise", noise)
    deviation = math.sqrt(inverse_load(population, slots) * (task.lipschitz**2 + task.dimension * noise**2))
    return task.diameter * deviation * math.sqrt(2.0 / slots) + task.smoothness * task.diameter**2 / slots


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
    """P2 Theorem 3.5: last model, steps R (1 - p')/√((p σ² + L²) i), beside as many repeats with a seed.

    Every client of the population holds one record of the task and checks in with check_in_probability, in one of the
    slots; its report has this noise.
    """
    bound = fixed_window_risk(task, population, slots, noise, check_in_probability)
    plan = RandomCheckIns(population, slots, _gaussian(task, noise), Window.FIXED, check_in_probability)
    dummies = fixed_window_dummies(population, slots, check_in_probability)
    crowded = 1 - 2 * math.exp(-population * check_in_probability / slots)
    scale = math.sqrt(task.dimension * noise**2 + task.lipschitz**2)

    def step(i: int) -> float:
        return task.diameter * crowded / (scale * math.sqrt(i))

    details = {"expected_dummies": dummies}
    weight = 1 / (1 - dummies / slots)
    return checked("P2 Theorem 3.5", bound, task, plan, step, repeats, seed, details, weight=weight)


def averaged_window(
    task: ConvexTask, population: int, slots: int, noise: float, smooth: bool = False, repeats: int = 10, seed: int = 0
) -> UtilityCheck:
    """P2 Theorem 4.2: last model with steps R/√((E[1/|S|] p σ² + L²) i), beside as many repeats with a seed.

    `smooth` is the second part, about the mean model for smooth losses; task, population, slots and noise as for
    `fixed_window`.
    """
    if slots > population:
        raise OutsideTheorem(
            f"P2 Thm 4.2 needs no more slots than clients, got {slots:,} for {population:,}: the "
            "steps that are skipped are not counted in its proof"
        )
    inverse, square = inverse_load(population, slots), task.dimension * noise**2
    bound = (averaged_smooth_risk if smooth else averaged_risk)(task, population, slots, noise)
    plan = RandomCheckIns(population, slots, _gaussian(task, noise), Window.AVERAGED)
    spread = math.sqrt(inverse * (task.lipschitz**2 + square))
    constant = task.diameter / math.sqrt(inverse * square + task.lipschitz**2)
    if smooth:
        constant = 1 / (task.smoothness + spread * math.sqrt(slots / 2) / task.diameter)

    def step(i: int) -> float:
        return constant if smooth else constant / math.sqrt(i)

    details = {"inverse_load": inverse, "slots_over_clients": slots / population}
    name = "P2 Theorem 4.2, smooth losses" if smooth else "P2 Theorem 4.2"
    return checked(name, bound, task, plan, step, repeats, seed, details, of_mean=smooth)


def _gaussian(task: ConvexTask, noise: float) -> Gaussian:
    return Gaussian(noise / task.lipschitz, task.lipschitz)


def _counts(population: int, slots: int) -> None:
    count("population", population)
    count("slots", slots)
