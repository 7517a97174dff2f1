"""What the papers print, read from the files beside their modules: `catalogue.toml` and `figures.toml` of each folder.

A file may have a table `texts`; a text's name after a dollar sign stands for it in every file of that name. Functions
are given by their places in the package.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from string import Template
from typing import Any

FOLDERS = ("p0", "p1", "p2", "p3", "p4", "others")


@cache
def tables(name: str) -> dict[str, dict[str, Any]]:
    """The files of this name, by folder, with all texts filled in."""
    files = {folder: Path(__file__).parent / folder / name for folder in FOLDERS}
    read = {folder: tomllib.loads(path.read_text("utf-8")) for folder, path in files.items() if path.exists()}
    texts = {key: text for table in read.values() for key, text in table.get("texts", {}).items()}
    return {folder: _filled(table, texts) for folder, table in read.items()}


def _filled(value: Any, texts: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(part, texts) for key, part in value.items()}
    if isinstance(value, list):
        return [_filled(part, texts) for part in value]
    return Template(value).substitute(texts) if isinstance(value, str) else value


def function(place: str, fixed: dict[str, Any] | None = None) -> Callable[..., Any]:
    """The function at a place below `dpcheckin`, such as papers.p0.bounds.baseline, perhaps with fixed arguments."""
    module, _, name = place.rpartition(".")
    found: Callable[..., Any] = getattr(import_module(f"dpcheckin.{module}"), name)
    return partial(found, **fixed) if fixed else found
