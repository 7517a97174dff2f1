"""Run panels: compute what is missing, then write CSV, PNG and one Markdown report.

Interrupted runs resume: every computed cell is in the cache before the next begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpcheckin import __version__
from dpcheckin.errors import InvalidParameter
from dpcheckin.papers.figures import panels
from dpcheckin.papers.panel import Cell, Panel
from dpcheckin.report.cache import CellCache
from dpcheckin.report.writing import markdown, write_csv, write_png

Progress = Callable[[str, int, int], None]


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
    wanted: Sequence[str],
    out: Path,
    progress: Progress = lambda what, done, total: None,
    pictures: bool = True,
) -> list[Reproduced]:
    """Compute and write the wanted panels into ``out``; returns them with their cells.

    Figures do not need pictures: without matplotlib there are none.
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
        "Black: our guarantee. Green: other guarantees. Blue: lower bounds (nothing below them can "
        "be true). Orange: unproved. Red: claims that are refuted. Both are recomputed as their "
        "papers computed them. See docs/errata.md for why.\n\n"
    )
    return head + "\n".join(markdown(r.panel, r.cells, pictures) for r in results)
