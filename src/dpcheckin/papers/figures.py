"""All of the papers' tables and figures by name, from the `figures.toml` of each: panels, and training figures.

The rows of a panel are listed, or lie along the values of one parameter (`over`), labelled as `shown`; what all of them
have is the `run`. A column is printed (a key of the rows), computed by a function, `with` fixed arguments, an entry of
the catalogue, or our own guarantee or lower bound (`papers.ours`); a name stands for columns that several panels have.
`remarks` is the function that has something to say about the cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from dpcheckin.numerals import Kind, number
from dpcheckin.papers import ours
from dpcheckin.papers.panel import Column, Panel, Row, column, rows_over
from dpcheckin.papers.tables import function, tables
from dpcheckin.papers.training_figure import TrainingFigure, training_figure

_READ = tables("figures.toml").values()
_SHARED = {name: given for table in _READ for name, given in table.get("columns", {}).items()}
_RUNS = {name: run for table in _READ for name, run in table.get("runs", {}).items()}
_FIRST = ("p1-table2", "p4-table1", "p4-figure1a")

TRAINING: dict[str, TrainingFigure] = {
    name: training_figure(_RUNS, **figure) for table in _READ for name, figure in table.get("training", {}).items()
}
"""Training figures by name; `papers.training` plays them."""


def panels() -> dict[str, Panel]:
    """Every panel by name, in report order; parameters the papers leave out are named in its `about`."""
    every = [_panel(**panel) for table in _READ for panel in table.get("panel", ())]
    return {panel.name: panel for panel in sorted(every, key=_place)}


def _place(panel: Panel) -> tuple[bool, bool]:
    return panel.name.startswith("claims"), panel.name not in _FIRST


def _panel(
    run: dict[str, Any], columns: list[Any], remarks: str | None = None, over: dict[str, Any] | None = None,
    shown: str = "{}", rows: list[dict[str, Any]] | None = None, **said: Any,
) -> Panel:  # fmt: skip
    fixed = _numbers(run)
    if over is not None:
        ((along, values),) = over.items()
        made = rows_over(along, values, shown, **fixed)
    else:
        made = tuple(_row(fixed, **row) for row in rows or ())
    if remarks is not None:
        said["remarks"] = partial(function(remarks), made)
    return Panel(rows=made, columns=tuple(_columns(columns)), **said)


def _row(run: dict[str, float], label: str, x: float | None = None, **own: Any) -> Row:
    return Row(label, None if x is None else float(x), {**run, **_numbers(own)})


def _numbers(given: dict[str, Any]) -> dict[str, float]:
    """Parameters, of which some are written as fractions."""
    return {name: number(value) if isinstance(value, str) else value for name, value in given.items()}


def _columns(given: list[Any]) -> Iterator[Column]:
    for one in given:
        if not isinstance(one, str):
            yield _column(**one)
        else:
            yield from _columns(_SHARED[one])


def _column(label: str, kind: str = "", printed: str = "", compute: str = "", **more: Any) -> Column:
    if "entry" in more:
        return ours.entry(label, more["entry"], more["protocol"])
    for ours_by in (ours.guarantee, ours.lower):
        if place := more.get(ours_by.__name__):
            return ours_by(label, place, more.get("pair"))
    if printed:
        return Column(label, Kind(kind), lambda p: p.get(printed), printed=True)
    return column(label, Kind(kind), function(compute, more.get("with")))
