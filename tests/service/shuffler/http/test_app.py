"""The front of the shuffler: upkeep, health, answers to whatever goes wrong, models and batches."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dpcheckin.service.settings import Limits
from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.http import ModelCache, ShufflerFront, shuffler_app
from dpcheckin.service.shuffler.stores.sqlite import MemoryStore, SqliteStore
from dpcheckin.service.storage.database import StorageBusy, StorageFailure
from dpcheckin.service.web.front import admin_app
from dpcheckin.service.wire.credentials import token_digest
from dpcheckin.service.wire.problems import Problem, Refusal, problem_in
from service.asgi import ask
from service.shuffler_world import CHARGE, Analyzer, Clock, SeededChance, attend, send

TOKEN, CLIENT = "A" * 43, "C" * 43


# --- the front ------------------------------------------------------------------------------


def front_over(store: Any, clock: Clock | None = None, **limits: Any) -> ShufflerFront:
    core = Shuffler(store, clock=clock or Clock(), chance=SeededChance())
    front = ShufflerFront(core, token_digest(TOKEN), limits=Limits(**limits))
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


@pytest.mark.parametrize(("problem", "healthy"), [(StorageFailure("full"), False), (StorageBusy("wait"), True)])
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
        task = asyncio.create_task(front.keep_up(0.001))
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
def test_whatever_goes_wrong_the_answer_is_one_of_the_known(problem: Exception, told: Problem) -> None:
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
        for method, path in (("GET", "/v1/plan"), ("PUT", "/v1/rounds/0/report")):
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
        found = await asyncio.gather(*(cache.get(b"a") for _ in range(10)))
        assert found == [(b"aa",)] * 10
        assert len({id(part) for parts in found for part in parts}) == 1, "one buffer for all who wait"
        assert await cache.get(b"b") == (b"bb",)
        assert await cache.get(b"a") == (b"aa",)

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
