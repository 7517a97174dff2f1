"""What can be chosen for the demonstration, who is asked in it, and the tables of settings that follow.

The people are made up, one for every client, and drawn from a seed, so that the truth can be shown beside the estimate.
"""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpcheckin.errors import InvalidParameter
from dpcheckin.options import DEFAULT_DELTA, check_values
from dpcheckin.service.wire.documents import KEEP_ONE
from dpcheckin.survey.estimates import Estimate
from dpcheckin.survey.questions.distribution import Distribution
from dpcheckin.survey.questions.histogram import Histogram
from dpcheckin.survey.questions.query import Query

COLOURS = ("blue", "green", "red", "yellow", "violet", "orange")
WORDS = ("tea", "cola", "milk", "mate", "soda", "wine", "beer", "rum")
_SEED = 7


@dataclass(frozen=True)
class DemoQuestion:
    """What the demonstration asks for a kind of question: about a column of the made-up people, or several for vectors,
    by a mechanism that suits some hundred people."""

    column: str | list[str]
    mechanism: str
    task: Mapping[str, Any] = field(default_factory=dict)

    @property
    def about(self) -> str:
        """The topic."""
        return self.column if isinstance(self.column, str) else "home"


_AGES = {"low": 18.0, "high": 90.0}
QUESTIONS: Mapping[str, DemoQuestion] = {
    "count": DemoQuestion("cycles", "dary"),
    "histogram": DemoQuestion("colour", "dary", {"categories": list(COLOURS)}),
    "mean": DemoQuestion("age", "levels:4", _AGES),
    "sum": DemoQuestion("age", "levels:4", _AGES),
    "vector-mean": DemoQuestion(["east", "north"], "privunit", {"dimension": 2, "clip": 2.0}),
    "quantiles": DemoQuestion("age", "flat", {**_AGES, "bins": 24}),
    "distribution": DemoQuestion("age", "flat", {**_AGES, "bins": 24}),
    "heavy-hitters": DemoQuestion("drink", "hash:6", {"bits": 20, "top": 8, "alphabet": "abcdefghijklmnopqrstuvwxyz"}),
}
"""Every kind of question, about the made-up people."""


def people(clients: int) -> list[dict[str, Any]]:
    """As many made-up people. `clients`: how many."""
    draw = np.random.default_rng(_SEED)
    colours = draw.choice(COLOURS, size=clients, p=(0.35, 0.25, 0.2, 0.1, 0.06, 0.04))
    words = draw.choice(WORDS, size=clients, p=(0.4, 0.3, 0.1, 0.08, 0.05, 0.04, 0.02, 0.01))
    ages = np.clip(draw.normal(45.0, 16.0, size=clients), 18, 90).astype(int)
    homes = draw.normal((0.5, -0.3), 0.4, size=(clients, 2)).round(3)
    cycles = draw.random(clients) < 0.4
    return [
        {
            "colour": str(colours[i]),
            "age": int(ages[i]),
            "cycles": "yes" if cycles[i] else "no",
            "drink": str(words[i]),
            "east": float(homes[i, 0]),
            "north": float(homes[i, 1]),
        }
        for i in range(clients)
    ]


def write_people(path: Path, clients: int) -> None:
    """The people as a CSV file, a client a line. `path`: of the file; `clients`: how many."""
    rows = people(clients)
    with path.open("w", newline="", encoding="utf-8") as stream:
        out = csv.DictWriter(stream, fieldnames=list(rows[0]))
        out.writeheader()
        out.writerows(rows)


def truth_of(kind: str, clients: int, survey: Mapping[str, Any]) -> dict[str, float]:
    """The figures of a `kind` of question about so many `clients` without noise, by the names that the shown `survey`
    has."""
    asked, everybody = QUESTIONS[kind], people(clients)
    column = asked.column
    values: list[Any] = [
        row[column] if isinstance(column, str) else [row[name] for name in column] for row in everybody
    ]
    query = Query.from_document({"kind": kind, **asked.task})
    names = tuple(row["name"] for row in survey.get("rows", ()))
    none = np.zeros(len(names))
    wanted = Estimate(names, none, none, none, none, 0.95, False, clients, clients)
    figures = query.truth(values, wanted)
    if isinstance(query, Histogram) and kind == "histogram":
        known = query.names
    elif isinstance(query, Distribution) and kind == "distribution":
        known = tuple(f"{edge:.6g}" for edge in query.edges[1:])
    else:
        known = names
    return {name: float(value) for name, value in zip(known, figures, strict=True)}


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
    learning: dict[str, Any] = field(default_factory=lambda: {"learning_rate": 1.0, "averaging": 0.9})
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
        check_values(self, ("rate",), lambda x: 0 < x <= 1, "a probability above 0")
        self._check_task()
        check_values(self, ("rounds",), lambda x: x >= 1, "at least 1")
        check_values(self, ("delta",), lambda x: 0 < x < 1, "strictly between 0 and 1")
        finite = ("round_seconds", "local_epsilon", "noise_multiplier", "epsilon_budget")
        check_values(self, finite, lambda x: 0 < x < math.inf, "a positive, finite number")
        check_values(self, ("processes",), lambda x: 1 <= x <= self.clients, f"from 1 to {self.clients:,}")
        check_values(self, ("absent",), lambda x: 0 <= x < 1, "in [0, 1)")

    def _check_task(self) -> None:
        if self.task == TRAINING:
            return
        if self.task not in QUESTIONS:
            raise InvalidParameter("task", self.task, "one of " + ", ".join((TRAINING, *QUESTIONS)))
        if self.protocol != "shuffled-check-in":
            raise InvalidParameter("protocol", self.protocol, "shuffled-check-in for a question")

    @property
    def has_issuer(self) -> bool:
        """Whether there is an issuer: slots that the shuffler may have to fill have no tokens."""
        return self.issuer and self.protocol not in KEEP_ONE

    @property
    def report_probability(self) -> float:
        """The largest chance that a client reports in a round, which its owner has to allow."""
        plan = self.plan_table()
        return float(plan["rate"]) if "rate" in plan else float(plan["check_in_probability"] / plan["slots"])

    @property
    def population(self) -> int:
        """The number the guarantee is stated for."""
        return max(2, int(self.clients * (1 - self.absent)))

    def task_table(self) -> dict[str, Any]:
        """`[task]` of the analyzer's settings."""
        if self.task == TRAINING:
            return {"data": self.data, "model": self.model, **self.learning}
        asked = QUESTIONS[self.task]
        return {"kind": self.task, "about": asked.about, "answers": 10 * self.rounds, **asked.task}

    def randomizer_table(self) -> dict[str, Any]:
        """`[randomizer]` of the analyzer's settings, without the clip."""
        if self.task != TRAINING:
            return {"name": QUESTIONS[self.task].mechanism, "local_epsilon": self.local_epsilon}
        if self.randomizer == "skellam":
            return {"name": "skellam", "noise_multiplier": self.noise_multiplier, "steps": 1024}
        if self.randomizer == "gaussian":
            return {"name": "gaussian", "noise_multiplier": self.noise_multiplier}
        return {"name": self.randomizer, "local_epsilon": self.local_epsilon}

    def plan_table(self) -> dict[str, Any]:
        """`[plan]` of the analyzer's settings."""
        third = int(self.rate * self.population / 3)
        table: dict[str, Any] = {
            "protocol": self.protocol,
            "population": self.population,
            "minimum_batch": third if self.minimum_batch is None else self.minimum_batch,
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
    """How many times longer than its own CPU time, of so many seconds, a busy process takes on this machine now."""
    wall, own = time.perf_counter(), time.process_time()
    while time.process_time() - own < seconds:
        pass
    return max(1.0, (time.perf_counter() - wall) / seconds)


def with_time_enough(options: DemoOptions, say: Callable[[str], None] = lambda line: None) -> DemoOptions:
    """The `options` with longer rounds when the machine is busy: late clients make them void. `say` is told why."""
    factor = contention()
    if factor < 1.3:
        return options
    longer = replace(options, round_seconds=round(options.round_seconds * 1.2 * factor, 1))
    say(
        f"this machine is busy (work takes {factor:.1f} times as long): rounds of "
        f"{longer.round_seconds:g} seconds instead of {options.round_seconds:g}"
    )
    return longer
