"""What an operator can set for an issuer: options over `issuer.toml` in the issuer's folder.

[issuer]
host = "127.0.0.1"
port = 8443
admin_host = "127.0.0.1"
admin_port = 8444
tls_certificate = "server.pem"         # relative to the folder; without TLS only --dev is served
tls_key = "server.key"
rounds_ahead = 16                      # rounds for which clients can fetch tokens in advance
analyzer_identity = "9f1c…"            # whose signed plans are served; none without it (but --dev)
requests_per_second = 5.0              # of one client, on average
log_level = "info"
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.issuer.core import DEFAULT_AHEAD
from dpcheckin.service.listening import is_loopback
from dpcheckin.service.settings_file import SettingsFile
from dpcheckin.service.web.limits import Limits
from dpcheckin.service.wire.fields import hex_bytes
from dpcheckin.service.wire.problems import Malformed
from dpcheckin.service.wire.tokens import MOST_KEYS

FILE = "issuer.toml"
STORE = "issuer.db"
LOCK = "issuer.lock"
_KINDS: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool}


@dataclass(frozen=True)
class IssuerSettings:
    """Everything has a default that works on one machine, but for TLS (or `dev`)."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = 8443
    admin_host: str = "127.0.0.1"
    admin_port: int = 8444
    tls_certificate: str = ""
    tls_key: str = ""
    dev: bool = False
    """Plain HTTP, on a loopback address only."""
    rounds_ahead: int = DEFAULT_AHEAD
    analyzer_identity: str = ""
    """Hex of the analyzer's public identity; empty: plans are refused, but with `dev`."""
    requests_per_second: float = Limits.requests_per_second
    log_level: str = "info"

    def __post_init__(self) -> None:
        for name in ("port", "admin_port"):
            if not 0 <= getattr(self, name) <= 65535:
                raise InvalidParameter(name, getattr(self, name), "a port from 0 to 65535")
        if self.log_level not in ("debug", "info", "warning", "error"):
            raise InvalidParameter("log_level", self.log_level, "debug, info, warning or error")
        if not 1 <= self.rounds_ahead <= MOST_KEYS:
            raise InvalidParameter("rounds_ahead", self.rounds_ahead, f"from 1 to {MOST_KEYS}")
        if not self.requests_per_second > 0:
            raise InvalidParameter("requests_per_second", self.requests_per_second, "above 0")
        if self.dev and not is_loopback(self.host):
            raise InvalidParameter("host", self.host, "a loopback address with --dev")
        if not self.dev and not (self.tls_certificate and self.tls_key):
            raise InvalidParameter(
                "tls_certificate",
                self.tls_certificate or None,
                "a certificate, and tls_key (or --dev: plain HTTP on loopback)",
            )
        if self.analyzer_identity:
            try:
                hex_bytes(32)("analyzer_identity", self.analyzer_identity)
            except Malformed:
                raise InvalidParameter(
                    "analyzer_identity", self.analyzer_identity, "32 bytes in lower-case hex"
                ) from None

    @property
    def identity(self) -> bytes | None:
        """The analyzer's identity as bytes."""
        return bytes.fromhex(self.analyzer_identity) if self.analyzer_identity else None


def load(folder: Path, options: Mapping[str, Any]) -> IssuerSettings:
    """Settings of a folder; options that are None were not given.

    Args:
        folder: the issuer's.
        options: from the command line, by field; None: not given.
    """
    values: dict[str, Any] = {}
    if (folder / FILE).is_file():
        read = SettingsFile(folder / FILE, by_folder=True)
        for one in dataclasses.fields(IssuerSettings):
            if one.name != "folder":
                found = read.take("issuer", one.name, _KINDS[str(one.type)], None)
                values |= {} if found is None else {one.name: found}
        read.finish()
    values |= {name: value for name, value in options.items() if value is not None}
    return IssuerSettings(folder, **values)
