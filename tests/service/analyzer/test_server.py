"""The analyzer as a server: what it serves, and what happens when it ends."""

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest

from dpcheckin.service.analyzer import server as server_module
from dpcheckin.service.analyzer.core import Status
from dpcheckin.service.analyzer.settings import AnalyzerSettings
from dpcheckin.service.storage.identity import load_identity
from dpcheckin.service.wire.signing import public_identity
from service.analyzer_world import Adding, World
from service.plans import PRIVUNIT, plan_object
from service.shuffler_process import free_port


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
        return httpx.get(self.page + path, trust_env=False, timeout=60.0)

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


def test_the_page_knows_its_names_and_drops_slow_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_signals: None
) -> None:
    served = Served(tmp_path, monkeypatch)
    served.settings = replace(served.settings, names=("page.example",))
    # patient with the requests of this test, which may have to wait for a processor
    limits = SimpleNamespace(**asdict(replace(server_module.LIMITS, header_seconds=1e6)))
    monkeypatch.setattr(server_module, "LIMITS", limits)
    found: dict[str, int] = {}
    slow: list[bytes] = []

    def then() -> None:
        try:
            for host in ("evil.example", "", "page.example", "page.example:80", "localhost:1"):
                answer = httpx.get(served.page, headers={"host": host}, trust_env=False, timeout=120)
                found[host] = answer.status_code
            limits.header_seconds = 0.2
            with socket.create_connection(("127.0.0.1", served.settings.port), 120) as line:
                line.sendall(b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx: ")
                slow.append(line.recv(1000))
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    thread = served.watch(then)
    server_module.serve(served.settings, Adding(), 20, stay=True)
    thread.join()
    assert found == {"evil.example": 421, "": 421, "page.example": 200, "page.example:80": 200, "localhost:1": 200}
    assert slow[0].startswith(b"HTTP/1.1 400 Bad Request\r\n")


def test_without_stay_it_ends_with_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_signals: None
) -> None:
    served = Served(tmp_path, monkeypatch)
    assert server_module.serve(served.settings, Adding(), 20).startswith("all 3 rounds")
    assert len(served.world.charges()) == 3


def test_told_to_stop_in_the_middle_it_ends_cleanly_and_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_signals: None, capsys: pytest.CaptureFixture[str]
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
    assert [row["state"] for row in served.world.kept.log] == ["released", "void by batch", "released"]


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
