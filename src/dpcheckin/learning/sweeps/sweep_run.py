"""Playing a whole sweep: what has no result yet is given to a runner, the rest is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dpcheckin.learning.sweeps.cells import Result
from dpcheckin.learning.sweeps.grid import Sweep
from dpcheckin.learning.sweeps.results import read_result, result_folder, write_result
from dpcheckin.learning.sweeps.runners import Runner

OnResult = Callable[[int, int, Result], None]
"""Called with how many results there are, how many there will be, and the latest."""


def run_sweep(
    sweep: Sweep, out: Path, runner: Runner, on_result: OnResult | None = None
) -> list[Result]:
    """Play what has no result yet and return all results in the order of the cells.

    Args:
        sweep: the grid.
        out: folder of the sweep; results lie in `cells` below it.
        runner: who plays the cells.
        on_result: called with every result, those read first.
    """
    cells = sweep.cells()
    folder = result_folder(out)
    done = {cell.key: found for cell in cells if (found := read_result(folder, cell)) is not None}

    def announce(count: int, result: Result) -> None:
        if on_result is not None:
            on_result(count, len(cells), result)

    for count, result in enumerate(done.values(), 1):
        announce(count, result)
    missing = list({c.key: c for c in cells if c.key not in done}.values())
    for result in runner.play(missing, folder.absolute()):
        write_result(folder, result)
        done[result["key"]] = result
        announce(len(done), result)
    points = {cell.key: dict(cell.point) for cell in cells}
    return [{**done[cell.key], "point": points[cell.key]} for cell in cells]
