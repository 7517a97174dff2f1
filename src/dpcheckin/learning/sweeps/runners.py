"""Who plays the cells of a sweep: this process, several processes, or a Ray cluster.

Each yields results as they come; the order carries no meaning. A cell is one call: it takes
seconds to hours, so that what a call costs does not matter. A worker that dies costs its cell
only: Ray gives the cell to another one, and a sweep started again plays what is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any, Protocol

from dpcheckin.errors import DpCheckinError, InvalidParameter
from dpcheckin.learning.names import BACKENDS
from dpcheckin.learning.simulation.workers import connect_ray, follow_parent
from dpcheckin.learning.sweeps.cells import Result, play_cell
from dpcheckin.learning.sweeps.grid import Cell
from dpcheckin.learning.sweeps.results import MARK, shared_folder
from dpcheckin.options import listed


class Runner(Protocol):
    """Plays cells; checkpoints go to `folder` where it can be seen."""

    def play(self, cells: Sequence[Cell], folder: Path) -> Iterator[Result]:
        """Results, as they come."""


class InThisProcess:
    """This process, one cell after the other."""

    def play(self, cells: Sequence[Cell], folder: Path) -> Iterator[Result]:
        for cell in cells:
            yield play_cell(cell, folder)


class InProcesses:
    """Several processes on this machine."""

    def __init__(self, workers: int) -> None:
        if workers < 1:
            raise InvalidParameter("workers", workers, "at least 1")
        self._workers = workers

    def play(self, cells: Sequence[Cell], folder: Path) -> Iterator[Result]:
        if not cells:
            return
        count = min(self._workers, len(cells))
        others = set(active_children())
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


class OnRay:
    """A Ray cluster: the one at `address`, or a local one that is started and stopped here."""

    def __init__(self, workers: int, address: str | None = None) -> None:
        self._workers, self._address = workers, address

    def play(self, cells: Sequence[Cell], folder: Path) -> Iterator[Result]:
        if not cells:
            return
        mark = (folder / MARK).read_text()
        with connect_ray(self._workers, self._address) as ray:
            task: Any = ray.remote(num_cpus=1, max_retries=3)(_play_on_ray)
            waiting = [task.remote(cell, folder, mark) for cell in cells]
            while waiting:
                ready, waiting = ray.wait(waiting)
                for answer in ready:
                    yield _answer(ray, answer)


def _play_on_ray(cell: Cell, folder: Path, mark: str) -> Result:
    return play_cell(cell, shared_folder(folder, mark))


def _answer(ray: Any, answer: Any) -> Result:
    try:
        result: Result = ray.get(answer)
    except ray.exceptions.RayError as problem:
        raise DpCheckinError(
            f"a Ray worker failed ({type(problem).__name__}); run the same command again to play "
            "what is missing"
        ) from None
    return result


def make_runner(name: str, workers: int, address: str | None = None) -> Runner:
    """A runner by name.

    Args:
        name: one of `names.BACKENDS`.
        workers: number of processes.
        address: of a running Ray cluster, only with 'ray'.
    """
    if address is not None and name != "ray":
        raise InvalidParameter("ray_address", address, "nothing unless backend is 'ray'")
    if name == "local":
        return InThisProcess()
    if name == "processes":
        return InProcesses(workers)
    if name == "ray":
        return OnRay(workers, address)
    raise InvalidParameter("backend", name, listed(BACKENDS))
