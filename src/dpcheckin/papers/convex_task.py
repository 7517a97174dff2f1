"""The experiment beside the papers' utility theorems: a convex task that meets their conditions.

A plan's cohorts and randomizers are played with a theorem's step sizes and the projection onto a ball. The theorems are
in `papers.p2.utility` and `papers.p3.utility`. Nothing here is a privacy statement.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import at_least
from dpcheckin.protocols.plan import Plan, SubsampledShuffle, generator_for
from dpcheckin.randomizers import SeededSource, VectorRandomizer

Vector = NDArray[np.float64]
_DATA, _REPORTS = 51, 52


@dataclass(frozen=True)
class ConvexTask:
    """L (√(|θ - d|² + s²) - s): convex, Lipschitz, smooth with L/s, least at the data's centre.

    The ball of models has the given diameter, the centre lies a quarter of it from the middle, the first model at its
    edge on the far side. L is the largest length of a gradient in lp, p the `norm`; for p < 2 the loss is divided by
    d^(1/p - 1/2). The `smoothness` is the Lipschitz constant of the gradient in l2.
    """

    dimension: int
    lipschitz: float = 1.0
    diameter: float = 2.0
    smoothness: float = 1.0
    norm: float = 2

    def __post_init__(self) -> None:
        at_least("dimension", self.dimension, 1)
        for name in ("lipschitz", "diameter", "smoothness"):
            if not 0 < getattr(self, name) < math.inf:
                raise InvalidParameter(name, getattr(self, name), "a finite number above 0")

    @property
    def slope(self) -> float:
        """Largest l2 norm of a gradient: an lp norm is at most d^(1/p - 1/2) times that, and no more for p >= 2."""
        return self.lipschitz / float(max(self.dimension ** (1 / self.norm - 0.5), 1.0))

    @property
    def rounding(self) -> float:
        """How far from a record its loss is round."""
        return self.slope / self.smoothness

    def records(self, draw: np.random.Generator, count: int) -> Vector:
        """As many records as `count` by a `draw`, about the centre, in pairs that mirror each other if it is even."""
        half = draw.standard_normal(((count + 1) // 2, self.dimension))
        half *= self.diameter / (4 * math.sqrt(self.dimension))
        return np.concatenate([self.centre + half, self.centre - half])[:count]

    @property
    def centre(self) -> Vector:
        """The best model, by symmetry."""
        return self._at(self.diameter / 4)

    @property
    def start(self) -> Vector:
        """The first model."""
        return self._at(-self.diameter / 2)

    def _at(self, first: float) -> Vector:
        return np.append(first, np.zeros(self.dimension - 1))

    def gradients(self, model: Vector, records: Vector) -> Vector:
        """Of the loss at a model, one row for each of the records."""
        away = model[None, :] - records
        length = np.sqrt((away**2).sum(axis=1, keepdims=True) + self.rounding**2)
        return np.asarray(self.slope * away / length)

    def risk(self, model: Vector, records: Vector) -> float:
        """Mean loss of a model over records."""
        squares = ((model[None, :] - records) ** 2).sum(axis=1)
        return float(self.slope * (np.sqrt(squares + self.rounding**2) - self.rounding).mean())

    def projected(self, model: Vector) -> Vector:
        """The nearest model of the ball."""
        length = float(np.linalg.norm(model))
        radius = self.diameter / 2
        return model if length <= radius else model * (radius / length)


@dataclass(frozen=True)
class UtilityCheck:
    """A theorem's bound on the expected excess risk, and the mean of what was measured, with its standard error."""

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


def play(task: ConvexTask, plan: Plan, step: Step, seed: tuple[int, int], weight: float = 1.0) -> tuple[float, float]:
    """Excess risk of the last model and of the mean model of one run of a plan on a task.

    The clients' records come in mirrored pairs, so their risk, too, is least at the centre. `step` is the size of each,
    counted from 1; `seed` is that of all runs and the number of this one; `weight` mends empty slots.
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
            # the weight is applied to the report
            source = SeededSource((number, _REPORTS, round_index))
            estimates = randomizer.estimate(randomizer.randomize(rows / weight, source))
            mean = np.asarray(weight * np.asarray(estimates).mean(axis=0), dtype=np.float64)
            model = task.projected(model - step(round_index + 1) * mean)
        total += model
    judged = records if isinstance(plan, SubsampledShuffle) else task.records(generator_for(number, 1, _DATA), 4000)
    best = task.risk(task.centre, judged)
    return task.risk(model, judged) - best, task.risk(total / plan.rounds, judged) - best


def checked(
    theorem: str, bound: float, task: ConvexTask, plan: Plan, step: Step, repeats: int, seed: int,
    details: dict[str, float], *, weight: float = 1.0, of_mean: bool = False,
) -> UtilityCheck:  # fmt: skip
    """The bound of a theorem, with further details, beside as many repeats of a plan on a task.

    `seed`, `step` and `weight` as for `play`; with `of_mean` the bound is about the mean of all models, otherwise about
    the last one.
    """
    runs = [play(task, plan, step, (seed, run), weight) for run in range(repeats)]
    at_least("repeats", repeats, 2)
    excess = [mean if of_mean else last for last, mean in runs]
    deviation = statistics.stdev(excess) / math.sqrt(repeats)
    return UtilityCheck(theorem, bound, statistics.fmean(excess), deviation, repeats, plan, details)
