"""The client's daemon against a shuffler that answers by a script: same requests, same bytes."""

import asyncio
import dataclasses
import json
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable
from email.utils import formatdate
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from dpcheckin.errors import ServiceError
from dpcheckin.service.client import config as config_module
from dpcheckin.service.client import ledger, running
from dpcheckin.service.client.config import ClientConfig, Declined, Limits, NotBelieved, Refused
from dpcheckin.service.client.connection import ShufflerUnreachable, open_client
from dpcheckin.service.client.core import Part
from dpcheckin.service.client.daemon import LEDGER, OUTBOX, Clock, Counts, Daemon
from dpcheckin.service.client.ledger import ClientLedger, Outbox
from dpcheckin.service.client.running import run_agent
from dpcheckin.service.pricing import Price
from dpcheckin.service.wire.canonical import digest
from dpcheckin.service.wire.documents import PlanDocument, VoidDocument
from dpcheckin.service.wire.problems import Problem
from dpcheckin.service.wire.signing import identity_from_seed, public_identity, signed_bytes
from service.client_world import MODEL, WIDE, Coin, World
from service.plans import plan

HEADS, TAILS = 0.0, 0.999
Answer = httpx.Response | Exception


def problem(which: Problem) -> httpx.Response:
    return httpx.Response(which.status, content=which.body())


class Script:
    """Answers by path, the last one for ever; and everything that was asked."""

    def __init__(self, world: World) -> None:
        self.asked: list[tuple[str, str, bytes]] = []
        self.queries: list[tuple[str, str]] = []
        self.answers: dict[str, list[Answer]] = {
            "/v1/plan": [httpx.Response(200, content=world.page())],
            "/v1/round": [httpx.Response(200, content=world.round())],
            "/v1/model": [httpx.Response(200, content=MODEL)],
            "/v1/rounds/0/report": [httpx.Response(202, content=b"{}")],
        }

    def __call__(self, request: httpx.Request) -> httpx.Response:
        assert request.headers["authorization"] == "Bearer token"
        path = request.url.path
        self.asked.append((request.method, path, request.content))
        self.queries.append((path, request.url.query.decode()))
        left = self.answers["/v1/model" if path.startswith("/v1/model/") else path]
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, BaseException):
            raise answer
        return httpx.Response(answer.status_code, content=answer.content, headers=answer.headers)

    @property
    def requests(self) -> list[str]:
        return [f"{method} {path}" for method, path, _ in self.asked]

    @property
    def sent(self) -> list[bytes]:
        return [body for method, _, body in self.asked if method == "PUT"]


@lru_cache
def _price(said: bytes) -> Price:
    return Price(PlanDocument.from_object(json.loads(said)))


def price_of(document: PlanDocument) -> Price:
    """Plans are few here, and pricing one takes longer than a round."""
    return _price(document.to_bytes())


class Scene:
    """A daemon with its coin, its clock and its script."""

    def __init__(self, folder: Path, *draws: float, **changes: Any) -> None:
        self.world = World(folder, plan(**changes))
        self.script = Script(self.world)
        self.config = ClientConfig(
            "http://127.0.0.1:1", "token", public_identity(self.world.identity), WIDE, folder / "state"
        )
        self.config.state.mkdir()
        self.time, self.slept = 110.0, 0
        self.failing: Exception | None = None
        self.price: Callable[[PlanDocument], Any] = price_of
        self.draws = list(draws)
        self.counts = Counts()
        self.counts_now: Callable[[], Counts] = Counts

    def value(self, model: bytes) -> Any:
        assert model == MODEL
        if self.failing is not None:
            raise self.failing
        return np.ones(20)

    async def _sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.slept += 1
        self.time += seconds
        await asyncio.sleep(0)

    def _work(self, call: Callable[[], Part]) -> asyncio.Future[Part]:
        """At once: in these scenes nothing takes long."""
        made: asyncio.Future[Part] = asyncio.get_running_loop().create_future()
        made.set_result(call())
        return made

    def play(self, work: Callable[[Daemon], Any]) -> Any:
        async def run() -> Any:
            async with httpx.AsyncClient(transport=httpx.MockTransport(self.script)) as http:
                clock = Clock(lambda: self.time, self._sleep, self._work)
                made = Daemon(self.config, self, http, clock, price=self.price)
                made._source.uniform = Coin(self.draws).uniform  # type: ignore[method-assign]
                self.counts_now = lambda: made.counts
                try:
                    return await work(made)
                finally:
                    self.counts = made.counts
                    made.close()

        return asyncio.run(run())

    def play_for(self, pauses: int, until: Callable[[], bool] = lambda: False) -> None:
        """Run until it has slept so often, or so."""
        stop, real, limit = asyncio.Event(), self._sleep, self.slept + pauses

        async def sleep(seconds: float) -> None:
            await real(seconds)
            if self.slept >= limit or until():
                stop.set()

        self._sleep = sleep  # type: ignore[method-assign]
        self.play(lambda made: made.run(stop))
        self._sleep = real  # type: ignore[method-assign]

    def once(self) -> float | None:
        found: float | None = self.play(lambda made: made.once())
        return found


# The first draw of a round is the moment, the second the coin.


@pytest.mark.parametrize(("coin", "what"), [(HEADS, "reports"), (TAILS, "covers")])
def test_heads_and_tails_ask_for_the_same_and_send_as_much(tmp_path: Path, coin: float, what: str) -> None:
    scene = Scene(tmp_path, 0.5, coin)
    assert scene.once() == 200.0
    model = scene.script.requests[2]
    assert model.startswith("GET /v1/model/")
    assert scene.script.requests == ["GET /v1/plan", "GET /v1/round", model, "PUT /v1/rounds/0/report"]
    assert scene.time == pytest.approx(140 + 0.5 * (200 - 15 - 140))
    other = tmp_path / "other"
    other.mkdir()
    tails = Scene(other, 0.5, TAILS)
    tails.once()
    assert [len(one) for one in scene.script.sent] == [len(one) for one in tails.script.sent]
    assert (scene.counts.rounds, getattr(scene.counts, what)) == (1, 1)
    assert scene.counts.reports + scene.counts.covers == 1


def test_without_cover_only_heads_sends(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 0.5, TAILS, cover=False)
    assert scene.once() == 200.0
    assert scene.script.sent == []
    assert (scene.counts.rounds, scene.counts.reports, scene.counts.covers) == (1, 0, 0)


def test_a_round_is_dealt_with_once_also_after_a_restart(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 0.5, HEADS)
    scene.once()
    assert scene.once() == 200.0
    assert len(scene.script.sent) == 1


def test_nothing_there_yet_is_no_round(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.script.answers["/v1/plan"] = [problem(Problem.NOT_FOUND)]
    assert scene.once() is None
    scene.script.answers["/v1/plan"] = [httpx.Response(200, content=scene.world.page())]
    scene.script.answers["/v1/round"] = [problem(Problem.NO_ROUND)]
    assert scene.once() is None
    assert scene.counts.rounds == 0


def test_a_key_that_is_new_is_looked_up_on_the_plan_page(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 0.5, HEADS)
    scene.script.answers["/v1/plan"].insert(0, httpx.Response(200, content=scene.world.page(keys=[])))
    assert scene.once() == 200.0
    assert scene.script.requests.count("GET /v1/plan") == 2
    assert len(scene.script.sent) == 1


def test_a_task_that_fails_is_a_report_and_a_count_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    scene = Scene(tmp_path, 0.5, HEADS)
    scene.failing = RuntimeError("positive")
    scene.once()
    assert (scene.counts.failures, scene.counts.covers, scene.counts.reports) == (1, 0, 1)
    opened = scene.world.key.open(scene.script.sent[0], scene.world.plan.id, digest(MODEL))
    assert len(opened) > 0
    said = [one.getMessage() for one in caplog.records if one.name.startswith("dpcheckin")]
    assert said == ["taking part"]
    kept = [one.read_bytes() for one in scene.config.state.iterdir()]
    assert not any(b"positive" in content for content in kept)


class Killed(BaseException):
    """kill -9, as far as a test can play it."""


@pytest.mark.parametrize("coin", [HEADS, TAILS])
@pytest.mark.parametrize("sent", [0, 1, 2], ids=["before its moment", "sending", "sent"])
def test_a_process_killed_within_a_round_sends_one_envelope_and_no_other(
    tmp_path: Path, coin: float, sent: int
) -> None:
    """Before its moment: what was prepared before the data were touched, at the same moment."""
    scene = Scene(tmp_path, 0.5, coin)
    report = "/v1/rounds/0/report"
    killed: list[Answer] = [Killed(), httpx.Response(202, content=b"{}")]  # type: ignore[list-item]
    if sent:
        scene.script.answers[report] = [httpx.ConnectError("refused"), *killed][2 - sent :]
    else:
        real = scene._sleep

        async def sleep(seconds: float) -> None:
            raise Killed

        scene._sleep = sleep  # type: ignore[method-assign]
    with pytest.raises(Killed):
        scene.once()
    before = list(scene.script.sent)
    assert len(before) == sent
    if not sent:
        scene._sleep = real  # type: ignore[method-assign]
    scene.failing = RuntimeError("is not asked again")
    scene.once()
    assert len(scene.script.sent) == sent + 1
    assert len(set(scene.script.sent)) == 1  # never two that differ: that would tell
    assert sent or scene.time == pytest.approx(140 + 0.5 * (200 - 15 - 140))
    kind = scene.script.sent[0][6]
    assert kind == (1 if coin == HEADS else 0)
    assert scene.counts.failures == 0
    scene.once()
    assert len(scene.script.sent) == sent + 1


def test_the_last_envelope_is_sent_after_a_restart_though_the_budget_is_spent(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 0.5, HEADS)
    own = Limits(**{**WIDE.__dict__, "total_local_epsilon": 4.5})
    scene.config = dataclasses.replace(scene.config, limits=own)
    scene.script.answers["/v1/rounds/0/report"] = [Killed(), httpx.Response(202, content=b"{}")]  # type: ignore[list-item]
    with pytest.raises(Killed):
        scene.once()
    assert scene.once() == 200.0
    assert len(scene.script.sent) == 2
    with pytest.raises(Refused, match="without an honest shuffler"):
        scene.once()


def test_what_was_kept_for_a_round_that_is_over_is_not_sent(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 0.5, HEADS)
    scene.script.answers["/v1/rounds/0/report"] = [Killed()]  # type: ignore[list-item]
    with pytest.raises(Killed):
        scene.once()
    scene.time = 201.0
    scene.once()
    assert len(scene.script.sent) == 1
    assert not (scene.config.state / OUTBOX).exists()


@pytest.mark.parametrize("content", [b"", b"\n", b"{}\nx", b"[]\n", b"\xff\n", b'{"envelope":9}\nx'])
def test_an_outbox_that_cannot_be_read_holds_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / OUTBOX).write_bytes(content)
    assert Outbox(tmp_path / OUTBOX).held is None


@pytest.mark.parametrize("failing", [None, RuntimeError("no")])
def test_what_is_written_is_as_large_whatever_the_task_and_the_coin(
    tmp_path: Path, failing: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: dict[float, list[tuple[str, int]]] = {}
    real = ledger.replace_file
    for coin in (HEADS, TAILS):
        folder = tmp_path / str(coin)
        folder.mkdir()
        seen = written.setdefault(coin, [])

        def noted(path: Path, content: bytes, seen: Any = seen) -> None:
            seen.append((path.name, len(content)))
            real(path, content)

        monkeypatch.setattr(ledger, "replace_file", noted)
        scene = Scene(folder, 0.5, coin)
        scene.failing = failing
        scene.once()
    assert written[HEADS] == written[TAILS]
    assert len(written[HEADS]) == 2  # before the data are touched, and before it is sent


def test_retries_carry_the_same_bytes_until_they_are_taken(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 0.1, HEADS)
    scene.script.answers["/v1/rounds/0/report"] = [
        problem(Problem.BUSY),
        httpx.ConnectError("refused"),
        problem(Problem.STORAGE),
        problem(Problem.DUPLICATE),
    ]
    scene.once()
    assert len(scene.script.sent) == 4
    assert len(set(scene.script.sent)) == 1
    assert scene.counts.undelivered == 0


@pytest.mark.parametrize(
    ("answer", "tries"), [(problem(Problem.ROUND_CLOSED), 1), (httpx.Response(500, content=b"?"), 1)]
)
def test_a_report_that_is_refused_for_good_is_not_sent_again(
    tmp_path: Path, answer: httpx.Response, tries: int
) -> None:
    scene = Scene(tmp_path, 0.1, HEADS)
    scene.script.answers["/v1/rounds/0/report"] = [answer]
    scene.once()
    assert (len(scene.script.sent), scene.counts.undelivered) == (tries, 1)


def test_nothing_is_sent_after_the_end_of_the_window(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 0.9, HEADS)
    scene.script.answers["/v1/rounds/0/report"] = [problem(Problem.BUSY)]
    scene.once()
    assert 1 < len(scene.script.sent) < 6
    assert scene.time < 210.0, "it has not slept for a day"
    assert scene.counts.undelivered == 1


@pytest.mark.parametrize("path", ["/v1/plan", "/v1/round", "/v1/model", "/v1/rounds/0/report"])
def test_a_token_that_nobody_knows_is_said_and_asked_for_again_later(
    tmp_path: Path, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    scene, stop = Scene(tmp_path, 0.5, HEADS), asyncio.Event()
    scene.script.answers[path] = [problem(Problem.UNAUTHORIZED)]
    pauses: list[float] = []
    real = scene._sleep

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) >= 20:
            stop.set()
        await real(seconds)

    scene._sleep = sleep  # type: ignore[method-assign]
    scene.play(lambda made: made.run(stop))
    said = "the shuffler does not know this client's token; asking again in about"
    assert said in caplog.text
    assert max(pauses) > 30.0  # patient, and still there
    assert "Bearer" not in caplog.text


def test_pauses_of_an_unknown_token_grow_to_an_hour(tmp_path: Path) -> None:
    scene, stop = Scene(tmp_path), asyncio.Event()
    scene.script.answers["/v1/plan"] = [problem(Problem.UNAUTHORIZED)]
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 12:
            stop.set()

    scene._sleep = sleep  # type: ignore[method-assign]
    scene.play(lambda made: made.run(stop))
    assert 30.0 <= pauses[0] <= 90.0
    assert 1800.0 <= pauses[-1] <= 5400.0


@pytest.mark.parametrize("path", ["/v1/round", "/v1/model"])
@pytest.mark.parametrize("body", [b"<html>", b"", b"{}", b"9" * 5000])
def test_what_nobody_signed_is_not_believed_and_ends_nothing(
    tmp_path: Path, path: str, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """A login page of some network, or a shuffler that makes things up: asked again, later."""
    scene, stop = Scene(tmp_path), asyncio.Event()
    scene.script.answers[path].insert(0, httpx.Response(200, content=body))
    real = scene._sleep

    async def sleep(seconds: float) -> None:
        await real(seconds)
        if scene.counts_now().rounds:
            stop.set()

    scene._sleep = sleep  # type: ignore[method-assign]
    scene.play(lambda made: made.run(stop))
    assert "shuffler not believed, trying again: " in caplog.text
    assert scene.counts.rounds == len(scene.script.sent) == 1


def test_who_never_heard_of_its_analyzer_is_pointed_at_its_own_file_and_goes_on_asking(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene(tmp_path)
    other = public_identity(identity_from_seed(bytes(32)))
    scene.config = dataclasses.replace(scene.config, identity=other)
    scene.play_for(8)
    for said in ("signature of this plan does not hold", f"analyzer.identity {other.hex()[:16]}", "analyzer identity`"):
        assert said in caplog.text
    assert scene.script.sent == []


def test_a_round_that_is_shown_again_later_ends_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 0.5, TAILS, 0.5, TAILS)

    async def work(made: Daemon) -> None:
        later = scene.world.round(3, opens=100.0, closes=200.0)
        scene.script.answers["/v1/round"] = [httpx.Response(200, content=later)]
        scene.script.answers["/v1/rounds/3/report"] = [httpx.Response(202, content=b"{}")]
        await made.once()
        old = httpx.Response(200, content=scene.world.round(1, opens=100.0, closes=200.0))
        scene.script.answers["/v1/round"] = [old]
        with pytest.raises(NotBelieved, match="round 1 after round 3"):
            await made.once()

    scene.play(work)
    assert scene.counts.rounds == 1


def test_another_model_than_the_rounds_is_refused_before_any_coin(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.script.answers["/v1/model"] = [httpx.Response(200, content=b"another")]
    with pytest.raises(Refused, match="not the one that the round names"):
        scene.once()
    assert scene.counts.rounds == 0


def test_it_goes_on_while_the_shuffler_is_away_with_longer_and_longer_pauses(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene(tmp_path)
    scene.script.answers["/v1/plan"] = [
        httpx.ConnectError("refused"),
        httpx.Response(502, content=b"<html>"),
        problem(Problem.BUSY),
        httpx.Response(200, content=scene.world.page()),
    ]
    scene.script.answers["/v1/round"] = [problem(Problem.NO_ROUND), httpx.Response(200, content=scene.world.round())]
    stop = asyncio.Event()
    pauses: list[float] = []
    real = scene._sleep

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await real(seconds)
        if scene.time > 250.0:  # the round is over: its successor would be asked for
            stop.set()

    scene._sleep = sleep  # type: ignore[method-assign]
    caplog.set_level(logging.WARNING, "dpcheckin.client")
    scene.play(lambda made: made.run(stop))
    assert scene.counts.rounds == 1
    assert len(scene.script.sent) == 1
    away = [0.5, 1.0, 2.0]  # half of 1, 2 and 4 seconds at least, one and a half times at most
    assert all(low <= pause <= 3 * low for low, pause in zip(away, pauses, strict=False))
    for said in ("ConnectError", "/v1/plan: 502", "/v1/plan: busy"):
        assert f"trying again: {said}" in caplog.text
    assert "token" not in caplog.text


def test_an_https_address_is_only_spoken_to_with_a_checked_certificate(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    secure = ClientConfig("https://shuffler.example", "token", scene.config.identity, WIDE, tmp_path / "state")
    plain, checked = (open_client(config.shuffler, config.authority) for config in (scene.config, secure))
    context = checked._transport._pool._ssl_context  # type: ignore[attr-defined]
    assert context.verify_mode.name == "CERT_REQUIRED"
    assert context.check_hostname
    for one in (plain, checked):
        asyncio.run(one.aclose())


# --- what changes around it -------------------------------------------------------------------


def test_an_agent_joins_the_analyzers_next_plan_on_its_own(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(tmp_path, 0.5, HEADS)
    other = World(tmp_path / "other", plan(nonce="11" * 16))

    async def work(made: Daemon) -> None:
        await made.once()
        scene.script.answers["/v1/plan"] = [httpx.Response(200, content=other.page())]
        scene.script.answers["/v1/round"] = [httpx.Response(200, content=other.round())]
        scene.time = 110.0
        made._source.uniform = Coin([0.5, HEADS]).uniform  # type: ignore[method-assign]
        assert await made.once() == 200.0

    caplog.set_level(logging.INFO, "dpcheckin.client")
    scene.play(work)
    assert len(scene.script.sent) == 2
    assert scene.counts.reports == 2
    other.key.open(scene.script.sent[1], other.plan.id, digest(MODEL))
    assert "the analyzer has another plan" in caplog.text
    # asked with the plan it had, then with the plan it has: nobody is counted in a plan unread
    asked = [query for path, query in scene.script.queries if path == "/v1/round"]
    assert asked == [f"plan={p}" for p in 2 * [scene.world.plan.id.hex()] + [other.plan.id.hex()]]


def test_an_agent_declines_a_plan_beyond_its_limits_and_joins_the_next(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One such plan, after a good one or as the first, ends nobody."""
    scene = Scene(tmp_path, 0.5, HEADS)
    other = World(tmp_path / "other", plan(nonce="11" * 16, rate=0.6))
    good = [httpx.Response(200, content=body) for body in (scene.world.page(), scene.world.round())]
    scene.script.answers["/v1/plan"] = [httpx.Response(200, content=other.page())] * 3 + [good[0]]
    scene.script.answers["/v1/round"] = [good[1]]
    caplog.set_level(logging.INFO, "dpcheckin.client")
    priced: list[str] = []
    scene.price = lambda document: (priced.append(document.nonce), price_of(document))[1]
    scene.play_for(9, lambda: bool(scene.script.sent))
    assert len(scene.script.sent) == 1
    assert caplog.text.count("waiting for another plan: plan " + other.plan.id.hex()[:16]) == 1
    assert "the plan's rate is 0.6, this client allows" in caplog.text
    assert "back: taking part again" in caplog.text
    assert priced.count(other.plan.nonce) == 1, "priced once, however often it is shown"


def test_a_plan_page_that_is_behind_the_round_is_looked_at_again_later(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    other = World(tmp_path / "other", plan(nonce="11" * 16))
    scene.script.answers["/v1/round"] = [httpx.Response(200, content=other.round())]
    assert scene.once() is None
    assert scene.counts.rounds == 0


@pytest.mark.parametrize(("off", "said"), [(86_400, "behind"), (-86_400, "ahead of")])
def test_a_clock_a_day_off_is_said_once_and_does_not_matter(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, off: int, said: str
) -> None:
    """Ten seconds into a round of a hundred, by the shuffler's clock and not by this device's."""
    scene = Scene(tmp_path, 0.5, HEADS)
    scene.time = 100_000.0
    there = 100_000 + off
    scene.script.answers["/v1/round"] = [
        httpx.Response(
            200,
            content=scene.world.round(opens=there - 10.0, closes=there + 90.0),
            headers={"date": formatdate(there, usegmt=True)},
        )
    ]

    async def work(made: Daemon) -> None:
        await made.once()
        scene.time = 100_000.0
        await made.once()

    scene.play(work)
    assert caplog.text.count(f"clock is 86400 seconds {said} the shuffler's") == 1
    assert len(scene.script.sent) == 1


def test_with_a_wrong_clock_moments_are_as_with_a_right_one(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 0.5, HEADS)
    scene.time = 110.0 + 86_400
    scene.script.answers["/v1/round"] = [
        httpx.Response(200, content=scene.world.round(), headers={"date": formatdate(110, usegmt=True)})
    ]
    scene.once()
    assert scene.time - 86_400 == pytest.approx(140 + 0.5 * (200 - 15 - 140))


def test_a_round_found_too_late_is_left_alone_whatever_the_coin(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 0.5, HEADS)
    scene.time = 160.0  # an allowance of 30 seconds and a margin of 15 do not fit any more
    assert scene.once() == 200.0
    assert (scene.counts.missed, scene.counts.rounds, scene.script.sent) == (1, 0, [])


def test_a_model_larger_than_the_owner_allows_is_not_read(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.config = dataclasses.replace(scene.config, model_bytes=len(MODEL) - 1)
    with pytest.raises(ShufflerUnreachable, match=f"more than {len(MODEL) - 1} bytes"):
        scene.once()


# --- void rounds ------------------------------------------------------------------------------


SHUFFLER = identity_from_seed(b"\5" * 32)


def statement(scene: Scene, *rounds: int) -> httpx.Response:
    said = VoidDocument(scene.world.plan.id.hex(), rounds)
    return httpx.Response(200, content=signed_bytes(said, SHUFFLER))


@pytest.mark.parametrize("coin", [HEADS, TAILS])
def test_after_every_round_whatever_the_coin_was_void_rounds_are_asked_for(tmp_path: Path, coin: float) -> None:
    scene = Scene(tmp_path, 0.5, coin)
    scene.config = dataclasses.replace(scene.config, shuffler_identity=public_identity(SHUFFLER))
    scene.script.answers["/v1/void"] = [statement(scene), statement(scene, 0)]

    async def work(made: Daemon) -> float:
        for _ in range(3):
            await made.once()
        return made.ledger.totals().epsilon

    assert scene.play(work) == 0.0
    assert scene.counts.void == 1
    assert scene.script.requests.count("GET /v1/void") == 2


def test_a_budget_that_a_statement_may_free_is_not_called_spent_at_once(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 0.5, HEADS)
    own = Limits(**{**WIDE.__dict__, "total_local_epsilon": 4.5})
    scene.config = dataclasses.replace(scene.config, limits=own, shuffler_identity=public_identity(SHUFFLER))
    scene.script.answers["/v1/void"] = [statement(scene)]

    async def work(made: Daemon) -> None:
        for _ in range(9):
            await made.once()

    with pytest.raises(Refused, match="without an honest shuffler"):
        scene.play(work)
    assert scene.script.requests.count("GET /v1/void") == 7  # first, after the round, five more


# --- as a process would run it ----------------------------------------------------------------


@pytest.fixture
def signals() -> Any:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def agent_with(scene: Scene, monkeypatch: pytest.MonkeyPatch, handler: Callable[..., Any]) -> Callable[[], Counts]:
    made = lambda *_: httpx.AsyncClient(transport=httpx.MockTransport(handler))  # noqa: E731
    monkeypatch.setattr(running, "open_client", made)
    return lambda: run_agent(scene.config, scene)


def test_an_agent_that_refuses_ends_with_the_reason_and_gives_its_ledger_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signals: None
) -> None:
    scene = Scene(tmp_path)
    own = Limits(**{**WIDE.__dict__, "total_epsilon": 1e-9})
    scene.config = dataclasses.replace(scene.config, limits=own)
    monkeypatch.setattr(config_module, "check_limits", lambda *_: None)  # as if earlier plans had spent it
    run = agent_with(scene, monkeypatch, scene.script)
    with pytest.raises(Refused, match="one more round would make epsilon"):
        run()
    ClientLedger(scene.config.state / LEDGER).close()


def test_an_agent_that_is_told_to_stop_says_what_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signals: None
) -> None:
    scene, asked = Scene(tmp_path), []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        if len(asked) == 1:  # a second signal might come when nobody handles it any more
            os.kill(os.getpid(), signal.SIGTERM)
        return problem(Problem.NOT_FOUND)

    counts = agent_with(scene, monkeypatch, answer)()
    assert counts == Counts()
    ClientLedger(scene.config.state / LEDGER).close()


def test_a_shuffler_that_hangs_up_is_no_reason_to_end(tmp_path: Path, signals: None) -> None:
    """With real connections, to somebody who closes them without a word."""
    scene = Scene(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = ClientConfig(
            f"http://127.0.0.1:{listening.getsockname()[1]}",
            "token",
            scene.config.identity,
            WIDE,
            tmp_path / "state",
            poll_seconds=0.01,
        )

        def hang_up() -> None:
            for _ in range(3):
                listening.accept()[0].close()
            os.kill(os.getpid(), signal.SIGTERM)

        thread = threading.Thread(target=hang_up, daemon=True)
        thread.start()
        assert run_agent(config, scene).rounds == 0
        thread.join()


class Answering(Scene):
    """A scene whose task hears of every plan."""

    most: int | None = 1

    def join(self, plan: PlanDocument) -> int | None:
        self.heard = [*getattr(self, "heard", []), plan.nonce]
        if self.most == 0:
            raise ServiceError("nothing to say about this")
        return self.most


def test_a_client_answers_as_often_as_the_plan_says_and_then_waits_for_another(tmp_path: Path) -> None:
    scene = Answering(tmp_path, 0.5, HEADS, 0.5, HEADS)
    other = World(tmp_path, plan(nonce="11" * 16))

    async def work(daemon: Daemon) -> Any:
        assert await daemon.once() == 200.0
        scene.script.answers["/v1/round"] = [httpx.Response(200, content=scene.world.round(1))]
        before = len(scene.script.asked)
        assert await daemon.once() is None  # it looks for another plan, and is not there
        assert scene.script.requests[before:] == ["GET /v1/plan"]
        scene.script.answers["/v1/plan"] = [httpx.Response(200, content=other.page())]
        scene.script.answers["/v1/round"] = [httpx.Response(200, content=other.round(0))]
        scene.time = 110.0
        return await daemon.once()

    assert scene.play(work) == 200.0
    assert scene.heard == [scene.world.plan.nonce, other.plan.nonce]
    assert len(scene.script.sent) == 2


def test_a_round_of_another_plan_makes_a_client_look_at_the_plan_page(tmp_path: Path) -> None:
    scene = Answering(tmp_path, 0.5, HEADS, 0.5, HEADS)
    scene.most = None
    other = World(tmp_path, plan(nonce="11" * 16))

    async def work(daemon: Daemon) -> Any:
        assert await daemon.once() == 200.0
        scene.script.answers["/v1/plan"] = [httpx.Response(200, content=other.page())]
        scene.script.answers["/v1/round"] = [httpx.Response(200, content=other.round(0))]
        scene.time = 110.0
        return await daemon.once()

    assert scene.play(work) == 200.0
    assert scene.heard == [scene.world.plan.nonce, other.plan.nonce]


def test_a_task_with_nothing_to_say_takes_no_part(tmp_path: Path) -> None:
    scene = Answering(tmp_path)
    scene.most = 0
    for _ in range(2):
        with pytest.raises(Declined, match="nothing to say about this"):
            scene.once()
    assert scene.script.requests == ["GET /v1/plan"] * 2


HTML = httpx.Response(200, content=b"<html><h1>Welcome to the hotel</h1></html>")
ODD: dict[str, list[Answer]] = {
    "an HTML page": [HTML],
    "a redirect": [httpx.Response(302, headers={"location": "http://127.0.0.1:1/login"})],
    "a 502 with HTML": [httpx.Response(502, content=b"<html>")],
    "deep JSON": [httpx.Response(200, content=b"[" * 100_000)],
    "deep JSON and an error": [httpx.Response(500, content=b'{"a":' * 100_000)],
    "nothing": [httpx.Response(200, content=b"")],
}


@pytest.mark.parametrize("where", ["/v1/plan", "/v1/round", "/v1/model"])
@pytest.mark.parametrize("odd", ODD)
def test_one_strange_answer_ends_no_client(tmp_path: Path, odd: str, where: str) -> None:
    """At its first question or later; afterwards the round is played as if nothing had happened."""
    scene = Scene(tmp_path, 0.5, HEADS)
    scene.script.answers[where] = [*ODD[odd], *scene.script.answers[where]]
    scene.play_for(12, lambda: bool(scene.script.sent))
    assert len(scene.script.sent) == 1


def test_a_plan_page_without_the_rounds_key_is_looked_at_again(tmp_path: Path) -> None:
    """Of two honest front ends one may be behind: its page lacks the key that the other's round names."""
    scene = Scene(tmp_path, 0.5, HEADS)
    whole = scene.script.answers["/v1/plan"][0]
    start = scene.world.page().index(b'],"plan":')
    behind = httpx.Response(200, content=b'{"keys":[' + scene.world.page()[start:])
    scene.script.answers["/v1/plan"] = [behind, behind, whole]
    scene.play_for(12, lambda: bool(scene.script.sent))
    assert len(scene.script.sent) == 1


@pytest.mark.parametrize("often", [1, 2, 1000])
@pytest.mark.parametrize("where", ["/v1/plan", "/v1/round"])
def test_a_date_of_yesterday_makes_no_client_late(tmp_path: Path, where: str, often: int) -> None:
    """However often it is said: the signed round is open by this device's own clock."""
    scene = Scene(tmp_path, 0.5, HEADS)
    good = scene.script.answers[where][0]
    assert isinstance(good, httpx.Response)
    odd = httpx.Response(200, content=good.content, headers={"date": formatdate(scene.time - 86_400, usegmt=True)})
    scene.script.answers[where] = [*[odd] * often, good]
    scene.play_for(12, lambda: bool(scene.script.sent))
    assert len(scene.script.sent) == 1
    assert scene.time < 210.0, "it has not slept for a day"
