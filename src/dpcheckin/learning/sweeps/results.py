"""Results on disk, one file a cell, so that an interrupted or widened sweep plays what is missing.

Files are named after the options. The folder carries a mark by which a worker elsewhere finds out
whether it sees the same disk, and may keep checkpoints on it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from dpcheckin.learning.sweeps.cells import Result
from dpcheckin.learning.sweeps.grid import Cell

MARK = "sweep.mark"


def result_folder(out: Path) -> Path:
    """The folder of the cells' results under `out`, made and marked if need be."""
    folder = out / "cells"
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / MARK
    if not mark.exists():
        mark.write_text(os.urandom(16).hex())
    return folder


def shared_folder(folder: Path, mark: str) -> Path | None:
    """The folder if this machine sees the one that the sweep was started in, else None."""
    try:
        return folder if (folder / MARK).read_text() == mark else None
    except OSError:
        return None


def read_result(folder: Path, cell: Cell) -> Result | None:
    """A finished cell's result; a failure is tried again, as its cause may be gone."""
    try:
        found: Result = json.loads((folder / f"{cell.key}.json").read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return None if "failed" in found else found


def write_result(folder: Path, result: Result) -> None:
    """Write a cell's file so that a crash leaves it whole or not there."""
    fresh = folder / f"{result['key']}.json.new"
    with open(fresh, "w") as file:
        json.dump(result, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, folder / f"{result['key']}.json")
