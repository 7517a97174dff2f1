"""A run under a progress bar: rounds, check-ins, score and the epsilon spent, on stderr."""

from __future__ import annotations

import sys
from typing import Any

from dpcheckin.accounting.statements import rounded_up
from dpcheckin.learning.simulation.training import Outcome, Trainer


def run_watched(trainer: Trainer, show: bool = True) -> Outcome:
    """Run to the end, and let the workers go.

    Args:
        trainer: the run.
        show: False shows nothing.
    """
    try:
        return _with_bar(trainer) if show else trainer.run()
    finally:
        if trainer.backend is not None:
            trainer.backend.close()


def _with_bar(trainer: Trainer) -> Outcome:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("round {task.completed}/{task.total}"),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[facts]}"),
    )
    score, earlier = trainer.score, trainer.on_round
    # the bar goes to stderr: stdout is for results
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as progress:
        task = progress.add_task("train", total=trainer.rounds_allowed(), facts="")
        seen: dict[str, Any] = {}

        def show(row: dict[str, Any]) -> None:
            seen.update(row)
            facts = f"{seen['check_ins']} check-ins"
            if score.name in seen:
                reached = score.text(seen[score.name], 1)
                facts += f"  {score.label} {reached}  ε ≤ {rounded_up(seen['epsilon'])}"
            progress.update(task, completed=seen["round"], facts=facts)
            if earlier is not None:
                earlier(row)

        trainer.on_round = show
        return trainer.run()
