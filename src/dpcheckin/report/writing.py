"""Panels on disk: CSV with every digit, PNG to look at, Markdown to read."""

from __future__ import annotations

import csv
from pathlib import Path

from dpcheckin.accounting.figures import Kind
from dpcheckin.display import legend_beside, needed
from dpcheckin.papers.panel import Cells, Column, Panel

_COLOURS = {
    Kind.GUARANTEE: ("#1b9e4b", "#5ab88a", "#2f7f7a", "#8fb339", "#4f9d9d", "#a3c293"),
    Kind.LOWER_BOUND: ("#1f5fbf", "#5a9bd8", "#7a86c9"),
    Kind.CONJECTURE: ("#e08214", "#f0a852"),
    Kind.REFUTED: ("#d62728", "#e8696a", "#b04a5a", "#f09a8a", "#8c2d2d", "#e377a2"),
}
_LINES = {
    Kind.GUARANTEE: "-",
    Kind.LOWER_BOUND: ":",
    Kind.CONJECTURE: "-.",
    Kind.REFUTED: "--",
}
_MARKERS = "osD^vPX*<>"
FIGURES = ("epsilon", "epsilon_rounded_safely")


def write_csv(panel: Panel, cells: Cells, path: Path) -> None:
    """One line for each figure, with what it is in columns of their own.

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
    """Curves for a figure, dots for a table; colour tells the kind."""
    figure = needed("matplotlib.figure", "plot").Figure(figsize=(11.0, 4.8), layout="constrained")
    axes = figure.subplots()
    for number, column in enumerate(panel.columns):
        shades = _COLOURS[column.kind]
        same = [c for c in panel.columns[:number] if c.kind is column.kind]
        colour = shades[len(same) % len(shades)]
        xs, ys = [], []
        for i, row in enumerate(panel.rows):
            value = cells[(row.label, column.label)]
            if value is not None and (value > 0.0 or not panel.log_y):
                xs.append(float(i) if row.x is None else row.x)
                ys.append(value)
        axes.plot(
            xs,
            ys,
            linestyle=_LINES[column.kind] if panel.is_figure else "none",
            linewidth=2.6 if column.ours else 1.2,
            color="black" if column.ours else colour,
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
    axes.set_xlabel(panel.row_title)
    axes.set_ylabel("epsilon")
    axes.set_title(panel.title, fontsize=9)
    legend_beside(axes)
    figure.savefig(path, dpi=130)


def markdown(panel: Panel, cells: Cells, picture: bool = True) -> str:
    """Title, picture if there is one, table, and what is to be said about it."""
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
