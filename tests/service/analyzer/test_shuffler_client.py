"""The line to the shuffler, and the analyzer as a server: what happens when things end."""

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from dpcheckin.service.analyzer import server as server_module
from dpcheckin.service.analyzer.core import Status
from dpcheckin.service.analyzer.keys import load_identity
from dpcheckin.service.analyzer.settings import AnalyzerSettings
from dpcheckin.service.analyzer.shuffler_client import ShufflerClient, Stopped, TruncatedBatch
from dpcheckin.service.wire.canonical import digest
from dpcheckin.service.wire.problems import Malformed, Problem, Refusal
from dpcheckin.service.wire.signing import public_identity
from service.analyzer.test_daemon import Adding, World
from service.plans import PRIVUNIT, plan_object
from service.shuffler_process import free_port

Handler = Callable[[httpx.Request], httpx.Response]


def line(handler: Handler, stop: threading.Event | None = None) -> ShufflerClient:
    made = ShufflerClient("http://127.0.0.1:1", "secret", stop=stop)
    headers = made._http.headers
    made.close()
    made._http = httpx.Client(
        transport=httpx.MockTransport(handler), base_url="http://127.0.0.1:1", headers=headers
    )
    return made


def problem(which: Problem) -> httpx.Response:
    return httpx.Response(which.status, content=which.body())


def test_requests_are_those_of_the_table_with_the_token() -> None:
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["authorization"] == "Bearer secret"
        asked.append((request.method, request.url.path, request.content))
        return httpx.Response(200, content=b'{"present":3,"reports":2,"state":"closed"}')

    one = line(answer)
    one.put_plan(b"plan")
    one.put_key(b"\1" * 8, b"key")
    one.put_model(b"model")
    one.put_round(4, b"round")
    one.claim(4, "ab")
    one.delete(4)
    assert one.status(4) == Status("closed", 3, 2)
    assert asked == [
        ("PUT", "/v1/plan", b"plan"),
        ("PUT", "/v1/keys/" + "01" * 8, b"key"),
        ("PUT", "/v1/model/" + digest(b"model").hex(), b"model"),
        ("PUT", "/v1/rounds/4", b"round"),
        ("POST", "/v1/rounds/4/claim", b'{"charge":"ab"}'),
        ("DELETE", "/v1/rounds/4/batch", b""),
        ("GET", "/v1/rounds/4", b""),
    ]
    one.close()


def test_it_waits_for_a_busy_or_absent_shuffler_and_takes_no_for_an_answer() -> None:
    answers: list[Any] = [
        httpx.ConnectError("refused"),
        problem(Problem.BUSY),
        problem(Problem.TOO_MANY),
        problem(Problem.STORAGE),
        problem(Problem.CONFLICT),
    ]

    def answer(request: httpx.Request) -> httpx.Response:
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        assert isinstance(found, httpx.Response)
        return found

    one = line(answer)
    one._stop.wait = lambda seconds=None: False  # type: ignore[method-assign, assignment]
    with pytest.raises(Refusal) as refusal:
        one.put_plan(b"plan")
    assert refusal.value.problem is Problem.CONFLICT
    assert one.failures == 4
    assert not answers


def test_it_stops_waiting_when_it_is_told_to() -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(Stopped, match="while the shuffler was away"):
        line(lambda request: problem(Problem.BUSY), stop).put_plan(b"plan")


def test_a_round_that_is_not_known_has_no_status_and_other_refusals_pass_through() -> None:
    for which in (Problem.NOT_FOUND, Problem.NO_ROUND):
        assert line(lambda request, which=which: problem(which)).status(0) is None  # type: ignore[misc]
    with pytest.raises(Refusal, match="unauthorized"):
        line(lambda request: problem(Problem.UNAUTHORIZED)).status(0)
    with pytest.raises(Malformed, match="answered 418 in no known form"):
        line(lambda request: httpx.Response(418, content=b"teapot")).status(0)


def record(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def streamed(body: bytes) -> httpx.Response:
    return httpx.Response(200, stream=httpx.ByteStream(body))


def test_a_batch_is_its_records_or_an_error_that_is_tried_again() -> None:
    body = record(b"one") + record(b"") + record(b"three")
    with line(lambda request: streamed(body)).batch(0) as found:
        assert list(found) == [b"one", b"", b"three"]
    with (
        pytest.raises(TruncatedBatch, match="2 bytes after"),
        line(lambda request: streamed(body + b"\0\0")).batch(0) as found,
    ):
        list(found)
    with (
        pytest.raises(Refusal, match="not-claimed"),
        line(lambda request: problem(Problem.NOT_CLAIMED)).batch(0),
    ):
        pass

    def broken(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadError("reset")

    with pytest.raises(TruncatedBatch, match="ReadError"), line(broken).batch(0):
        pass


# --- the analyzer as a server -----------------------------------------------------------------


@pytest.fixture
def kept_signals() -> Iterator[None]:
    before = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    loggers = [logging.getLogger(name) for name in ("dpcheckin.analyzer", "uvicorn")]
    held = [(one, one.handlers, one.propagate, one.level) for one in loggers]
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    for logger, handlers, propagate, level in held:
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


class Served:
    """`serve` on a folder, with a shuffler by script, and somebody who looks at the page."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, **outcomes: Status) -> None:
        said = plan_object(rounds=3, epsilon_budget=50.0)
        plan = {k: v for k, v in said.items() if k not in ("type", "format", "randomizer", "nonce")}
        del plan["task"]
        self.settings = AnalyzerSettings(
            folder,
            "http://127.0.0.1:1",
            "token",
            None,
            plan,
            {k: v for k, v in PRIVUNIT.items() if k != "dimension"},
            {},
            port=free_port(),
            rotate_every=0,
        )
        document = self.settings.plan_document(20)
        script = {int(k.removeprefix("round")): v for k, v in outcomes.items()}
        self.world = World(folder, document, script)
        monkeypatch.setattr(server_module, "ShufflerClient", lambda *_: self.world.shuffler)
        self.page = f"http://127.0.0.1:{self.settings.port}"
        self.seen: dict[str, Any] = {}

    def look(self, path: str) -> httpx.Response:
        return httpx.get(self.page + path, trust_env=False, timeout=5.0)

    def watch(self, then: Callable[[], None]) -> threading.Thread:
        """Wait in a thread of its own until the page shows that all is over, then do it."""

        def work() -> None:
            while True:
                try:
                    self.seen = self.look("/status.json").json()
                except httpx.TransportError:
                    continue
                if self.seen["finished"] is not None:
                    break
            then()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        return thread


def test_it_serves_the_page_until_it_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_signals: None
) -> None:
    served = Served(tmp_path, monkeypatch)
    pages: dict[str, httpx.Response] = {}

    def then() -> None:
        pages.update({path: served.look(path) for path in ("/", "/healthz", "/metrics", "/none")})
        os.kill(os.getpid(), signal.SIGTERM)

    thread = served.watch(then)
    reason = server_module.serve(served.settings, Adding(), 20, stay=True)
    thread.join()
    assert reason == "all 3 rounds of the plan have been charged"
    assert served.seen["finished"] == reason
    assert [row["state"] for row in served.seen["rounds"]] == ["released"] * 3
    assert pages["/healthz"].text == "ok\n"
    assert "dpcheckin_analyzer_rounds_charged 3\n" in pages["/metrics"].text
    assert "default-src 'none'" in pages["/"].headers["content-security-policy"]
    assert pages["/none"].status_code == 404


def test_without_stay_it_ends_with_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_signals: None
) -> None:
    served = Served(tmp_path, monkeypatch)
    assert server_module.serve(served.settings, Adding(), 20).startswith("all 3 rounds")
    assert len(served.world.charges()) == 3


def test_told_to_stop_in_the_middle_it_ends_cleanly_and_goes_on_later(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kept_signals: None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    served = Served(tmp_path, monkeypatch, round1=Status("open"))
    thread = threading.Thread(
        target=lambda: (
            wait_for(lambda: len(served.look("/status.json").json()["rounds"]) == 1),
            os.kill(os.getpid(), signal.SIGHUP),
            os.kill(os.getpid(), signal.SIGTERM),
        ),
        daemon=True,
    )
    thread.start()
    assert server_module.serve(served.settings, Adding(), 20) == "stopped"
    thread.join()
    assert len(served.world.charges()) == 1
    said = capsys.readouterr().err
    assert '"event": "listening"' in said
    assert public_identity(load_identity(tmp_path)).hex() in said
    served.world.shuffler.status_of[1] = Status("void", 120, 1, "batch")
    assert server_module.serve(served.settings, Adding(), 20).startswith("all 3 rounds")
    assert [row["state"] for row in served.world.kept.log] == [
        "released",
        "void by batch",
        "released",
    ]


def wait_for(condition: Callable[[], bool]) -> None:
    while True:
        try:
            if condition():
                return
        except httpx.TransportError:
            pass


def test_what_the_conductor_fails_with_is_raised_and_not_swallowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_signals: None
) -> None:
    class Failing(Adding):
        def step(self, *_: Any) -> Any:
            raise np.linalg.LinAlgError("no way")

    served = Served(tmp_path, monkeypatch)
    with pytest.raises(np.linalg.LinAlgError, match="no way"):
        server_module.serve(served.settings, Failing(), 20, stay=True)
    assert len(served.world.charges()) == 1  # paid for, and tried again after a restart
    assert server_module.serve(served.settings, Adding(), 20).startswith("all 3 rounds")
