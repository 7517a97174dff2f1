"""Canaries in gradients: attacks on whole training runs, as `dpcheckin.learning` plays them.

The adversary sees what the analyzer publishes: the model after every round, and how many checked
in. Steps of plain gradient descent give the sum of the reports back. Records are made so that a
client's gradient is any vector we like (a linear model under a linear loss), which is the worst a
client can hold; everything else is the real trainer: coins, gradients, clipping, noise, steps.

`TrainingRuns` is a system for `audit.examination`: one client's gradient points one way or the
other. `Canaries` is one run with any gradients, for `audit.checks.one_run`. Needs torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dpcheckin.accounting import Guarantee
from dpcheckin.audit.attacks.statistics import LikelihoodRatio, MeanReport
from dpcheckin.audit.examination import Check
from dpcheckin.audit.systems.base import System, run_seeds
from dpcheckin.audit.systems.batches import FloatArray, IntArray, Neighbours, Released, RoundBatches
from dpcheckin.errors import InvalidParameter
from dpcheckin.learning import ClientWork, OneRecordEach, Settings, Trainer
from dpcheckin.learning.simulation.client_work import get_parameters, set_parameters
from dpcheckin.protocols import DistributedCheckIn
from dpcheckin.randomizers import Gaussian

_RUNS = 61
_DELTA = 0.5  # of the trainer's own log, which the audit does not read


def linear_loss(outputs: Tensor, targets: Tensor) -> Tensor:
    """Output times target: the gradient of a record is then target times input, everywhere."""
    return outputs[:, 0] * targets


@lru_cache(maxsize=64)
def _guarantee(plan: DistributedCheckIn, delta: float, rounds: int | None) -> Guarantee:
    return DistributedCheckIn.guarantee(plan, delta, rounds)


class _PricedOnce(DistributedCheckIn):
    """The same plan; its guarantee is computed once for thousands of runs."""

    def guarantee(self, delta: float, rounds: int | None = None) -> Guarantee:
        return _guarantee(self, delta, rounds)


def gaussian_of(plan: DistributedCheckIn) -> Gaussian:
    """The plan's randomizer, refused unless it is Gaussian."""
    if not isinstance(plan.randomizer, Gaussian):
        raise InvalidParameter("randomizer", plan.randomizer.describe(), "Gaussian")
    return plan.randomizer


class Canaries:
    """Clients whose gradients are given rows, and a trainer that plays them."""

    def __init__(self, plan: DistributedCheckIn, gradients: FloatArray) -> None:
        rows = torch.tensor(gradients, dtype=torch.float32)
        ones = torch.ones(len(rows))
        module = nn.Linear(rows.shape[1], 1, bias=False)
        self._start = torch.zeros(rows.shape[1])
        self._plan = _PricedOnce(plan.population, plan.rate, plan.rounds, plan.randomizer)
        self._work = ClientWork(module, linear_loss, OneRecordEach(rows, ones), plan.randomizer)
        self._test = (rows[:1], torch.zeros(1, dtype=torch.int64))

    def train(self, seed: int) -> tuple[FloatArray, IntArray]:
        """One run: the sum of the reports in each round as the models give it away, and counts."""
        settings = Settings(
            learning_rate=1.0, schedule="constant", averaging=0.0, seed=seed, evaluate_every=10**9,
            checkpoint_every=10**9,
        )  # fmt: skip
        set_parameters(self._work.module, self._start)
        trainer = Trainer(self._plan, self._work, settings, *self._test, delta=_DELTA)
        models, counts = [self._start], []

        def watch(row: dict[str, Any]) -> None:
            if "accuracy" not in row:
                models.append(get_parameters(self._work.module))
                counts.append(int(row["check_ins"]))

        trainer.on_round = watch
        trainer.run()
        steps = torch.stack(models).double().diff(dim=0).neg().numpy()
        reports = np.array(counts, dtype=np.int64)
        sums = steps * self._plan.randomizer.clip * reports[:, None]
        return sums, reports


@dataclass(frozen=True)
class TrainingRuns(System):
    """Training runs in which the target's gradient is the canary, one way or the other.

    `length` is the norm of the gradients before clipping: more than the clip, to see it clipped.
    """

    plan: DistributedCheckIn
    length: float = 2.0
    dimension: int = 3

    @property
    def block(self) -> int:
        return 64

    @property
    def played(self) -> str:
        return "the trainer, with the plan's own cohorts"

    def audited_plan(self) -> DistributedCheckIn:
        return self.plan

    def play(self, data: Neighbours, which: int, seed: tuple[int, ...], runs: int) -> Released:
        gradients = np.zeros((self.plan.population, self.dimension))
        everyone = np.arange(self.plan.population)
        gradients[:, 0] = self.length * data.values(everyone, which, 0)[:, 0]
        canaries = Canaries(self.plan, gradients)
        played = [canaries.train(number) for number in run_seeds(seed, runs, _RUNS)]
        return tuple(
            RoundBatches(
                np.array([sums[t, 0] for sums, _ in played]),
                np.array([counts[t] for _, counts in played]),
                only_sums=True,
            )
            for t in range(self.plan.rounds)
        )


def check_training(plan: DistributedCheckIn, delta: float, confidence: float = 0.99) -> Check:
    """Attack the certified epsilon of a training run through its published models.

    Args:
        plan: Gaussian reports of which sums are published.
        delta: the delta of claim and audit, strictly between 0 and 1.
        confidence: of the lower bound, in [0.5, 1).
    """
    clip = gaussian_of(plan).clip
    data = Neighbours((-clip,), (clip,), (-clip,))
    return Check(
        name=f"training run, canary in the gradient; {plan.describe()}; "
        f"{plan.randomizer.describe()}; {plan.rounds:,} rounds",
        system=TrainingRuns(plan),
        data=data,
        statistics=(LikelihoodRatio(plan.randomizer, data, plan.population), MeanReport()),
        epsilon=plan.guarantee(delta).epsilon.upper,
        delta=delta,
        confidence=confidence,
    )


def default_training_plan() -> DistributedCheckIn:
    """Small enough that a minute shows something."""
    return DistributedCheckIn(population=20, rate=0.3, rounds=4, randomizer=Gaussian(1.0))
