"""The training figures of `dpcheckin reproduce`: names, forecast and progress.

The runs are in `dpcheckin.learning.paper_figures`; torch is imported only when one of
them is asked for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from dpcheckin.waiting import Say, waiting

NAMES = (
    "p0-figure3a",
    "p0-figure3b",
    "p0-figure4",
    "p0-figure5a",
    "p0-figure5b",
    "p0-figure6",
    "p1-figure2",
    "p1-figure4",
    "p1-figure6",
    "p3-figure6",
    "p4-figure1b",
)
"""Kept here so that listing them needs no torch; a test compares them with the runs."""


def play(names: list[str], out: Path, quick: bool) -> dict[str, Any]:
    """Play each figure's runs (resuming), say how long they take, return their summaries."""
    from dpcheckin.learning.paper_figures import FIGURES, run_figure

    results: dict[str, Any] = {}
    for name in names:
        figure = FIGURES[name]
        if not quick:
            hours = figure.hours()
            typer.echo(
                f"{name}: about {hours:.1f} h at 5,000 clients/s; resumes in {out}", err=True
            )
        totals = {label: 20 if quick else run.rounds for label, run in figure.runs.items()}
        with waiting(f"reproduce {name}") as say:
            done = dict.fromkeys(totals, 0)

            def show(
                label: str, row: dict[str, Any], say: Say = say, done: Any = done, of: Any = totals
            ) -> None:
                done[label] = row["round"]
                text = f"{label}: round {row['round']:,} of {of[label]:,}"
                say(text, sum(done.values()) / sum(of.values()))

            results[name] = run_figure(name, out, quick=quick, watch=show)
    return results
