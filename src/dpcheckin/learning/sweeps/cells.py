"""One cell of a sweep: train it, or only state what its plan costs; and its result on disk.

A result is one file, named after the options, so that an interrupted or widened sweep plays what is
missing. The folder carries a mark by which a worker elsewhere finds out whether it sees the same
disk, and may keep checkpoints on it.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from dpcheckin.errors import DpCheckinError, InvalidParameter
from dpcheckin.learning.files import replacing
from dpcheckin.learning.report import summary
from dpcheckin.learning.simulation.client_work import get_parameters
from dpcheckin.learning.simulation.runs import build
from dpcheckin.learning.sweeps.grid import Cell

Result = dict[str, Any]
"""The figures of one cell, as they are written to its file."""

MARK = "sweep.mark"
_REPORTED = (
    "evaluated_on",
    "accuracy",
    "best_accuracy",
    "epsilon",
    "delta",
    "stopped_by_budget",
    "protocol",
    "randomizer",
    "statement",
    "seconds",
)
"""What a result takes over from a run's report."""


def play_cell(cell: Cell, folder: Path | None) -> Result:
    """Play one cell, or state its price; what it cannot do becomes part of the result.

    Checkpoints go to `folder`, None keeps none.
    """
    result: Result = {"key": cell.key, "point": dict(cell.point), "seed": cell.seed}
    try:
        return result | (_trained(cell, folder) if cell.train else _priced(cell))
    except DpCheckinError as problem:  # one diverging point must not end the others
        return result | {"failed": str(problem)}


def _trained(cell: Cell, folder: Path | None) -> Result:
    trainer = build(cell.options, None if folder is None else folder / cell.key)
    if trainer.score.name != "accuracy":
        raise InvalidParameter("data", cell.options.data, "data with classes in a sweep")
    outcome = trainer.run()
    weights = get_parameters(outcome.module).numpy().tobytes()
    facts = summary(trainer, outcome, cell.options)
    return {name: facts[name] for name in _REPORTED} | {
        "rounds_run": outcome.rounds,
        "model": hashlib.sha256(weights).hexdigest(),
        "log": outcome.log,
    }


def _priced(cell: Cell) -> Result:
    trainer = build(cell.options)
    plan, rounds = trainer.plan, trainer.rounds_allowed()
    guarantee = plan.guarantee(trainer.delta, rounds)
    return {
        "epsilon": guarantee.epsilon.upper,
        "colluding_epsilon": None if guarantee.local is None else guarantee.local.epsilon,
        "delta": trainer.delta,
        "rounds_run": rounds,
        "stopped_by_budget": rounds < plan.rounds,
        "protocol": plan.describe(),
        "randomizer": plan.randomizer.describe(),
        "statement": str(guarantee),
    }


def result_folder(out: Path) -> Path:
    """The folder of the cells' results under `out`, made and marked if need be."""
    folder = out / "cells"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / MARK).exists():
        (folder / MARK).write_text(os.urandom(16).hex())
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
        result: Result = json.loads((folder / f"{cell.key}.json").read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return None if "failed" in result else result


def write_result(folder: Path, result: Result) -> None:
    """Write a cell's file so that a crash leaves it whole or not there."""
    with replacing(folder / f"{result['key']}.json") as file:
        json.dump(result, file)
