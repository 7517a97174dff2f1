"""kill -9 of analyzer, agents and shuffler at random moments, as real processes.

After every life: no round is charged twice, every round that was claimed is charged, the ledger is
never below what was released, and no client's ledger is below what it sent. Then the run goes on.
"""

import json
import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from dpcheckin.deployment.processes import Party, start, start_shuffler
from dpcheckin.service.analyzer import state
from dpcheckin.service.analyzer.daemon import LEDGER
from dpcheckin.service.client.daemon import LEDGER as CLIENT_LEDGER
from dpcheckin.service.client.ledger import ClientLedger
from dpcheckin.service.shuffler.records import State
from dpcheckin.service.shuffler.server import open_store
from dpcheckin.service.storage.identity import TOKEN_FILE, analyzer_token
from dpcheckin.service.storage.journal import Journal
from dpcheckin.service.wire.credentials import new_token, token_digest
from dpcheckin.service.wire.documents import PlanDocument
from service.plans import PRIVUNIT, plan_object

CLIENTS, POPULATION = 10, 5


class Fleet:
    """A shuffler, ten agents in one process, and an analyzer."""

    def __init__(self, folder: Path, store: str | None, **plan: Any) -> None:
        self.folder, self.store = folder, store
        shuffler = folder / "shuffler"
        for place in (shuffler, folder / "analyzer", folder / "clients"):
            place.mkdir()
        analyzer_token(shuffler)
        tokens = [new_token() for _ in range(CLIENTS)]
        opened = open_store(store or f"sqlite:{shuffler / 'shuffler.db'}")
        opened.enroll([token_digest(token) for token in tokens])
        opened.close()
        self.shuffler = start_shuffler(shuffler, store)
        self.port = urlsplit(self.shuffler.listening["address"]).port
        settings = {
            "shuffler": self.shuffler.listening["address"],
            "analyzer_token": (shuffler / TOKEN_FILE).read_text().strip(),
            "tokens": tokens,
            "plan": plan_object(
                population=POPULATION,
                rate=0.5,
                rounds=400,
                epsilon_budget=1e5,
                round_seconds=1.0,
                randomizer={**PRIVUNIT, "local_epsilon": 1.0},
                **plan,
            ),
        }
        (folder / "parties.json").write_text(json.dumps(settings))
        self.parties: dict[str, Party] = {"shuffler": self.shuffler}
        self.start("analyzer")
        self.start("agents")

    def start(self, name: str) -> None:
        if name == "shuffler":
            made = start_shuffler(self.folder / "shuffler", self.store, self.port or 0)
        else:
            made = start(
                name,
                [sys.executable, "-m", "service.minimal_parties", name, self.folder],
                self.folder / f"{name}.log",
                ready="listening" if name == "analyzer" else "ready",
            )
        self.parties[name] = made

    def kill(self, name: str) -> None:
        self.parties[name].kill()

    def stop(self) -> None:
        for party in reversed(self.parties.values()):
            party.stop()

    def wait_for_a_release(self, patience: float = 600.0) -> None:
        """The run goes on after everything that happened to it."""
        began, limit = self._released(), time.monotonic() + patience
        while self._released() <= began:
            assert time.monotonic() < limit, "nothing is released any more"
            time.sleep(0.2)

    def _released(self) -> int:
        kept = state.load(self.folder / "analyzer")  # replaced as a whole: can be read any time
        return 0 if kept is None else sum(row["state"] == "released" for row in kept.log)

    # --- what is true -------------------------------------------------------------------------

    def check(self) -> int:
        """Every promise, read from the disk while the analyzer is dead; rounds released so far."""
        with Journal(self.folder / "analyzer" / LEDGER) as journal:
            charges = [entry.body for entry in journal][1:]
        charged = [c["round"] for c in charges]
        assert len(set(charged)) == len(charged), "a round was charged twice"
        assert [c["charged"] for c in charges] == list(range(1, len(charges) + 1))
        kept = state.load(self.folder / "analyzer")
        assert kept is not None
        for row in kept.log:
            if row["state"] in ("released", "void by batch"):
                assert row["round"] in charged, "released or counted without a charge"
            if row["state"] == "void by population":
                assert row["round"] not in charged
        released = [row["round"] for row in kept.log if row["state"] == "released"]
        assert len(set(released)) == len(released), "a round was released twice"
        assert set(self.claimed()) <= set(charged), "claimed without a charge"
        self._opened = sum(row.get("opened", 0) for row in kept.log)
        assert sum(row.get("dropped", 0) for row in kept.log) == 0
        return len(released)

    def claimed(self) -> list[int]:
        """Rounds that the shuffler has given out, from its own database."""
        opened = open_store(self.store or f"sqlite:{self.folder / 'shuffler' / 'shuffler.db'}")
        try:
            with opened.transaction() as now:
                return [record.number for record in now.rounds(State.CLAIMED, State.DONE)]
        finally:
            opened.close()

    def check_clients(self) -> None:
        """While agents are dead: the ledgers hold at least as many reports as were opened."""
        sent = 0
        for number in range(CLIENTS):
            path = self.folder / "clients" / str(number) / CLIENT_LEDGER
            if path.exists():
                ledger = ClientLedger(path)
                plan = state.load(self.folder / "analyzer").plan  # type: ignore[union-attr]
                sent += ledger.reports_of(PlanDocument.from_object(plan).id.hex())
                ledger.close()
        assert sent >= self._opened


@pytest.fixture
def fleets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Fleet]]:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent), prepend=os.pathsep)
    made: list[Fleet] = []
    yield made
    for one in made:
        one.stop()


def run_with_kills(fleet: Fleet, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    progress = []
    for _ in range(kills):
        time.sleep(chance.uniform(0.0, 3.0))
        victim = chance.choices(["analyzer", "agents", "shuffler"], [6, 3, 2])[0]
        fleet.kill(victim)
        if victim == "analyzer":
            progress.append(fleet.check())
        elif victim == "agents" and progress:
            fleet.check_clients()
        fleet.start(victim)
    fleet.wait_for_a_release()
    fleet.kill("agents")
    fleet.kill("analyzer")
    progress.append(fleet.check())
    fleet.check_clients()
    assert progress == sorted(progress)
    assert progress[-1] > 0, "nothing was ever released"


def test_a_few_kills_lose_nothing(tmp_path: Path, fleets: list[Fleet]) -> None:
    fleets.append(Fleet(tmp_path, None))
    run_with_kills(fleets[0], 3, seed=2)  # one of each


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_many_kills_lose_nothing_over_sqlite(tmp_path: Path, fleets: list[Fleet], seed: int) -> None:
    fleets.append(Fleet(tmp_path, None))
    run_with_kills(fleets[0], 30, seed=10 + seed)


@pytest.mark.slow
def test_many_kills_lose_nothing_over_postgresql(tmp_path: Path, fleets: list[Fleet], postgres_address: str) -> None:
    fleets.append(Fleet(tmp_path, postgres_address))
    run_with_kills(fleets[0], 30, seed=20)
