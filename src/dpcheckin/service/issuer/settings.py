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

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpcheckin.errors import InvalidParameter
from dpcheckin.options import option
from dpcheckin.service.settings import Limits, ServedSettings, SettingsFile

FILE = "issuer.toml"
STORE = "issuer.db"
LOCK = "issuer.lock"
DEFAULT_AHEAD = 16


@dataclass(frozen=True)
class IssuerSettings(ServedSettings):
    """What an issuer has besides, and its own ports."""

    port: int = option(8443, "Port for clients and analyzer; 0: any.")
    admin_port: int = option(8444, "Port for health and metrics; 0: any.")
    rounds_ahead: int = option(DEFAULT_AHEAD, "Rounds for which clients can fetch tokens in advance.")
    requests_per_second: float = Limits.requests_per_second

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ahead(self.rounds_ahead)
        _ = self.limits  # which are checked when they are made

    @property
    def limits(self) -> Limits:
        """How often clients may ask; everything else as for any party."""
        return Limits(requests_per_second=self.requests_per_second)


def check_ahead(rounds: int) -> None:
    """Refuse a window of rounds that a document with their keys cannot hold."""
    from dpcheckin.service.wire.tokens import MOST_KEYS  # a command that only shows its options loads no cryptography

    if not 1 <= rounds <= MOST_KEYS:
        raise InvalidParameter("rounds_ahead", rounds, f"from 1 to {MOST_KEYS}")


def load(folder: Path, options: Mapping[str, Any]) -> IssuerSettings:
    """Settings of an issuer's folder; `options` of the command line that are None were not given."""
    file = SettingsFile(folder / FILE, by_folder=True, required=False)
    values = file.given("issuer", IssuerSettings)
    file.finish()
    return IssuerSettings(folder, **values | {name: value for name, value in options.items() if value is not None})
