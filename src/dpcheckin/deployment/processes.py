"""The parties as real processes on this machine: start them, find their ports, stop them.

Used by the demonstration and by tests. Servers listen on the loopback interface, on ports that the system picks; each
says on its log where it listens. A process is only ever stopped by its own id.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpcheckin.errors import ServiceError

COMMAND = (sys.executable, "-c", "from dpcheckin.cli import main; main()")
PATIENCE = 240.0
"""Seconds in which a party has to be ready."""


class NotStarted(ServiceError):
    """A process ended or stayed silent before it was ready."""


@dataclass
class Party:
    """A running process, its log file, and the fields of its `listening` line."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    listening: dict[str, Any] = field(default_factory=dict)
    began: int = 0
    """Where in the log its own lines begin."""

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
    patience: float = PATIENCE,
    variables: Mapping[str, str] | None = None,
) -> Party:
    """Start a process whose output is appended to `log`, and wait for its line.

    `name`: of the party, for messages. `arguments`: the command; everybody can read it, so secrets are in `variables`
    of the environment. `ready`: event of the log line that says it is ready, for which it has `patience` seconds; None:
    do not wait.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", **(variables or {})}
    with open(log, "ab") as out:
        began, command = out.tell(), [str(argument) for argument in arguments]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment)
    party = Party(name, process, log, began=began)
    if ready is not None:
        await_ready(party, ready, patience)
    return party


def await_ready(party: Party, event: str = "ready", patience: float = PATIENCE) -> None:
    """Wait at most `patience` seconds for the line with this `event` of a `party` that was started without waiting."""
    limit = time.monotonic() + patience
    while (fields := _event(party, event)) is None:
        if party.process.poll() is not None or time.monotonic() > limit:
            party.stop()
            last = party.log.read_bytes()[party.began :].decode(errors="replace").strip().splitlines()[-1:]
            raise NotStarted(f"{party.name} did not start: {' '.join(last)[:300]}")
        time.sleep(0.05)
    party.listening = fields


def _event(party: Party, event: str) -> dict[str, Any] | None:
    for line in party.log.read_bytes()[party.began :].splitlines():
        try:
            fields = json.loads(line)
        except ValueError:
            continue
        if isinstance(fields, dict) and fields.get("event") == event:
            return fields
    return None


def _serve(name: str, folder: Path, *options: str, variables: Mapping[str, str] | None = None) -> Party:
    command: list[str | Path] = [*COMMAND, name, "serve", "--folder", folder, *options]
    return start(name, command, folder / f"{name}.log", variables=variables)


def start_shuffler(folder: Path, store: str | None = None, port: int = 0) -> Party:
    """`dpcheckin shuffler serve --dev` in its `folder`, with this `store` (None: SQLite in the folder), on a `port` (0:
    any free one)."""
    # an address may hold a password, and everybody can see a command line
    variables = {} if store is None else {"DPCHECKIN_SHUFFLER_STORE": store}
    return _serve("shuffler", folder, "--dev", "--port", str(port), "--admin-port", "0", variables=variables)


def start_issuer(folder: Path, port: int = 0, rounds_ahead: int | None = None) -> Party:
    """`dpcheckin issuer serve --dev` in its `folder`, on a `port` (0: any free one), with keys for so many
    `rounds_ahead` (None: its own default)."""
    ahead = [] if rounds_ahead is None else ["--rounds-ahead", str(rounds_ahead)]
    return _serve("issuer", folder, "--dev", "--port", str(port), "--admin-port", "0", *ahead)


def start_analyzer(folder: Path, port: int = 0) -> Party:
    """`dpcheckin analyzer serve` in its `folder`, with its page on a `port` (0: any free one)."""
    return _serve("analyzer", folder, "--port", str(port), "--stay")


def start_agents(specification: Path, log: Path, *, wait: bool = True) -> Party:
    """Agents of one `specification`, a file that `Specification.write` wrote, in one process with this `log`; `wait`
    until it is ready."""
    command: list[str | Path] = [sys.executable, "-m", "dpcheckin.deployment.agents", specification]
    return start("agents", command, log, ready="ready" if wait else None)
