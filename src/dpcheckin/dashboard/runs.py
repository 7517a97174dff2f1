"""Training runs in a folder, as the page shows them: what `dpcheckin train --out` has written.

Only `log.json` and `report.json` are read, both of which training replaces as a whole, so a run can
be looked at while it goes on. Nothing is ever written, and torch is not needed.
"""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

from dpcheckin.accounting import Kind
from dpcheckin.errors import InvalidParameter

LOG, REPORT = "log.json", "report.json"
DEPTH = 3
QUIET_SECONDS = 900.0  # an unfinished run that has said nothing for so long is taken as stopped


class RunFolder:
    """A folder of runs: itself a run, or with runs in its subfolders."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise InvalidParameter("runs", str(root), "a folder that exists")
        self.root = root.resolve()

    def folders(self) -> dict[str, Path]:
        """Every run by its name: the path below the root."""
        found = {}
        for depth in range(DEPTH + 1):
            for log in self.root.glob("/".join(["*"] * depth + [LOG])):
                name = log.parent.relative_to(self.root).as_posix()
                found[self.root.name if name == "." else name] = log.parent
        return dict(sorted(found.items()))

    def version(self) -> str:
        """Changes whenever something to show has changed."""
        stamps = []
        for name, folder in self.folders().items():
            for file in (LOG, REPORT):
                path = folder / file
                if path.exists():
                    status = path.stat()
                    stamps.append(f"{name}/{file}:{status.st_mtime_ns}:{status.st_size}")
        return "|".join(stamps)

    def overview(self) -> list[dict[str, Any]]:
        """One line for each run, the latest to change first."""
        lines = [self._line(name, folder) for name, folder in self.folders().items()]
        return sorted(
            (line for line in lines if line is not None), key=lambda line: -line["changed"]
        )

    def run(self, name: str) -> dict[str, Any]:
        """Everything there is to draw about one run."""
        folder = self.folders().get(name)
        if folder is None:
            raise InvalidParameter("run", name, "a run of the folder")
        rows = _rows(folder)
        return {
            **(self._line(name, folder) or {"name": name}),
            "report": _read(folder / REPORT),
            "rows": [_row(row) for row in rows],
        }

    def _line(self, name: str, folder: Path) -> dict[str, Any] | None:
        rows = _rows(folder)
        if not rows:
            return None
        report, last = _read(folder / REPORT), _row(rows[-1])
        changed = (folder / LOG).stat().st_mtime
        state = "going on" if time.time() - changed < QUIET_SECONDS else "stopped"
        # a report older than the log belongs to an earlier part of a run that was resumed
        if report is not None and report.get("rounds", 0) >= last["round"]:
            state = "finished"
        return {
            "name": name,
            "state": state,
            "changed": changed,
            "round": last["round"],
            "accuracy": last["accuracy"],
            "epsilon": last["epsilon_text"],
            "delta": last["delta"],
        }


def _rows(folder: Path) -> list[dict[str, Any]]:
    rows = _read(folder / LOG)
    wanted = {"round", "check_ins", "accuracy", "epsilon", "delta"}
    if not isinstance(rows, list):
        return []
    return [row for row in rows if isinstance(row, dict) and wanted <= row.keys()]


def _row(row: dict[str, Any]) -> dict[str, Any]:
    epsilon = float(row["epsilon"])
    return {
        "round": int(row["round"]),
        "check_ins": int(row["check_ins"]),
        "accuracy": float(row["accuracy"]),
        "epsilon": epsilon if math.isfinite(epsilon) else None,
        "epsilon_text": Kind.GUARANTEE.figure(epsilon),
        "delta": float(row["delta"]),
    }


def _read(path: Path) -> Any:
    """The file's content; None when it is not there or not JSON (yet)."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
