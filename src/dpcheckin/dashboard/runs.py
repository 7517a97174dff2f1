"""Training runs in a folder, as the page shows them: what `dpcheckin train --out` has written.

Only `log.json` and `report.json` are read, both of which training replaces as a whole, so a run can be looked at while
it goes on; and for the runs of a sweep the results that `dpcheckin sweep` writes beside their folders. Nothing is ever
written, and torch is not needed.
"""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

from dpcheckin.accounting import Kind
from dpcheckin.display import told
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import written

LOG, REPORT = "log.json", "report.json"
CELLS = "cells"  # the folder in which a sweep keeps its runs
DEPTH = 3
# what a log may call its figure of merit (`learning.simulation.scores`, which needs torch): how it
# is named here, by what it is multiplied to be drawn, what stands behind it, and which is best
SCORES = {"accuracy": ("test accuracy", 100.0, "%", max), "test_loss": ("test loss", 1.0, "", min)}
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
            for path in (folder / LOG, folder / REPORT, _result_file(folder)):
                if path.exists():
                    status = path.stat()
                    stamps.append(f"{name}/{path.name}:{status.st_mtime_ns}:{status.st_size}")
        return "|".join(stamps)

    def overview(self) -> list[dict[str, Any]]:
        """One line for each run, the latest to change first."""
        found = [self._line(name, folder) for name, folder in self.folders().items()]
        lines = [line for line in found if line is not None]
        _name(lines)
        return sorted(lines, key=lambda line: -line["changed"])

    def run(self, name: str) -> dict[str, Any]:
        """Everything there is to draw about one run."""
        folder = self.folders().get(name)
        if folder is None:
            raise InvalidParameter("run", name, "a run of the folder")
        rows = _rows(folder)
        named = next((line for line in self.overview() if line["name"] == name), None)
        return {
            **(named or {"name": name, "title": name, "parameters": {}}),
            "report": _report(folder),
            "rows": [_row(row) for row in rows],
            "best": _best(rows),
        }

    def _line(self, name: str, folder: Path) -> dict[str, Any] | None:
        rows = _rows(folder)
        if not rows:
            return None
        report, last = _report(folder), _row(rows[-1])
        changed = (folder / LOG).stat().st_mtime
        state = "going on" if time.time() - changed < QUIET_SECONDS else "stopped"
        # a report older than the log belongs to an earlier part of a run that was resumed
        if report is not None and report.get("rounds", 0) >= last["round"]:
            state = "finished"
        return {
            "name": name,
            "parameters": _parameters(folder, report),
            "state": state,
            "changed": changed,
            "round": last["round"],
            "score": last["score"],
            "unit": last["unit"],
            "score_text": last["score_text"],
            "epsilon": last["epsilon_text"],
            "delta": last["delta"],
        }


def _name(lines: list[dict[str, Any]]) -> None:
    """Runs of one sweep are named by what differs between them, others by their folders."""
    for line in lines:
        line["title"] = line["name"]
        group, _, key = line["name"].rpartition("/")
        if not group.endswith(CELLS):
            continue
        sweep = group.removesuffix(CELLS).rstrip("/") or "sweep"
        others = [x["parameters"] for x in lines if x["name"].rpartition("/")[0] == group]
        differing = [
            f"{name.replace('_', ' ')} {value}"
            for name, value in line["parameters"].items()
            if any(other.get(name) != value for other in others if other)
        ]
        # until its result is written nobody but the sweep knows what a cell varies
        line["title"] = f"{sweep}: {', '.join(differing) or f'run {key[:6]}'}"


def _result_file(folder: Path) -> Path:
    """Where a sweep writes the result of the run in this folder."""
    return folder.with_name(f"{folder.name}.json")


def _report(folder: Path) -> Any:
    """The report of a finished run, its own or that of its sweep."""
    own = _read(folder / REPORT)
    if own is not None or folder.parent.name != CELLS:
        return own
    result = _read(_result_file(folder))
    if not isinstance(result, dict) or "rounds_run" not in result:
        return None
    return {**result, "rounds": result["rounds_run"]}


def _parameters(folder: Path, report: Any) -> dict[str, str]:
    """What was chosen, as far as it is written down."""
    if not isinstance(report, dict):
        return {}
    if isinstance(report.get("point"), dict):
        chosen = {**report["point"], "seed": report.get("seed")}
    else:
        shown = ("protocol", "randomizer", "data", "model", "clip")
        chosen = {name: report.get(name) for name in shown}
        settings = report.get("settings")
        if isinstance(settings, dict):
            chosen |= {n: settings.get(n) for n in ("learning_rate", "averaging", "seed")}
    return {name: told(value) for name, value in chosen.items() if value is not None}


def _rows(folder: Path) -> list[dict[str, Any]]:
    rows = _read(folder / LOG)
    wanted = {"round", "check_ins", "epsilon", "delta"}
    if not isinstance(rows, list):
        return []
    found = [row for row in rows if isinstance(row, dict) and wanted <= row.keys()]
    return [row for row in found if not SCORES.keys().isdisjoint(row)]


def _score(row: dict[str, Any]) -> str:
    return next(name for name in SCORES if name in row)


def _best(rows: list[dict[str, Any]]) -> str:
    """The best score of a run, as it may be read."""
    if not rows:
        return told(None)
    name = _score(rows[-1])
    same = [row for row in rows if name in row]
    return str(_row(SCORES[name][3](same, key=lambda row: float(row[name])))["score_text"])


def _row(row: dict[str, Any]) -> dict[str, Any]:
    epsilon, name = float(row["epsilon"]), _score(row)
    label, scale, unit, _ = SCORES[name]
    value = scale * float(row[name])
    return {
        "round": int(row["round"]),
        "check_ins": int(row["check_ins"]),
        "score": label,
        "value": value,
        "unit": unit,
        "score_text": f"{value:.1f}%" if unit else written(value, 4),
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
