"""Faults, with real processes: kill -9, clocks, full disks, lost databases, racing front ends.

What is promised: an acknowledged report is released exactly once or destroyed by rule, whatever
happens in between; what was not acknowledged may be sent again; trouble is named and passes.
"""

from __future__ import annotations

import contextlib
import http.client
import random
import resource
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dpcheckin.service.shuffler.server import open_store
from dpcheckin.service.wire.problems import Problem, problem_in
from service import wire_vectors
from service.postgres_server import PostgresServer
from service.shuffler_process import Caller, MovedClock, ShufflerProcess, open_round, publish, state, take, wait_until
from service.shuffler_world import CHARGE, Analyzer, Clock, batch_of, core_over

DELIVERED = (202, 409)


class Fleet:
    """Clients that send until they are told that their report is there, from several threads."""

    def __init__(self, tokens: list[str], analyzer: Analyzer, ports: list[int]) -> None:
        self._analyzer = analyzer
        self._ports = ports
        self._tokens = tokens
        self._left = list(range(len(tokens)))
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self.acknowledged: set[int] = set()
        self.sent: set[int] = set()

    def _send(self, number: int) -> bool:
        port = random.choice(self._ports)
        self.sent.add(number)
        try:
            answer = Caller(port, self._tokens[number]).put("/v1/rounds/0/report", self._analyzer.report(0, number))
        except (OSError, http.client.HTTPException):  # no connection, or one cut in the middle
            return False
        if answer.status == 202:
            self.acknowledged.add(number)
        return answer.status in DELIVERED

    def run(self) -> None:
        while not self._stop.is_set():
            with self._lock:
                if not self._left:
                    return
                number = self._left.pop()
            if not self._send(number):
                time.sleep(0.005)
                with self._lock:
                    self._left.append(number)

    def start(self, threads: int) -> list[threading.Thread]:
        made = [threading.Thread(target=self.run) for _ in range(threads)]
        for thread in made:
            thread.start()
        return made

    def stop(self) -> None:
        self._stop.set()

    @property
    def waiting(self) -> int:
        return len(self._left)


def released(store_address: str, analyzer: Analyzer, after: float) -> list[int]:
    """What a shuffler that starts after the round's end releases."""
    store = open_store(store_address)
    try:
        core = core_over(store, Clock(after))
        core.tick()
        core.claim(0, CHARGE)
        marks = analyzer.marks(batch_of(core, 0))
        core.finish(0)
        return marks
    finally:
        store.close()


def kill_at_random(shufflers: list[ShufflerProcess], analyzer: Analyzer, clients: int, kills: int, seed: int) -> None:
    """Kill and restart while a fleet sends; then everything acknowledged must be there, once."""
    chance = random.Random(seed)
    for shuffler in shufflers:
        shuffler.start()
    tokens = shufflers[0].enroll(clients)
    for shuffler in shufflers:
        shuffler.wait_for_clients(clients)
    publish(shufflers[0].analyzer(), analyzer)
    closes = open_round(shufflers[0].analyzer(), analyzer, 0, 7200)
    _with_presence(shufflers[0], analyzer, tokens)
    fleet = Fleet(tokens, analyzer, [s.port for s in shufflers])
    threads = fleet.start(6)
    try:
        for _ in range(kills):
            time.sleep(chance.uniform(0.0, 0.25))
            victim = chance.choice(shufflers)
            victim.kill()
            victim.start()
        enough = len(fleet.acknowledged)
        wait_until(lambda: len(fleet.acknowledged) > enough or not fleet.waiting)
    finally:
        fleet.stop()
        for thread in threads:
            thread.join()
        for shuffler in shufflers:
            shuffler.kill()
    assert fleet.acknowledged
    found = Counter(released(shufflers[0].store_address, analyzer, closes + 1))
    assert set(found.values()) == {1}
    assert fleet.acknowledged <= set(found) <= fleet.sent


def large_reports(**changes: object) -> Analyzer:
    """Reports of about 20 KB, so that a commit takes a while and can be interrupted."""
    plan = {"population": 2, "minimum_batch": 0, "randomizer": wire_vectors.randomizer(1, 5000)}
    return Analyzer.of(**(plan | changes))


def _with_presence(shuffler: ShufflerProcess, analyzer: Analyzer, tokens: list[str]) -> None:
    for token in tokens[:2]:
        shuffler.caller(token).get("/v1/round").expect(200)


@pytest.mark.parametrize("kills", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_an_acknowledged_report_survives_kill_9_on_sqlite(tmp_path: Path, kills: int) -> None:
    analyzer = large_reports()
    shuffler = ShufflerProcess(tmp_path)
    kill_at_random([shuffler], analyzer, 300 * kills, kills, seed=kills)


@pytest.mark.parametrize("kills", [2, pytest.param(40, marks=pytest.mark.slow)])
def test_an_acknowledged_report_survives_kill_9_of_front_ends_on_postgresql(
    tmp_path: Path, postgres_address: str, kills: int
) -> None:
    analyzer = large_reports()
    shufflers = [ShufflerProcess(tmp_path / "data", postgres_address) for _ in range(2)]
    kill_at_random(shufflers, analyzer, 300 * kills, kills, seed=kills)


def test_a_crash_between_claim_and_delete_neither_loses_nor_repeats(tmp_path: Path) -> None:
    """Killed after every step of the analyzer, and in the middle of some."""
    analyzer = Analyzer.of(population=3, minimum_batch=1, rounds=2)
    clock = MovedClock(tmp_path / "clock")
    shuffler = ShufflerProcess(tmp_path / "data", program=clock.program).start()
    try:
        tokens = shuffler.enroll(3)
        shuffler.wait_for_clients(3)
        call = shuffler.analyzer()
        publish(call, analyzer)
        open_round(call, analyzer, 0, 3600.0)
        for mark, token in enumerate(tokens):
            shuffler.caller(token).get("/v1/round").expect(200)
            body = analyzer.report(0, mark)
            shuffler.caller(token).put("/v1/rounds/0/report", body).expect(202)
        shuffler.kill()
        shuffler.start()
        clock.jump(7200.0)
        wait_until(lambda: state(call, 0)["state"] == "closed")
        assert state(call, 0) == {"state": "closed", "present": 3, "reports": 3, "reason": None}
        call.post("/v1/rounds/0/claim", CHARGE).expect(200)
        shuffler.kill()
        shuffler.start()
        first = take(call, 0)
        assert sorted(analyzer.marks(first)) == [0, 1, 2]
        shuffler.kill()
        shuffler.start()
        assert take(call, 0) == first
        quitter = threading.Timer(0.001, shuffler.kill)
        quitter.start()
        with contextlib.suppress(OSError, http.client.HTTPException):
            call.delete("/v1/rounds/0/batch")
        quitter.join()
        shuffler.start()
        assert state(call, 0)["state"] in ("claimed", "done")
        call.delete("/v1/rounds/0/batch").expect(200)
        assert state(call, 0)["state"] == "done"
        late = call.get("/v1/rounds/0/batch")
        assert problem_in(late.content) is Problem.NOT_CLAIMED
        shuffler.kill()
        shuffler.start()
        assert state(call, 0)["state"] == "done"
    finally:
        shuffler.stop()


# --- a clock that jumps ---------------------------------------------------------------------


def test_a_clock_that_jumps_is_told_and_loses_nothing(tmp_path: Path) -> None:
    """Two hours back while a round is open, back to the right time, a day ahead, and back again."""
    clock = MovedClock(tmp_path / "clock")
    analyzer = Analyzer.of(population=3, minimum_batch=1, rounds=2)
    with ShufflerProcess(tmp_path / "data", program=clock.program) as shuffler:
        tokens = shuffler.enroll(4)
        shuffler.wait_for_clients(4)
        call = shuffler.analyzer()
        publish(call, analyzer)
        open_round(call, analyzer, 0, 3600.0)

        def report(mark: int) -> Problem | None:
            line = shuffler.caller(tokens[mark])
            line.get("/v1/round")
            return problem_in(line.put("/v1/rounds/0/report", analyzer.report(0, mark)).content)

        assert report(0) is None
        clock.jump(-7200.0)
        wait_until(lambda: shuffler.metrics()["clock_steps_back_total"] >= 1)
        assert any(event["event"] == "clock set back" for event in shuffler.events())
        assert report(1) is Problem.NO_ROUND  # it has not begun yet, and is not closed
        clock.jump(0.0)
        assert [report(mark) for mark in (1, 2, 0)] == [None, None, Problem.DUPLICATE]
        clock.jump(86400.0)
        wait_until(lambda: state(call, 0)["state"] == "closed")
        clock.jump(0.0)
        assert report(3) is Problem.ROUND_CLOSED  # what is closed stays closed
        assert sorted(analyzer.marks(take(call, 0))) == [0, 1, 2]
        call.delete("/v1/rounds/0/batch").expect(200)
        open_round(call, analyzer, 1, 3600.0)
        assert state(call, 1)["state"] == "open"


# --- a full disk ----------------------------------------------------------------------------


def test_a_full_disk_is_told_loses_nothing_and_passes(tmp_path: Path) -> None:
    """The process may write files of 3 MB only; later the limit is lifted, without a restart."""
    analyzer = Analyzer.of(population=2, minimum_batch=0, randomizer=wire_vectors.randomizer(1, 25_000))
    limit = 3 << 20

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    shuffler = ShufflerProcess(tmp_path)
    shuffler.start(preexec_fn=small_files)
    try:
        tokens = shuffler.enroll(60)
        shuffler.wait_for_clients(60)
        publish(shuffler.analyzer(), analyzer)
        closes = open_round(shuffler.analyzer(), analyzer, 0, 7200)
        _with_presence(shuffler, analyzer, tokens)
        answers = {
            mark: shuffler.caller(token).put("/v1/rounds/0/report", analyzer.report(0, mark))
            for mark, token in enumerate(tokens)
        }
        refused = [a for a in answers.values() if a.status != 202]
        assert refused
        assert {problem_in(a.content) for a in refused} == {Problem.STORAGE}
        taken = {mark for mark, a in answers.items() if a.status == 202}
        assert 5 < len(taken) < 60
        assert any(event["event"] == "storage failure" for event in shuffler.events())
        assert shuffler.metrics()["storage_failures_total"] >= len(refused)
        assert shuffler.process is not None
        resource.prlimit(shuffler.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        for mark in answers.keys() - taken:
            answer = shuffler.caller(tokens[mark]).put("/v1/rounds/0/report", analyzer.report(0, mark))
            answer.expect(202)
    finally:
        shuffler.stop()
    assert sorted(released(shuffler.store_address, analyzer, closes + 1)) == list(range(60))


# --- PostgreSQL goes away -------------------------------------------------------------------


@pytest.mark.parametrize("mode", [pytest.param("fast", marks=pytest.mark.slow), "immediate"])
def test_a_database_restart_is_told_and_passes(tmp_path: Path, mode: str) -> None:
    reason = PostgresServer.missing()
    if reason is not None:
        pytest.skip(reason)
    server = PostgresServer()  # its own: others must not be stopped
    shuffler = ShufflerProcess(tmp_path, server.address)
    try:
        shuffler.start()
        analyzer = Analyzer.of(population=2, minimum_batch=0)
        tokens = shuffler.enroll(4)
        shuffler.wait_for_clients(4)
        publish(shuffler.analyzer(), analyzer)
        closes = open_round(shuffler.analyzer(), analyzer, 0, 7200)
        _with_presence(shuffler, analyzer, tokens)

        def report(mark: int) -> int:
            body = analyzer.report(0, mark)
            answer = shuffler.caller(tokens[mark]).put("/v1/rounds/0/report", body)
            if answer.status not in DELIVERED:
                assert problem_in(answer.content) in (Problem.STORAGE, Problem.BUSY)
            return answer.status

        assert report(0) == 202
        server.stop(mode)
        assert report(1) == 507
        wait_until(lambda: Caller(shuffler.admin_port).get("/healthz").status == 503)
        assert shuffler.caller(tokens[0]).get("/v1/plan").status == 200  # from memory
        server.start()
        # nobody has to send anything for it: the shuffler tries by itself
        wait_until(lambda: Caller(shuffler.admin_port).get("/healthz").status == 200)
        wait_until(lambda: report(1) in DELIVERED)
        wait_until(lambda: report(2) in DELIVERED)
        shuffler.stop()
        assert sorted(released(server.address, analyzer, closes + 1)) == [0, 1, 2]
    finally:
        shuffler.stop()
        server.remove()


# --- several front ends ---------------------------------------------------------------------


def test_front_ends_that_race_take_each_client_once(tmp_path: Path, postgres_address: str) -> None:
    """Every client sends its report to every front end at the same time."""
    clients, fronts = 60, 3
    analyzer = Analyzer.of(population=clients, minimum_batch=1, rounds=5)
    clock = MovedClock(tmp_path / "clock")
    shufflers = [ShufflerProcess(tmp_path / "data", postgres_address, clock.program) for _ in range(fronts)]
    try:
        for shuffler in shufflers:
            shuffler.start()
        tokens = shufflers[0].enroll(clients)
        for shuffler in shufflers:
            shuffler.wait_for_clients(clients)
        calls = [shuffler.analyzer() for shuffler in shufflers]
        publish(calls[0], analyzer)
        open_round(calls[0], analyzer, 0, 3600.0)
        wait_until(lambda: all(_shows_round(s, tokens[0]) for s in shufflers))

        def race(mark: int) -> Counter[int]:
            barrier = threading.Barrier(fronts)

            def send(shuffler: ShufflerProcess) -> int:
                caller = shuffler.caller(tokens[mark])
                caller.get("/v1/round").expect(200)
                barrier.wait(120)
                return caller.put("/v1/rounds/0/report", analyzer.report(0, mark)).status

            with ThreadPoolExecutor(fronts) as pool:
                return Counter(pool.map(send, shufflers))

        for mark in range(clients):
            assert race(mark) == {202: 1, 409: fronts - 1}
        clock.jump(7200.0)
        with ThreadPoolExecutor(fronts) as pool:
            states = list(pool.map(lambda call: state(call, 0), calls))
        assert states == [states[0]] * fronts
        assert states[0]["present"] == states[0]["reports"] == clients
        with ThreadPoolExecutor(fronts) as pool:  # all claim at once: one order for all
            batches = set(pool.map(lambda call: take(call, 0), calls))
        assert len(batches) == 1
        assert sorted(analyzer.marks(batches.pop())) == list(range(clients))
        calls[1].delete("/v1/rounds/0/batch").expect(200)
        assert [state(call, 0)["state"] for call in calls] == ["done"] * fronts
    finally:
        for shuffler in shufflers:
            shuffler.stop()


def _shows_round(shuffler: ShufflerProcess, token: str) -> bool:
    return shuffler.caller(token).get("/v1/round").status == 200


# --- more than fits into memory -------------------------------------------------------------


@pytest.mark.slow
def test_a_batch_larger_than_memory_streams_in_and_out(tmp_path: Path) -> None:
    """The shuffler may use 1 GB of addresses, code included; the batch has 1.2 GB."""
    size, count = 4_000_000, 300
    analyzer = Analyzer.of(population=2, minimum_batch=0, randomizer=wire_vectors.randomizer(1, size // 4))

    def little_memory() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    shuffler = ShufflerProcess(tmp_path, BODY_BYTES=str(64 << 20))
    shuffler.start(preexec_fn=little_memory)
    try:
        tokens = shuffler.enroll(count)
        shuffler.wait_for_clients(count)
        call = shuffler.analyzer()
        publish(call, analyzer)
        seconds = 240.0
        closes = open_round(call, analyzer, 0, seconds)
        _with_presence(shuffler, analyzer, tokens)
        for mark, token in enumerate(tokens):
            body = analyzer.report(0, mark)
            shuffler.caller(token).put("/v1/rounds/0/report", body).expect(202)
        assert time.time() < closes
        wait_until(lambda: time.time() > closes, seconds)
        marks = analyzer.marks(take(call, 0))
        assert sorted(marks) == list(range(count))
        call.patience = 600.0  # a gigabyte is overwritten, and the disk may have other work
        call.delete("/v1/rounds/0/batch").expect(200)
        assert shuffler.process is not None
        status = Path(f"/proc/{shuffler.process.pid}/status").read_text()
        peak = next(int(x.split()[1]) for x in status.splitlines() if x.startswith("VmHWM"))
        print(f"peak resident memory {peak >> 10} MB for a batch of {size * count >> 20} MB")
        assert peak << 10 < 500 << 20
    finally:
        shuffler.stop()
