"""Killing parties at random points, quickly: real servers, forked from a warm process.

A party is what its command would run, in a process of its own with a port of its own, made by
forking a server process that has imported everything: it is up in a fraction of a second, so that
hundreds can be killed with SIGKILL. The shuffler's clock is shared; it is moved, not waited for.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import multiprocessing as mp
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpcheckin.service.analyzer import backup as analyzer_backup
from dpcheckin.service.analyzer import state
from dpcheckin.service.analyzer.daemon import LEDGER
from dpcheckin.service.issuer import backup as issuer_backup
from dpcheckin.service.shuffler import backup as shuffler_backup
from dpcheckin.service.shuffler.records import State
from dpcheckin.service.shuffler.server import open_store
from dpcheckin.service.storage.backup_file import read_backup
from dpcheckin.service.storage.journal import Journal
from dpcheckin.service.wire.canonical import canonical, digest
from dpcheckin.service.wire.credentials import new_token, token_digest
from dpcheckin.service.wire.documents import PlanDocument
from dpcheckin.service.wire.problems import Problem, problem_in
from service import wire_vectors
from service.plans import PRIVUNIT, plan_object, sealed
from service.shuffler_process import Answer, Caller, free_port, publish, wait_until
from service.shuffler_world import Analyzer
from service.test_killed_parties import POPULATION, Fleet

FORKS = mp.get_context("forkserver")
FORKS.set_forkserver_preload(["service.kill_points", "uvloop", "httptools", "psycopg"])
CLIENTS = 24
STAGES = ("report", "claim", "fetch", "delete", "enroll", "backup")
EMPTY = 0.25
"""Share of the rounds in which nobody reports."""
# about twice what each takes: kills before, in the middle of, and after the work
SECONDS = {"report": 0.03, "claim": 0.012, "fetch": 0.012, "delete": 0.04, "enroll": 0.012}


def serve_shuffler(folder: str, store: str, port: int, admin: int, ahead: Any) -> None:
    """`dpcheckin shuffler serve --dev`, with a clock that is `ahead` of the system's."""
    import sys

    from dpcheckin.service.settings import Limits
    from dpcheckin.service.shuffler import server
    from dpcheckin.service.shuffler.settings import Settings

    sys.stderr = open(Path(folder) / f"log-{port}", "a")  # noqa: SIM115 (for as long as it lives)
    system = time.time
    server.build.__defaults__ = (lambda: system() + ahead.value,)
    limits = Limits(requests_per_second=1e6, burst=10**6)
    server.serve(Settings(Path(folder), port=port, admin_port=admin, store=store, dev=True, limits=limits))


@dataclass
class FrontEnd:
    """One shuffler process; may be killed and started again."""

    folder: Path
    store: str
    ahead: Any
    port: int = field(default_factory=free_port)
    admin: int = field(default_factory=free_port)
    process: Any = None

    def start(self) -> None:
        arguments = (str(self.folder), self.store, self.port, self.admin, self.ahead)
        self.process = FORKS.Process(target=serve_shuffler, args=arguments)
        self.process.start()
        wait_until(self._up, 120.0)

    def _up(self) -> bool:
        assert self.process.is_alive(), (self.folder / f"log-{self.port}").read_text()
        with contextlib.suppress(OSError, http.client.HTTPException):
            return Caller(self.admin).get("/healthz").status == 200
        return False

    def kill(self) -> None:
        self.process.kill()
        self.process.join()


class Killing:
    """Front ends over one store, an analyzer's requests, clients' reports, and kills in between."""

    def __init__(self, folder: Path, store: str, front_ends: int, seed: int) -> None:
        self.chance = random.Random(seed)
        self.ahead = FORKS.Value("d", 0.0)
        self.store = store
        self.analyzer = Analyzer.of(
            population=2, minimum_batch=0, rounds=100_000, randomizer=wire_vectors.randomizer(1, 1500)
        )
        self.fronts = [FrontEnd(folder, store, self.ahead) for _ in range(front_ends)]
        folder.mkdir(parents=True, exist_ok=True)
        for front in self.fronts:
            front.start()
        self.token = (folder / "analyzer.token").read_text().strip()
        self.clients: list[str] = []
        self.number = -1
        self.kills: Counter[str] = Counter()
        self.empty = 0
        self._enroll(CLIENTS)
        publish(self._analyzer(self.fronts[0]), self.analyzer)

    def stop(self) -> None:
        for front in self.fronts:
            if front.process is not None and front.process.is_alive():
                front.kill()

    def _analyzer(self, front: FrontEnd) -> Caller:
        return Caller(front.port, self.token)

    def _enroll(self, count: int) -> None:
        tokens = [new_token() for _ in range(count)]
        with contextlib.closing(open_store(self.store)) as store:
            store.enroll([token_digest(token) for token in tokens])
        self.clients += tokens
        for front in self.fronts:
            wait_until(lambda one=front: self._knows(one, self.clients[-1]))

    @staticmethod
    def _knows(front: FrontEnd, token: str) -> bool:
        return Caller(front.port, token).get("/v1/plan").status != 401

    # --- one round --------------------------------------------------------------------------

    def play(self, stage: str) -> None:
        """A whole round, with a kill in one stage of it, and everything that must be true."""
        self.number += 1
        self._open()
        empty = stage != "report" and self.chance.random() < EMPTY
        self.empty += empty
        acknowledged = set() if empty else self._reports(killed=stage == "report")
        self.ahead.value += 100.0  # the round is over
        first = self._step("claim", stage, self._claim)
        batch = self._step("fetch", stage, self._fetch)
        if stage in ("claim", "fetch"):
            assert self._fetch(self._any()).content == batch.content, "another order after a crash"
        marks = self.analyzer.marks(batch.content)
        assert not (empty and marks), "of an empty round something was released"
        assert len(set(marks)) == len(marks), "a report was released twice"
        assert acknowledged <= set(marks), "an acknowledged report was lost"
        assert set(marks) <= set(range(len(self.clients))), "a report nobody sent"
        assert first.status == 200
        other = self._any()
        assert self._claim(other, "cd" * 32).status == 409, "claimed for two charges"
        self._step("delete", stage, self._delete)
        self._destroyed()
        if stage == "enroll":
            self._enroll_and_kill()
        if stage == "backup":
            self._backup_and_kill()

    def _any(self) -> FrontEnd:
        return self.chance.choice(self.fronts)

    def _step(self, name: str, stage: str, request: Callable[[FrontEnd], Answer]) -> Answer:
        """A request of the analyzer; if it is this one's turn, its server dies meanwhile."""
        front = self._any()
        if name == stage:
            lost = contextlib.suppress(OSError, http.client.HTTPException)
            with self._dying(front, name), lost:
                request(front)
            front = self._any()
        return request(front).expect(200)

    @contextlib.contextmanager
    def _dying(self, front: FrontEnd, stage: str) -> Iterator[None]:
        """Kill a front end after a random time, whatever it is doing; then start it again."""
        timer = threading.Timer(self.chance.uniform(0.0, SECONDS[stage]), front.kill)
        timer.start()
        try:
            yield
        finally:
            timer.join()
            self.kills[stage] += 1
            front.start()

    def _open(self) -> None:
        call = self._analyzer(self._any())
        call.put(f"/v1/model/{digest(b'm').hex()}", b"m").expect(201)
        now = time.time() + self.ahead.value
        document = self.analyzer.signed_round(self.number, now, now + 90.0)
        call.put(f"/v1/rounds/{self.number}", document).expect(201)
        for token in self.clients[:2]:
            wait_until(lambda one=token: self._fetched(one))

    def _fetched(self, token: str) -> bool:
        return all(Caller(f.port, token).get("/v1/round").status == 200 for f in self.fronts)

    def _send(self, front: FrontEnd, mark: int) -> Answer | None:
        body = self.analyzer.report(self.number, mark)
        with contextlib.suppress(OSError, http.client.HTTPException):
            path = f"/v1/rounds/{self.number}/report"
            return Caller(front.port, self.clients[mark]).put(path, body)
        return None

    def _reports(self, *, killed: bool) -> set[int]:
        """Every client spends its place in the round; who was told that it has done so?"""
        acknowledged: set[int] = set()
        victim = self._any()

        def send(mark: int) -> None:
            answer = self._send(self._any() if not killed else victim, mark)
            if answer is not None and answer.status == 202:
                acknowledged.add(mark)

        threads = [threading.Thread(target=send, args=(m,)) for m in range(CLIENTS)]
        if killed:
            with self._dying(victim, "report"):
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
        else:
            for mark in range(CLIENTS):
                send(mark)
        told = set(acknowledged)
        for mark in range(CLIENTS if killed else 0):  # everybody tries again, wherever it can
            again = self._send(self._any(), mark)
            assert again is not None
            if mark in told:
                assert again.status == 409, "a place in a round was spent twice"
            else:
                assert again.status in (202, 409)
            acknowledged.add(mark)
        return acknowledged

    def _claim(self, front: FrontEnd, charge: str = "ab" * 32) -> Answer:
        path = f"/v1/rounds/{self.number}/claim"
        return self._analyzer(front).post(path, canonical({"charge": charge}))

    def _fetch(self, front: FrontEnd) -> Answer:
        return self._analyzer(front).get(f"/v1/rounds/{self.number}/batch")

    def _delete(self, front: FrontEnd) -> Answer:
        return self._analyzer(front).delete(f"/v1/rounds/{self.number}/batch")

    def _destroyed(self) -> None:
        late = self._fetch(self._any())
        assert problem_in(late.content) is Problem.NOT_CLAIMED, "a batch came back"
        with contextlib.closing(open_store(self.store)) as store:
            store.verify()  # whatever was interrupted, nothing is damaged
            with store.transaction() as now:
                plan = now.plan()
                assert plan is not None
                found = now.round(plan.id, self.number)
                assert found is not None and found.state is State.DONE and found.purged
        if self.store.startswith("sqlite:"):
            file = Path(self.store.removeprefix("sqlite:"))
            for place in (file, file.with_name(file.name + "-wal")):
                content = place.read_bytes() if place.exists() else b""
                assert b"\xa5" * 64 not in content, "of a destroyed batch something is left"

    def _enroll_and_kill(self) -> None:
        """Credentials that were handed out work, after whatever happened to the server."""
        victim = self._any()
        with self._dying(victim, "enroll"):
            tokens = [new_token() for _ in range(3)]
            with contextlib.closing(open_store(self.store)) as store:
                made = store.enroll([token_digest(token) for token in tokens])
                store.revoke(made[0])
        for front in self.fronts:
            wait_until(lambda one=front: self._knows(one, tokens[1]))
            wait_until(lambda one=front: not self._knows(one, tokens[0]))

    def _backup_and_kill(self) -> None:
        """A backup that dies leaves no file or a whole one, and the server alone; then both halves of one work."""
        file = self.fronts[0].folder / f"backup-{self.number}"
        kill_a_backup("shuffler", self.fronts[0].folder, self.store, file, self.chance.uniform(0.0, 0.08))
        self.kills["backup"] += 1
        with contextlib.closing(open_store(self.store)) as store:
            shuffler_backup.backup(store, file.with_suffix(".whole"))
        with contextlib.closing(open_store(f"sqlite:{file.with_suffix('.db')}")) as fresh:
            shuffler_backup.restore(fresh, shuffler_backup.read(file.with_suffix(".whole")))
            assert len(fresh.clients()) >= CLIENTS

    def run(self, kills: int) -> Counter[str]:
        """So many kills, all stages in turn, at random points of each."""
        for index in range(kills):
            self.play(STAGES[index % len(STAGES)])
        return self.kills


def _back_up(kind: str, folder: str, store: str, file: str) -> None:
    """What `dpcheckin … backup` does."""
    place, out = Path(folder), Path(file)
    if kind == "shuffler":
        with contextlib.closing(open_store(store)) as opened:
            shuffler_backup.backup(opened, out)
    elif kind == "issuer":
        issuer_backup.backup(place, out)
    else:
        analyzer_backup.backup(place, out)


def kill_a_backup(kind: str, folder: Path, store: str, file: Path, seconds: float) -> None:
    """Begin a backup of a party of this `kind`, kill it after so many seconds: no file, or a whole one."""
    process = FORKS.Process(target=_back_up, args=(kind, str(folder), store, str(file)))
    process.start()
    time.sleep(seconds)
    process.kill()
    process.join()
    if file.exists():
        assert read_backup(file, kind)


# --- the analyzer, between charge and release -----------------------------------------------


def run_analyzer(folder: str) -> None:
    """The analyzer of `minimal_parties`, a little slower, so that it can be met at every step."""
    import sys

    from dpcheckin.service.analyzer.parties import ShufflerClient
    from service import minimal_parties

    for name in ("claim", "batch", "delete"):
        setattr(ShufflerClient, name, _after_a_moment(getattr(ShufflerClient, name)))

    sys.stderr = sys.stdout = open(Path(folder) / "analyzer.log", "a")  # noqa: SIM115
    sys.argv = ["", "analyzer", folder]
    minimal_parties.main()


def _after_a_moment(step: Callable[..., Any]) -> Callable[..., Any]:
    def slowly(*arguments: Any) -> Any:
        time.sleep(0.015)
        return step(*arguments)

    return slowly


class AnalyzerKilling(Fleet):
    """An analyzer that dies when it has charged a round; its clients are played here."""

    def __init__(self, folder: Path, store: str | None, front_ends: int, seed: int) -> None:
        self.folder, self.store, self.chance = folder, store, random.Random(seed)
        for name in ("shuffler", "analyzer"):
            (folder / name).mkdir()
        address = store or f"sqlite:{folder / 'shuffler' / 'shuffler.db'}"
        ahead = FORKS.Value("d", 0.0)
        self.fronts = [FrontEnd(folder / "shuffler", address, ahead) for _ in range(front_ends)]
        for front in self.fronts:
            front.start()
        self.tokens = [new_token() for _ in range(POPULATION)]
        with contextlib.closing(open_store(address)) as opened:
            opened.enroll([token_digest(token) for token in self.tokens])
        said = plan_object(
            population=POPULATION,
            rate=0.5,
            rounds=400,
            epsilon_budget=1e5,
            round_seconds=0.5,
            cover=False,
            randomizer={**PRIVUNIT, "local_epsilon": 1.0},
        )
        self.plan = PlanDocument.from_object(said)
        settings = {
            "shuffler": f"http://127.0.0.1:{self.fronts[0].port}",
            "analyzer_token": (folder / "shuffler" / "analyzer.token").read_text().strip(),
            "tokens": [],
            "plan": said,
        }
        (folder / "parties.json").write_text(json.dumps(settings))
        self.last, self.empty = -1, 0
        self.found: Counter[str] = Counter()
        self._begin()

    def _begin(self) -> None:
        self.process = FORKS.Process(target=run_analyzer, args=(str(self.folder),))
        self.process.start()

    def stop(self) -> None:
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
        for front in self.fronts:
            if front.process.is_alive():
                front.kill()

    def _take_part(self, patience: float) -> None:
        """Every client sends a report to the next round, each through a front end of its choice."""
        document: dict[str, Any] = {}

        def opened() -> bool:
            answer = Caller(self.fronts[0].port, self.tokens[0]).get("/v1/round")
            if answer.status == 200:
                document.update(answer.json()["document"])
            return document.get("round", -1) > self.last

        wait_until(opened, patience)
        self.last = document["round"]
        keys = Caller(self.fronts[0].port, self.tokens[0]).get("/v1/plan").json()["keys"]
        public = bytes.fromhex(keys[-1]["document"]["key"])
        plan = PlanDocument.from_object(
            Caller(self.fronts[0].port, self.tokens[0]).get("/v1/plan").json()["plan"]["document"]
        )
        bodies = sealed(plan, self.last, bytes.fromhex(document["model"]), public, POPULATION)
        empty = self.chance.random() < EMPTY
        self.empty += empty
        for token, body in zip(self.tokens, bodies, strict=True):
            call = Caller(self.chance.choice(self.fronts).port, token)
            call.get("/v1/round")
            if not empty:
                call.put(f"/v1/rounds/{self.last}/report", body)  # too late is late, and no error

    def kill_after_a_charge(self) -> None:
        """Let clients take part until a charge is on disk; the analyzer dies a moment later."""
        watch = threading.Thread(target=self._kill_at_the_next_charge)
        watch.start()
        while watch.is_alive():
            with contextlib.suppress(AssertionError):  # no round opens after its death
                self._take_part(patience=2.0)
        self.process.join()
        self.found[self._where()] += 1
        self.check()
        file = self.folder / f"backup-{self.last}-{sum(self.found.values())}"
        kill_a_backup("analyzer", self.folder / "analyzer", "", file, self.chance.uniform(0.0, 0.03))
        self.found["backup"] += 1
        self._begin()

    def _entries(self) -> int:
        """Lines of the ledger; the first opens it, the others are charges."""
        with contextlib.suppress(FileNotFoundError):
            return (self.folder / "analyzer" / LEDGER).read_bytes().count(b"\n")
        return 0

    def _kill_at_the_next_charge(self) -> None:
        before, deadline = max(1, self._entries()), time.monotonic() + 300.0
        while self._entries() <= before and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(self.chance.uniform(0.0, 0.04))
        self.process.kill()

    def _where(self) -> str:
        """Between which steps the analyzer died."""
        with Journal(self.folder / "analyzer" / LEDGER) as journal:
            charged = [entry.body["round"] for entry in journal if "round" in entry.body]
        kept = state.load(self.folder / "analyzer")
        assert kept is not None
        assert charged, "nothing was charged in five minutes"
        if charged[-1] in {row["round"] for row in kept.log}:
            return "after the release was learned from"
        return "after the claim" if charged[-1] in self.claimed() else "between charge and claim"
