"""The client's daemon against a shuffler that answers by a script: same requests, same bytes."""

import asyncio
import json
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from dpcheckin.service.client import daemon as daemon_module
from dpcheckin.service.client.config import ClientConfig
from dpcheckin.service.client.core import Refused
from dpcheckin.service.client.daemon import LEDGER, Clock, Counts, Daemon, http_client, run_agent
from dpcheckin.service.client.ledger import ClientLedger
from dpcheckin.service.pricing import Price
from dpcheckin.service.wire.documents import PlanDocument
from dpcheckin.service.wire.problems import Problem
from dpcheckin.service.wire.signing import public_identity
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
        left = self.answers["/v1/model" if path.startswith("/v1/model/") else path]
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, content=answer.content)

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
            "http://127.0.0.1:1",
            "token",
            public_identity(self.world.identity),
            WIDE,
            folder / "state",
        )
        self.config.state.mkdir()
        self.time, self.slept = 110.0, 0
        self.failing: Exception | None = None
        self.draws = list(draws)
        self.counts = Counts()

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

    def play(self, work: Callable[[Daemon], Any]) -> Any:
        async def run() -> Any:
            async with httpx.AsyncClient(transport=httpx.MockTransport(self.script)) as http:
                clock = Clock(lambda: self.time, self._sleep)
                made = Daemon(self.config, self, http, clock, price=price_of)
                made._source.uniform = Coin(self.draws).uniform  # type: ignore[method-assign]
                try:
                    return await work(made)
                finally:
                    self.counts = made.counts
                    made.close()

        return asyncio.run(run())

    def once(self) -> float | None:
        found: float | None = self.play(lambda made: made.once())
        return found


# The first draw of a round is the moment, the second the coin.


@pytest.mark.parametrize(("coin", "what"), [(HEADS, "reports"), (TAILS, "covers")])
def test_heads_and_tails_ask_for_the_same_and_send_as_much(
    tmp_path: Path, coin: float, what: str
) -> None:
    scene = Scene(tmp_path, 0.5, coin)
    assert scene.once() == 200.0
    model = scene.script.requests[2]
    assert model.startswith("GET /v1/model/")
    assert scene.script.requests == [
        "GET /v1/plan",
        "GET /v1/round",
        model,
        "PUT /v1/rounds/0/report",
    ]
    assert scene.time == pytest.approx(110 + 0.5 * (200 - 15 - 110))
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
    scene.script.answers["/v1/plan"].insert(
        0, httpx.Response(200, content=scene.world.page(keys=[]))
    )
    assert scene.once() == 200.0
    assert scene.script.requests.count("GET /v1/plan") == 2
    assert len(scene.script.sent) == 1


def test_a_task_that_fails_looks_like_tails(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene(tmp_path, 0.5, HEADS)
    scene.failing = RuntimeError("no memory left")
    scene.once()
    assert (scene.counts.failures, scene.counts.covers, scene.counts.reports) == (1, 1, 0)
    assert "the task failed: no memory left" in caplog.text


def test_retries_carry_the_same_bytes_until_they_are_taken(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 0.1, HEADS)
    scene.script.answers["/v1/rounds/0/report"] = [
        problem(Problem.BUSY),
        httpx.ConnectError("refused"),
        problem(Problem.TOO_MANY),
        problem(Problem.STORAGE),
        problem(Problem.DUPLICATE),
    ]
    scene.once()
    assert len(scene.script.sent) == 5
    assert len(set(scene.script.sent)) == 1
    assert scene.counts.undelivered == 0


@pytest.mark.parametrize(
    ("answer", "tries"),
    [(problem(Problem.ROUND_CLOSED), 1), (httpx.Response(500, content=b"?"), 1)],
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
    assert scene.time < 200.0
    assert scene.counts.undelivered == 1


@pytest.mark.parametrize("path", ["/v1/plan", "/v1/round", "/v1/model", "/v1/rounds/0/report"])
def test_a_token_that_nobody_knows_ends_the_agent(tmp_path: Path, path: str) -> None:
    scene = Scene(tmp_path, 0.5, HEADS)
    scene.script.answers[path] = [problem(Problem.UNAUTHORIZED)]
    with pytest.raises(Refused, match="does not know this client's token"):
        scene.once()


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
    scene.script.answers["/v1/round"] = [
        problem(Problem.NO_ROUND),
        httpx.Response(200, content=scene.world.round()),
    ]
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
    secure = ClientConfig(
        "https://shuffler.example", "token", scene.config.identity, WIDE, tmp_path / "state"
    )
    plain, checked = http_client(scene.config), http_client(secure)
    context = checked._transport._pool._ssl_context  # type: ignore[attr-defined]
    assert context.verify_mode.name == "CERT_REQUIRED"
    assert context.check_hostname
    for one in (plain, checked):
        asyncio.run(one.aclose())


# --- as a process would run it ----------------------------------------------------------------


@pytest.fixture
def signals() -> Any:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def agent_with(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, handler: Callable[..., Any]
) -> Callable[[], Counts]:
    made = lambda config: httpx.AsyncClient(transport=httpx.MockTransport(handler))  # noqa: E731
    monkeypatch.setattr(daemon_module, "http_client", made)
    return lambda: run_agent(scene.config, scene)


def test_an_agent_that_refuses_ends_with_the_reason_and_gives_its_ledger_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signals: None
) -> None:
    scene = Scene(tmp_path)
    run = agent_with(scene, monkeypatch, lambda request: problem(Problem.UNAUTHORIZED))
    with pytest.raises(Refused, match="token"):
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
