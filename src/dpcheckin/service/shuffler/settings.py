"""What an operator can set, and where from: options over environment over file over defaults.

A shuffler lives in a folder: `shuffler.toml` (settings), `analyzer.token` (to be handed to the
analyzer), and by default the database. `serve` makes what is missing, so that one command is
enough to begin with.
"""

from __future__ import annotations

import dataclasses
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.listening import is_loopback
from dpcheckin.service.web.limits import Limits

SETTINGS_FILE = "shuffler.toml"
ENVIRONMENT = "DPCHECKIN_SHUFFLER_"


@dataclass(frozen=True)
class Settings:
    """Everything but the limits has a default that works on one machine."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = 8440
    admin_host: str = "127.0.0.1"
    admin_port: int = 8441
    store: str = field(default="", repr=False)  # may hold a password
    """`memory:`, `sqlite:FILE` or `postgresql://…`; empty: `shuffler.db` in the folder."""
    tls_certificate: str = ""
    tls_key: str = ""
    dev: bool = False
    """Plain HTTP, on a loopback address only."""
    analyzer_identity: str = ""
    """Hex of the analyzer's public identity: only what it has signed is taken."""
    any_analyzer: bool = False
    """Take plans from whoever holds the token, without an identity; so does `dev`."""
    log_level: str = "info"
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        for name in ("port", "admin_port"):
            if not 0 <= getattr(self, name) <= 65535:
                raise InvalidParameter(name, getattr(self, name), "a port from 0 to 65535")
        if self.log_level not in ("debug", "info", "warning", "error"):
            raise InvalidParameter("log_level", self.log_level, "debug, info, warning or error")
        if self.analyzer_identity and not re.fullmatch(r"[0-9a-f]{64}", self.analyzer_identity):
            raise InvalidParameter(
                "analyzer_identity", self.analyzer_identity, "32 bytes in lower-case hex"
            )
        if self.dev and not is_loopback(self.host):
            raise InvalidParameter("host", self.host, "a loopback address with --dev")
        if not self.dev and not (self.tls_certificate and self.tls_key):
            raise InvalidParameter(
                "tls_certificate",
                self.tls_certificate or None,
                "a certificate, and tls_key (or --dev: plain HTTP on loopback)",
            )

    @property
    def store_address(self) -> str:
        """The store, spelled out."""
        return self.store or f"sqlite:{self.folder / 'shuffler.db'}"

    @property
    def identity(self) -> bytes | None:
        """The analyzer's identity as bytes."""
        return bytes.fromhex(self.analyzer_identity) if self.analyzer_identity else None

    @property
    def trusts_any_analyzer(self) -> bool:
        """Whether documents are taken without an identity to check them against."""
        return self.dev or self.any_analyzer

    def resolved(self, path: str) -> Path:
        """A path in the settings file is relative to the folder."""
        return self.folder / path


_KINDS: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool}


def _flat_fields() -> dict[str, type]:
    found = {}
    for kind in (Settings, Limits):
        for one in dataclasses.fields(kind):
            if one.name not in ("folder", "limits"):
                found[one.name] = _KINDS[str(one.type)]
    return found


FIELDS = _flat_fields()
_LIMITS = {one.name for one in dataclasses.fields(Limits)}


def load(
    folder: Path, options: Mapping[str, Any], environment: Mapping[str, str] = os.environ
) -> Settings:
    """Settings of a folder; options that are None were not given.

    Args:
        folder: the shuffler's.
        options: from the command line, by field; None: not given.
        environment: variables `DPCHECKIN_SHUFFLER_…`.
    """
    values = _from_file(folder / SETTINGS_FILE)
    for name, kind in FIELDS.items():
        text = environment.get(ENVIRONMENT + name.upper())
        if text is not None:
            values[name] = _converted(name, text, kind)
    values |= {name: value for name, value in options.items() if value is not None}
    limits = {name: values.pop(name) for name in list(values) if name in _LIMITS}
    for name, value in limits.items():
        if not value > 0:
            raise InvalidParameter(name, value, "a number above 0")
    return Settings(folder, limits=Limits(**limits), **values)


def _from_file(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except ValueError as problem:  # not TOML, not UTF-8, or a number of thousands of digits
        raise InvalidParameter("settings", str(file), f"a TOML file ({problem})") from None
    found |= found.pop("limits", {})
    for name, value in found.items():
        if name not in FIELDS:
            raise InvalidParameter(name, value, f"one of {', '.join(sorted(FIELDS))}")
        wanted = FIELDS[name]
        if wanted is float and type(value) is int:
            found[name] = float(value)
        elif type(value) is not wanted:
            raise InvalidParameter(name, value, f"of type {wanted.__name__}")
    return found


def _converted(name: str, text: str, kind: type) -> Any:
    if kind is bool:
        if text.lower() not in ("true", "false", "1", "0"):
            raise InvalidParameter(name, text, "true or false")
        return text.lower() in ("true", "1")
    try:
        return kind(text)
    except ValueError:
        raise InvalidParameter(name, text, f"of type {kind.__name__}") from None
