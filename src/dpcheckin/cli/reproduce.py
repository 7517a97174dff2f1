"""`dpcheckin reproduce`: the papers' tables and figures, recomputed, with ours beside them."""

from __future__ import annotations

import json as json_format
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcheckin.console import Say, waiting
from dpcheckin.errors import MissingExtra

if TYPE_CHECKING:
    from dpcheckin.report.reproduce import Reproduced

SPEED = 10_000
"""Clients of the papers' network that one core plays in a second, about."""


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="all, names such as p1-table2, or their beginnings such as p2-figure2 and claims."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for CSV, PNG, report and cache.")] = Path("reproduced"),
    list_names: Annotated[bool, typer.Option("--list", help="List the names and stop.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Training figures on digits, in a minute each.")] = False,
    workers: Annotated[int, typer.Option(help="Processes that play the clients of training figures.")] = 1,
    data_dir: Annotated[Path | None, typer.Option(help="Where files of the training figures' data sets are.")] = None,
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
        played = _play(training, out, quick, workers, data_dir)
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
        typer.echo(json_format.dumps([_content(figure) for figure in results], indent=2))
        return
    for figure in results:
        typer.echo(f"{figure.panel.name}: {figure.panel.title}")
        for remark in figure.panel.remarks(figure.cells):
            typer.echo(f"  - {remark.replace('**', '')}")
    typer.echo(f"report: {out / 'report.md'}")


def _content(figure: Reproduced) -> dict[str, Any]:
    """A recomputed table or figure, as JSON has it."""
    panel = figure.panel
    rows = [
        {
            panel.row_title: row.label,
            "cells": [
                {
                    "column": column.label,
                    "kind": column.kind.value,
                    "printed": column.printed,
                    "epsilon": figure.cells[(row.label, column.label)],
                }
                for column in panel.columns
            ],
        }
        for row in panel.rows
    ]
    return {"name": panel.name, "title": panel.title, "rows": rows, "remarks": panel.remarks(figure.cells)}


def _play(names: list[str], out: Path, quick: bool, workers: int, data_dir: Path | None) -> dict[str, Any]:
    """Play each figure's runs (resuming), say how long they take, return their summaries."""
    from dpcheckin.papers.figures import TRAINING
    from dpcheckin.papers.training import Machine, is_finished, run_figure

    machine = Machine(workers, data_dir)
    results: dict[str, Any] = {}
    for name in names:
        runs = TRAINING[name].all_runs(quick)
        left = [run for run in runs if not is_finished(run, out)]
        if left and not quick:
            hours = sum(run.gradients for run in left) / (SPEED * workers) / 3600
            typer.echo(
                f"{name}: {len(left):,} of {len(runs):,} runs to play, about {hours:.1f} h at "
                f"{SPEED:,} clients a second and worker; resumes in {out}",
                err=True,
            )
        with waiting(f"reproduce {name}") as say:
            rounds = sum(run.options.rounds for run in left)
            done: dict[Any, int] = {}

            def show(run: Any, row: dict[str, Any], say: Say = say, done: Any = done, of: int = rounds) -> None:
                done[run.title] = row["round"]
                text = f"{run.title}: round {row['round']:,} of {run.options.rounds:,}"
                say(text, sum(done.values()) / of)

            results[name] = run_figure(name, out, quick=quick, watch=show, machine=machine)
    return results
