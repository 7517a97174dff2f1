"""A whole deployment whose clients are browsers, and agents in Python beside them: real processes on the loopback
interface, with an issuer, a shuffler that lets pages of one origin ask, and an analyzer for each plan."""

from __future__ import annotations

import json
import shutil
import sys
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx
import numpy as np

from dpcheckin.deployment.agents import Specification
from dpcheckin.deployment.demo import toml
from dpcheckin.deployment.processes import COMMAND, Party, start, start_agents, start_analyzer
from dpcheckin.service.analyzer.settings import FILE
from dpcheckin.service.issuer.settings import FILE as ISSUER_FILE
from dpcheckin.service.issuer.settings import STORE
from dpcheckin.service.issuer.store import IssuerStore
from dpcheckin.service.shuffler.server import open_store
from dpcheckin.service.storage.files import make_folder
from dpcheckin.service.storage.identity import IDENTITY, TOKEN_FILE, analyzer_token, load_identity
from dpcheckin.service.wire.credentials import new_token, token_digest
from dpcheckin.service.wire.signing import public_identity
from dpcheckin.survey import Survey

COLOURS = ["red", "green", "blue", "other"]
QUESTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "histogram": ({"kind": "histogram", "about": "colour", "categories": COLOURS}, "dary"),
    "mean": ({"kind": "mean", "about": "hours", "low": 0.0, "high": 10.0}, "levels:4"),
}


LIMITS = {
    "rate": 1.0, "clip": 1.0, "local_epsilon": 4.0, "total_epsilon": 100.0, "total_local_epsilon": 200.0,
    "total_delta": 0.01, "require_cover": True,
}  # fmt: skip


def people(count: int) -> list[dict[str, Any]]:
    """Made-up people, the same in every run."""
    draw = np.random.default_rng(11)
    colours = draw.choice(COLOURS, size=count, p=(0.5, 0.25, 0.2, 0.05))
    return [
        {"colour": str(colour), "hours": round(float(hours), 1)}
        for colour, hours in zip(colours, draw.uniform(2, 9, size=count), strict=True)
    ]


@dataclass
class Fleet:
    """`clients` enrolled clients in a `folder`, of whom pages of `origin` are some; plans follow one another."""

    folder: Path
    origin: str
    clients: int
    poll_seconds: float = 1.0
    parties: list[Party] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    issuer_tokens: list[str] = field(default_factory=list)
    plans: int = 0

    def __enter__(self) -> Fleet:
        self.shuffler_folder, self.issuer_folder = self.folder / "shuffler", self.folder / "issuer"
        for place in (self.shuffler_folder, self.issuer_folder):
            make_folder(place)
            analyzer_token(place)
        self.tokens = self._enrolled(open_store(f"sqlite:{self.shuffler_folder / 'shuffler.db'}"))
        self.issuer_tokens = self._enrolled(IssuerStore(self.issuer_folder / STORE))
        ports = ["--port", "0", "--admin-port", "0", "--dev"]
        origins = ["--origins", self.origin]
        serve = [*COMMAND, "shuffler", "serve", "--folder", self.shuffler_folder, *ports, *origins]
        self.shuffler = self._started(start("shuffler", serve, self.folder / "shuffler.log"))
        (self.issuer_folder / ISSUER_FILE).write_text(f'[issuer]\norigins = "{self.origin}"\n', encoding="utf-8")
        serve = [*COMMAND, "issuer", "serve", "--folder", self.issuer_folder, *ports, "--rounds-ahead", "8"]
        self.issuing = self._started(start("issuer", serve, self.folder / "issuer.log"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, at: TracebackType | None
    ) -> None:
        for party in reversed(self.parties):
            party.stop()

    def _started(self, party: Party) -> Party:
        self.parties.append(party)
        return party

    def _enrolled(self, store: Any) -> list[str]:
        tokens = [new_token() for _ in range(self.clients)]
        with closing(store):
            store.enroll([token_digest(token) for token in tokens])
        return tokens

    # --- plans ------------------------------------------------------------------------------

    def ask(self, kind: str, local_epsilon: float = 4.0, **plan: Any) -> Path:
        """Start an analyzer, of the same identity as any before, that asks this question; its folder."""
        self.plans += 1
        place = self.folder / f"analyzer-{self.plans}"
        place.mkdir()
        if self.plans > 1:
            self.analyzer.stop()
            shutil.copy(self.folder / "analyzer-1" / IDENTITY, place)
        task, mechanism = QUESTIONS[kind]
        said = {
            "population": self.clients, "rate": 0.5, "rounds": 1, "delta": 1e-5, "epsilon_budget": 50.0,
            "minimum_batch": 2, "round_seconds": 15.0, **plan,
        }  # fmt: skip
        address, token = self.shuffler.listening["address"], (self.shuffler_folder / TOKEN_FILE).resolve()
        tables = {
            "shuffler": {"address": address, "token_file": str(token)},
            "plan": said,
            "randomizer": {"name": mechanism, "local_epsilon": local_epsilon},
            "task": task,
            "analyzer": {"port": 0, "rotate_every": 1},
            "issuer": {
                "address": self.issuing.listening["address"],
                "token_file": str((self.issuer_folder / TOKEN_FILE).resolve()),
                "identity": self.issuing.listening["identity"],
            },
        }
        (place / FILE).write_text(toml(tables), encoding="utf-8")
        self.analyzer = self._started(start_analyzer(place))
        return place

    def shot(self) -> dict[str, Any]:
        """What the analyzer's page shows."""
        answer = httpx.get(self.analyzer.listening["page"] + "/status.json", timeout=30.0, trust_env=False)
        found: dict[str, Any] = answer.json()
        return found

    @property
    def identity(self) -> str:
        return public_identity(load_identity(self.folder / "analyzer-1")).hex()

    # --- clients ----------------------------------------------------------------------------

    def config(self, number: int, answers: dict[str, Any]) -> dict[str, Any]:
        """The configuration of the browser client with this number."""
        return {
            "shuffler": {
                "address": self.shuffler.listening["address"],
                "token": self.tokens[number],
                "identity": public_identity(load_identity(self.shuffler_folder)).hex(),
            },
            "analyzer": {"identity": self.identity},
            "issuer": {
                "address": self.issuing.listening["address"],
                "token": self.issuer_tokens[number],
                "identity": self.issuing.listening["identity"],
            },
            "limits": LIMITS,
            "answers": answers,
            "poll_seconds": self.poll_seconds,
        }

    def start_agents(self, first: int) -> Party:
        """Agents in Python, with the numbers from `first` on."""
        path = self.folder / "people.csv"
        rows = people(self.clients)
        path.write_text("colour,hours\n" + "".join(f"{r['colour']},{r['hours']}\n" for r in rows), encoding="utf-8")
        answers = {about: {"file": str(path), "column": about, "row": 1} for about in ("colour", "hours")}
        specification = Specification(
            shuffler=self.shuffler.listening["address"], identity=self.identity, tokens=self.tokens[first:],
            first=first, poll_seconds=self.poll_seconds, clients=self.clients,
            state=str(self.folder / "agents"), data=None, model="", limits=LIMITS,
            shuffler_identity=public_identity(load_identity(self.shuffler_folder)).hex(), answers=answers,
            issuer=self.issuing.listening["address"], issuer_identity=self.issuing.listening["identity"],
            issuer_tokens=self.issuer_tokens[first:],
        )  # fmt: skip
        file = self.folder / "agents.json"
        specification.write(file)
        return self._started(start_agents(file, self.folder / "agents.log"))


def released(shot: dict[str, Any]) -> list[dict[str, Any]]:
    """The rounds whose reports were used."""
    return [row for row in shot["rounds"] if row["state"] == "released"]


def check_estimate(place: Path, shot: dict[str, Any]) -> dict[str, Any]:
    """The analyzer's estimate is the simulator's for the same reports; what it told."""
    told = json.loads((place / "estimate.json").read_text())
    reports = [np.load(file) for file in sorted((place / "rounds").glob("round-*.npy"))]
    assert [len(rows) for rows in reports] == [row["opened"] for row in released(shot)]
    again = Survey.from_document(told["survey"]).estimate(reports)
    assert told["estimate"]["values"] == again.values.tolist()
    assert told["estimate"]["lower"] == again.lower.tolist()
    assert told["estimate"]["upper"] == again.upper.tolist()
    assert told["estimate"]["dropped"] == 0
    return {"values": again.values, "deviation": again.deviation, "reports": sum(map(len, reports))}


def truth(kind: str, count: int) -> Any:
    """What the estimate is of."""
    everybody = people(count)
    if kind == "histogram":
        return np.array([sum(one["colour"] == colour for one in everybody) for colour in COLOURS], float)
    return np.array([np.mean([one["hours"] for one in everybody])])


def wait_until(call: Any, patience: float, what: str) -> Any:
    """What `call` returns once that is something."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if found := call():
            return found
        time.sleep(0.25)
    raise AssertionError(f"not in time: {what}")


def say(*words: Any) -> None:
    print(*words, file=sys.stderr, flush=True)
