"""The parts of the shell, each alone: committer, limits, metrics, logs, directory, guard."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from typing import Any

import pytest

from dpcheckin.service.shuffler.committer import GroupCommitter
from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.directory import Directory
from dpcheckin.service.shuffler.http import logs
from dpcheckin.service.shuffler.http.app import Front, ModelCache, declared_length, upkeep
from dpcheckin.service.shuffler.http.guard import Guard
from dpcheckin.service.shuffler.http.limits import Buckets, Budget, Limits
from dpcheckin.service.shuffler.http.metrics import Metrics
from dpcheckin.service.shuffler.http.routes import admin_app, shuffler_app
from dpcheckin.service.shuffler.records import Submission
from dpcheckin.service.shuffler.stores.arena import Arena, Pool
from dpcheckin.service.shuffler.stores.base import StorageBusy, StorageFailure
from dpcheckin.service.shuffler.stores.memory import MemoryStore
from dpcheckin.service.shuffler.stores.sqlite import SqliteStore
from dpcheckin.service.wire.credentials import token_digest
from dpcheckin.service.wire.problems import Problem, Refusal, problem_in
from service.asgi import ask
from service.shuffler_world import CHARGE, Analyzer, Clock, SeededChance, attend, send

TOKEN, CLIENT = "A" * 43, "C" * 43


class Recording(Shuffler):
    """A core that notes what it is asked, and can be told to fail or to wait."""

    def __init__(self) -> None:
        super().__init__(MemoryStore(), clock=Clock(), chance=SeededChance())
        self.groups: list[int] = []
        self.gate = threading.Event()
        self.problem: Exception | None = None

    def accept(self, submissions: Any) -> list[Problem | None]:
        self.gate.wait(10)
        self.groups.append(len(submissions))
        if self.problem is not None:
            raise self.problem
        return [None if s.body else Problem.DUPLICATE for s in submissions]

    def mark_present(self, serial: int, clients: Any) -> bool:
        self.gate.wait(10)
        if self.problem is not None:
            raise self.problem
        return serial == 1


def submission(body: bytes | None = b"x") -> Submission:
    return Submission(b"client", 1, 1e9, body)


# --- group commit ---------------------------------------------------------------------------


def test_what_arrives_during_a_commit_is_committed_together() -> None:
    core = Recording()

    async def run() -> list[Any]:
        committer = GroupCommitter(core)
        committer.start()
        first = asyncio.ensure_future(committer.submit(submission()))
        await asyncio.sleep(0.05)  # the writer has taken the first and waits
        rest = [asyncio.ensure_future(committer.submit(submission(b""))) for _ in range(20)]
        there = [asyncio.ensure_future(committer.present(s, b"c")) for s in (1, 2, 1)]
        await asyncio.sleep(0.05)
        core.gate.set()
        answers = await asyncio.gather(first, *rest, *there)
        await asyncio.to_thread(committer.stop)
        return answers

    answers = asyncio.run(run())
    assert core.groups == [1, 20]
    assert answers == [None] + [Problem.DUPLICATE] * 20 + [True, False, True]


def test_a_failed_commit_is_told_to_all_who_waited_and_the_next_works() -> None:
    core = Recording()
    core.gate.set()
    core.problem = StorageFailure("full")

    async def run() -> Any:
        committer = GroupCommitter(core)
        committer.start()
        failed = await asyncio.gather(
            committer.submit(submission()), committer.present(1, b"c"), return_exceptions=True
        )
        core.problem = None
        then = await committer.submit(submission())
        await asyncio.to_thread(committer.stop)
        return failed, then

    failed, then = asyncio.run(run())
    assert [type(problem) for problem in failed] == [StorageFailure, StorageFailure]
    assert then is None


def test_a_client_that_hangs_up_while_it_waits_disturbs_nobody() -> None:
    core = Recording()

    async def run() -> Any:
        committer = GroupCommitter(core)
        committer.start()
        gone = asyncio.ensure_future(committer.submit(submission()))
        await asyncio.sleep(0.02)
        gone.cancel()
        stays = asyncio.ensure_future(committer.submit(submission()))
        await asyncio.sleep(0.02)
        core.gate.set()
        answer = await stays
        stopping = asyncio.to_thread(committer.stop)
        await stopping
        return answer

    assert asyncio.run(run()) is None
    assert sum(core.groups) == 2


def test_stopping_writes_what_was_submitted() -> None:
    core = Recording()

    async def run() -> list[Any]:
        committer = GroupCommitter(core)
        committer.start()
        jobs = [asyncio.ensure_future(committer.submit(submission())) for _ in range(5)]
        await asyncio.sleep(0)
        stopping = asyncio.ensure_future(asyncio.to_thread(committer.stop))
        await asyncio.sleep(0.02)
        core.gate.set()
        await stopping
        return await asyncio.gather(*jobs)

    assert asyncio.run(run()) == [None] * 5


# --- limits ---------------------------------------------------------------------------------


def test_a_bucket_refills_at_its_rate_and_never_beyond_its_size() -> None:
    clock = Clock(0.0)
    buckets = Buckets(rate=2.0, burst=3, clock=clock)
    assert [buckets.take(b"a") for _ in range(4)] == [True, True, True, False]
    assert buckets.take(b"b")
    clock.now += 0.5
    assert [buckets.take(b"a") for _ in range(2)] == [True, False]
    clock.now += 1000
    assert [buckets.take(b"a") for _ in range(4)] == [True, True, True, False]
    clock.now -= 50
    assert not buckets.take(b"a")  # a clock set back gives nothing


def test_forgotten_buckets_are_full_and_memory_is_bounded() -> None:
    buckets = Buckets(rate=0.001, burst=1, clock=Clock(0.0), remembered=3)
    for key in (b"a", b"b", b"c", b"d"):
        assert buckets.take(key)
    assert len(buckets._level) == 3
    assert not buckets.take(b"d")
    assert buckets.take(b"a")


def test_a_budget_is_taken_and_given_back() -> None:
    budget = Budget(10)
    assert budget.take(7)
    assert not budget.take(4)
    budget.give_back(7)
    assert budget.take(10)


@pytest.mark.parametrize(
    ("value", "expected"), [(b"12", 12), (b"-1", None), (b"x", None), (b"9" * 30, None)]
)
def test_a_declared_length_is_a_number_or_nothing(value: bytes, expected: int | None) -> None:
    assert declared_length({"headers": [(b"content-length", value)]}) == expected
    assert declared_length({"headers": []}) is None


# --- metrics and logs -----------------------------------------------------------------------


def test_metrics_are_prometheus_text() -> None:
    metrics = Metrics()
    metrics.add("refusals_total", problem="busy")
    metrics.add("refusals_total", 2, problem="busy")
    metrics.set("storage_ok", 1)
    lines = metrics.text().splitlines()
    assert 'dpcheckin_shuffler_refusals_total{problem="busy"} 3' in lines
    assert "dpcheckin_shuffler_storage_ok 1" in lines
    assert "dpcheckin_shuffler_reports_total 0" in lines
    assert "# TYPE dpcheckin_shuffler_reports_total counter" in lines
    assert not any(line.startswith("dpcheckin_shuffler_rounds_total") for line in lines)
    with pytest.raises(KeyError):
        metrics.add("clients_by_name")


def test_a_log_line_is_an_object_with_the_events_own_fields(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.set_up("info")
    logs.event("round closed", round=3)
    try:
        raise RuntimeError("odd")
    except RuntimeError as problem:
        logs.LOGGER.error("internal error", exc_info=problem)
    logs.event("hidden", level=logging.DEBUG)
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert (first["event"], first["round"], first["level"]) == ("round closed", 3, "info")
    assert "RuntimeError: odd" in second["error"]


# --- the front ------------------------------------------------------------------------------


def front_over(store: Any, clock: Clock | None = None, **limits: Any) -> Front:
    core = Shuffler(store, clock=clock or Clock(), chance=SeededChance())
    front = Front(core, token_digest(TOKEN), limits=Limits(**limits))
    core._on_settled = front.settled
    return front


def test_upkeep_counts_clock_steps_rounds_and_failures() -> None:
    clock = Clock()
    front = front_over(MemoryStore(), clock)
    analyzer = Analyzer.of(population=2, minimum_batch=1)
    analyzer.publish(front.core)
    analyzer.open(front.core, 0)
    front.maintain()
    assert front.metrics.value("round_open") == 1
    attend(front.core, 2)
    send(front.core, analyzer, 0, 0, 1)
    clock.now -= 1
    front.maintain()
    assert front.metrics.value("clock_steps_back_total") == 1
    clock.now += 100
    front.maintain()
    assert front.metrics.value("rounds_total", outcome="closed") == 1
    assert front.metrics.value("reports_total") == 2
    assert front.metrics.value("round_open") == 0
    analyzer.open(front.core, 1)
    clock.now += 100
    front.maintain()
    assert front.metrics.value("rounds_total", outcome="void-population") == 1
    assert front.metrics.value("storage_ok") == 1


@pytest.mark.parametrize(
    ("problem", "healthy"), [(StorageFailure("full"), False), (StorageBusy("wait"), True)]
)
def test_a_failing_store_shows_in_health(problem: Exception, healthy: bool) -> None:
    front = front_over(MemoryStore())
    front.maintain()
    pages = admin_app(front)

    async def health() -> int:
        reply = await ask(pages, "GET", "/healthz")
        assert reply is not None
        return reply.status

    assert asyncio.run(health()) == 200

    def fail() -> None:
        raise problem

    front.core.tick = fail  # type: ignore[method-assign]
    front.maintain()
    assert asyncio.run(health()) == (200 if healthy else 503)
    metrics = asyncio.run(ask(pages, "GET", "/metrics"))
    assert metrics is not None
    assert b"dpcheckin_shuffler_storage_ok %d" % healthy in metrics.body


def test_upkeep_goes_on_after_an_error_nobody_foresaw() -> None:
    front = front_over(MemoryStore())
    calls = []

    def odd() -> None:
        calls.append(1)
        raise RuntimeError("odd")

    front.maintain = odd  # type: ignore[method-assign]

    async def run() -> None:
        task = asyncio.create_task(upkeep(front, 0.001))
        while len(calls) < 3:
            await asyncio.sleep(0.001)
        task.cancel()

    asyncio.run(run())
    assert front.metrics.value("internal_errors_total") >= 2


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (Refusal(Problem.CONFLICT), Problem.CONFLICT),
        (StorageFailure("full"), Problem.STORAGE),
        (StorageBusy("wait"), Problem.BUSY),
        (RuntimeError("odd"), Problem.BUSY),
    ],
)
def test_whatever_goes_wrong_the_answer_is_one_of_the_known(
    problem: Exception, told: Problem
) -> None:
    front = front_over(MemoryStore())
    front.core.store.enroll([token_digest(CLIENT)])
    front.maintain()

    def fail(*arguments: Any) -> Any:
        raise problem

    front.core.plan_page = fail  # type: ignore[method-assign]
    app = shuffler_app(front)
    headers = [(b"authorization", b"Bearer " + CLIENT.encode())]
    reply = asyncio.run(ask(app, "GET", "/v1/plan", headers))
    assert reply is not None
    assert problem_in(reply.body) is told
    assert reply.status == told.status


def test_the_lifespan_runs_upkeep_and_writes_what_is_under_way(tmp_path: Any) -> None:
    store = SqliteStore(tmp_path / "shuffler.db", reserve=0)
    store.enroll([token_digest(CLIENT)])
    front = front_over(store)
    analyzer = Analyzer.of(population=2, minimum_batch=0)
    analyzer.publish(front.core)
    analyzer.open(front.core, 0)
    app = shuffler_app(front, tick_seconds=0.01)
    headers = [(b"authorization", b"Bearer " + CLIENT.encode())]

    async def run() -> list[int]:
        inbox: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        outbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
        life = asyncio.create_task(app(scope, inbox.get, outbox.put))
        await inbox.put({"type": "lifespan.startup"})
        assert (await outbox.get())["type"] == "lifespan.startup.complete"
        statuses = []
        for method, path, body in (
            ("GET", "/v1/round", b""),
            ("GET", "/v1/round", b""),
            ("PUT", "/v1/rounds/0/report", analyzer.report(0)),
            ("PUT", "/v1/rounds/0/report", analyzer.report(0)),
            ("PUT", "/v1/rounds/7/report", analyzer.report(7)),
        ):
            reply = await ask(app, method, path, headers, [body])
            assert reply is not None
            statuses.append(reply.status)
        await asyncio.sleep(0.05)
        await inbox.put({"type": "lifespan.shutdown"})
        assert (await outbox.get())["type"] == "lifespan.shutdown.complete"
        await life
        return statuses

    assert asyncio.run(run()) == [200, 200, 202, 409, 404]
    store.close()


def test_a_round_that_ends_between_two_looks_is_no_round() -> None:
    """The round is in memory, but another front end has just closed it."""
    front = front_over(MemoryStore())
    front.core.store.enroll([token_digest(CLIENT)])
    analyzer = Analyzer.of(population=2, minimum_batch=0)
    analyzer.publish(front.core)
    analyzer.open(front.core, 0)
    front.maintain()
    front.core.mark_present = lambda serial, clients: False  # type: ignore[method-assign]
    headers = [(b"authorization", b"Bearer " + CLIENT.encode())]
    reply = asyncio.run(ask(shuffler_app(front), "GET", "/v1/round", headers))
    assert reply is not None
    assert problem_in(reply.body) is Problem.NO_ROUND


def test_a_plan_published_elsewhere_is_found_when_asked_for() -> None:
    store = MemoryStore()
    store.enroll([token_digest(CLIENT)])
    one, two = front_over(store), front_over(store)
    for front in (one, two):
        front.maintain()
    analyzer = Analyzer.of(population=2)
    analyzer.publish(one.core)
    analyzer.open(one.core, 0)
    headers = [(b"authorization", b"Bearer " + CLIENT.encode())]

    async def run() -> list[int]:
        app, found = shuffler_app(two), []
        for method, path in (
            ("GET", "/v1/plan"),
            ("PUT", "/v1/rounds/0/report"),
        ):
            reply = await ask(app, method, path, headers, [analyzer.report(0)])
            assert reply is not None
            found.append(reply.status)
        return found

    assert asyncio.run(run()) == [200, 202]


def test_a_report_before_any_plan_is_refused() -> None:
    front = front_over(MemoryStore())
    front.core.store.enroll([token_digest(CLIENT)])
    front.maintain()
    headers = [(b"authorization", b"Bearer " + CLIENT.encode())]
    reply = asyncio.run(ask(shuffler_app(front), "PUT", "/v1/rounds/0/report", headers, [b"x"]))
    assert reply is not None
    assert problem_in(reply.body) is Problem.NO_ROUND


def test_of_many_who_want_a_model_one_reads_it() -> None:
    reads = []

    def read(model: bytes) -> bytes:
        reads.append(model)
        return model * 2

    async def run() -> None:
        cache = ModelCache(read, kept=1)
        assert await asyncio.gather(*(cache.get(b"a") for _ in range(10))) == [b"aa"] * 10
        assert await cache.get(b"b") == b"bb"
        assert await cache.get(b"a") == b"aa"

    asyncio.run(run())
    assert reads == [b"a", b"b", b"a"]


def test_a_large_model_and_a_batch_arrive_whole() -> None:
    clock = Clock()
    front = front_over(MemoryStore(), clock)
    front.core.store.enroll([token_digest(CLIENT)])
    analyzer = Analyzer.of(population=2, minimum_batch=0)
    analyzer.publish(front.core)
    model = bytes(range(256)) * 4000
    headers = [(b"authorization", b"Bearer " + TOKEN.encode())]
    readers = [(b"authorization", b"Bearer " + CLIENT.encode())]
    from dpcheckin.service.wire.canonical import digest

    path = f"/v1/model/{digest(model).hex()}"

    async def run() -> None:
        app = shuffler_app(front)
        front.maintain()
        put = await ask(app, "PUT", path, headers, [model[:5], model[5:]])
        assert put is not None
        assert put.status == 201
        got = await ask(app, "GET", path, readers)
        assert got is not None
        assert got.body == model
        assert got.headers[b"content-length"] == b"%d" % len(model)
        analyzer.open(front.core, 0)
        attend(front.core, 2)
        send(front.core, analyzer, 0, 1, 2)
        clock.now += 100
        claim = await ask(app, "POST", "/v1/rounds/0/claim", headers, [CHARGE])
        batch = await ask(app, "GET", "/v1/rounds/0/batch", headers)
        assert claim is not None
        assert batch is not None
        assert sorted(analyzer.marks(batch.body)) == [1, 2]
        assert front.metrics.value("releases_total") == 1
        large = [*headers, (b"content-length", b"999999999999")]
        refused = await ask(app, "PUT", path, large, [b""])
        assert refused is not None
        assert problem_in(refused.body) is Problem.TOO_LARGE
        gone = await ask(app, "PUT", path, headers, [b""], hang_up=True)
        assert gone is not None
        assert problem_in(gone.body) is Problem.MALFORMED

    asyncio.run(run())


# --- who is who -----------------------------------------------------------------------------


def test_the_directory_follows_the_store_and_knows_nobody_else() -> None:
    store = MemoryStore()
    directory = Directory(store, token_digest(TOKEN))
    directory.refresh()
    (one,) = store.enroll([token_digest(CLIENT)])
    assert directory.client(token_digest(CLIENT)) is None
    directory.refresh()
    assert directory.client(token_digest(CLIENT)) == one
    assert directory.client(None) is None
    assert len(directory) == 1
    assert directory.is_analyzer(token_digest(TOKEN))
    assert not directory.is_analyzer(token_digest(CLIENT))
    assert not directory.is_analyzer(None)
    store.revoke(one)
    directory.refresh()
    assert directory.client(token_digest(CLIENT)) is None


# --- connections ----------------------------------------------------------------------------


class FakeConnection:
    def __init__(self, late: bool) -> None:
        self.late, self.expired = late, False

    def overdue(self, now: float) -> bool:
        return self.late

    def expire(self) -> None:
        self.expired = True


def test_the_guard_counts_connections_by_address_and_drops_the_late() -> None:
    metrics = Metrics()
    guard = Guard(Limits(connections=3, connections_per_address=2), metrics)
    made: list[Any] = [FakeConnection(late=i == 1) for i in range(5)]
    assert [guard.admit(c, a) for c, a in zip(made, "xxxyy", strict=True)] == [
        True,
        True,
        False,
        True,
        False,
    ]
    guard.leave(made[2], "x")  # was never in
    guard.sweep()
    assert [c.expired for c in made] == [False, True, False, False, False]
    guard.leave(made[0], "x")
    guard.leave(made[1], "x")
    assert guard.by_address == {"y": 1}
    assert metrics.value("connections_refused_total") == 2
    assert metrics.value("timeouts_total") == 1


# --- SQLite ---------------------------------------------------------------------------------


def test_reports_leave_a_reserve_of_disk_for_closing_and_destroying(tmp_path: Any) -> None:
    free = [10_000]
    store = SqliteStore(tmp_path / "s.db", reserve=1000, free_bytes=lambda: free[0])
    clock = Clock()
    core = Shuffler(store, clock=clock, chance=SeededChance())
    analyzer = Analyzer.of(population=2, minimum_batch=0)
    analyzer.publish(core)
    analyzer.open(core, 0)
    attend(core, 2)
    assert send(core, analyzer, 0, 0) == [None]
    free[0] = 999
    with pytest.raises(StorageFailure, match="less than 1000 bytes"):
        send(core, analyzer, 0, 1)
    with pytest.raises(StorageFailure):
        attend(core, 3)
    clock.now += 10
    core.claim(0, CHARGE)
    core.finish(0)
    store.close()


def test_a_database_that_is_none_or_of_another_version_is_refused(tmp_path: Any) -> None:
    (tmp_path / "none.db").write_bytes(b"this is not a database" * 100)
    with pytest.raises(StorageFailure, match="not a database"):
        SqliteStore(tmp_path / "none.db")
    store = SqliteStore(tmp_path / "other.db")
    store._writer.execute("UPDATE about SET value = '99' WHERE name = 'version'")
    store.close()
    with pytest.raises(StorageFailure, match="version"):
        SqliteStore(tmp_path / "other.db")
    with pytest.raises(StorageFailure, match="cannot open"):
        SqliteStore(tmp_path)


def test_a_locked_database_is_busy(tmp_path: Any) -> None:
    store, other = SqliteStore(tmp_path / "s.db"), SqliteStore(tmp_path / "s.db")
    other._writer.execute("PRAGMA busy_timeout = 20")
    with store.transaction(), pytest.raises(StorageBusy), other.transaction():
        pass
    store.close()
    other.close()


def test_a_batch_that_is_not_complete_is_not_passed_off_as_one() -> None:
    store, clock = MemoryStore(), Clock()
    core = Shuffler(store, clock=clock, chance=SeededChance())
    analyzer = Analyzer.of(population=2, minimum_batch=0)
    analyzer.publish(core)
    analyzer.open(core, 0)
    attend(core, 2)
    send(core, analyzer, 0, 0, 1)
    clock.now += 10
    core.claim(0, CHARGE)
    store._batches[1].order.pop()
    with pytest.raises(StorageFailure, match="no longer complete"):
        list(core.batch(0).chunks)


# --- memory ---------------------------------------------------------------------------------


def test_large_bodies_are_wiped_and_their_memory_is_used_again() -> None:
    pool = Pool()
    arena = Arena(pool)
    bodies = [
        bytes([i]) * size for i, size in enumerate((10, 40_000, 30 << 20, 40 << 20, 70 << 20))
    ]
    places = [arena.keep(body) for body in bodies]
    assert [arena.read(place) for place in places] == bodies
    first = arena._pieces[0]
    assert first[:5] == bytes([1]) * 5
    arena.wipe()
    assert not any(first[: 31 << 20])
    again = Arena(pool)
    again.keep(bodies[2])
    again.keep(bodies[3])
    assert first in again._pieces
    assert len(pool._free) == 0
