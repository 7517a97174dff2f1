"""The shuffler put together and run, in this process: it serves, tells, and ends when told to."""

import json
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.service import tls
from dpcheckin.service.shuffler import server
from dpcheckin.service.shuffler.settings import Settings
from dpcheckin.service.shuffler.stores.sqlite import MemoryStore, SqliteStore
from dpcheckin.service.storage.identity import analyzer_token
from dpcheckin.service.wire.problems import Problem, problem_in
from service.shuffler_process import free_port
from service.shuffler_world import Analyzer


@pytest.fixture
def kept_logs() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("dpcheckin.shuffler", "uvicorn")]
    held = [(one, one.handlers, one.propagate, one.level) for one in loggers]
    yield
    for logger, handlers, propagate, level in held:
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


def serve_while(settings: Settings, work: Callable[[], None]) -> None:
    """Serve until the work is done; what goes wrong in it is raised here."""
    wrong: list[BaseException] = []

    def beside() -> None:
        try:
            while True:
                try:
                    health = httpx.get(f"http://127.0.0.1:{settings.admin_port}/healthz", trust_env=False)
                    if health.text == "ok\n":
                        break
                except httpx.TransportError:
                    continue
            work()
        except BaseException as problem:
            wrong.append(problem)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=beside, daemon=True)
    thread.start()
    server.serve(settings)
    thread.join()
    if wrong:
        raise wrong[0]


def test_it_serves_until_it_is_told_to_stop(
    tmp_path: Path, kept_logs: None, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings(tmp_path, port=free_port(), admin_port=free_port(), dev=True)
    analyzer_token(tmp_path)
    token = (tmp_path / "analyzer.token").read_text().strip()

    def work() -> None:
        there = f"http://127.0.0.1:{settings.port}"
        stranger = httpx.get(there + "/v1/plan", trust_env=False)
        assert problem_in(stranger.content) is Problem.UNAUTHORIZED
        answer = httpx.put(
            there + "/v1/plan",
            content=Analyzer.of(population=2).signed_plan(),
            headers={"authorization": f"Bearer {token}"},
            trust_env=False,
        )
        assert answer.status_code == 201

    serve_while(settings, work)
    said = [json.loads(row) for row in capsys.readouterr().err.splitlines()]
    assert [row["event"] for row in said] == ["listening", "stopped"]
    assert said[0]["address"] == f"http://127.0.0.1:{settings.port}"
    assert said[0]["store"] == "sqlite"
    store = server.open_store(settings.store_address)
    with store.transaction() as now:
        assert now.plan() is not None
    store.close()


def test_with_certificates_it_speaks_tls_only(
    tmp_path: Path, kept_logs: None, capsys: pytest.CaptureFixture[str]
) -> None:
    authority = tls.make_authority(tmp_path)
    pair = tls.issue(tmp_path, authority, "127.0.0.1")
    settings = Settings(
        tmp_path,
        port=free_port(),
        admin_port=free_port(),
        store="memory:",
        tls_certificate=pair.certificate.name,
        tls_key=pair.key.name,
    )

    def work() -> None:
        context = tls.client_context(authority.certificate)
        there = f"https://127.0.0.1:{settings.port}/v1/plan"
        answer = httpx.get(there, verify=context, trust_env=False)
        assert problem_in(answer.content) is Problem.UNAUTHORIZED
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            httpx.get(there, trust_env=False)
        with pytest.raises(httpx.TransportError):
            httpx.get(there.replace("https", "http"), trust_env=False)

    serve_while(settings, work)
    said = [json.loads(row)["event"] for row in capsys.readouterr().err.splitlines()]
    assert any("plans are refused: set analyzer_identity" in event for event in said)


def test_a_port_that_is_taken_is_named(tmp_path: Path, kept_logs: None) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InvalidParameter, match=f"port = {port}.*free on 127.0.0.1"):
            server.serve(Settings(tmp_path / "new", port=port, dev=True))
    assert not (tmp_path / "new").exists(), "nothing is made for a shuffler that cannot serve"


def test_stores_are_told_apart_by_their_addresses(tmp_path: Path) -> None:
    assert isinstance(server.open_store("memory:"), MemoryStore)
    file = server.open_store(f"sqlite:{tmp_path / 'here.db'}")
    assert isinstance(file, SqliteStore)
    file.close()
    for address in ("", "sqlite:", "mysql://x", "here.db"):
        with pytest.raises(InvalidParameter, match="store = "):
            server.open_store(address)
