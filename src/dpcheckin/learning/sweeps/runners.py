"""A whole sweep, and who plays its cells: this process, several processes, or a Ray cluster.

Each runner yields results as they come; the order carries no meaning. A cell is one call: it takes
seconds to hours, so that what a call costs does not matter. A worker that dies costs its cell
only: Ray gives the cell to another one, and a sweep started again plays what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

from dpcheckin.errors import DpCheckinError, InvalidParameter
from dpcheckin.learning.names import BACKENDS
from dpcheckin.learning.simulation.backends import connect_ray, follow_parent
from dpcheckin.learning.sweeps.grid import (
    MARK,
    Cell,
    Result,
    Sweep,
    play_cell,
    read_result,
    result_folder,
    shared_folder,
    write_result,
)
from dpcheckin.options import listed
from dpcheckin.randomizers.base import at_least

Runner = Callable[[Sequence[Cell], Path], Iterator[Result]]
"""Plays cells; checkpoints go to the folder where it can be seen."""

OnResult = Callable[[int, int, Result], None]
"""Called with how many results there are, how many there will be, and the latest."""


def run_sweep(
    sweep: Sweep, out: Path, runner: Runner, on_result: OnResult | None = None
) -> list[Result]:
    """Play what has no result yet and return all results in the order of the cells.

    Results lie in `cells` below `out`; those read are the first that `on_result` hears of.
    """
    cells = sweep.cells()
    folder = result_folder(out)
    kept = {cell.key: read_result(folder, cell) for cell in cells}
    done = {key: result for key, result in kept.items() if result is not None}

    def announce(count: int, result: Result) -> None:
        if on_result is not None:
            on_result(count, len(cells), result)

    for count, result in enumerate(done.values(), 1):
        announce(count, result)
    missing = list({c.key: c for c in cells if c.key not in done}.values())
    for result in runner(missing, folder.absolute()):
        write_result(folder, result)
        done[result["key"]] = result
        announce(len(done), result)
    points = {cell.key: dict(cell.point) for cell in cells}
    return [{**done[cell.key], "point": points[cell.key]} for cell in cells]


def make_runner(name: str, workers: int, address: str | None = None) -> Runner:
    """A runner by name, one of `names.BACKENDS`; `address` is that of a running Ray cluster."""
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
    """One cell after the other."""
    for cell in cells:
        yield play_cell(cell, folder)


def _in_processes(workers: int, cells: Sequence[Cell], folder: Path) -> Iterator[Result]:
    if not cells:
        return
    others = set(active_children())
    count = min(workers, len(cells))
    pool = ProcessPoolExecutor(count, get_context("spawn"), initializer=follow_parent)
    try:
        waiting = [pool.submit(play_cell, cell, folder) for cell in cells]
        for done in as_completed(waiting):
            yield done.result()
    except BrokenProcessPool:
        raise DpCheckinError(
            "a worker process died; run the same command again to play what is missing"
        ) from None
    except BaseException:
        # whoever gave up waits for no run: each resumes from its checkpoint
        for worker in set(active_children()) - others:
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _on_ray(
    workers: int, address: str | None, cells: Sequence[Cell], folder: Path
) -> Iterator[Result]:
    """The cluster at `address`, or a local one that is started and stopped here."""
    if not cells:
        return
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
