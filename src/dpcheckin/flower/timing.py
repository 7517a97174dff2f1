"""How long rounds must be on this machine: Flower starts a process for every message."""

from __future__ import annotations

import subprocess
import sys
import time

from dpcheckin.flower.telemetry import environment

_START = "import flwr.supernode.cli.flwr_clientapp, dpcheckin.flower.doorbell"


def starting_seconds() -> float:
    """Seconds that a ClientApp's process needs before it does anything, when several start."""
    began = time.monotonic()
    several = [
        subprocess.Popen([sys.executable, "-c", _START], env=environment()) for _ in range(3)
    ]
    for process in several:
        process.wait()
    return time.monotonic() - began


def round_seconds(quiet: float) -> float:
    """Enough for a ring to arrive (nodes look every three seconds) and for agents to act.

    Args:
        quiet: seconds that agents wait after the bell.
    """
    return 6.0 + quiet + 3.0 * starting_seconds()
