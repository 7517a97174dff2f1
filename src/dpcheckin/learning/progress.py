"""A run that is watched: rounds, check-ins, score and the epsilon spent, on standard error."""

from __future__ import annotations

from typing import Any

from dpcheckin.accounting.figures import rounded_up
from dpcheckin.learning.simulation.training import Outcome, Trainer
from dpcheckin.waiting import waiting


def run_watched(trainer: Trainer, show: bool = True) -> Outcome:
    """Run to the end, and let the workers go; nothing is shown unless `show`."""
    try:
        return _shown(trainer) if show else trainer.run()
    finally:
        if trainer.backend is not None:
            trainer.backend.close()


def _shown(trainer: Trainer) -> Outcome:
    score, earlier, seen = trainer.score, trainer.on_round, dict[str, Any]()
    with waiting("train") as say:
        total = trainer.rounds_allowed()

        def show(row: dict[str, Any]) -> None:
            seen.update(row)
            text = f"round {seen['round']:,} of {total:,}, {seen['check_ins']:,} check-ins"
            if score.name in seen:
                reached = score.text(seen[score.name], 1)
                text += f", {score.label} {reached}, ε ≤ {rounded_up(seen['epsilon'])}"
            say(text, seen["round"] / total)
            if earlier is not None:
                earlier(row)

        trainer.on_round = show
        return trainer.run()
