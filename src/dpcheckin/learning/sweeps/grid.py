"""A grid over the options of a run, each point with several seeds.

`Sweep` says what is to be played and lists it as `Cell`s. A cell's result is a function of its
options alone, so that it does not matter who plays it (`sweeps.runners`) or when. What may be
varied is read from `RunOptions`: every option that changes the result, but for the seed.

A cell is trained, or only priced. Its result is one file, named after the options, so that an
interrupted or widened sweep plays what is missing. The folder carries a mark by which a worker
elsewhere finds out whether it sees the same disk, and may keep checkpoints on it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from dpcheckin import __version__
from dpcheckin.errors import DpCheckinError, InvalidParameter
from dpcheckin.learning.data.datasets import Dataset
from dpcheckin.learning.files import replacing
from dpcheckin.learning.options import RunOptions
from dpcheckin.learning.report import summary
from dpcheckin.learning.simulation.client_work import get_parameters
from dpcheckin.learning.simulation.runs import build, make_data
from dpcheckin.options import Option, changed, options_of

VARIED: Mapping[str, Option] = {
    o.name: o
    for o in options_of(RunOptions)
    if o.changes_result and o.scalar is not None and o.name != "seed"
}
"""The options that a grid may range over, by name."""


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


@dataclass(frozen=True)
class Cell:
    """One point of the grid with one seed."""

    point: tuple[tuple[str, Any], ...]
    options: RunOptions
    train: bool

    @property
    def seed(self) -> int:
        """The run's seed."""
        return self.options.settings.seed

    @property
    def key(self) -> str:
        """A name that follows from everything the result depends on, and from nothing else."""
        content = asdict(self.options)
        for option in options_of(RunOptions):
            if not option.changes_result:
                del content[option.name]
        text = json.dumps([__version__, self.train, content], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Sweep:
    """A grid: options of a run that stay, those that range over values, and seeds."""

    base: RunOptions
    over: Mapping[str, Sequence[Any]]
    seeds: Sequence[int] = (0,)
    train: bool = True
    """False: only state what each plan costs; nothing is trained and one seed is enough."""

    def __post_init__(self) -> None:
        for name, values in self.over.items():
            if name not in VARIED:
                raise InvalidParameter("over", name, f"one of {', '.join(sorted(VARIED))}")
            if not values or len(set(values)) < len(values):
                raise InvalidParameter(f"over {name}", list(values), "different values")
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise InvalidParameter("seeds", list(self.seeds), "different seeds, one or more")

    def cells(self) -> list[Cell]:
        """Every point with every seed, points in the order of the grid."""
        cells, seeds = [], self.seeds if self.train else self.seeds[:1]
        for *values, seed in product(*self.over.values(), seeds):
            point = tuple(zip(self.over, values, strict=True))
            options = changed_options(self.base, {**dict(point), "seed": seed})
            cells.append(Cell(point, options, self.train))
        return cells

    def check(self) -> None:
        """Raise what is wrong with any point before the first one is played."""
        data: dict[tuple[object, ...], Dataset] = {}
        for cell in self.cells():
            if cell.seed != self.seeds[0]:
                continue
            options = cell.options
            records = (options.data, options.data_dir, options.public)
            where = (*records, options.features, options.components)
            if where not in data:
                data[where] = make_data(options)
            build(options, data=data[where]).rounds_allowed()


def changed_options(base: RunOptions, changes: Mapping[str, Any]) -> RunOptions:
    """The options with changes by name, to be played in one process with one thread.

    One thread and one process a cell give the same sums whoever plays it.
    """
    return changed(base, {**changes, "backend": "local", "threads": 1})


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
