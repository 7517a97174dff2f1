"""What an operator can set, and where from: options over environment over file over defaults.

A shuffler lives in a folder: `shuffler.toml` (settings), `analyzer.token` (to be handed to the analyzer), and by
default the database. `serve` makes what is missing, so that one command is enough to begin with.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from dpcheckin.options import option
from dpcheckin.service.settings import Limits, ServedSettings, SettingsFile, from_environment

SETTINGS_FILE = "shuffler.toml"
ENVIRONMENT = "DPCHECKIN_SHUFFLER_"


@dataclass(frozen=True)
class Settings(ServedSettings):
    """Everything but TLS (or `dev`) has a default that works on one machine."""

    folder: Path
    host: str = option("127.0.0.1", "Address for clients and analyzer.")
    port: int = option(8440, "Port for clients and analyzer; 0: any.")
    admin_host: str = option("127.0.0.1", "Address for health and metrics.")
    admin_port: int = option(8441, "Port for health and metrics; 0: any.")
    store: str = option("", "memory:, sqlite:FILE or postgresql://… (default: in the folder).", shown=False)
    """Empty: `shuffler.db` in the folder."""
    tls_certificate: str = option("", "PEM file.")
    tls_key: str = option("", "PEM file.")
    dev: bool = option(False, "Plain HTTP, on loopback only.")
    analyzer_identity: str = option("", "Analyzer's public identity in hex; without it, plans are refused.")
    any_analyzer: bool = option(False, "Take plans from whoever holds the token; --dev does.")
    log_level: str = option("info", "debug, info, warning or error.")
    limits: Limits = field(default_factory=Limits)

    @property
    def store_address(self) -> str:
        """The store, spelled out."""
        return self.store or f"sqlite:{self.folder / 'shuffler.db'}"

    @property
    def trusts_any_analyzer(self) -> bool:
        return self.dev or self.any_analyzer


def load(folder: Path, options: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> Settings:
    """Settings of a shuffler's folder; `options` of the command line that are None were not given; the `environment`
    has variables `DPCHECKIN_SHUFFLER_…`.
    """
    file = SettingsFile(folder / SETTINGS_FILE, by_folder=True, required=False)
    values: dict[str, Any] = {}
    for kind in (Settings, Limits):
        for table in ("", "limits"):  # what stands below a heading in TOML belongs to it, wanted or not
            values |= file.given(table, kind)
        values |= from_environment(kind, ENVIRONMENT, environment)
    file.finish()
    values |= {name: value for name, value in options.items() if value is not None}
    limits = {one.name: values.pop(one.name) for one in fields(Limits) if one.name in values}
    return Settings(folder, limits=Limits(**limits), **values)
