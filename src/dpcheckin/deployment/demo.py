"""The whole system on one machine: shuffler, analyzer and a few hundred agents, as processes.

`Deployment` makes the folders, enrolls the clients, starts the parties and stops them; `run`
follows the analyzer's own page until the plan is over. Nothing here is simulated: the parties
talk HTTP on the loopback interface and know only their own configuration.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx

from dpcheckin.deployment.agents import Specification
from dpcheckin.deployment.processes import (
    Party,
    await_ready,
    start_agents,
    start_analyzer,
    start_shuffler,
)
from dpcheckin.errors import InvalidParameter, ServiceError
from dpcheckin.service.analyzer.keys import load_identity
from dpcheckin.service.analyzer.settings import FILE
from dpcheckin.service.shuffler.server import open_store
from dpcheckin.service.shuffler.settings import TOKEN_FILE, analyzer_token
from dpcheckin.service.wire.credentials import new_token, token_digest
from dpcheckin.service.wire.signing import public_identity

Watch = Callable[[dict[str, Any]], None]
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
    delta: float = 1e-5
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

    def __post_init__(self) -> None:
        if not 10 <= self.clients <= _MOST_CLIENTS:
            raise InvalidParameter("clients", self.clients, f"from 10 to {_MOST_CLIENTS:,}")
        if not 0 < self.rate <= 1:
            raise InvalidParameter("rate", self.rate, "a probability above 0")
        if self.rounds < 1:
            raise InvalidParameter("rounds", self.rounds, "at least 1")
        if not 0 < self.delta < 1:
            raise InvalidParameter("delta", self.delta, "strictly between 0 and 1")
        for name in ("round_seconds", "local_epsilon", "noise_multiplier", "epsilon_budget"):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise InvalidParameter(name, value, "a positive, finite number")
        if not 1 <= self.processes <= self.clients:
            raise InvalidParameter("processes", self.processes, f"from 1 to {self.clients}")
        if not 0 <= self.absent < 1:
            raise InvalidParameter("absent", self.absent, "in [0, 1)")

    @property
    def population(self) -> int:
        """The number the guarantee is stated for."""
        return max(2, int(self.clients * (1 - self.absent)))

    @property
    def fewest(self) -> int:
        """The plan's minimum batch."""
        if self.minimum_batch is not None:
            return self.minimum_batch
        return int(self.rate * self.population / 3)

    def randomizer_table(self) -> dict[str, Any]:
        if self.randomizer == "skellam":
            return {"name": "skellam", "noise_multiplier": self.noise_multiplier, "steps": 1024}
        if self.randomizer == "gaussian":
            return {"name": "gaussian", "noise_multiplier": self.noise_multiplier}
        return {"name": self.randomizer, "local_epsilon": self.local_epsilon}

    def plan_table(self) -> dict[str, Any]:
        table: dict[str, Any] = {
            "protocol": self.protocol,
            "population": self.population,
            "minimum_batch": self.fewest,
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
        return {**table, "rate": self.rate}


def contention(seconds: float = 0.5) -> float:
    """How many times longer than its own CPU time a busy process takes on this machine now."""
    wall, own = time.perf_counter(), time.process_time()
    while time.process_time() - own < seconds:
        pass
    return max(1.0, (time.perf_counter() - wall) / seconds)


def with_time_enough(options: DemoOptions) -> DemoOptions:
    """The same with longer rounds when the machine is busy: late clients would make them void."""
    factor = contention()
    if factor < 1.3:
        return options
    return replace(options, round_seconds=round(options.round_seconds * 1.2 * factor, 1))


class Deployment:
    """The parties of one run, in one folder; a context manager that stops what it started."""

    def __init__(self, folder: Path, options: DemoOptions) -> None:
        self.folder, self.options = folder, options
        self.shuffler_folder, self.analyzer_folder = folder / "shuffler", folder / "analyzer"
        self.shuffler: Party | None = None
        self.analyzer: Party | None = None
        self.agents: list[Party] = []
        self._address = ""

    def __enter__(self) -> Deployment:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Make everything and start the three kinds of party."""
        for place in (self.shuffler_folder, self.analyzer_folder, self.folder / "clients"):
            place.mkdir(parents=True, exist_ok=True)
        analyzer_token(self.shuffler_folder)
        tokens = self._enroll()
        self.start_shuffler()
        self._configure_analyzer()
        self._specify_agents(tokens)
        self.start_agents()
        self.start_analyzer()

    def start_shuffler(self, port: int = 0) -> None:
        """Start (or start again, on its old port) the shuffler."""
        self.shuffler = start_shuffler(self.shuffler_folder, self.options.store, port)
        self._address = str(self.shuffler.listening["address"])

    def start_analyzer(self) -> None:
        """Start (or start again) the analyzer."""
        self.analyzer = start_analyzer(self.analyzer_folder)

    def start_agents(self) -> None:
        """Start (or start again) all agents."""
        for i in range(self.options.processes):
            self.agents.append(self.start_agent_process(i))
        for party in self.agents:
            await_ready(party)

    def start_agent_process(self, index: int) -> Party:
        """One process of agents."""
        log = self.folder / f"agents-{index}.log"
        return start_agents(self._specification(index), log, wait=False)

    @property
    def address(self) -> str:
        """Where the shuffler listens."""
        return self._address

    @property
    def page(self) -> str:
        """Where the analyzer's page is."""
        assert self.analyzer is not None
        return str(self.analyzer.listening["page"])

    def snapshot(self) -> dict[str, Any] | None:
        """What the page shows, None when the analyzer does not answer."""
        try:
            answer = httpx.get(self.page + "/status.json", timeout=5.0, trust_env=False)
        except httpx.TransportError:
            return None
        found: dict[str, Any] = answer.json()
        return found

    def stop(self) -> None:
        """Stop everything that was started, last first."""
        for party in (*self.agents, self.analyzer, self.shuffler):
            if party is not None:
                party.stop()

    def _enroll(self) -> list[str]:
        tokens = [new_token() for _ in range(self.options.clients)]
        store = open_store(self.options.store or f"sqlite:{self.shuffler_folder / 'shuffler.db'}")
        try:
            store.enroll([token_digest(token) for token in tokens])
        finally:
            store.close()
        return tokens

    def _configure_analyzer(self) -> None:
        options = self.options
        tables = {
            "shuffler": {
                "address": self._address,
                "token_file": str((self.shuffler_folder / TOKEN_FILE).resolve()),
            },
            "plan": options.plan_table(),
            "randomizer": {**options.randomizer_table(), "clip": 1.0},
            "task": {"data": options.data, "model": options.model, **options.learning},
            "analyzer": {"port": 0, "rotate_every": options.rotate_every},
        }
        (self.analyzer_folder / FILE).write_text(toml(tables), encoding="utf-8")

    def _specification(self, index: int) -> Path:
        return self.folder / f"agents-{index}.json"

    def _specify_agents(self, tokens: list[str]) -> None:
        options = self.options
        identity = public_identity(load_identity(self.analyzer_folder)).hex()
        limits = {
            "rate": options.rate,
            "clip": 1.0,
            "local_epsilon": max(options.local_epsilon, 20.0),
            "total_epsilon": options.epsilon_budget,
            "total_local_epsilon": 1e6,
            "total_delta": options.delta,
        }
        share = -(-len(tokens) // options.processes)
        for index in range(options.processes):
            first = index * share
            Specification(
                shuffler=self._address,
                identity=identity,
                tokens=tokens[first : first + share],
                first=first,
                clients=len(tokens),
                state=options.client_state or str(self.folder / "clients"),
                data=options.data,
                model=options.model,
                limits=limits,
                poll_seconds=min(1.0, options.round_seconds / 5),
            ).write(self._specification(index))


def toml(tables: dict[str, dict[str, Any]]) -> str:
    """Flat tables of numbers, truth values and texts as TOML."""
    lines: list[str] = []
    for name, table in tables.items():
        lines.append(f"[{name}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in table.items()]
        lines.append("")
    return "\n".join(lines)


class RoundsLost(ServiceError):
    """Too many rounds were void: their envelopes do not arrive in time."""


def check_arrivals(options: DemoOptions, rows: list[dict[str, Any]]) -> None:
    """Raise `RoundsLost` when a handful more rounds are void by population than are not.

    Nothing is spent on them, so the run would go on for ever without learning anything.
    """
    there = [row["present"] for row in rows if row["state"] == "void by population"]
    if 2 * len(there) > len(rows) + 5:
        raise RoundsLost(
            f"{len(there)} of {len(rows)} rounds lost reports and are void: {min(there)} to "
            f"{max(there)} clients were there in time, the plan needs {options.population}. "
            f"Rounds of {options.round_seconds:g} seconds are too short for this machine now"
        )


def follow(deployment: Deployment, watch: Watch, patience: float = 120.0) -> dict[str, Any]:
    """Watch until the analyzer is done; its last snapshot."""
    assert deployment.analyzer is not None
    last: dict[str, Any] = {}
    settled, moved = -1, time.monotonic()
    while deployment.analyzer.process.poll() is None:
        found = deployment.snapshot()
        if found is not None:
            last = found
            watch(found)
            if found["finished"] is not None:
                return last
            check_arrivals(deployment.options, found["rounds"])
        if last and len(last["rounds"]) != settled:
            settled, moved = len(last["rounds"]), time.monotonic()
        if time.monotonic() - moved > patience:
            raise ServiceError(f"no round was settled for {patience:g} seconds")
        time.sleep(0.25)
    return last


def summary(options: DemoOptions, last: dict[str, Any], seconds: float) -> dict[str, Any]:
    """The end of a run in figures, for `--json`."""
    rows = last["rounds"]
    released = [row for row in rows if row["state"] == "released"]
    return {
        "options": asdict(options),
        "rounds": len(rows),
        "released": len(released),
        "void": sum(row["state"].startswith("void") for row in rows),
        "reports": sum(row["opened"] for row in released),
        "dropped": sum(row["dropped"] for row in released),
        "outside_band": sum(
            not row["expected"]["low"] <= row["reports"] <= row["expected"]["high"]
            for row in released
            if "expected" in row
        ),
        "accuracy": last["metrics"].get("accuracy"),
        "epsilon": last["spent"]["epsilon"],
        "local_epsilon": last["spent"]["local_epsilon"],
        "delta": last["plan"]["delta"],
        "epsilon_budget": last["plan"]["epsilon_budget"],
        "statement": last["statement"],
        "finished": last["finished"],
        "seconds": round(seconds, 1),
    }
