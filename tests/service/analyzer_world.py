"""An analyzer's folder and a shuffler that fills every round by a script."""

import threading
from pathlib import Path
from typing import Any

from dpcheckin.service.analyzer import state
from dpcheckin.service.analyzer.core import Status
from dpcheckin.service.analyzer.daemon import LEDGER, Analyzer, Schedule
from dpcheckin.service.analyzer.state import AnalyzerState, KeyRing
from dpcheckin.service.storage.identity import load_identity
from dpcheckin.service.storage.journal import Journal
from dpcheckin.service.tasks import TaskState
from dpcheckin.service.wire.canonical import digest
from dpcheckin.service.wire.documents import PlanDocument
from service.fake_shuffler import FakeShuffler
from service.plans import plan, sealed


class Adding:
    """A task whose model is the list of everything it was given."""

    def start(self) -> TaskState:
        return TaskState(b"start", b"", {"accuracy": 0.0})

    def step(self, state: TaskState, total: Any, reports: int, index: int, steps: int) -> TaskState:
        line = f"{index}/{steps}:{reports}:{digest(total.tobytes()).hex()[:8]};".encode()
        return TaskState(state.model + line, b"p", {"accuracy": index / steps})


class World:
    """An analyzer's folder and a shuffler that fills every round by a script."""

    def __init__(self, folder: Path, document: PlanDocument, outcomes: dict[int, Status]) -> None:
        self.folder, self.document, self.outcomes = folder, document, outcomes
        self.shuffler = FakeShuffler(self._batch)
        self.shuffler.on_claim = self._check_claim
        self.identity = load_identity(folder)
        self.stop = threading.Event()
        self.time = 1000.0

    def _batch(self, number: int, said: dict[str, Any]) -> tuple[Status, list[bytes]]:
        status = self.outcomes.get(number, Status("closed", 120, 3))
        if status.state != "closed":
            return status, []
        ring = KeyRing(self.folder / "keys", self.document.suite)
        key = ring.by_id(bytes.fromhex(said["key"]))
        assert key is not None
        kept = PlanDocument.from_object(state.load(self.folder).plan)  # type: ignore[union-attr]
        model = bytes.fromhex(said["model"])
        return status, sealed(kept, number, model, key.public_key, status.reports or 0)

    def _check_claim(self, number: int, charge: str) -> None:
        """At the moment of the claim, the charge is on disk: read as a crash would find it."""
        lines = (self.folder / LEDGER).read_text().splitlines()
        assert any(f'"round":{number}' in line and charge in line for line in lines)

    def analyzer(self, **schedule: Any) -> Analyzer:
        clock = Schedule(now=self._now, **schedule)
        return Analyzer(
            self.folder,
            self.document,
            self.identity,
            Adding(),
            self.shuffler,
            clock,
            self.stop,  # type: ignore[arg-type]
        )

    def _now(self) -> float:
        self.time += 1.0
        return self.time

    def run(self, **schedule: Any) -> str:
        made = self.analyzer(**schedule)
        try:
            return made.run()
        finally:
            made.close()

    def charges(self) -> list[dict[str, Any]]:
        with Journal(self.folder / LEDGER) as journal:
            return [entry.body for entry in journal][1:]

    @property
    def kept(self) -> AnalyzerState:
        found = state.load(self.folder)
        assert found is not None
        return found

    @property
    def kept_plan(self) -> PlanDocument:
        return PlanDocument.from_object(self.kept.plan)


OUTCOMES = {1: Status("void", 50, None, "population"), 3: Status("void", 120, 1, "batch")}


def small_plan(**changes: Any) -> PlanDocument:
    return plan(rounds=4, epsilon_budget=50.0, **changes)
