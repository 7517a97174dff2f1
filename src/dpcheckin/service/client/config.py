"""What the owner of a client allows, read from the owner's own file and nowhere else.

A TOML file: where the shuffler is, whom to believe (the analyzer's identity key), and limits. No
message can change any of it.

    [shuffler]
    address = "https://shuffler.example:8443"
    token_file = "client.token"
    authority = "authority.pem"        # optional: the system's authorities without it

    [analyzer]
    identity = "9f1c…"                 # 32 bytes in hex: who may sign plans

    [limits]
    rate = 0.3                         # largest chance to report in a round
    clip = 1.0                         # largest norm of what is reported
    local_epsilon = 4.0                # of one report, whoever sees it
    total_epsilon = 10.0               # of everything, as long as shufflers do not collude
    total_local_epsilon = 120.0        # of everything, if they do
    total_delta = 1e-4

    [agent]
    state = "state"                    # folder for the ledger
    plan = "…"                         # optional: the only plan to take part in (its id)
    arrival = 0                        # only for sliding windows: this client's number
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.settings_file import SettingsFile, check_address


@dataclass(frozen=True)
class Limits:
    """The most that this client gives."""

    rate: float
    clip: float
    local_epsilon: float
    total_epsilon: float
    total_local_epsilon: float
    total_delta: float

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise InvalidParameter(f"limits.{name}", value, "a number above 0")
            if not math.isfinite(value):
                raise InvalidParameter(f"limits.{name}", value, "a finite number")
        if self.rate > 1:
            raise InvalidParameter("limits.rate", self.rate, "at most 1")
        if self.total_delta >= 1:
            raise InvalidParameter("limits.total_delta", self.total_delta, "below 1")


@dataclass(frozen=True)
class ClientConfig:
    """Everything in the file."""

    shuffler: str
    token: str
    identity: bytes
    limits: Limits
    state: Path
    authority: Path | None = None
    plan: bytes | None = None
    arrival: int = 0
    poll_seconds: float = 1.0

    def __post_init__(self) -> None:
        check_address(self.shuffler)
        if len(self.identity) != 32:
            raise InvalidParameter("analyzer.identity", self.identity.hex(), "32 bytes in hex")
        if self.plan is not None and len(self.plan) != 32:
            raise InvalidParameter("agent.plan", self.plan.hex(), "a plan's id: 32 bytes in hex")
        if not self.poll_seconds > 0:
            raise InvalidParameter("agent.poll_seconds", self.poll_seconds, "above 0")


def read_config(path: Path) -> tuple[ClientConfig, dict[str, Any]]:
    """The configuration, and the `[data]` table, which belongs to the task.

    Args:
        path: the owner's TOML file.
    """
    read = SettingsFile(path)
    data = read.table("data")
    identity = read.hex("analyzer", "identity")
    state = read.path("agent", "state")
    assert identity is not None and state is not None
    config = ClientConfig(
        shuffler=read.take("shuffler", "address", str),
        token=read.secret("shuffler"),
        authority=read.path("shuffler", "authority", None),
        identity=identity,
        limits=Limits(
            **{name: read.take("limits", name, float) for name in Limits.__dataclass_fields__}
        ),
        state=state,
        plan=read.hex("agent", "plan", None),
        arrival=read.take("agent", "arrival", int, 0),
        poll_seconds=read.take("agent", "poll_seconds", float, 1.0),
    )
    read.finish()
    return config, data
