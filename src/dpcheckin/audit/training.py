"""Canaries in gradients: attacks on training as `dpcheckin.learning` plays it, in many runs or in a single one.

The adversary sees what the analyzer publishes: the model after every round, and how many checked in. Records are made
so that a client's gradient is any vector we like (a linear model under a linear loss); everything else is the real
trainer.

In one run every client is a canary: it holds +v or -v by a fair coin of ours, each v a direction of its own, and we
guess the signs we are surest of. Under (ε, δ)-privacy right guesses are dominated by coins of bias e^ε/(1 + e^ε), up to
δ (Steinke, Nasr and Jagielski, arXiv 2305.08846v1, Theorem 5.2 and its code in appendix D).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dpcheckin.audit.evidence import LARGEST_EPSILON, needed_capital
from dpcheckin.audit.examination import Check
from dpcheckin.audit.finding import Verdict
from dpcheckin.audit.statistics import LikelihoodRatio, MeanReport
from dpcheckin.audit.systems import FloatArray, IntArray, Neighbours, Released, RoundBatches, System, run_seeds
from dpcheckin.errors import InvalidParameter
from dpcheckin.learning import ClientWork, OneRecordEach, Settings, Trainer
from dpcheckin.learning.simulation.client_work import get_parameters, set_parameters
from dpcheckin.numerals import rounded_down, rounded_up
from dpcheckin.protocols import DistributedCheckIn
from dpcheckin.randomizers import Gaussian
from dpcheckin.special import binomial
from dpcheckin.special.roots import switch

_RUNS = 61
_DELTA = 0.5  # of the trainer's own log, which the audit does not read


def linear_loss(outputs: Tensor, targets: Tensor) -> Tensor:
    """The outputs times their targets: the gradient of a record is then target times input, everywhere."""
    return outputs[:, 0] * targets


class _PricedOnce(DistributedCheckIn):
    """The same plan; its guarantee is computed once for thousands of runs."""

    guarantee = lru_cache(maxsize=64)(DistributedCheckIn.guarantee)


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
        never = 10**9
        settings = Settings(
            learning_rate=1.0,
            schedule="constant",
            averaging=0.0,
            seed=seed,
            evaluate_every=never,
            checkpoint_every=never,
        )
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
    """Training runs in which the target's gradient is the canary, one way or the other; `length` shows it clipped."""

    plan: DistributedCheckIn
    length: float = 2.0
    dimension: int = 3

    block = 64
    played = "the trainer, with the plan's own cohorts"

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
    """Attack the certified epsilon of a plan's training run by its published models, at `delta`, with `confidence`."""
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


_ENOUGH = 0.3  # of what right guesses only would show; one run of a sound system shows about half


def p_value(canaries: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """Largest probability of so many right guesses about so many canaries under (epsilon, delta)-privacy.

    >>> round(p_value(100, 10, 10, 0.0, 0.0), 6) == round(0.5**10, 6)
    True
    """
    if not 0 <= right <= guesses <= canaries:
        raise InvalidParameter("right", right, f"0 to guesses = {guesses} ≤ canaries = {canaries}")
    bias = 1.0 / (1.0 + math.exp(-epsilon))
    tail = float(binomial.sf(right - 1, guesses, bias))
    # δ may move a few canaries: the worst number i of them shifts the count from right - i
    masses = np.cumsum(binomial.pmf(np.arange(right - 1, -1, -1), guesses, bias))
    shift = float(np.max(masses / np.arange(1, right + 1), initial=0.0))
    return min(1.0, tail + 2 * canaries * delta * shift)


def one_run_epsilon(canaries: int, guesses: int, right: int, delta: float, confidence: float) -> float:
    """The epsilon that so many right guesses about canaries refute at `delta` with this confidence; 0 if none."""
    needed_capital(confidence)
    miss = 1.0 - confidence
    if p_value(canaries, guesses, right, 0.0, delta) > miss:
        return 0.0
    return switch(lambda epsilon: p_value(canaries, guesses, right, epsilon, delta) <= miss, 0.0, LARGEST_EPSILON)[0]


@dataclass(frozen=True, slots=True)
class OneRunFinding:
    """What a single training run has shown."""

    name: str
    claimed: float
    delta: float
    confidence: float
    lower: float
    canaries: int
    guesses: int
    right: int
    seed: int

    @property
    def refuted(self) -> bool:
        return self.lower > self.claimed

    @property
    def wanted(self) -> float:
        """The lower bound from which on a run that refutes nothing means something."""
        best = one_run_epsilon(self.canaries, self.guesses, self.guesses, self.delta, self.confidence)
        return _ENOUGH * min(self.claimed, best)

    @property
    def verdict(self) -> Verdict:
        """Violated, not violated, or too little seen to say."""
        if self.refuted:
            return Verdict.VIOLATED
        enough = self.lower > 0.0 and self.lower >= self.wanted
        return Verdict.NOT_VIOLATED if enough else Verdict.INCONCLUSIVE

    def __str__(self) -> str:
        return (
            f"Claimed: epsilon ≤ {rounded_up(self.claimed)} at delta = {self.delta:g}. Audited in "
            f"one run: epsilon ≥ {rounded_down(self.lower)} with {100 * self.confidence:g}% "
            f"confidence, from {self.right} right of {self.guesses} guesses about {self.canaries} "
            f"canaries. {self.verdict.sentence}"
        )

    def to_json(self) -> dict[str, Any]:
        """A plain object for JSON."""
        facts = asdict(self)
        figures = {"claimed_epsilon": facts.pop("claimed"), "lower_bound": facts.pop("lower")}
        judged = {"refuted": self.refuted, "verdict": self.verdict.value, "wanted_lower_bound": self.wanted}
        return {**facts, **figures, **judged}


def audit_one_run(
    plan: DistributedCheckIn,
    delta: float,
    confidence: float = 0.99,
    *,
    guesses: int | None = None,
    seed: int = 0,
    length: float = 1.0,
    claimed: float | None = None,
) -> OneRunFinding:
    """Play one training run of a plan with Gaussian reports in which every client is a canary, and guess.

    The number of guesses is fixed before the run; None is a tenth of the canaries, those with the largest scores.
    `seed` is that of signs and run, `length` the norm of the canaries in clips; `claimed` is the epsilon under audit,
    None for the certified one at `delta`. The lower bound has this `confidence`, in [0.5, 1).
    """
    n, randomizer = plan.population, gaussian_of(plan)
    count = max(1, n // 10) if guesses is None else guesses
    if not 1 <= count <= n:
        raise InvalidParameter("guesses", guesses, f"1 to the number of clients, {n}")
    signs = np.random.default_rng((seed, 71)).choice([-1.0, 1.0], size=n)
    gradients = np.diag(signs) * (length * randomizer.clip)
    sums, reports = Canaries(plan, gradients).train(seed)
    scores = _scores(sums, reports, n, randomizer)
    surest = np.argsort(-np.abs(scores))[:count]
    right = int(np.count_nonzero(np.sign(scores[surest]) == signs[surest]))
    return OneRunFinding(
        name=f"one training run, every client a canary; {plan.describe()}; "
        f"{randomizer.describe()}; {plan.rounds:,} rounds",
        claimed=plan.guarantee(delta).epsilon.upper if claimed is None else claimed,
        delta=delta,
        confidence=confidence,
        lower=one_run_epsilon(n, count, right, delta, confidence),
        canaries=n,
        guesses=count,
        right=right,
        seed=seed,
    )


def _scores(sums: Any, reports: Any, population: int, randomizer: Gaussian) -> Any:
    """Log likelihood ratio of + against - for each canary, summed over rounds."""
    share = (reports / population)[:, None]
    noise = np.maximum(reports, 1)[:, None] * randomizer.deviation**2
    base = -(randomizer.clip**2) / (2 * noise)
    tilt = randomizer.clip * sums / noise
    sides = [np.log1p(share * np.expm1(np.minimum(base + sign * tilt, 700.0))) for sign in (1, -1)]
    return (sides[0] - sides[1]).sum(axis=0)


def default_one_run_plan() -> DistributedCheckIn:
    """A run whose loss is large enough for one run to show a good part of it."""
    return DistributedCheckIn(population=1000, rate=0.3, rounds=10, randomizer=Gaussian(0.1))
