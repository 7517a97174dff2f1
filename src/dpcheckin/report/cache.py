"""Cells that have been computed before, kept in one JSON file so that a run can be resumed.

A cell is keyed by panel, row parameters, column and the version of the package: change any of them
and it is computed anew.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from dpcheckin import __version__
from dpcheckin.papers.panel import Cell, Column, Panel, Row


class CellCache:
    """Reads and writes ``cache.json``; every new cell is on disk before the next is begun."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._cells: dict[str, Cell] = {}
        if path.exists():
            try:
                loaded = json.loads(path.read_text(encoding="utf-8"))
            except json.JSONDecodeError:
                loaded = {}  # torn by a crash of the disk: everything is computed again
            if isinstance(loaded, dict):
                self._cells = loaded

    def compute(self, panel: Panel, row: Row, column: Column) -> Cell:
        """The cell's value, from the file if it is there."""
        key = _key(panel, row, column)
        if key not in self._cells:
            self._cells[key] = column.compute(row.parameters)
            self._write()
        return self._cells[key]

    def has(self, panel: Panel, row: Row, column: Column) -> bool:
        """Is the cell known already?"""
        return _key(panel, row, column) in self._cells

    def _write(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_suffix(".tmp")
        fresh.write_text(json.dumps(self._cells), encoding="utf-8")
        os.replace(fresh, self._path)


def _key(panel: Panel, row: Row, column: Column) -> str:
    content = [__version__, panel.name, sorted(row.parameters.items()), column.label]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:24]
