"""`dpcheckin reproduce`: the papers' tables and figures, recomputed, with ours beside them."""

from __future__ import annotations

import json as json_format
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from dpcheckin.cli import training_figures
from dpcheckin.errors import MissingExtra
from dpcheckin.waiting import waiting


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="all, names such as p1-table2, or their beginnings such as p2-figure2 and claims."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for CSV, PNG, report and cache.")] = Path(
        "reproduced"
    ),
    list_names: Annotated[bool, typer.Option("--list", help="List the names and stop.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Training figures on digits, in a minute each.")
    ] = False,
    workers: Annotated[
        int, typer.Option(help="Processes that play the clients of training figures.")
    ] = 1,
    data_dir: Annotated[
        Path | None, typer.Option(help="Where files of the training figures' data sets are.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the cells as JSON.")] = False,
) -> None:
    """Recompute the papers' tables and figures and write one report.

    An interrupted run resumes where it stopped: cells are kept in OUT/cache.json. Training figures
    (p0-figure3a, p3-figure6, …) take hours, say so, and are played only when named.
    """
    from dpcheckin.papers.figures import TRAINING
    from dpcheckin.report.reproduce import choose
    from dpcheckin.report.reproduce import reproduce as run

    if list_names:
        titles = {panel.name: panel.title for panel in choose(["all"])}
        titles |= dict.fromkeys(TRAINING, "training, for hours (--quick: a minute)")
        typer.echo("\n".join(f"{name:<20} {title}" for name, title in titles.items()))
        return
    wanted = names or ["all"]
    training = [name for name in wanted if name in TRAINING]
    if training:
        played = training_figures.play(training, out, quick, workers, data_dir)
        typer.echo(json_format.dumps(played, indent=2))
        wanted = [name for name in wanted if name not in training]
        if not wanted:
            return
    with waiting("reproduce") as say:

        def progress(what: str, done: int, total: int) -> None:
            say(f"{done:,} of {total:,} cells, {what}")

        results = run(wanted, out, progress, pictures=find_spec("matplotlib") is not None)
    if find_spec("matplotlib") is None:
        typer.echo(f"no pictures: {MissingExtra('matplotlib', 'plot')}", err=True)
    if json:
        content = [
            {
                "name": r.panel.name,
                "title": r.panel.title,
                "rows": [
                    {
                        r.panel.row_title: row.label,
                        "cells": [
                            {
                                "column": c.label,
                                "kind": c.kind.value,
                                "printed": c.printed,
                                "epsilon": r.cells[(row.label, c.label)],
                            }
                            for c in r.panel.columns
                        ],
                    }
                    for row in r.panel.rows
                ],
                "remarks": r.panel.remarks(r.cells),
            }
            for r in results
        ]
        typer.echo(json_format.dumps(content, indent=2))
        return
    for r in results:
        typer.echo(f"{r.panel.name}: {r.panel.title}")
        for remark in r.panel.remarks(r.cells):
            typer.echo(f"  - {remark.replace('**', '')}")
    typer.echo(f"report: {out / 'report.md'}")
