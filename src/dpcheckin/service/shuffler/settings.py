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
    """What a shuffler has besides."""

    store: str = option("", "memory:, sqlite:FILE or postgresql://… (default: in the folder).", shown=False)
    """Empty: `shuffler.db` in the folder."""
    any_analyzer: bool = option(False, "Take plans from whoever holds the token; --dev does.")
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
    limits = {limit.name: values.pop(limit.name) for limit in fields(Limits) if limit.name in values}
    return Settings(folder, limits=Limits(**limits), **values)
