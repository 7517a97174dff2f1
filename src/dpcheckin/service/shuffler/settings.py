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

from dpcheckin.errors import InvalidParameter
from dpcheckin.options import option
from dpcheckin.service.settings import Limits, ServedSettings, SettingsFile, from_environment
from dpcheckin.service.storage.files import has_password, without_password

SETTINGS_FILE = "shuffler.toml"
ENVIRONMENT = "DPCHECKIN_SHUFFLER_"
IN_USE = "store"
"""File of the folder that says which store was served last."""


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
    def store_shown(self) -> str:
        """The same as it may be shown, and compared wherever a command is typed: in the folder, or a whole path."""
        file = Path(self.store_address.removeprefix("sqlite:")).resolve()
        if self.store_address.startswith("sqlite:"):
            return f"sqlite:{file.name if file.parent == self.folder.resolve() else file}"
        return without_password(self.store_address)

    @property
    def trusts_any_analyzer(self) -> bool:
        return self.dev or self.any_analyzer


def check_not_typed(store: str) -> None:
    """Refuse the address of a `store` with a password in it on a command line, which every user of the machine can
    read."""
    if has_password(store):
        shown = without_password(store)
        elsewhere = f"{ENVIRONMENT}STORE or shuffler.toml have it, or passfile= or PGPASSWORD the password"
        raise InvalidParameter("store", shown, f"an address without a password, as all can read a command: {elsewhere}")


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
    check_not_typed(str(options.get("store") or ""))
    values |= {name: value for name, value in options.items() if value is not None}
    limits = {limit.name: values.pop(limit.name) for limit in fields(Limits) if limit.name in values}
    return Settings(folder, limits=Limits(**limits), **values)
