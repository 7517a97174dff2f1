"""Panels computed and written: CSV with every digit, PNG to look at, one Markdown report to read.

Interrupted runs resume: every computed cell is in the cache before the next begins.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpcheckin import __version__
from dpcheckin.display import COLOURS, legend_beside, needed, readable_ticks
from dpcheckin.errors import InvalidParameter
from dpcheckin.files import replacing
from dpcheckin.numerals import Kind
from dpcheckin.papers.figures import panels
from dpcheckin.papers.panel import Cell, Cells, Column, Panel, Row

_LINES: dict[Kind, Any] = {
    Kind.GUARANTEE: "-",
    Kind.LOWER_BOUND: (0, (2, 3)),
    Kind.CONJECTURE: "-.",
    Kind.REFUTED: "--",
}
_MARKERS = "osD^vPX*<>"
_PENS = {"red": "red", "blue": "blue", "black": "black", "magenta": "magenta"}  # as the papers' captions have them
_STROKES = {"solid": "-", "dotted": ":"}
FIGURES = ("epsilon", "epsilon_rounded_safely")


def write_csv(panel: Panel, cells: Cells, path: Path) -> None:
    """Write one line to `path` for each figure of the panel's cells, with what it is in columns of their own.

    The planner page exports the same columns. What a bound does not say is an empty figure.
    """
    with path.open("w", newline="", encoding="utf-8") as stream:
        out = csv.writer(stream)
        out.writerow(["bound", "kind", "source", panel.row_title, *FIGURES])
        for column in panel.columns:
            for row in panel.rows:
                value = cells[(row.label, column.label)]
                place = row.label if row.x is None else f"{row.x:.12g}"
                figures = ["", ""]
                if value is not None:
                    figures = [repr(value), column.kind.figure(value).replace(",", "")]
                source = column.source or ("printed in the paper" if column.printed else "")
                out.writerow([column.label, column.kind.value, source, place, *figures])


def write_png(panel: Panel, cells: Cells, path: Path) -> None:
    """Draw the panel's cells to `path`: curves for a figure, dots for a table.

    A colour or a line that a label names is the one that is drawn; else colour and line tell the kind.
    """
    figure = needed("matplotlib.figure", "plot").Figure(figsize=(11.0, 4.8), layout="constrained")
    axes = figure.subplots()
    taken = {_named(_PENS, column) for column in panel.columns}
    ours = [colour for colour in ("black", "dimgray") if colour not in taken]
    for number, column in enumerate(panel.columns):
        shades = COLOURS[column.kind.value]
        colour = shades[sum(c.kind is column.kind for c in panel.columns[:number]) % len(shades)]
        if column.ours:
            colour = ours[sum(c.ours for c in panel.columns[:number]) % len(ours)]
        colour, line = _named(_PENS, column) or colour, _named(_STROKES, column) or _LINES[column.kind]
        xs, ys = [], []
        for i, row in enumerate(panel.rows):
            value = cells[(row.label, column.label)]
            if value is not None and (value > 0.0 or not panel.log_y):
                xs.append(float(i) if row.x is None else row.x)
                ys.append(value)
        axes.plot(
            xs,
            ys,
            linestyle=line if panel.is_figure else "none",
            linewidth=2.6 if column.ours or column.kind is Kind.LOWER_BOUND else 1.2,
            color=colour,
            zorder=3 if column.kind is Kind.LOWER_BOUND else 2,  # dashes of it show on what comes close to it
            marker=_MARKERS[number % len(_MARKERS)],
            markersize=4,
            fillstyle="none" if column.printed else "full",
            label=f"{column.label} ({_kind(column)})",
        )
    if not panel.is_figure:
        axes.set_xticks(range(len(panel.rows)), [row.label for row in panel.rows], fontsize=7)
    if panel.log_y:
        axes.set_yscale("log")
    if panel.log_x and panel.is_figure:
        axes.set_xscale("log")
    readable_ticks(axes)
    axes.set_xlabel(panel.row_title)
    axes.set_ylabel("epsilon")
    axes.set_title(panel.title, fontsize=9)
    legend_beside(axes)
    figure.savefig(path, dpi=130)


def _named(meanings: Mapping[str, str], column: Column) -> str | None:
    """What a word in brackets in the column's label means."""
    return next((meant for word, meant in meanings.items() if f"({word})" in column.label), None)


def markdown(panel: Panel, cells: Cells, picture: bool = True) -> str:
    """Title of the panel, picture if there is one, table of its cells, and what is to be said about it."""
    head = [panel.row_title, *(f"{c.label}<br>*{_kind(c)}*" for c in panel.columns)]
    lines = [
        f"## {panel.title}",
        "",
        panel.about,
        "",
        *([f"![{panel.title}]({panel.name}.png)", ""] if picture else []),
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
    ]
    for row in panel.rows:
        values = [c.kind.figure(cells[(row.label, c.label)], 5) for c in panel.columns]
        lines.append("| " + " | ".join([row.label, *values]) + " |")
    lines += ["", *(f"- {remark}" for remark in panel.remarks(cells)), ""]
    lines.append(f"All digits: [{panel.name}.csv]({panel.name}.csv)")
    return "\n".join(lines) + "\n"


def _kind(column: Column) -> str:
    return f"printed, {column.kind.value}" if column.printed else column.kind.value


Progress = Callable[[str, int, int], None]


class CellCache:
    """Cells computed before, in one JSON file; every new cell is on disk before the next is begun.

    A cell is keyed by panel, row parameters, column and the version of the package: change any of them and it is
    computed anew.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._cells: dict[str, Cell] = {}
        if path.exists():
            try:
                loaded = json.loads(path.read_text(encoding="utf-8"))
            except json.JSONDecodeError:
                loaded = {}  # torn by a crash of the disk: everything is computed again
            if isinstance(loaded, dict):
                self._cells = loaded

    def compute(self, panel: Panel, row: Row, column: Column) -> Cell:
        """The panel's cell in this row and column, from the file if it is there."""
        content = [__version__, panel.name, sorted(row.parameters.items()), column.label]
        key = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:24]
        if key not in self._cells:
            self._cells[key] = column.compute(row.parameters)
            self._write()
        return self._cells[key]

    def _write(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self._path) as file:
            json.dump(self._cells, file)


@dataclass(frozen=True)
class Reproduced:
    """One panel with its cells filled in."""

    panel: Panel
    cells: dict[tuple[str, str], Cell]


def names() -> list[str]:
    """What can be reproduced, in the order of the report."""
    return list(panels())


def choose(wanted: Sequence[str]) -> list[Panel]:
    """The panels of these names; ``all`` means every one, a prefix such as p3-figure4 its parts."""
    known = panels()
    if not wanted or "all" in wanted:
        return list(known.values())
    chosen: dict[str, Panel] = {}
    for name in wanted:
        matching = {k: p for k, p in known.items() if k == name or k.startswith(name + "-")}
        if not matching:
            raise InvalidParameter("names", name, "all or some of " + ", ".join(known))
        chosen.update(matching)
    return list(chosen.values())


def reproduce(
    wanted: Sequence[str], out: Path, progress: Progress = lambda what, done, total: None, pictures: bool = True
) -> list[Reproduced]:
    """Compute and write the wanted panels into ``out``; returns them with their cells.

    `progress` is called with what is computed next, how many cells are done, and of how many. Figures do not need
    pictures: without matplotlib there are none.
    """
    chosen = choose(wanted)
    out.mkdir(parents=True, exist_ok=True)
    cache = CellCache(out / "cache.json")
    total = sum(len(p.rows) * len(p.columns) for p in chosen)
    done = 0
    results = []
    for panel in chosen:
        cells: dict[tuple[str, str], Cell] = {}
        for row in panel.rows:
            for column in panel.columns:
                progress(f"{panel.name}: {row.label}, {column.label}", done, total)
                cells[(row.label, column.label)] = cache.compute(panel, row, column)
                done += 1
        write_csv(panel, cells, out / f"{panel.name}.csv")
        if pictures:
            write_png(panel, cells, out / f"{panel.name}.png")
        results.append(Reproduced(panel, cells))
    progress("done", total, total)
    (out / "report.md").write_text(_report(results, pictures), encoding="utf-8")
    return results


def _report(results: Sequence[Reproduced], pictures: bool) -> str:
    head = (
        f"# Tables and figures of the papers, reproduced (dpcheckin {__version__})\n\n"
        "Black: our guarantee (grey: without types). Green: other guarantees. Blue: lower bounds (nothing below them "
        "can be true). Orange: unproved. Red: claims that are refuted. Both are recomputed as their "
        "papers computed them. See docs/errata.md for why.\n\n"
    )
    return head + "\n".join(markdown(r.panel, r.cells, pictures) for r in results)
