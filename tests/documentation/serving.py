"""Commands of a page that run until they are stopped, as real processes in the page's folder.

Pages name the ports that the programs have by default. Here each stands for a free one, so that
pages can run side by side. A process is only ever stopped by its own id.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from dpcheckin.deployment.processes import COMMAND, Party
from service.shuffler_process import free_port

# a page's own ports: the shuffler's, its admin's, the analyzer's, and the same with TLS
PORTS = re.compile(r"\b844[0-6]\b")
_SHUFFLER = {"DPCHECKIN_SHUFFLER_PORT": "8440", "DPCHECKIN_SHUFFLER_ADMIN_PORT": "8441"}
_PATIENCE = 600.0  # on a busy machine; seconds otherwise


@dataclass
class Parties:
    """What was started for one page, and the ports that stand for the page's."""

    folder: Path
    running: list[Party] = field(default_factory=list)
    ports: dict[str, int] = field(default_factory=dict)

    def here(self, text: str) -> str:
        """The text with this page's ports."""
        return PORTS.sub(lambda found: str(self._port(found[0])), text)

    def _port(self, documented: str) -> int:
        return self.ports.setdefault(documented, free_port())

    def start(self, command: str) -> None:
        """Start it, and wait for its first words: each program says where it listens."""
        words = shlex.split(self.here(command), comments=True)
        assert words[0] == "dpcheckin", f"only dpcheckin commands are run, not: {command}"
        named = {name: str(self._port(port)) for name, port in _SHUFFLER.items()}
        environment = {**os.environ, **named, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        log = self.folder / f"served-{len(self.running)}.log"
        with open(log, "wb") as out:
            process = subprocess.Popen(
                [*COMMAND, *words[1:]],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        party = Party(command, process, log, {})
        self.running.append(party)
        limit = time.monotonic() + _PATIENCE
        while not log.read_bytes().endswith(b"\n"):
            assert process.poll() is None, f"{command}: ended at once, without a word"
            assert time.monotonic() < limit, f"{command}: nothing heard of it"
            time.sleep(0.05)
        if process.poll() is not None:
            raise AssertionError(f"{command}: {log.read_text(errors='replace')}")

    def stop(self) -> list[str]:
        """Stop all, last come first; what did not end as it should."""
        wrong = []
        for party in reversed(self.running):
            code = party.stop(patience=300.0)
            said = party.log.read_text(encoding="utf-8", errors="replace")
            if code != 0 or "Traceback" in said:
                wrong.append(f"{party.name}: exit code {code}\n{said}")
        self.running.clear()
        return wrong
