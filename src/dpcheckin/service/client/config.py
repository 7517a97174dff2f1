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
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dpcheckin.errors import InvalidParameter

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


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


def check_address(address: str) -> None:
    """Plain HTTP is for the machine itself only."""
    parts = urlsplit(address)
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme != "http" or parts.hostname not in _LOOPBACK:
        raise InvalidParameter(
            "shuffler.address", address, "an https address (http only on the loopback interface)"
        )


class Reader:
    """Tables of a TOML file, read strictly: what is unknown or of the wrong type is an error."""

    def __init__(self, path: Path) -> None:
        self.folder = path.parent
        try:
            self._tables = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as problem:
            raise InvalidParameter("config", str(path), f"a file ({problem.strerror})") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
            raise InvalidParameter("config", str(path), f"TOML ({problem})") from None

    def take(self, table: str, name: str, kind: type, default: Any = ...) -> Any:
        """One entry; tables are used up, so that `finish` can name what was not understood."""
        found = self._tables.get(table, {})
        if not isinstance(found, dict):
            raise InvalidParameter(table, found, "a table")
        if name not in found:
            if default is ...:
                raise InvalidParameter(f"{table}.{name}", "missing", f"a {kind.__name__}")
            return default
        value = found.pop(name)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise InvalidParameter(f"{table}.{name}", value, f"a {kind.__name__}")
        return value

    def table(self, name: str) -> dict[str, Any]:
        """A whole table, for others to understand."""
        found = self._tables.pop(name, {})
        if not isinstance(found, dict):
            raise InvalidParameter(name, found, "a table")
        return found

    def path(self, table: str, name: str, default: Any = ...) -> Path | None:
        """A path, relative to the file."""
        value = self.take(table, name, str, default)
        return None if value is None else self.folder / value

    def secret(self, table: str) -> str:
        """`token`, or the content of `token_file`."""
        token = self.take(table, "token", str, None)
        file = self.path(table, "token_file", None)
        if (token is None) == (file is None):
            raise InvalidParameter(f"{table}.token", "…", "either token or token_file")
        if token is None:
            assert file is not None
            try:
                token = file.read_text(encoding="ascii").strip()
            except (OSError, UnicodeDecodeError):
                raise InvalidParameter(f"{table}.token_file", str(file), "a token file") from None
        return str(token)

    def hex(self, table: str, name: str, default: Any = ...) -> bytes | None:
        """Bytes in hex."""
        value = self.take(table, name, str, default)
        try:
            return None if value is None else bytes.fromhex(value)
        except ValueError:
            raise InvalidParameter(f"{table}.{name}", value, "bytes in hex") from None

    def finish(self) -> None:
        """Refuse what nobody asked for: a misspelt limit must not be ignored."""
        odd = [
            f"{table}.{name}" if isinstance(found, dict) else table
            for table, found in self._tables.items()
            for name in (found if isinstance(found, dict) else [""])
        ]
        if odd:
            raise InvalidParameter("config", odd, "only the entries that are described")


def read_config(path: Path) -> tuple[ClientConfig, dict[str, Any]]:
    """The configuration, and the `[data]` table, which belongs to the task."""
    read = Reader(path)
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
