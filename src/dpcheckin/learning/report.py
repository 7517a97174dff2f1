"""The end of a run on one page: accuracy against epsilon as a picture, and the figures beside it.

Written to the run's folder as `report.json`, `accuracy.png` and `report.html` (one file, see
`dpcheckin.document`), with `certificate.json` where certificates cover the run. The table of
settings is read from the description of the options.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dpcheckin.accounting.figures import rounded_up
from dpcheckin.accounting.proof.certificate import beside
from dpcheckin.display import told
from dpcheckin.document import Document, Table, versions
from dpcheckin.learning.data.fleet import Bootstrapped, Fleet, GroupedByOwner
from dpcheckin.learning.losses import Score
from dpcheckin.learning.models import count_parameters, described
from dpcheckin.learning.options import RunOptions
from dpcheckin.learning.simulation.training import Outcome, Trainer
from dpcheckin.options import options_of


def summary(
    trainer: Trainer,
    outcome: Outcome,
    options: RunOptions | None = None,
    data_name: str | None = None,
) -> dict[str, Any]:
    """The figures of a finished run as plain data.

    `options` are those it was built from, if it was, and name the data unless somebody else does.
    """
    guarantee, score, work = outcome.guarantee, outcome.scored, trainer.work
    reached = [row[score.name] for row in outcome.log]
    best = outcome.log[reached.index(score.better(reached))]
    validated = options is not None and options.validate is not None
    name = data_name or (None if options is None else options.data)
    layers = described(work.module)
    if options is not None and options.model != "auto":
        layers = f"{options.model} ({layers})"
    return {
        "protocol": trainer.plan.describe(),
        "randomizer": trainer.plan.randomizer.describe(),
        "rounds": outcome.rounds,
        "stopped_by_budget": outcome.stopped_by_budget,
        score.name: outcome.score,
        f"best_{score.name}": best[score.name],
        "reached": f"{score.label} {score.text(outcome.score)}",
        "best_round": best["round"],
        "epsilon": None if guarantee is None else guarantee.epsilon.upper,
        "epsilon_lower": None if guarantee is None else guarantee.epsilon.lower,
        "delta": trainer.delta,
        "epsilon_budget": trainer.epsilon_budget,
        "statement": None if guarantee is None else str(guarantee),
        "settings": trainer.settings.to_json(),
        "reports": work.reports.value,
        "clip": work.randomizer.clip,
        "per_tensor_clipping": work.per_tensor,
        "seconds": round(outcome.seconds, 1),
        "evaluated_on": "training records held out" if validated else "test records",
        "data": _dealt(work.fleet) if name is None else f"{name}: {_dealt(work.fleet)}",
        "model": f"{layers}; {count_parameters(work.module):,} parameters",
        "population": work.fleet.population,
        "records": _records(work.fleet),
    }


def _records(fleet: Fleet) -> int:
    return len(getattr(fleet, "targets", ()))


def _dealt(fleet: Fleet) -> str:
    """Who holds which records; those that many clients share are said to be shared."""
    records, clients = f"{_records(fleet):,} records", f"{fleet.population:,} clients"
    if _records(fleet) == fleet.population:
        return f"{records}, one a client"
    if isinstance(fleet, GroupedByOwner):
        return f"{records} of {clients}, their owners"
    if not isinstance(fleet, Bootstrapped):
        return f"{records}, dealt to {clients}"
    share = fleet.population / _records(fleet)
    held = f"about {share:,.0f} of them hold" if share >= 2 else "several may hold"
    return f"{records}, dealt to {clients} with replacement: {held} the same one"


def write_report(
    folder: Path,
    trainer: Trainer,
    outcome: Outcome,
    options: RunOptions | None = None,
    data_name: str | None = None,
) -> dict[str, Any]:
    """Write all files and return the summary, whose arguments are the same.

    The folder must exist. Without options the table of settings has the analyzer's only.
    """
    facts = summary(trainer, outcome, options, data_name)
    (folder / "report.json").write_text(json.dumps(facts, indent=1) + "\n")
    picture = folder / "accuracy.png"
    _plot(picture, outcome.log, outcome.scored)
    stated = outcome.guarantee
    proof = "none: no guarantee" if stated is None else beside(stated, folder)
    page = _document(facts, outcome.scored, picture, options or trainer.settings, proof)
    page.write(folder / "report.html")
    return facts


def _document(
    facts: dict[str, Any], score: Score, picture: Path, options: object, proof: Path | str
) -> Document:
    epsilon = facts["epsilon"]
    spent = "no guarantee" if epsilon is None else f"ε ≤ {rounded_up(epsilon)}"
    reached, best = score.text(facts[score.name], 1), score.text(facts[f"best_{score.name}"], 1)
    clipping = "per tensor" if facts["per_tensor_clipping"] else "whole gradient"
    rows: dict[str, object] = {
        "data": facts["data"],
        "evaluated on": facts["evaluated_on"],
        "model": facts["model"],
        "protocol": facts["protocol"],
        "randomizer": facts["randomizer"],
        f"best {score.label}": f"{best} after round {facts['best_round']:,}",
        "clip": f"{facts['clip']:g}, {clipping}",
        "reports": facts["reports"],
        "budget": "none" if (most := facts["epsilon_budget"]) is None else f"ε ≤ {most:g}",
        "stopped by the budget": "yes" if facts["stopped_by_budget"] else "no",
        "certificate": proof,
    }
    title = f"{reached if score.percent else facts['reached']} at {spent}"
    return Document(
        kind="Training report",
        title=title.replace(" ≤ ", "\u00a0≤\u00a0"),
        chip="no guarantee" if epsilon is None else "certified",
        statement=str(facts["statement"]),
        figures={
            score.label: reached,
            "ε, certified": "–" if epsilon is None else f"≤ {rounded_up(epsilon)}",
            "δ": f"{facts['delta']:g}",
            "rounds": f"{facts['rounds']:,}",
            "clients": f"{facts['population']:,}",
            "seconds": f"{facts['seconds']:,.0f}",
        },
        pictures={
            picture: f"{score.label.capitalize()} against the certified ε that was spent for it"
        },
        tables=(Table("The run", list(rows.items())), *_settings(options), versions("torch")),
        bad=epsilon is None,
    )


def _settings(options: object) -> list[Table]:
    """What was chosen, and below it what was left as it is."""
    heads, every = ("option", "value", "meaning"), options_of(type(options))

    def rows(chosen: bool) -> list[tuple[str, str, str]]:
        some = [o for o in every if (o.value(options) != o.default) is chosen]
        return [(o.name.replace("_", " "), told(o.value(options)), o.help) for o in some]

    left = Table("Settings left as they are", rows(False), heads, folded=True)
    chosen = rows(True)
    return [Table("Settings that were chosen", chosen, heads), left] if chosen else [left]


def _plot(path: Path, log: list[dict[str, Any]], score: Score) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    unit = 100 if score.percent else 1
    epsilons, scores = [r["epsilon"] for r in log], [unit * r[score.name] for r in log]
    axes.plot(epsilons, scores, marker="." if len(log) < 60 else None, color="#0b7268")
    axes.set_xlabel(f"certified ε at δ = {log[-1]['delta']:g}")
    axes.set_ylabel(f"{score.label}, %" if score.percent else score.label)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
