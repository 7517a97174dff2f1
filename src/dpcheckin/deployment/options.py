"""What can be chosen for the demonstration, and the tables of settings that follow from it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from dpcheckin.deployment.demo_people import QUESTIONS
from dpcheckin.errors import InvalidParameter
from dpcheckin.options import DEFAULT_DELTA

TRAINING = "training"
_MOST_CLIENTS = 100_000  # agents on one machine


@dataclass(frozen=True)
class DemoOptions:
    """What can be chosen for the demonstration."""

    clients: int = 250
    processes: int = 2
    protocol: str = "shuffled-check-in"
    rate: float = 0.3
    rounds: int = 20
    round_seconds: float = 2.5
    randomizer: str = "privunit"
    local_epsilon: float = 4.0
    noise_multiplier: float = 2.0
    delta: float = DEFAULT_DELTA
    epsilon_budget: float = 9.0
    absent: float = 0.1
    """Share of the clients that may be missing before a round is void."""
    minimum_batch: int | None = None
    """Fewest reports of a round that counts; None: a third of the expected number."""
    client_state: str | None = None
    """Where the agents' ledgers lie; None: in the deployment's folder."""
    rotate_every: int = 10
    data: str = "digits"
    model: str = "linear"
    learning: dict[str, Any] = field(
        default_factory=lambda: {"learning_rate": 1.0, "averaging": 0.9}
    )
    store: str | None = None
    task: str = TRAINING
    """`training`, or the kind of question that is asked."""
    questions: tuple[str, ...] = ()
    """Kinds of question that the agents answer besides, in plans that follow."""
    trains: bool = False
    """Whether agents that are asked can also train, in a plan that follows."""
    total_epsilon: float | None = None
    """Budget of all plans together; None: each has its own only."""
    issuer: bool = True
    """Whether reports carry tokens of an issuer, where the protocol allows it."""

    def __post_init__(self) -> None:
        if not 10 <= self.clients <= _MOST_CLIENTS:
            raise InvalidParameter("clients", self.clients, f"from 10 to {_MOST_CLIENTS:,}")
        if not 0 < self.rate <= 1:
            raise InvalidParameter("rate", self.rate, "a probability above 0")
        self._check_task()
        if self.rounds < 1:
            raise InvalidParameter("rounds", self.rounds, "at least 1")
        if not 0 < self.delta < 1:
            raise InvalidParameter("delta", self.delta, "strictly between 0 and 1")
        for name in ("round_seconds", "local_epsilon", "noise_multiplier", "epsilon_budget"):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise InvalidParameter(name, value, "a positive, finite number")
        if not 1 <= self.processes <= self.clients:
            raise InvalidParameter("processes", self.processes, f"from 1 to {self.clients:,}")
        if not 0 <= self.absent < 1:
            raise InvalidParameter("absent", self.absent, "in [0, 1)")

    def _check_task(self) -> None:
        if self.task == TRAINING:
            return
        if self.task not in QUESTIONS:
            allowed = ", ".join((TRAINING, *QUESTIONS))
            raise InvalidParameter("task", self.task, f"one of {allowed}")
        if self.protocol != "shuffled-check-in":
            raise InvalidParameter("protocol", self.protocol, "shuffled-check-in for a question")

    @property
    def has_issuer(self) -> bool:
        """Whether there is an issuer: slots that the shuffler may have to fill have no tokens."""
        filled = ("random-check-in-fixed", "random-check-in-sliding")
        return self.issuer and self.protocol not in filled

    @property
    def population(self) -> int:
        """The number the guarantee is stated for."""
        return max(2, int(self.clients * (1 - self.absent)))

    @property
    def smallest_batch(self) -> int:
        """The plan's minimum batch."""
        if self.minimum_batch is not None:
            return self.minimum_batch
        return int(self.rate * self.population / 3)

    def task_table(self) -> dict[str, Any]:
        """`[task]` of the analyzer's settings."""
        if self.task == TRAINING:
            return {"data": self.data, "model": self.model, **self.learning}
        asked = QUESTIONS[self.task]
        return {"kind": self.task, "about": asked.about, "answers": 10 * self.rounds, **asked.task}

    def randomizer_table(self) -> dict[str, Any]:
        """`[randomizer]` of the analyzer's settings, without the clip."""
        if self.task != TRAINING:
            mechanism = QUESTIONS[self.task].mechanism
            return {"name": mechanism, "local_epsilon": self.local_epsilon}
        if self.randomizer == "skellam":
            return {"name": "skellam", "noise_multiplier": self.noise_multiplier, "steps": 1024}
        if self.randomizer == "gaussian":
            return {"name": "gaussian", "noise_multiplier": self.noise_multiplier}
        return {"name": self.randomizer, "local_epsilon": self.local_epsilon}

    def plan_table(self) -> dict[str, Any]:
        """`[plan]` of the analyzer's settings."""
        table: dict[str, Any] = {
            "protocol": self.protocol,
            "population": self.population,
            "minimum_batch": self.smallest_batch,
            "rounds": self.rounds,
            "delta": self.delta,
            "epsilon_budget": self.epsilon_budget,
            "round_seconds": self.round_seconds,
        }
        if self.protocol.startswith("random-"):
            window = {"slots": self.rounds, "check_in_probability": 1.0, "minibatch": 1}
            if self.protocol == "random-check-in-sliding":
                window["slots"] = self.population - self.rounds + 1
            return {**table, "minimum_batch": 0, **window}
        if self.rate == 1 and self.task != TRAINING:
            del table["minimum_batch"]  # where everybody answers, the survey says how many must
        return {**table, "rate": self.rate}


def contention(seconds: float = 0.5) -> float:
    """How many times longer than its own CPU time a busy process takes on this machine now.

    Args:
        seconds: of CPU time that are measured.
    """
    wall, own = time.perf_counter(), time.process_time()
    while time.process_time() - own < seconds:
        pass
    return max(1.0, (time.perf_counter() - wall) / seconds)


def with_time_enough(
    options: DemoOptions, say: Callable[[str], None] = lambda line: None
) -> DemoOptions:
    """The same with longer rounds when the machine is busy: late clients would make them void.

    Args:
        options: what was chosen.
        say: is told what was changed, and why.
    """
    factor = contention()
    if factor < 1.3:
        return options
    longer = replace(options, round_seconds=round(options.round_seconds * 1.2 * factor, 1))
    say(
        f"this machine is busy (work takes {factor:.1f} times as long): rounds of "
        f"{longer.round_seconds:g} seconds instead of {options.round_seconds:g}"
    )
    return longer
