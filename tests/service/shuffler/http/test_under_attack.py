"""A shuffler under attack, as a real process: readers that do not read, junk, full disks."""

from __future__ import annotations

import contextlib
import http.client
import socket
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.server import build
from dpcheckin.service.shuffler.settings import Settings
from dpcheckin.service.shuffler.stores.sqlite import MemoryStore
from dpcheckin.service.wire import signing
from dpcheckin.service.wire.canonical import digest
from dpcheckin.service.wire.problems import Problem, Refusal, problem_in
from service.shuffler_process import Caller, ShufflerProcess, open_round, publish, wait_until
from service.shuffler_world import IDENTITY, Analyzer, Clock


def test_readers_that_do_not_read_make_room_for_others(tmp_path: Path) -> None:
    """As many connections as there may be ask for the model and take nothing of it."""
    model = bytes(8 << 20)  # more than two sockets hold
    limits = {"CONNECTIONS": "200", "CONNECTIONS_PER_ADDRESS": "200", "WRITE_SECONDS": "1"}
    with ShufflerProcess(tmp_path, **limits) as shuffler, contextlib.ExitStack() as lines:
        greedy, honest = shuffler.enroll(2)
        shuffler.wait_for_clients(2)
        analyzer, call = Analyzer.of(population=2), shuffler.analyzer()
        publish(call, analyzer)
        call.put(f"/v1/model/{digest(model).hex()}", model).expect(201)
        asked = (
            f"GET /v1/model/{digest(model).hex()} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {greedy}\r\n\r\n"
        ).encode()
        for _ in range(200):
            line = lines.enter_context(socket.socket())
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            line.connect(("127.0.0.1", shuffler.port))
            line.sendall(asked)

        def served(path: str, content: bytes | None = None) -> bool:
            try:
                got = shuffler.caller(honest).get(path).expect(200)
            except (OSError, http.client.HTTPException):
                return False  # no connection is free yet, or this machine was too slow to read
            return content is None or got.content == content

        wait_until(lambda: served("/v1/plan"))
        wait_until(lambda: served(f"/v1/model/{digest(model).hex()}", model))
        assert shuffler.metrics()["slow_readers_total"] >= 1


def test_an_integer_of_400_digits_is_malformed_and_no_bug(tmp_path: Path) -> None:
    with ShufflerProcess(tmp_path) as shuffler:
        analyzer, call = Analyzer.of(population=2), shuffler.analyzer()
        for field in (b'"population":2,', b'"round_seconds":', b'"epsilon_budget":'):
            plan = analyzer.signed_plan()
            place = plan.index(field[: field.index(b":") + 1])
            end = plan.index(b",", place)
            large = plan[: place + field.index(b":") + 1] + b"9" * 400 + plan[end:]
            assert problem_in(call.put("/v1/plan", large).expect(400).content) is Problem.MALFORMED
        assert shuffler.metrics()["internal_errors_total"] == 0
        publish(call, analyzer)


def test_junk_is_logged_at_a_bounded_rate(tmp_path: Path) -> None:
    with ShufflerProcess(tmp_path) as shuffler:
        for _ in range(300):
            with socket.create_connection(("127.0.0.1", shuffler.port), timeout=120) as line:
                line.sendall(b"\0junk\r\n\r\n")
                line.recv(100)
        assert len(shuffler.log.read_text().splitlines()) < 100


def test_health_tells_the_truth_while_reports_are_refused(tmp_path: Path) -> None:
    """The disk is as good as full for reports; everything that only reads still works."""
    with ShufflerProcess(tmp_path, program=[sys.executable, "-c", _LITTLE_DISK]) as shuffler:
        tokens = shuffler.enroll(3)
        shuffler.wait_for_clients(3)
        analyzer, call = Analyzer.of(population=2, minimum_batch=0), shuffler.analyzer()
        publish(call, analyzer)
        open_round(call, analyzer, 0, 3600)

        def report(mark: int) -> int:
            body = analyzer.report(0, mark)
            return shuffler.caller(tokens[mark]).put("/v1/rounds/0/report", body).status

        def health() -> int:
            return Caller(shuffler.admin_port).get("/healthz").status

        # a look at the store that began before the disk changed may end after it
        assert report(0) == 202
        wait_until(lambda: health() == 200)
        (tmp_path / "full").touch()
        assert report(1) == 507
        wait_until(lambda: health() == 503)
        assert shuffler.metrics()["storage_ok"] == 0
        time.sleep(2.0)  # several looks at the store, which can be read all the time
        assert (report(1), health()) == (507, 503)
        (tmp_path / "full").unlink()
        assert report(1) == 202
        wait_until(lambda: health() == 200)
        (tmp_path / "full").touch()
        wait_until(lambda: health() == 503)  # noticed before a report is
        (tmp_path / "full").unlink()
        wait_until(lambda: health() == 200)


_LITTLE_DISK = """
import shutil, sys
from collections import namedtuple
from pathlib import Path
usage, Usage = shutil.disk_usage, namedtuple("usage", "total used free")
def disk_usage(place):
    return Usage(1, 1, 0) if (Path(place) / "full").exists() else usage(place)
shutil.disk_usage = disk_usage
from dpcheckin.cli import main
main()
"""


def test_without_an_identity_plans_are_refused_unless_told_otherwise(tmp_path: Path) -> None:
    store, clock = MemoryStore(), Clock()
    one = Analyzer.of(population=2)

    def core(**settings: Any) -> Shuffler:
        made = Settings(tmp_path, tls_certificate="x", tls_key="x", **settings)
        return build(made, store, clock).core

    with pytest.raises(Refusal) as refused:
        core().publish_plan(one.signed_plan())
    assert refused.value.problem is Problem.UNKNOWN_ANALYZER
    for known in ("00" * 32, "ab" * 32):
        with pytest.raises(Refusal) as refused:  # somebody else's
            core(analyzer_identity=known).publish_plan(one.signed_plan())
        assert refused.value.problem is Problem.MALFORMED
    core(analyzer_identity=signing.public_identity(IDENTITY).hex()).publish_plan(one.signed_plan())
    core(any_analyzer=True).publish_plan(one.signed_plan())
