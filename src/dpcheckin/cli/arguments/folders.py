"""Folders that commands work in."""

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


def check_exists(folder: Path, allowed: str = "a folder that exists") -> None:
    """Refuse a folder that is not there: a misspelt name would be a party that nobody runs.

    Args:
        folder: of a party.
        allowed: what is expected, for the message.
    """
    if not folder.is_dir():
        raise InvalidParameter("folder", str(folder), allowed)
