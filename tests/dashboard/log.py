"""Runs in the format in which `dpcheckin train --out` leaves them."""

import json
import math
import os
from pathlib import Path
from typing import Any

REPORT = {
    "protocol": "shuffled check-in, 1,437 clients at rate 0.2",
    "randomizer": "PrivUnit, local epsilon 4",
    "statement": "The run is (2.1, 1e-05)-differentially private (replace one client).",
}


def rows(count: int) -> list[dict[str, Any]]:
    return [
        {
            "round": 10 * i,
            "check_ins": 287 + (7 * i) % 13,
            "loss": 2.3 * math.exp(-i / 15),
            "clipped": 0.5,
            "accuracy": 0.95 - 0.85 * math.exp(-i / 9),
            "epsilon": 0.331 * math.sqrt(i),
            "delta": 1e-5,
        }
        for i in range(1, count + 1)
    ]


def write_run(folder: Path, rounds: int, finished: bool) -> None:
    """The log, replaced as a whole as training does, and the report of a finished run."""
    folder.mkdir(exist_ok=True)
    fresh = folder / "log.json.new"
    fresh.write_text(json.dumps(rows(rounds), indent=1))
    os.replace(fresh, folder / "log.json")
    if finished:
        last = rows(rounds)[-1]
        report = {**REPORT, "rounds": last["round"], "accuracy": last["accuracy"]}
        (folder / "report.json").write_text(json.dumps(report))
