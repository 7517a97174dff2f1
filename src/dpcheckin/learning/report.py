"""The end of a run on one page: accuracy against epsilon as a picture, and the figures beside it.

Written to the run's folder as `report.json`, `accuracy.png` and `report.html` (one file, the
picture embedded). The table of settings is read from the description of the options.
"""

from __future__ import annotations

import base64
import html
import json
from pathlib import Path
from typing import Any

from dpcheckin.learning.options import RunOptions
from dpcheckin.learning.simulation.training import Outcome, Trainer
from dpcheckin.options import options_of


def summary(trainer: Trainer, outcome: Outcome) -> dict[str, Any]:
    """The figures of a finished run as plain data.

    Args:
        trainer: the run that was played.
        outcome: what came of it.
    """
    guarantee = outcome.guarantee
    best = max(outcome.log, key=lambda row: row["accuracy"])
    return {
        "protocol": trainer.plan.describe(),
        "randomizer": trainer.plan.randomizer.describe(),
        "rounds": outcome.rounds,
        "stopped_by_budget": outcome.stopped_by_budget,
        "accuracy": outcome.accuracy,
        "best_accuracy": best["accuracy"],
        "best_round": best["round"],
        "epsilon": None if guarantee is None else guarantee.epsilon.upper,
        "epsilon_lower": None if guarantee is None else guarantee.epsilon.lower,
        "delta": trainer.delta,
        "epsilon_budget": trainer.epsilon_budget,
        "statement": None if guarantee is None else str(guarantee),
        "settings": trainer.settings.to_json(),
        "reports": trainer.work.reports.value,
        "clip": trainer.work.randomizer.clip,
        "per_tensor_clipping": trainer.work.per_tensor,
        "seconds": round(outcome.seconds, 1),
    }


def write_report(
    folder: Path, trainer: Trainer, outcome: Outcome, options: RunOptions | None = None
) -> dict[str, Any]:
    """Write all three files and return the summary.

    Args:
        folder: where the files go; it must exist.
        trainer: the run that was played.
        outcome: what came of it.
        options: what the run was built from; without them the table of settings has the
            analyzer's only.
    """
    facts = summary(trainer, outcome)
    (folder / "report.json").write_text(json.dumps(facts, indent=1) + "\n")
    picture = folder / "accuracy.png"
    _plot(picture, outcome.log)
    embedded = base64.b64encode(picture.read_bytes()).decode()
    rows = "".join(_row(k, v) for k, v in facts.items() if not isinstance(v, dict))
    page = (
        "<!doctype html><meta charset='utf-8'><title>Training report</title>"
        "<style>body{font:16px system-ui;max-width:60rem;margin:2rem auto;padding:0 1rem}"
        "th{text-align:left;padding-right:2rem;vertical-align:top}img{max-width:100%}</style>"
        f"<h1>Training report</h1><p>{html.escape(str(facts['statement']))}</p>"
        f"<img alt='accuracy against epsilon' src='data:image/png;base64,{embedded}'>"
        f"<table>{rows}</table>"
        f"<h2>Settings</h2><table>{_settings_rows(options or trainer.settings)}</table>"
    )
    (folder / "report.html").write_text(page)
    return facts


def _row(name: str, value: object, meaning: str = "") -> str:
    texts = (str(value), meaning) if meaning else (str(value),)
    cells = "".join(f"<td>{html.escape(text)}</td>" for text in texts)
    return f"<tr><th>{html.escape(name.replace('_', ' '))}</th>{cells}</tr>"


def _settings_rows(options: object) -> str:
    """One row an option: its name, its value and what it means."""
    return "".join(_row(o.name, o.value(options), o.help) for o in options_of(type(options)))


def _plot(path: Path, log: list[dict[str, Any]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.plot([r["epsilon"] for r in log], [100 * r["accuracy"] for r in log], marker=".")
    axes.set_xlabel(f"certified ε at δ = {log[-1]['delta']:g}")
    axes.set_ylabel("test accuracy, %")
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
