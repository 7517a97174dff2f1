"""Many runs at once: a grid over the options of a run, each point played with several seeds.

`Sweep` says what is to be played, `cells` lists it, `play_cell` plays one cell, and `run_sweep`
plays those that have no result yet. A cell's result is a function of its options alone, so it does
not matter who plays it (`learning.sweeps.runners`) or when; results lie in one file each, named
after the options, so an interrupted sweep goes on, and a wider grid in the same folder reuses what
is there. Table and picture are `learning.sweeps.report`'s.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpcheckin import __version__
from dpcheckin.errors import DpCheckinError, InvalidParameter
from dpcheckin.learning.data.datasets import Dataset, load_dataset
from dpcheckin.learning.report import summary
from dpcheckin.learning.settings import Settings
from dpcheckin.learning.simulation.client_work import get_parameters
from dpcheckin.learning.simulation.runs import RunOptions, build

if TYPE_CHECKING:
    from dpcheckin.learning.sweeps.runners import Runner

_MACHINE = {"backend", "workers", "threads", "settings"}
_RUN = {f.name for f in fields(RunOptions)} - _MACHINE
_LEARN = {f.name for f in fields(Settings)} - {"seed", "steps"}
NAMES = tuple(sorted(_RUN | _LEARN))
"""What a grid may range over."""

MARK = "sweep.mark"
Result = dict[str, Any]
OnResult = Callable[[int, int, Result], None]


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
        said = asdict(self.options)
        for name in _MACHINE - {"settings"}:
            del said[name]
        content = json.dumps([__version__, self.train, said], sort_keys=True, default=str)
        return hashlib.sha256(content.encode()).hexdigest()[:24]


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
            if name not in NAMES:
                raise InvalidParameter("over", name, f"one of {', '.join(NAMES)}")
            if not values or len(set(values)) < len(values):
                raise InvalidParameter(f"over {name}", list(values), "different values")
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise InvalidParameter("seeds", list(self.seeds), "different seeds, one or more")

    def cells(self) -> list[Cell]:
        """Every point with every seed, points in the order of the grid."""
        seeds = self.seeds if self.train else self.seeds[:1]
        found = []
        for values in product(*self.over.values()):
            point = tuple(zip(self.over, values, strict=True))
            for seed in seeds:
                changed = changed_options(self.base, {**dict(point), "seed": seed})
                found.append(Cell(point, changed, self.train))
        return found

    def check(self) -> None:
        """Raise what is wrong with any point before the first one is played."""
        data: dict[tuple[str, Path | None], Dataset] = {}
        for cell in self.cells():
            if cell.seed != self.seeds[0]:
                continue
            options = cell.options
            where = (options.data, options.data_dir)
            if where not in data:
                data[where] = load_dataset(*where)
            build(options, data=data[where]).rounds_allowed()


def changed_options(base: RunOptions, changes: Mapping[str, Any]) -> RunOptions:
    """The options with changes by name; learning rate, seed and the like belong to the settings."""
    run = {name: value for name, value in changes.items() if name in _RUN}
    learn = {name: value for name, value in changes.items() if name not in _RUN}
    # one thread and one process a cell: the same sums whoever plays it
    settings = replace(base.settings, **learn)
    return replace(base, **run, settings=settings, backend="local", threads=1)


def play_cell(cell: Cell, folder: Path | None) -> Result:
    """Play one cell, or state its price; what it cannot do becomes part of the result."""
    result: Result = {"key": cell.key, "point": dict(cell.point), "seed": cell.seed}
    try:
        if cell.train:
            return result | _trained(cell, folder)
        return result | _priced(cell)
    except DpCheckinError as problem:  # one diverging point must not end the others
        return result | {"failed": str(problem)}


def _trained(cell: Cell, folder: Path | None) -> Result:
    trainer = build(cell.options, None if folder is None else folder / cell.key)
    outcome = trainer.run()
    weights = get_parameters(outcome.module).numpy().tobytes()
    facts = summary(trainer, outcome)
    return {
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
    said = plan.guarantee(trainer.delta, rounds)
    return {
        "epsilon": said.epsilon.upper,
        "colluding_epsilon": None if said.local is None else said.local.epsilon,
        "delta": trainer.delta,
        "rounds_run": rounds,
        "stopped_by_budget": rounds < plan.rounds,
        "protocol": plan.describe(),
        "randomizer": plan.randomizer.describe(),
        "statement": str(said),
    }


def run_sweep(
    sweep: Sweep, out: Path, runner: Runner, on_result: OnResult | None = None
) -> list[Result]:
    """Play what has no result yet and return all results in the order of the cells."""
    cells = sweep.cells()
    folder = out / "cells"
    folder.mkdir(parents=True, exist_ok=True)
    # a worker elsewhere that finds this mark sees the same disk, and may keep checkpoints on it
    mark = folder / MARK
    if not mark.exists():
        mark.write_text(os.urandom(16).hex())
    done = {cell.key: found for cell in cells if (found := _read(folder, cell)) is not None}
    for count, result in enumerate(done.values(), 1):
        _tell(on_result, count, len(cells), result)
    missing = list({c.key: c for c in cells if c.key not in done}.values())
    for result in runner.play(missing, folder.absolute()):
        _write(folder, result)
        done[result["key"]] = result
        _tell(on_result, len(done), len(cells), result)
    points = {cell.key: dict(cell.point) for cell in cells}
    return [{**done[cell.key], "point": points[cell.key]} for cell in cells]


def _tell(on_result: OnResult | None, count: int, total: int, result: Result) -> None:
    if on_result is not None:
        on_result(count, total, result)


def _read(folder: Path, cell: Cell) -> Result | None:
    """A finished cell's result; a failure is tried again, as its cause may be gone."""
    try:
        found: Result = json.loads((folder / f"{cell.key}.json").read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return None if "failed" in found else found


def _write(folder: Path, result: Result) -> None:
    fresh = folder / f"{result['key']}.json.new"
    with open(fresh, "w") as file:
        json.dump(result, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, folder / f"{result['key']}.json")


def shared_folder(folder: Path, mark: str) -> Path | None:
    """The folder if this machine sees the one that the sweep was started in, else None."""
    try:
        return folder if (folder / MARK).read_text() == mark else None
    except OSError:
        return None
