"""What P3's Algorithm 1 costs in utility (arXiv 2107.08763, Theorem 3, Appendix F).

Nothing here is a privacy statement. The bound keeps the constants of the proof, which the theorem hides in O(.). The
proof's step (b) leaves out that the cohort is drawn at random; its conclusion holds all the same, since given the
cohort the mean gradient has norm at most L √max(d^(1-2/p), 1) and the randomizer's variance is divided by k.
"""

from __future__ import annotations

import math

import numpy as np

from dpcheckin.errors import InvalidParameter
from dpcheckin.papers.convex_task import ConvexTask, UtilityCheck, checked
from dpcheckin.protocols.plan import SubsampledShuffle
from dpcheckin.randomizers import lp_randomizer


def largest_square(dimension: int, norm: float, lipschitz: float) -> float:
    """Largest squared l2 norm of a gradient of this dimension with lp norm at most L: max(d^(1-2/p), 1) L².

    The `norm` is the p, from 1 to infinity, `lipschitz` the L.

    >>> largest_square(16, 1, 2.0), largest_square(16, math.inf, 2.0)
    (4.0, 64.0)
    """
    if not norm >= 1:
        raise InvalidParameter("norm", norm, "at least 1")
    return float(max(dimension ** (1 - 2 / norm), 1.0) * lipschitz**2)


def printed_variance(task: ConvexTask, local_epsilon: float) -> float:
    """The variance of one report of this local_epsilon about a gradient of the task that Equation 48 allows for."""
    constant = 4 if task.norm in (1, math.inf) else 14
    square = largest_square(task.dimension, task.norm, task.lipschitz)
    return constant * task.dimension * square / math.tanh(local_epsilon / 2) ** 2


def risk(rounds: int, diameter: float, second_moment: float) -> float:
    """Equation 49: excess risk after so many rounds, steps D/(G √t), D the diameter, G² the second_moment."""
    if rounds < 1:
        raise InvalidParameter("rounds", rounds, "at least 1")
    return 2 * diameter * math.sqrt(second_moment) * (2 + math.log(rounds)) / math.sqrt(rounds)


def subsampled_shuffle(
    task: ConvexTask, population: int, cohort: int, rounds: int, local_epsilon: float, repeats: int = 10, seed: int = 0
) -> UtilityCheck:
    """P3 Theorem 3: last model, steps D/(G √t), risk over the clients' own records, one each in the population.

    A cohort takes part in each of the rounds, with reports of this local_epsilon in the task's norm; the bound stands
    beside as many repeats with a seed. G has the randomizer's exact variance; with the printed one the bound is in the
    details.
    """
    randomizer = lp_randomizer(task.norm, local_epsilon, task.dimension, task.lipschitz)
    longest = np.zeros((2, task.dimension))
    longest[1, 0] = task.lipschitz
    variance = float(max(randomizer.total_variance(longest)))
    # G² of Lemma 9, with the exact and with the printed variance of a report
    largest = largest_square(task.dimension, task.norm, task.lipschitz)
    square, printed = (largest + spread / cohort for spread in (variance, printed_variance(task, local_epsilon)))
    plan = SubsampledShuffle(population, cohort, rounds, randomizer)

    def step(i: int) -> float:
        return task.diameter / (math.sqrt(square) * math.sqrt(i))

    details = {"bound_with_printed_variance": risk(rounds, task.diameter, printed)}
    bound = risk(rounds, task.diameter, square)
    return checked("P3 Theorem 3", bound, task, plan, step, repeats, seed, details)
