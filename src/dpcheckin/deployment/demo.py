"""The whole system on one machine: shuffler, analyzer and a few hundred agents, as processes.

`Deployment` makes the folders, enrolls the clients, starts the parties and stops them; `progress` follows the
analyzer's own page until the plan is over. Nothing here is simulated: the parties talk HTTP on the loopback interface
and know only their own configuration.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx

from dpcheckin.deployment.agents import Specification
from dpcheckin.deployment.options import QUESTIONS, TRAINING, DemoOptions, write_people
from dpcheckin.deployment.processes import (
    Party,
    await_ready,
    start_agents,
    start_analyzer,
    start_issuer,
    start_shuffler,
)
from dpcheckin.service.analyzer.settings import FILE
from dpcheckin.service.issuer.settings import DEFAULT_AHEAD, STORE
from dpcheckin.service.issuer.store import IssuerStore
from dpcheckin.service.shuffler.server import open_store
from dpcheckin.service.shuffler.stores.base import Store
from dpcheckin.service.storage.files import make_folder
from dpcheckin.service.storage.identity import TOKEN_FILE, analyzer_token, load_identity
from dpcheckin.service.wire.credentials import new_token, token_digest
from dpcheckin.service.wire.signing import public_identity

BUDGET = "budget.ledger"


class Deployment:
    """The parties of one run, in one folder, which is made; a context manager that stops what it started."""

    def __init__(self, folder: Path, options: DemoOptions) -> None:
        self.folder, self.options = folder, options
        self.shuffler_folder, self.analyzer_folder = folder / "shuffler", folder / "analyzer"
        self.issuer_folder = folder / "issuer"
        self.shuffler: Party | None = None
        self.issuer: Party | None = None
        self.analyzer: Party | None = None
        self.agents: list[Party] = []
        self._address = ""

    def __enter__(self) -> Deployment:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, say: Callable[[str], None] = lambda line: None) -> None:
        """Make everything and start all kinds of party. `say`: is told what is done next."""
        for place in (self.shuffler_folder, self.analyzer_folder, self.folder / "clients"):
            place.mkdir(parents=True, exist_ok=True)
        analyzer_token(self.shuffler_folder)
        say("enrolling the clients, starting the shuffler")
        tokens = self._enroll(open_store(self.options.store or f"sqlite:{self.shuffler_folder / 'shuffler.db'}"))
        self.start_shuffler()
        issuer_tokens: list[str] = []
        if self.options.has_issuer:
            make_folder(self.issuer_folder)
            analyzer_token(self.issuer_folder)
            issuer_tokens = self._enroll(IssuerStore(self.issuer_folder / STORE))  # under names of their own there
            self.start_issuer()
        self.configure_analyzer()
        self._specify_agents(tokens, issuer_tokens)
        say("starting the clients, then the analyzer")
        self.start_agents()
        self.start_analyzer()

    def start_shuffler(self, port: int = 0) -> None:
        """Start (or start again, on its old port) the shuffler."""
        self.shuffler = start_shuffler(self.shuffler_folder, self.options.store, port)
        self._address = str(self.shuffler.listening["address"])

    def start_issuer(self, port: int = 0) -> None:
        """Start (or start again, on its old port) the issuer."""
        ahead = min(DEFAULT_AHEAD, self.options.rounds + 2)  # a short run needs no more
        self.issuer = start_issuer(self.issuer_folder, port, rounds_ahead=ahead)

    def start_analyzer(self) -> None:
        """Start (or start again) the analyzer."""
        self.analyzer = start_analyzer(self.analyzer_folder)

    def start_agents(self) -> None:
        """Start (or start again) all agents."""
        self.agents += [self.start_agent_process(index) for index in range(self.options.processes)]
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
        for party in (*self.agents, self.analyzer, self.issuer, self.shuffler):
            if party is not None:
                party.stop()

    def _enroll(self, store: Store | IssuerStore) -> list[str]:
        """Fresh tokens for all clients at a party, which is not running yet."""
        tokens = [new_token() for _ in range(self.options.clients)]
        with closing(store):
            store.enroll([token_digest(token) for token in tokens])
        return tokens

    def configure_analyzer(self) -> None:
        """Write `analyzer.toml`."""
        options = self.options
        tables = {
            "shuffler": {"address": self._address, "token_file": str((self.shuffler_folder / TOKEN_FILE).resolve())},
            "plan": options.plan_table(),
            "randomizer": {**options.randomizer_table(), "clip": 1.0},
            "task": options.task_table(),
            "analyzer": {"port": 0, "rotate_every": options.rotate_every},
        }
        if options.total_epsilon is not None:
            file = str((self.folder / BUDGET).resolve())
            tables["budget"] = {"file": file, "epsilon": options.total_epsilon, "delta": 2 * options.delta}
        if self.issuer is not None:
            tables["issuer"] = {
                "address": str(self.issuer.listening["address"]),
                "token_file": str((self.issuer_folder / TOKEN_FILE).resolve()),
                "identity": str(self.issuer.listening["identity"]),
            }
        (self.analyzer_folder / FILE).write_text(toml(tables), encoding="utf-8")

    def _answers(self) -> dict[str, dict[str, Any]]:
        """Where the agents find their answers; the people are made up here."""
        kinds = {self.options.task, *self.options.questions} - {TRAINING}
        if not kinds:
            return {}
        path = self.folder / "people.csv"
        write_people(path, self.options.clients)
        asked = [QUESTIONS[kind] for kind in sorted(kinds)]
        return {one.about: {"file": str(path.resolve()), "column": one.column, "row": 1} for one in asked}

    def _specification(self, index: int) -> Path:
        return self.folder / f"agents-{index}.json"

    def _specify_agents(self, tokens: list[str], issuer_tokens: list[str]) -> None:
        options = self.options
        identity = public_identity(load_identity(self.analyzer_folder)).hex()
        limits = {
            "rate": options.report_probability,
            "clip": 1.0,
            "local_epsilon": max(options.local_epsilon, 20.0),
            # a client also counts rounds that turned out void, which cost the analyzer nothing
            "total_epsilon": 2 * (options.total_epsilon or options.epsilon_budget / 2),
            "total_local_epsilon": 1e6,
            "total_delta": options.delta if options.total_epsilon is None else 2 * options.delta,
            "minimum_population": options.population,
            "minimum_batch": options.plan_table().get("minimum_batch", 0),
            "require_cover": True,
        }
        issuer, answers = {} if self.issuer is None else self.issuer.listening, self._answers()
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
                data=options.data if options.task == TRAINING or options.trains else None,
                model=options.model,
                limits=limits,
                shuffler_identity=public_identity(load_identity(self.shuffler_folder)).hex(),
                answers=answers,
                poll_seconds=min(1.0, options.round_seconds / 5),
                issuer=issuer.get("address"),
                issuer_identity=issuer.get("identity"),
                issuer_tokens=issuer_tokens[first : first + share],
            ).write(self._specification(index))


def toml(tables: dict[str, dict[str, Any]]) -> str:
    """Flat tables of numbers, truth values and texts as TOML. `tables`: by name."""
    lines: list[str] = []
    for name, table in tables.items():
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items()), ""]
    return "\n".join(lines)
