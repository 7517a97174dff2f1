"""Shuffled check-in on fleets that run Flower (flwr 1.41 to 1.42, extra `flower`).

Flower carries the control messages and the model; the agent of each client and the shuffler do the rest, outside
Flower. `doorbell` is the ClientApp, `server` the ServerApp's work, `mailbox` what lies between doorbell and agents,
`host` the agents that wait for the bell, `fleet` starts a whole fleet on one machine. Nothing of it is imported here: a
doorbell has to start fast. Whatever of Flower or Ray we start has the environment that is made here: nothing phones
home.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

OFF = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1", "RAY_USAGE_STATS_ENABLED": "0"}


def turn_telemetry_off() -> None:
    """Telemetry and update checks off in this process; call it before flwr is imported."""
    os.environ.update(OFF)


def environment(**more: str) -> dict[str, str]:
    """The environment for a child process, with this Python's commands first on its path. Flower starts its helpers by
    name (`flower-superexec`, `flwr-clientapp`), so the folder that holds them has to be found."""
    commands = str(Path(sys.executable).parent)
    path = os.pathsep.join([commands, os.environ.get("PATH", os.defpath)])
    return {**os.environ, **OFF, "PATH": path, **more}
