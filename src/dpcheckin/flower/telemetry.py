"""The environment of everything we start that belongs to Flower or Ray: nothing phones home."""

from __future__ import annotations

import os
import sys
from pathlib import Path

OFF = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}


def turn_off() -> None:
    """Telemetry and update checks off in this process; call it before flwr is imported."""
    os.environ.update(OFF)


def environment(**more: str) -> dict[str, str]:
    """The environment for a child process, with this Python's commands first on its path.

    Flower starts its helpers by name (`flower-superexec`, `flwr-clientapp`), so the folder that
    holds them has to be found.
    """
    commands = str(Path(sys.executable).parent)
    path = os.pathsep.join([commands, os.environ.get("PATH", os.defpath)])
    return {**os.environ, **OFF, "PATH": path, **more}
