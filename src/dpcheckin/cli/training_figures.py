"""The training figures of `dpcheckin reproduce`: forecast and progress.

They are played by `dpcheckin.papers.training`; torch is imported only when one of them is asked
for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from dpcheckin.waiting import Say, waiting

SPEED = 10_000
"""Clients of the papers' network that one core plays in a second, about."""


def play(
    names: list[str], out: Path, quick: bool, workers: int, data_dir: Path | None
) -> dict[str, Any]:
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

            def show(
                run: Any, row: dict[str, Any], say: Say = say, done: Any = done, of: int = rounds
            ) -> None:
                done[run.title] = row["round"]
                text = f"{run.title}: round {row['round']:,} of {run.options.rounds:,}"
                say(text, sum(done.values()) / of)

            results[name] = run_figure(name, out, quick=quick, watch=show, machine=machine)
    return results
