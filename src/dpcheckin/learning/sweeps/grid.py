"""A grid over the options of a run, each point with several seeds, and who plays it.

A `Cell`'s result is a function of its options alone, so that it does not matter who plays it or when: this process,
several processes, or a Ray cluster, in any order. It is one file, named after the options, so that an interrupted or
widened sweep plays what is missing; a worker that dies costs its cell only. The folder carries a mark by which a worker
elsewhere finds out whether it sees the same disk, and may keep checkpoints on it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

from dpcheckin import __version__
from dpcheckin.errors import DpCheckinError, InvalidParameter
from dpcheckin.files import replacing
from dpcheckin.learning.options import BACKENDS, RunOptions
from dpcheckin.learning.plans import plan_alone
from dpcheckin.numerals import at_least, positive
from dpcheckin.options import Option, changed, listed, options_of

VARIED: Mapping[str, Option] = {
    o.name: o for o in options_of(RunOptions) if o.changes_result and o.scalar is not None and o.name != "seed"
}
"""The options that a grid may range over, by name: all that change the result, but for the seed."""

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
        data: dict[tuple[object, ...], Any] = {}
        for cell in self.cells():
            if cell.seed != self.seeds[0]:
                continue
            options = cell.options
            if not self.train and plan_alone(options) is not None:
                continue
            from dpcheckin.learning.simulation.runs import build, make_data

            records = (options.data, options.data_dir, options.public)
            where = (*records, options.features, options.components)
            if where not in data:
                data[where] = make_data(options)
            build(options, data=data[where]).rounds_allowed()


def changed_options(base: RunOptions, changes: Mapping[str, Any]) -> RunOptions:
    """The base options with changes by name; one process a cell gives the same sums whoever plays it."""
    return changed(base, {**changes, "backend": "local"})


def play_cell(cell: Cell, folder: Path | None) -> Result:
    """Play a cell, with checkpoints in a folder if any, or state its price; a failure is part of the result."""
    result: Result = {"key": cell.key, "point": dict(cell.point), "seed": cell.seed}
    try:
        return result | (_trained(cell, folder) if cell.train else _priced(cell))
    except DpCheckinError as problem:  # one diverging point must not end the others
        return result | {"failed": str(problem)}


def _trained(cell: Cell, folder: Path | None) -> Result:
    from dpcheckin.learning.run import summary
    from dpcheckin.learning.simulation.client_work import get_parameters
    from dpcheckin.learning.simulation.runs import build

    trainer = build(cell.options, None if folder is None else folder / cell.key)
    if trainer.score.name != "accuracy":
        raise InvalidParameter("data", cell.options.data, "data with classes in a sweep")
    outcome = trainer.run()
    weights = get_parameters(outcome.module).numpy().tobytes()
    facts = summary(trainer, outcome)
    return {name: facts[name] for name in _REPORTED} | {
        "rounds_run": outcome.rounds,
        "model": hashlib.sha256(weights).hexdigest(),
        "log": outcome.log,
    }


def _priced(cell: Cell) -> Result:
    options, plan = cell.options, plan_alone(cell.options)
    delta, budget, rounds = options.delta, options.epsilon_budget, 0
    if plan is not None:
        rounds = plan.rounds if budget is None else plan.rounds_within(positive("epsilon_budget", budget), delta)
    if plan is None or not rounds:  # records or model have a say, or there is something to complain about
        from dpcheckin.learning.simulation.runs import build

        trainer = build(options)
        plan, rounds = trainer.plan, trainer.rounds_allowed()
    guarantee = plan.guarantee(delta, rounds)
    return {
        "epsilon": guarantee.epsilon.upper,
        "colluding_epsilon": None if guarantee.local is None else guarantee.local.epsilon,
        "delta": delta,
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
    """The folder if this machine sees the one that the sweep was started in, by its mark, else None."""
    try:
        return folder if (folder / MARK).read_text() == mark else None
    except OSError:
        return None


def read_result(folder: Path, cell: Cell) -> Result | None:
    """A finished cell's result in a folder; a failure is tried again, as its cause may be gone."""
    try:
        result: Result = json.loads((folder / f"{cell.key}.json").read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return None if "failed" in result else result


Runner = Callable[[Sequence[Cell], Path], Iterator[Result]]
"""Plays cells; checkpoints go to the folder where it can be seen."""

OnResult = Callable[[int, int, Result], None]
"""Called with how many results there are, how many there will be, and the latest."""


def run_sweep(sweep: Sweep, out: Path, runner: Runner, on_result: OnResult | None = None) -> list[Result]:
    """Let a runner play what has no result yet and return all results of a sweep in the order of the cells.

    Results lie in `cells` below `out`; those read are the first that `on_result` hears of.
    """
    cells, folder = sweep.cells(), result_folder(out)
    wanted = {cell.key: cell for cell in cells}
    done: dict[str, Result] = {}

    def keep(result: Result) -> None:
        done[result["key"]] = result
        if on_result is not None:
            on_result(len(done), len(cells), result)

    for cell in wanted.values():
        if (result := read_result(folder, cell)) is not None:
            keep(result)
    missing = [cell for key, cell in wanted.items() if key not in done]
    for result in runner(missing, folder.absolute()) if missing else ():
        with replacing(folder / f"{result['key']}.json") as file:
            json.dump(result, file)
        keep(result)
    return [{**done[cell.key], "point": dict(cell.point)} for cell in cells]


def make_runner(name: str, workers: int, address: str | None = None) -> Runner:
    """A runner by name, one of `options.BACKENDS`, with so many workers, or those of a Ray cluster at an address."""
    if address is not None and name != "ray":
        raise InvalidParameter("ray_address", address, "nothing unless backend is 'ray'")
    if name not in BACKENDS:
        raise InvalidParameter("backend", name, listed(BACKENDS))
    if name == "local":
        return in_this_process
    at_least("workers", workers, 1)
    if name == "ray":
        return partial(_on_ray, workers, address)
    return partial(_in_processes, workers)


def in_this_process(cells: Sequence[Cell], folder: Path) -> Iterator[Result]:
    """One of the cells after the other; checkpoints go to the folder."""
    for cell in cells:
        yield play_cell(cell, folder)


def _in_processes(workers: int, cells: Sequence[Cell], folder: Path) -> Iterator[Result]:
    from dpcheckin.learning.simulation.backends import follow_parent

    others = set(active_children())
    count = min(workers, len(cells))
    pool = ProcessPoolExecutor(count, get_context("spawn"), initializer=follow_parent)
    try:
        waiting = [pool.submit(play_cell, cell, folder) for cell in cells]
        for done in as_completed(waiting):
            yield done.result()
    except BrokenProcessPool:
        raise DpCheckinError("a worker process died; run the same command again to play what is missing") from None
    except BaseException:
        # whoever gave up waits for no run: each resumes from its checkpoint
        for worker in set(active_children()) - others:
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _on_ray(workers: int, address: str | None, cells: Sequence[Cell], folder: Path) -> Iterator[Result]:
    """The cluster at `address`, or a local one that is started and stopped here."""
    from dpcheckin.learning.simulation.backends import connect_ray

    mark = (folder / MARK).read_text()
    with connect_ray(workers, address) as ray:
        task: Any = ray.remote(num_cpus=1, max_retries=3)(_play_on_ray)
        waiting = [task.remote(cell, folder, mark) for cell in cells]
        while waiting:
            ready, waiting = ray.wait(waiting)
            try:
                yield from ray.get(ready)
            except ray.exceptions.RayError as problem:
                raise DpCheckinError(
                    f"a Ray worker failed ({type(problem).__name__}); run the same command again "
                    "to play what is missing"
                ) from None


def _play_on_ray(cell: Cell, folder: Path, mark: str) -> Result:
    return play_cell(cell, shared_folder(folder, mark))
