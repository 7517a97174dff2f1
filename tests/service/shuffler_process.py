"""A shuffler as a real process, and the requests an analyzer and clients make of it."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpcheckin.service.shuffler.server import open_store
from dpcheckin.service.wire.canonical import digest
from dpcheckin.service.wire.credentials import new_token, token_digest
from service.shuffler_world import CHARGE, Analyzer

COMMAND = [sys.executable, "-c", "from dpcheckin.cli import main; main()"]
_START_SECONDS = 180.0  # on a busy machine; a second otherwise
_DEV_LIMITS = {"REQUESTS_PER_SECOND": "100000", "BURST": "1000000"}


@dataclass(frozen=True)
class Answer:
    """Status, headers and body."""

    status: int
    headers: dict[str, str]
    content: bytes

    def json(self) -> Any:
        return json.loads(self.content)

    def expect(self, *statuses: int) -> Answer:
        assert self.status in statuses, (self.status, self.content)
        return self


class Caller:
    """Somebody with a token; every request has a connection of its own, so nothing stays open."""

    def __init__(self, port: int, token: str | None = None) -> None:
        self._port = port
        self._headers = {} if token is None else {"authorization": f"Bearer {token}"}
        self.patience = 120.0  # on a busy machine; milliseconds otherwise

    def ask(self, method: str, path: str, content: bytes | None = None) -> Answer:
        line = http.client.HTTPConnection("127.0.0.1", self._port, timeout=self.patience)
        try:
            line.request(method, path, body=content, headers=self._headers)
            got = line.getresponse()
            return Answer(got.status, {k.lower(): v for k, v in got.headers.items()}, got.read())
        finally:
            line.close()

    def get(self, path: str) -> Answer:
        return self.ask("GET", path)

    def put(self, path: str, content: bytes) -> Answer:
        return self.ask("PUT", path, content)

    def post(self, path: str, content: bytes) -> Answer:
        return self.ask("POST", path, content)

    def delete(self, path: str) -> Answer:
        return self.ask("DELETE", path)


# Below those that the system hands out by itself: one of those may be taken, by any connection of
# any process, before whoever it was meant for listens on it. Test processes start far apart.
_PORTS = range(10_000, 32_000)
_places = itertools.count(os.getpid() * 997)


def free_port() -> int:
    """A port that is free, that no connection is given by chance, and that no call gives twice."""
    for _ in _PORTS:
        port = _PORTS[next(_places) % len(_PORTS)]
        with socket.socket() as tried, contextlib.suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no port is free")


_MOVED_CLOCK = """
import sys, time
from pathlib import Path
system, file = time.time, Path(sys.argv.pop(1))
time.time = lambda: system() + float(file.read_text())
from dpcheckin.cli import main
main()
"""


class MovedClock:
    """A clock that a test moves for processes started with `program`, instead of waiting.

    Args:
        folder: where it is kept how far it is ahead of the system's.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "seconds ahead"
        self.program = [sys.executable, "-c", _MOVED_CLOCK, str(self._file)]
        self.jump(0.0)

    def jump(self, seconds: float) -> None:
        """So far ahead of the system's from now on; below 0: behind."""
        fresh = self._file.with_name("fresh")
        fresh.write_text(str(seconds))
        fresh.replace(self._file)


class ShufflerProcess:
    """`dpcheckin shuffler serve --dev`; may be killed and started again on the same port."""

    def __init__(self, folder: Path, store: str | None = None, program: Sequence[str] = (), **environment: str) -> None:
        self.folder = folder
        self.port, self.admin_port = free_port(), free_port()
        self._program = [*(program or COMMAND), "shuffler"]
        self._store = ["--store", store] if store else []
        self.store_address = store or f"sqlite:{folder / 'shuffler.db'}"
        names = _DEV_LIMITS | environment
        self._environment = {f"DPCHECKIN_SHUFFLER_{k}": v for k, v in names.items()}
        self.log = folder / f"log-{self.port}"
        self.process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, wait: bool = True, **more: Any) -> ShufflerProcess:
        command = [*self._program, "serve", "--dev", "--folder", str(self.folder)]
        command += ["--port", str(self.port), "--admin-port", str(self.admin_port), *self._store]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stderr=log, env={**os.environ, **self._environment}, **more)
        if wait:
            try:
                self.wait_until_up()
            except BaseException:
                self.process.kill()
                self.process.wait()
                raise
        return self

    def wait_until_up(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            assert self.process is not None
            if self.process.poll() is not None:
                raise RuntimeError(f"the shuffler ended: {self.log.read_text()}")
            try:
                if Caller(self.admin_port).get("/healthz").status == 200:
                    Caller(self.port).get("/")
                    return
            except OSError:
                pass
            time.sleep(0.02)
        raise RuntimeError(f"the shuffler did not start: {self.log.read_text()}")

    def kill(self) -> None:
        """kill -9, by its own id."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(120)

    def __enter__(self) -> ShufflerProcess:
        return self.start()

    def __exit__(self, *problem: object) -> None:
        self.stop()

    # --- who asks ---------------------------------------------------------------------------

    def enroll(self, count: int) -> list[str]:
        """Tokens of new clients, put into the store beside the running shuffler."""
        tokens = [new_token() for _ in range(count)]
        store = open_store(self.store_address)
        store.enroll([token_digest(token) for token in tokens])
        store.close()
        return tokens

    def analyzer(self) -> Caller:
        token = (self.folder / "analyzer.token").read_text().strip()
        return self.caller(token)

    def caller(self, token: str | None = None) -> Caller:
        return Caller(self.port, token)

    def metrics(self) -> dict[str, float]:
        text = Caller(self.admin_port).get("/metrics").content.decode()
        found = re.findall(r"^dpcheckin_shuffler_(\S+) (\S+)$", text, re.MULTILINE)
        return {name: float(value) for name, value in found}

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def wait_for_clients(self, count: int) -> None:
        wait_until(lambda: self.metrics()["enrolled_clients"] >= count)


def wait_until(condition: Any, seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


def publish(call: Caller, analyzer: Analyzer) -> None:
    call.put("/v1/plan", analyzer.signed_plan()).expect(201)
    call.put(f"/v1/keys/{analyzer.key.key_id.hex()}", analyzer.signed_key()).expect(201)


def open_round(call: Caller, analyzer: Analyzer, number: int, seconds: float) -> float:
    """Open a round now; when it closes."""
    call.put(f"/v1/model/{digest(b'm').hex()}", b"m").expect(201)
    now = time.time()
    body = analyzer.signed_round(number, now, now + seconds)
    call.put(f"/v1/rounds/{number}", body).expect(201)
    return now + seconds


def take(call: Caller, number: int) -> bytes:
    """Claim a closed round and fetch its batch."""
    call.post(f"/v1/rounds/{number}/claim", CHARGE).expect(200)
    return call.get(f"/v1/rounds/{number}/batch").expect(200).content


def state(call: Caller, number: int) -> dict[str, Any]:
    found: dict[str, Any] = call.get(f"/v1/rounds/{number}").expect(200).json()
    return found
