"""Playing one cell of a sweep: train it, or only state what its plan costs."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from dpcheckin.errors import DpCheckinError, InvalidParameter
from dpcheckin.learning.report import summary
from dpcheckin.learning.simulation.client_work import get_parameters
from dpcheckin.learning.simulation.runs import build
from dpcheckin.learning.sweeps.grid import Cell

Result = dict[str, Any]
"""The figures of one cell, as they are written to its file."""


def play_cell(cell: Cell, folder: Path | None) -> Result:
    """Play one cell, or state its price; what it cannot do becomes part of the result.

    Args:
        cell: the options and whether to train.
        folder: where checkpoints go, None to keep none.
    """
    result: Result = {"key": cell.key, "point": dict(cell.point), "seed": cell.seed}
    try:
        if cell.train:
            return result | _trained(cell, folder)
        return result | _priced(cell)
    except DpCheckinError as problem:  # one diverging point must not end the others
        return result | {"failed": str(problem)}


def _trained(cell: Cell, folder: Path | None) -> Result:
    trainer = build(cell.options, None if folder is None else folder / cell.key)
    if trainer.score.name != "accuracy":
        raise InvalidParameter("data", cell.options.data, "data with classes in a sweep")
    outcome = trainer.run()
    weights = get_parameters(outcome.module).numpy().tobytes()
    facts = summary(trainer, outcome, cell.options)
    return {
        "evaluated_on": facts["evaluated_on"],
        "accuracy": facts["accuracy"],
        "best_accuracy": facts["best_accuracy"],
        "epsilon": facts["epsilon"],
        "delta": facts["delta"],
        "rounds_run": facts["rounds"],
        "stopped_by_budget": facts["stopped_by_budget"],
        "protocol": facts["protocol"],
        "randomizer": facts["randomizer"],
        "statement": facts["statement"],
        "model": hashlib.sha256(weights).hexdigest(),
        "log": outcome.log,
        "seconds": facts["seconds"],
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
