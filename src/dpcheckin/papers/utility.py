"""The papers' utility theorems beside an experiment: the bound, and what a convex task loses.

P2 Theorem 3.5 (fixed window), both parts of Theorem 4.2 (averaged window, with the exact E[1/|S|])
and P3 Theorem 3 (subsampled shuffle with R_p), each with the constants of its proof. The experiment
plays the same plan's cohorts and randomizers, with the theorem's step sizes and the projection onto
a ball, on a loss that meets the theorem's conditions. Nothing here is a privacy statement.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter, OutsideTheorem
from dpcheckin.papers.p2 import risk as p2_utility
from dpcheckin.papers.p3 import risk as p3_utility
from dpcheckin.protocols.plan import Plan, generator_for
from dpcheckin.protocols.random_check_ins import RandomCheckIns, Window
from dpcheckin.protocols.shuffled import SubsampledShuffle
from dpcheckin.randomizers import Gaussian, SeededSource, VectorRandomizer, lp_randomizer

Vector = NDArray[np.float64]
_DATA, _REPORTS = 51, 52


@dataclass(frozen=True)
class ConvexTask:
    """L (√(|θ - d|² + s²) - s): convex, Lipschitz, smooth with L/s, least at the data's centre.

    The ball of models has the given diameter, the centre lies a quarter of it from the middle, the
    first model at its edge on the far side.

    Args:
        dimension: of a model.
        lipschitz: largest length of a gradient, in the norm of the theorem.
        diameter: of the ball.
        smoothness: Lipschitz constant of the gradient, in l2.
        norm: the p of the gradient's norm; for p = 1 the loss is divided by √d.
    """

    dimension: int
    lipschitz: float = 1.0
    diameter: float = 2.0
    smoothness: float = 1.0
    norm: float = 2

    def __post_init__(self) -> None:
        if self.dimension < 1:
            raise InvalidParameter("dimension", self.dimension, "at least 1")
        for name in ("lipschitz", "diameter", "smoothness"):
            if not 0 < getattr(self, name) < math.inf:
                raise InvalidParameter(name, getattr(self, name), "a finite number above 0")

    @property
    def slope(self) -> float:
        """Largest l2 norm of a gradient: an l1 norm is at most √d times that."""
        return self.lipschitz / (math.sqrt(self.dimension) if self.norm == 1 else 1.0)

    @property
    def rounding(self) -> float:
        """How far from a record its loss is round."""
        return self.slope / self.smoothness

    def records(self, draw: np.random.Generator, count: int) -> Vector:
        """Independent records about the centre, in pairs that mirror each other if `count` is even.

        Args:
            draw: chance.
            count: how many.
        """
        half = draw.standard_normal(((count + 1) // 2, self.dimension))
        half *= self.diameter / (4 * math.sqrt(self.dimension))
        return np.concatenate([self.centre + half, self.centre - half])[:count]

    @property
    def centre(self) -> Vector:
        """The best model, by symmetry."""
        found = np.zeros(self.dimension)
        found[0] = self.diameter / 4
        return found

    @property
    def start(self) -> Vector:
        """The first model."""
        found = np.zeros(self.dimension)
        found[0] = -self.diameter / 2
        return found

    def gradients(self, model: Vector, records: Vector) -> Vector:
        """One row for each record."""
        away = model[None, :] - records
        length = np.sqrt((away**2).sum(axis=1, keepdims=True) + self.rounding**2)
        return np.asarray(self.slope * away / length)

    def risk(self, model: Vector, records: Vector) -> float:
        """Mean loss over records."""
        squares = ((model[None, :] - records) ** 2).sum(axis=1)
        return float(self.slope * (np.sqrt(squares + self.rounding**2) - self.rounding).mean())

    def projected(self, model: Vector) -> Vector:
        """The nearest model of the ball."""
        length = float(np.linalg.norm(model))
        radius = self.diameter / 2
        return model if length <= radius else model * (radius / length)


@dataclass(frozen=True)
class UtilityCheck:
    """A theorem's bound and what was measured.

    Args:
        theorem: its name.
        bound: on the expected excess risk.
        measured: mean excess risk of the runs.
        deviation: standard error of that mean.
        repeats: number of runs.
        plan: the plan that was played.
        details: further figures by name.
    """

    theorem: str
    bound: float
    measured: float
    deviation: float
    repeats: int
    plan: Plan
    details: dict[str, float]

    @property
    def holds(self) -> bool:
        """Is the bound above what was measured, three standard errors allowed for?"""
        return self.measured - 3 * self.deviation <= self.bound

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "theorem": self.theorem,
            "bound": self.bound,
            "measured": self.measured,
            "standard_error": self.deviation,
            "repeats": self.repeats,
            "plan": self.plan.describe(),
            "randomizer": self.plan.randomizer.describe(),
            **self.details,
        }


Step = Callable[[int], float]


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
    bound = p2_utility.fixed_window_risk(
        population=population,
        slots=slots,
        check_in_probability=check_in_probability,
        **_of(task, noise),
    )
    plan = RandomCheckIns(population, slots, _gaussian(task, noise), Window.FIXED,
                          check_in_probability)  # fmt: skip
    dummies = p2_utility.fixed_window_dummies(population, slots, check_in_probability)
    filled = 1 - dummies / slots
    crowded = 1 - 2 * math.exp(-population * check_in_probability / slots)
    scale = math.sqrt(task.dimension * noise**2 + task.lipschitz**2)

    def step(i: int) -> float:
        return task.diameter * crowded / (scale * math.sqrt(i))

    excess = [_play(task, plan, step, (seed, run), weight=1 / filled)[0] for run in range(repeats)]
    return _check("P2 Theorem 3.5", bound, excess, plan, {"expected_dummies": dummies})


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
    inverse = p2_utility.inverse_load(population, slots)
    known = {"population": population, "slots": slots, **_of(task, noise)}
    plan = RandomCheckIns(population, slots, _gaussian(task, noise), Window.AVERAGED)
    square = task.dimension * noise**2
    if smooth:
        bound = p2_utility.averaged_smooth_risk(**known, smoothness=task.smoothness)
        spread = math.sqrt(inverse * (task.lipschitz**2 + square))
        constant = 1 / (task.smoothness + spread * math.sqrt(slots / 2) / task.diameter)
    else:
        bound = p2_utility.averaged_risk(**known)
        constant = task.diameter / math.sqrt(inverse * square + task.lipschitz**2)

    def step(i: int) -> float:
        return constant if smooth else constant / math.sqrt(i)

    runs = [_play(task, plan, step, (seed, run)) for run in range(repeats)]
    excess = [mean if smooth else last for last, mean in runs]
    details = {"inverse_load": inverse, "slots_over_clients": slots / population}
    name = "P2 Theorem 4.2, smooth losses" if smooth else "P2 Theorem 4.2"
    return _check(name, bound, excess, plan, details)


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
    printed = p3_utility.printed_variance(task.dimension, task.norm, task.lipschitz, local_epsilon)

    def bound_with(one: float) -> tuple[float, float]:
        square = p3_utility.second_moment(
            cohort=cohort, dimension=task.dimension, norm=task.norm, lipschitz=task.lipschitz,
            variance=one,
        )  # fmt: skip
        risk = p3_utility.risk(rounds=rounds, diameter=task.diameter, second_moment=square)
        return risk, math.sqrt(square)

    bound, root = bound_with(variance)
    plan = SubsampledShuffle(population, cohort, rounds, randomizer)

    def step(i: int) -> float:
        return task.diameter / (root * math.sqrt(i))

    excess = [_play(task, plan, step, (seed, run))[0] for run in range(repeats)]
    details = {"bound_with_printed_variance": bound_with(printed)[0]}
    return _check("P3 Theorem 3", bound, excess, plan, details)


def _of(task: ConvexTask, noise: float) -> dict[str, Any]:
    if not 0 < noise < math.inf:
        raise InvalidParameter("noise", noise, "a finite number above 0")
    return {
        "diameter": task.diameter,
        "lipschitz": task.lipschitz,
        "dimension": task.dimension,
        "noise": noise,
    }


def _gaussian(task: ConvexTask, noise: float) -> Gaussian:
    return Gaussian(noise / task.lipschitz, task.lipschitz)


def _play(
    task: ConvexTask, plan: Plan, step: Step, seed: tuple[int, int], weight: float = 1.0
) -> tuple[float, float]:
    """Excess risk of the last model and of the mean model of one run.

    The clients' records come in mirrored pairs, so their risk, too, is least at the centre.
    """
    randomizer = plan.randomizer
    assert isinstance(randomizer, VectorRandomizer)
    if plan.population % 2:
        raise InvalidParameter("population", plan.population, "an even number")
    number = seed[0] * 100_003 + seed[1]
    draw = generator_for(number, 0, _DATA)
    records = draw.permutation(task.records(draw, plan.population))
    model, total = task.start, np.zeros(task.dimension)
    for round_index in range(plan.rounds):
        cohort = plan.cohort(number, round_index)
        rows = weight * task.gradients(model, records[cohort.clients])
        rows = np.concatenate([rows, np.zeros((cohort.dummies, task.dimension))])
        if len(rows):
            mean = _reported(randomizer, rows, weight, (number, _REPORTS, round_index))
            model = task.projected(model - step(round_index + 1) * mean)
        total += model
    fresh = task.records(generator_for(number, 1, _DATA), 4000)
    judged = records if isinstance(plan, SubsampledShuffle) else fresh
    best = task.risk(task.centre, judged)
    return task.risk(model, judged) - best, task.risk(total / plan.rounds, judged) - best


def _reported(
    randomizer: VectorRandomizer, rows: Vector, weight: float, seed: tuple[int, ...]
) -> Vector:
    """Mean of the reports' estimates; weights that mend empty slots are applied to the report."""
    source = SeededSource(seed)
    estimates = randomizer.estimate(randomizer.randomize(rows / weight, source))
    return np.asarray(weight * np.asarray(estimates).mean(axis=0), dtype=np.float64)


def _check(
    theorem: str, bound: float, excess: list[float], plan: Plan, details: dict[str, float]
) -> UtilityCheck:
    if len(excess) < 2:
        raise InvalidParameter("repeats", len(excess), "at least 2")
    deviation = statistics.stdev(excess) / math.sqrt(len(excess))
    return UtilityCheck(
        theorem, bound, statistics.fmean(excess), deviation, len(excess), plan, details
    )
