"""What P3's Algorithm 1 costs in utility (arXiv 2107.08763, Theorem 3, Appendix F).

Nothing here is a privacy statement. The bound keeps the constants of the proof, which the theorem
hides in O(.). The proof's step (b) leaves out that the cohort is drawn at random; its conclusion
holds all the same, since given the cohort the mean gradient has norm at most L √max(d^(1-2/p), 1)
and the randomizer's variance is divided by k.
"""

from __future__ import annotations

import math

import numpy as np

from dpcheckin.errors import InvalidParameter
from dpcheckin.papers.convex_task import ConvexTask, UtilityCheck, checked, play
from dpcheckin.protocols.shuffled import SubsampledShuffle
from dpcheckin.randomizers import lp_randomizer


def largest_square(dimension: int, norm: float, lipschitz: float) -> float:
    """Largest squared l2 norm of a gradient of lp norm at most L: max(d^(1-2/p), 1) L².

    Args:
        dimension: of a gradient.
        norm: the p, from 1 to infinity.
        lipschitz: the L.

    >>> largest_square(16, 1, 2.0), largest_square(16, math.inf, 2.0)
    (4.0, 64.0)
    """
    if not norm >= 1:
        raise InvalidParameter("norm", norm, "at least 1")
    return float(max(dimension ** (1 - 2 / norm), 1.0) * lipschitz**2)


def printed_variance(dimension: int, norm: float, lipschitz: float, local_epsilon: float) -> float:
    """The variance of one report that Equation 48 allows for.

    Args:
        dimension: of a gradient.
        norm: the p.
        lipschitz: the L.
        local_epsilon: of one report.
    """
    constant = 4 if norm in (1, math.inf) else 14
    shrunk = math.tanh(local_epsilon / 2)
    return constant * dimension * largest_square(dimension, norm, lipschitz) / shrunk**2


def second_moment(
    *, cohort: int, dimension: int, norm: float, lipschitz: float, variance: float
) -> float:
    """G²: Lemma 9 with the variance of one report.

    Args:
        cohort: reports of a round.
        dimension: of a gradient.
        norm: the p.
        lipschitz: the L.
        variance: of one report, exact or `printed_variance`.
    """
    return largest_square(dimension, norm, lipschitz) + variance / cohort


def risk(*, rounds: int, diameter: float, second_moment: float) -> float:
    """Equation 49: excess empirical risk of the last iterate with steps D/(G √t).

    Args:
        rounds: the T.
        diameter: of the set of models.
        second_moment: G².
    """
    if rounds < 1:
        raise InvalidParameter("rounds", rounds, "at least 1")
    root = math.sqrt(second_moment)
    return 2 * diameter * root * (2 + math.log(rounds)) / math.sqrt(rounds)


def subsampled_shuffle(
    task: ConvexTask,
    population: int,
    cohort: int,
    rounds: int,
    local_epsilon: float,
    repeats: int = 10,
    seed: int = 0,
) -> UtilityCheck:
    """P3 Theorem 3: last model, steps D/(G √t), risk over the clients' own records.

    G has the randomizer's exact variance; with the printed one the bound is in the details.

    Args:
        task: the loss, with the norm of the randomizer.
        population: clients, one record each.
        cohort: clients of a round.
        rounds: of the run.
        local_epsilon: of one report.
        repeats: runs.
        seed: of all chance.
    """
    randomizer = lp_randomizer(task.norm, local_epsilon, task.dimension, task.lipschitz)
    longest = np.zeros((2, task.dimension))
    longest[1, 0] = task.lipschitz
    variance = float(max(randomizer.total_variance(longest)))
    printed = printed_variance(task.dimension, task.norm, task.lipschitz, local_epsilon)

    def bound_with(one: float) -> tuple[float, float]:
        square = second_moment(
            cohort=cohort, dimension=task.dimension, norm=task.norm, lipschitz=task.lipschitz,
            variance=one,
        )  # fmt: skip
        excess = risk(rounds=rounds, diameter=task.diameter, second_moment=square)
        return excess, math.sqrt(square)

    bound, root = bound_with(variance)
    plan = SubsampledShuffle(population, cohort, rounds, randomizer)

    def step(i: int) -> float:
        return task.diameter / (root * math.sqrt(i))

    excess = [play(task, plan, step, (seed, run))[0] for run in range(repeats)]
    details = {"bound_with_printed_variance": bound_with(printed)[0]}
    return checked("P3 Theorem 3", bound, excess, plan, details)
