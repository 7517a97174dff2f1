"""Training a model over a simulated fleet, with the ledger always right.

`Trainer.run` plays the rounds of a plan: draw the cohort, let the clients report, step the optimiser, and log round,
check-ins, accuracy and certified epsilon. It stops *before* the round that would pass the budget.

A killed run goes on from its checkpoint as if nothing had happened: every draw is a function of the seed and the round
number, so a round that was run but not yet saved makes the same reports again, and nothing is spent twice.
"""

from __future__ import annotations

import csv
import hashlib
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dpcheckin.accounting import Guarantee
from dpcheckin.accounting.statements import rounds_in_words
from dpcheckin.console import remark
from dpcheckin.display import Tabular
from dpcheckin.errors import InvalidParameter, NumericalFailure, Unreachable
from dpcheckin.files import replacing
from dpcheckin.learning.data.fleet import tensor_digest
from dpcheckin.learning.models import ACCURACY, FrozenFeatures, Score, named_loss
from dpcheckin.learning.options import RunOptions, Settings
from dpcheckin.learning.simulation.backends import Backend, InProcess
from dpcheckin.learning.simulation.client_work import ClientWork, get_parameters, pieces, set_parameters
from dpcheckin.numerals import positive, rounded_up
from dpcheckin.options import DEFAULT_DELTA
from dpcheckin.protocols.plan import Plan
from dpcheckin.randomizers import SeededSource

CHECKPOINT = "checkpoint.pt"
_CHOSEN = "chosen"


@dataclass
class State:
    """Everything that changes during a run: parameters, their running average, optimiser, rounds charged and log."""

    parameters: Tensor
    average: Tensor
    optimizer: dict[str, Any] = field(default_factory=dict)
    rounds: int = 0
    log: list[dict[str, Any]] = field(default_factory=list)


def save_checkpoint(folder: Path, state: State, fingerprint: str, chosen: Mapping[str, str]) -> None:
    """Keep a run's state in a folder, under its fingerprint and the options in words, `chosen`."""
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / CHECKPOINT, "wb") as file:
        torch.save({"fingerprint": fingerprint, _CHOSEN: dict(chosen), **state.__dict__}, file)


def load_checkpoint(folder: Path, fingerprint: str, chosen: Mapping[str, str]) -> State | None:
    """The state saved in a folder, None when there is none; one of another run (fingerprint, chosen) is refused."""
    path = folder / CHECKPOINT
    if not path.exists():
        return None
    try:
        saved = torch.load(path, map_location="cpu", weights_only=True)
        whose, theirs = saved.pop("fingerprint"), saved.pop(_CHOSEN, {})
    except Exception:  # torch raises what the first broken byte happens to break
        whole = f"a folder whose {CHECKPOINT} can be read: it is damaged, remove it to begin anew"
        raise InvalidParameter("out", str(folder), whole) from None
    if whose != fingerprint:
        allowed = "an empty folder or one with a run of exactly these settings"
        other = [f"{name} {value}" for name, value in theirs.items() if chosen.get(name) != value]
        there = f" (the one there has {', '.join(other)})" if other else ""
        raise InvalidParameter("out", str(folder), allowed + there)
    return State(**saved)


@contextmanager
def _interrupted_between_rounds() -> Iterator[list[int]]:
    """Ctrl-C ends up in the list, so that the round it falls into is finished and kept; another one ends it at once."""
    heard: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # signals are the main thread's
        yield heard
        return

    def hear(number: int, _: object) -> None:
        if heard:
            raise KeyboardInterrupt
        heard.append(number)
        remark("\ndpcheckin: finishing this round; Ctrl-C once more ends it at once")

    earlier = signal.signal(signal.SIGINT, hear)
    try:
        yield heard
    finally:
        signal.signal(signal.SIGINT, earlier)


_CLIENTS, _DUMMIES, _SERVER = 11, 12, 13  # purposes of the seeds
BASELINES = {"central": "under central DP-SGD at the same ε", "without_privacy": "without privacy"}
OnRound = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Outcome(Tabular):
    """A finished run; as a table it is its log."""

    module: nn.Module
    log: list[dict[str, Any]]
    rounds: int
    score: float
    guarantee: Guarantee | None
    seconds: float
    stopped_by_budget: bool
    scored: Score = ACCURACY
    baselines: Mapping[str, float] = field(default_factory=dict)
    """What the same model reaches under the names of `BASELINES`, if that was asked for."""

    @property
    def accuracy(self) -> float:
        """Share of held-out records classified rightly; `score` where targets are no classes."""
        if self.scored.name != "accuracy":
            raise InvalidParameter("accuracy", self.scored.label, "a run on classes; see score")
        return self.score

    @property
    def beside(self) -> str:
        """The baselines in words."""
        return " and ".join(f"{self.scored.text(score)} {BASELINES[name]}" for name, score in self.baselines.items())

    def records(self) -> list[dict[str, Any]]:
        """One row for every round."""
        return self.log

    @property
    def caption(self) -> str:
        reached = f"{self.scored.label} {self.scored.text(self.score)}"
        sentence = f"{reached} after {rounds_in_words(self.rounds)}"
        sentence += f"; the same model reaches {self.beside}" if self.baselines else ""
        return sentence if self.guarantee is None else f"{sentence}. {self.guarantee}"

    def __str__(self) -> str:
        return self.caption

    def shown(self) -> list[dict[str, str]]:
        """The last ten rounds."""
        return super().shown()[-10:]


@dataclass
class Trainer:
    """One run: a plan, the clients' work, the analyzer's settings, and test data to watch the score on.

    The guarantee is at this delta and, if there is an `epsilon_budget`, within it. Checkpoint and log go to the folder
    `out`, if there is one; the `backend` computes the clients' work, this process if there is none. `on_round` is
    called with the figures of every round. The options that the run was made from, in words (`chosen`), tell it from
    another.
    """

    plan: Plan
    work: ClientWork
    settings: Settings
    test_inputs: Tensor
    test_targets: Tensor
    delta: float = DEFAULT_DELTA
    epsilon_budget: float | None = None
    out: Path | None = None
    backend: Backend | None = None
    on_round: OnRound | None = None
    score: Score = ACCURACY
    chosen: Mapping[str, str] = field(default_factory=dict)
    options: RunOptions | None = None
    """Those it was built from, with what an epsilon asked for was solved to."""
    stop_after: int | None = None
    """Stop at this round although the plan goes on; a later run with the same folder continues."""

    def __post_init__(self) -> None:
        if self.work.fleet.population != self.plan.population:
            raise InvalidParameter("population", self.plan.population, f"the fleet's {self.work.fleet.population:,}")
        if self.stop_after is not None and self.stop_after < 1:
            raise InvalidParameter("stop_after", self.stop_after, "at least 1")
        if self.work.randomizer != self.plan.randomizer:
            raise InvalidParameter("randomizer", self.work.randomizer, "the plan's own")

    def rounds_allowed(self) -> int:
        """Rounds that may be run: the plan's, or fewer when the budget ends first."""
        if self.epsilon_budget is None:
            return self.plan.rounds
        positive("epsilon_budget", self.epsilon_budget)
        allowed = self.plan.rounds_within(self.epsilon_budget, self.delta)
        if allowed == 0:
            first = self.plan.epsilon(self.delta, 1).upper
            raise Unreachable(
                f"epsilon_budget = {self.epsilon_budget:g} is spent by the first round, "
                f"which costs {rounded_up(first)} at delta = {self.delta:g}"
            )
        return allowed

    def fingerprint(self) -> str:
        """What must be equal for a checkpoint to be taken up: plan, settings, model and data."""
        work, sizes = self.work, [tuple(p.shape) for p in self.work.module.parameters()]
        parts: list[object] = [self.plan, self.settings, work.reports, work.per_tensor]
        parts += [sizes, self.delta, self.epsilon_budget, type(work.fleet).__name__]
        parts += [repr(work.module), named_loss(work.loss), self.score.name, work.local]
        parts += [work.fleet.digest(), tensor_digest(self.test_inputs)]
        if isinstance(work.module, FrozenFeatures):
            parts.append(work.module.digest())
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def run(self) -> Outcome:
        """Train, from the beginning or from the checkpoint in `out`."""
        began, allowed = time.perf_counter(), self.rounds_allowed()
        module, backend = self.work.module, self.backend or InProcess(self.work)
        optimizer = self.settings.make_optimizer(module)
        mark = self.fingerprint() if self.out else ""
        state = self._start(optimizer, mark)
        end = allowed if self.stop_after is None else min(allowed, self.stop_after)
        with _interrupted_between_rounds() as interrupts:
            while state.rounds < end:
                figures = self._round(state, optimizer, backend, allowed)
                last = state.rounds == end
                if last or state.rounds % self.settings.rounds_between_scores(self.plan.rounds) == 0:
                    self._evaluate(state, figures)
                if self.out and (last or interrupts or state.rounds % self.settings.checkpoint_every == 0):
                    save_checkpoint(self.out, state, mark, self.chosen)
                    write_log(self.out, [self._priced(row) for row in state.log])
                if interrupts and not last:
                    raise KeyboardInterrupt
        set_parameters(module, state.average)
        return Outcome(
            module=module,
            log=[self._priced(row) for row in state.log],
            rounds=state.rounds,
            score=float(state.log[-1][self.score.name]),
            guarantee=self.plan.guarantee(self.delta, state.rounds),
            seconds=time.perf_counter() - began,
            stopped_by_budget=allowed < self.plan.rounds,
            scored=self.score,
        )

    def _start(self, optimizer: torch.optim.Optimizer, mark: str) -> State:
        saved = load_checkpoint(self.out, mark, self.chosen) if self.out else None
        if saved is None:
            start = get_parameters(self.work.module)
            return State(parameters=start, average=start.clone())
        set_parameters(self.work.module, saved.parameters)
        if saved.optimizer:
            optimizer.load_state_dict(saved.optimizer)
        return saved

    def _round(self, state: State, optimizer: torch.optim.Optimizer, backend: Backend, allowed: int) -> dict[str, Any]:
        """Play one round and return its figures for the log."""
        seed, index = self.settings.seed, state.rounds
        cohort = self.plan.cohort(seed, index)
        began = time.perf_counter()
        total, reports, loss, clipped = torch.zeros_like(state.parameters), 0, 0.0, 0
        chunks = self.work.chunks(cohort.clients, (seed, _CLIENTS, index))
        for result in backend.run(state.parameters, chunks):
            total += result.estimate_sum
            reports += result.clients
            loss += result.loss_sum
            clipped += result.clipped
        if cohort.dummies:
            total += self.work.dummies(cohort.dummies, (seed, _DUMMIES, index))
        if cohort.server_noise:
            source = SeededSource((seed, _SERVER, index), arrays="torch")
            total += cohort.server_noise * source.normal(tuple(total.shape))
        if reports + cohort.dummies or cohort.divisor:
            mean = total / (cohort.divisor or reports + cohort.dummies)
            scaled = mean / self.work.randomizer.clip
            optimiser_step(state, self.work.module, optimizer, self.settings, scaled, allowed)
        state.rounds += 1
        if self.on_round:
            seconds = time.perf_counter() - began
            self.on_round({"round": state.rounds, "check_ins": reports, "seconds": seconds})
        return {"check_ins": reports, "loss": loss / max(reports, 1), "clipped": clipped / max(reports, 1)}

    def _evaluate(self, state: State, figures: dict[str, Any]) -> None:
        """Log the averaged model's score beside the figures of the latest round."""
        set_parameters(self.work.module, state.average)
        reached = self.score.of(self.work.module, self.test_inputs, self.test_targets)
        set_parameters(self.work.module, state.parameters)
        row = {"round": state.rounds, **figures, self.score.name: reached}
        state.log.append(row)
        if self.on_round:
            self.on_round(self._priced(row))

    def _priced(self, row: dict[str, Any]) -> dict[str, Any]:
        """A log row with what its rounds cost: never stored, always derived from the plan."""
        spent = self.plan.epsilon(self.delta, row["round"])
        return {**row, "epsilon": spent.upper, "delta": self.delta}


def optimiser_step(
    state: State, module: nn.Module, optimizer: torch.optim.Optimizer, settings: Settings, mean: Tensor, rounds: int
) -> None:
    """Move the parameters of a module, and their running average, by a mean estimate in units of the clip.

    State, module and optimizer are changed. The schedule of the settings is `rounds` long, `state.rounds` is the place
    on it.
    """
    set_parameters(module, state.parameters)
    for p, gradient in pieces(module, mean):
        p.grad = gradient.to(p.device, copy=True)
    for group in optimizer.param_groups:
        group["lr"] = settings.rate_at(state.rounds, rounds)
    optimizer.step()
    state.parameters = _projected(get_parameters(module), settings.radius)
    if not bool(torch.isfinite(state.parameters).all()):
        raise NumericalFailure(f"parameters are not finite after round {state.rounds + 1}; lower learning_rate")
    # early on the average must not remember the starting point for long
    decay = min(settings.averaging, (state.rounds + 1) / (state.rounds + 10))
    state.average = state.average * decay + state.parameters * (1 - decay)
    state.optimizer = optimizer.state_dict()


def _projected(parameters: Tensor, radius: float | None) -> Tensor:
    """The nearest point of the ball around zero with this radius."""
    if radius is None:
        return parameters
    length = float(torch.linalg.vector_norm(parameters))
    return parameters if length <= radius else parameters * (radius / length)


def write_log(folder: Path, log: list[dict[str, Any]]) -> None:
    """The log as `log.csv` and `log.json` of a folder, each replaced as a whole."""
    if not log:
        return
    with replacing(folder / "log.csv") as file:
        writer = csv.DictWriter(file, fieldnames=list(log[0]))
        writer.writeheader()
        writer.writerows(log)
    with replacing(folder / "log.json") as file:
        json.dump(log, file, indent=1)
