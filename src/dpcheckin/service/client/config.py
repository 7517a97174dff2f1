"""What the owner of a client allows, read from the owner's own file and nowhere else.

A TOML file: where the shuffler is, whom to believe (the analyzer's identity key), and limits. No
message can change any of it.

    [shuffler]
    address = "https://shuffler.example:8443"
    token_file = "client.token"
    authority = "authority.pem"        # optional: the system's authorities without it
    identity = "51c0…"                 # optional: who may state that rounds were void

    [analyzer]
    identity = "9f1c…"                 # 32 bytes in hex: who may sign plans

    [issuer]                           # optional: take part only in plans whose reports carry
    address = "https://issuer.example:8443"                             # tokens of this issuer
    token_file = "issuer.token"
    identity = "64f7…"                 # 32 bytes in hex: who may sign token keys
    authority = "issuer-authority.pem" # optional

    [limits]
    rate = 0.3                         # largest chance to report in a round
    clip = 1.0                         # largest norm of what is reported
    local_epsilon = 4.0                # of one report, whoever sees it
    total_epsilon = 10.0               # of everything, as long as shufflers do not collude
    total_local_epsilon = 120.0        # of everything, if they do
    total_delta = 1e-4
    minimum_population = 1000          # optional: fewest honest clients that a plan is priced for
    minimum_batch = 50                 # optional: fewest reports of a round that is released
    minimum_compute_seconds = 5.0      # optional: least time that a plan leaves to the task
    require_cover = true               # optional: refuse plans in which only reports are sent
    rounds = 500                       # optional: most rounds of a plan
    void_rounds = 50                   # optional: most void rounds in a row before it stops

    [agent]
    state = "state"                    # folder for the ledger
    model_bytes = 268435456            # optional: the largest model that is fetched
    plan = "…"                         # optional: the only plan to take part in (its id)
    arrival = 0                        # only for sliding windows: this client's number
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.settings_file import IssuerAccess, SettingsFile, check_address

NUMBERS = ("rate", "clip", "local_epsilon", "total_epsilon", "total_local_epsilon", "total_delta")
"""Limits that every owner has to state."""
DEFAULT_MODEL_BYTES = 256 << 20
TOKENS_BIND = 2
"""Fewest reports among which tokens hide anybody: below, a shuffler may drop all others."""
_COUNTS = {"minimum_population": 2, "minimum_batch": 0, "rounds": 1, "void_rounds": 1}


@dataclass(frozen=True)
class Limits:
    """The most that this client gives."""

    rate: float
    clip: float
    local_epsilon: float
    total_epsilon: float
    total_local_epsilon: float
    total_delta: float
    minimum_population: int = 2
    """Fewest honest clients that a plan is priced for."""
    minimum_batch: int | None = None
    """Fewest reports of a round that is released; None: `TOKENS_BIND` with an issuer, else any."""
    minimum_compute_seconds: float = 0.05
    """Least time that a plan leaves between the coin and the first that may be sent."""
    require_cover: bool = False
    """Refuse plans in which a client that stays away sends nothing."""
    rounds: int | None = None
    """Most rounds that a plan may have; None: any number."""
    void_rounds: int = 50
    """Most rounds in a row that may be void; then the client stops."""

    def __post_init__(self) -> None:
        self._check_counts()
        for name in NUMBERS:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise InvalidParameter(f"limits.{name}", value, "a number above 0")
            if not math.isfinite(value):
                raise InvalidParameter(f"limits.{name}", value, "a finite number")
        least = self.minimum_compute_seconds
        if type(least) not in (int, float) or not 0 <= least < math.inf:
            raise InvalidParameter("limits.minimum_compute_seconds", least, "0 or more seconds")
        if self.rate > 1:
            raise InvalidParameter("limits.rate", self.rate, "at most 1")
        if self.total_delta >= 1:
            raise InvalidParameter("limits.total_delta", self.total_delta, "below 1")

    def _check_counts(self) -> None:
        for name, least in _COUNTS.items():
            value = getattr(self, name)
            if value is None and name in ("rounds", "minimum_batch"):
                continue
            if type(value) is not int or value < least:
                raise InvalidParameter(f"limits.{name}", value, f"a whole number from {least} on")
        if type(self.require_cover) is not bool:
            raise InvalidParameter("limits.require_cover", self.require_cover, "true or false")


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
    shuffler_identity: bytes | None = None
    """Whose statements that rounds were void are believed; None: nobody's."""
    model_bytes: int = DEFAULT_MODEL_BYTES
    """The largest model that is fetched."""
    issuer: IssuerAccess | None = None
    """Who signs this client's report tokens; None: it takes part in plans without tokens only."""

    def __post_init__(self) -> None:
        if self.shuffler_identity is not None and len(self.shuffler_identity) != 32:
            shown = self.shuffler_identity.hex()
            raise InvalidParameter("shuffler.identity", shown, "32 bytes in hex")
        if self.model_bytes < 1:
            raise InvalidParameter("agent.model_bytes", self.model_bytes, "at least 1")
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
            **{name: read.take("limits", name, float) for name in NUMBERS},
            minimum_population=read.take("limits", "minimum_population", int, 2),
            minimum_batch=read.take("limits", "minimum_batch", int, None),
            minimum_compute_seconds=read.take("limits", "minimum_compute_seconds", float, 0.05),
            require_cover=read.take("limits", "require_cover", bool, False),
            rounds=read.take("limits", "rounds", int, None),
            void_rounds=read.take("limits", "void_rounds", int, 50),
        ),
        state=state,
        plan=read.hex("agent", "plan", None),
        arrival=read.take("agent", "arrival", int, 0),
        poll_seconds=read.take("agent", "poll_seconds", float, 1.0),
        shuffler_identity=read.hex("shuffler", "identity", None),
        model_bytes=read.take("agent", "model_bytes", int, DEFAULT_MODEL_BYTES),
        issuer=read.issuer(),
    )
    read.finish()
    return config, data
