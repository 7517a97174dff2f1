"""The parties as real processes on this machine: start them, find their ports, stop them.

Used by the demonstration and by tests. Servers listen on the loopback interface, on ports that the
system picks; each says on its log where it listens. A process is only ever stopped by its own id.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpcheckin.errors import ServiceError

COMMAND = (sys.executable, "-c", "from dpcheckin.cli import main; main()")


class NotStarted(ServiceError):
    """A process ended or stayed silent before it was ready."""


@dataclass
class Party:
    """A running process, its log file, and the fields of its `listening` line."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    listening: dict[str, Any]

    def stop(self, patience: float = 10.0) -> int:
        """Ask it to end, insist after a while; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.process.wait()

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait()


def start(
    name: str,
    arguments: Sequence[str | Path],
    log: Path,
    *,
    ready: str | None = "listening",
    patience: float = 240.0,
    variables: Mapping[str, str] | None = None,
) -> Party:
    """Start a process and wait for its line `ready` (None: do not wait).

    Args:
        name: of the party, for messages.
        arguments: the command.
        log: file its output is appended to.
        ready: event of the log line that says it is ready; None: do not wait.
        patience: seconds to wait for that line.
        variables: of its environment, besides ours; everybody can read its arguments.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    environment |= variables or {}
    with open(log, "ab") as out:
        began = out.tell()
        process = subprocess.Popen(
            [str(argument) for argument in arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=environment,
        )
    party = Party(name, process, log, {})
    limit = time.monotonic() + patience
    while ready is not None:
        found = _event(log, began, ready)
        if found is not None:
            party.listening = found
            break
        if process.poll() is not None or time.monotonic() > limit:
            party.stop()
            last = log.read_bytes()[began:].decode(errors="replace").strip().splitlines()[-1:]
            raise NotStarted(f"{name} did not start: {' '.join(last)[:300]}")
        time.sleep(0.05)
    return party


def _event(log: Path, began: int, event: str) -> dict[str, Any] | None:
    for line in log.read_bytes()[began:].splitlines():
        try:
            fields = json.loads(line)
        except ValueError:
            continue
        if isinstance(fields, dict) and fields.get("event") == event:
            return fields
    return None


def start_shuffler(folder: Path, store: str | None = None, port: int = 0) -> Party:
    """`dpcheckin shuffler serve --dev`.

    Args:
        folder: the shuffler's.
        store: None: SQLite in the folder.
        port: 0: any free one.
    """
    options = ["--dev", "--port", str(port), "--admin-port", "0"]
    return start(
        "shuffler",
        [*COMMAND, "shuffler", "serve", "--folder", folder, *options],
        folder / "shuffler.log",
        # an address may hold a password, and everybody can see a command line
        variables={} if store is None else {"DPCHECKIN_SHUFFLER_STORE": store},
    )


def start_issuer(folder: Path, port: int = 0, rounds_ahead: int | None = None) -> Party:
    """`dpcheckin issuer serve --dev`.

    Args:
        folder: the issuer's.
        port: 0: any free one.
        rounds_ahead: None: the issuer's own default.
    """
    options = ["--dev", "--port", str(port), "--admin-port", "0"]
    if rounds_ahead is not None:
        options += ["--rounds-ahead", str(rounds_ahead)]
    return start(
        "issuer",
        [*COMMAND, "issuer", "serve", "--folder", folder, *options],
        folder / "issuer.log",
    )


def start_analyzer(folder: Path, port: int = 0) -> Party:
    """`dpcheckin analyzer serve`.

    Args:
        folder: the analyzer's.
        port: of its page; 0: any free one.
    """
    return start(
        "analyzer",
        [*COMMAND, "analyzer", "serve", "--folder", folder, "--port", str(port), "--stay"],
        folder / "analyzer.log",
    )


def start_agents(specification: Path, log: Path, *, wait: bool = True) -> Party:
    """Agents of one specification file in one process.

    Args:
        specification: a file that `Specification.write` wrote.
        log: file its output is appended to.
        wait: until it is ready.
    """
    return start(
        "agents",
        [sys.executable, "-m", "dpcheckin.deployment.agents", specification],
        log,
        ready="ready" if wait else None,
    )


def await_ready(party: Party, patience: float = 240.0) -> None:
    """Wait for agents that were started without waiting.

    Args:
        party: what was started.
        patience: seconds.
    """
    limit = time.monotonic() + patience
    while _event(party.log, 0, "ready") is None:
        if party.process.poll() is not None or time.monotonic() > limit:
            raise NotStarted(f"{party.name} did not start; see {party.log}")
        time.sleep(0.05)
