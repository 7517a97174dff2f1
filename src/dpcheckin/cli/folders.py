"""Folders that commands write to."""

from __future__ import annotations

from pathlib import Path

from dpcheckin.errors import InvalidParameter


def check_empty(folder: Path) -> None:
    """Refuse a folder with something in it: nothing of an earlier run is ever written over.

    Args:
        folder: where a command is to write.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidParameter("out", str(folder), "a new or empty folder")
