"""The end of a survey: estimate and intervals as JSON, CSV, a picture and one page.

Files in the run's folder: `estimate.json`, `estimate.csv`, `estimate.png` and `report.html` (the picture embedded),
with `certificate.json` where certificates cover the run. In a simulation the truth stands beside the estimate; a
deployment knows none.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpcheckin.accounting import Guarantee
from dpcheckin.accounting.proof.certificate import beside
from dpcheckin.document import Document, Table, versions
from dpcheckin.handover import CARD, card_beside
from dpcheckin.numerals import rounded_up, written
from dpcheckin.survey.drawing import draw, labels, listed
from dpcheckin.survey.estimates import COLLUDING_CLIENTS, Estimate, Figures
from dpcheckin.survey.planning import SurveyPlan
from dpcheckin.survey.simulation import Outcome
from dpcheckin.survey.surveys import Survey


def summary(plan: SurveyPlan, outcome: Outcome) -> dict[str, Any]:
    """The figures of a finished run as plain data: what was planned (plan), and its outcome."""
    estimate, truth = outcome.estimate, outcome.truth
    errors = estimate.values - truth
    inside = estimate.contains(truth)
    return {
        "plan": plan.as_document(),
        "unit": outcome.survey.query.figure_unit or outcome.survey.query.unit,
        "seed": outcome.seed,
        "estimate": estimate.as_document(),
        "truth": truth.tolist(),
        "clipped": outcome.clipped,
        "missing": outcome.missing,
        "notice": outcome.notice,
        "root_mean_squared_error": float(np.sqrt(np.mean(errors**2))) if len(errors) else None,
        "largest_error": float(np.abs(errors).max()) if len(errors) else None,
        "intervals_with_truth": int(inside.sum()),
        "influence": influence(outcome.survey, estimate, plan.colluding_clients),
        "influence_of_each": {str(c): outcome.survey.moves(c, estimate).tolist() for c in plan.colluding_clients},
    }


def influence(survey: Survey, estimate: Estimate, clients: Sequence[int] = COLLUDING_CLIENTS) -> dict[str, float]:
    """The most that these numbers of clients can have moved any figure of a survey's estimate by; proved."""
    few = (c for c in clients if c <= survey.population)
    return {str(c): float(survey.moves(c, estimate).max(initial=0.0)) for c in few}


def write_report(folder: Path, plan: SurveyPlan, outcome: Outcome) -> dict[str, Any]:
    """Write all files of a plan and its outcome to a folder, which is made if need be, and return the summary."""
    folder.mkdir(parents=True, exist_ok=True)
    facts = summary(plan, outcome)
    (folder / "estimate.json").write_text(json.dumps(facts, indent=1) + "\n")
    write_csv(folder / "estimate.csv", outcome.estimate, outcome.truth)
    write_picture(folder / "estimate.png", outcome.survey, outcome.estimate, outcome.truth)
    proof = beside(plan.guarantee, folder)
    survey_card(folder, plan.guarantee, outcome.survey, proof)
    page = _document(folder / "estimate.png", outcome, facts, proof)
    page.write(folder / "report.html")
    return facts


def survey_card(folder: Path, stated: Guarantee, survey: Survey, proof: Path | str = "") -> Path:
    """Write the privacy card of a `survey` into the `folder` of its report, where its `proof` may lie.

    What is `stated` is its guarantee.
    """
    run = survey.as_document()
    run |= {"question": run.pop("query")["kind"], "randomizer": survey.randomizer.describe()}
    return card_beside(folder, "survey", stated, run, proof)


def write_csv(path: Path, estimate: Estimate, truth: Figures | None = None) -> None:
    """A file at this path with a line for each figure of an estimate; the truth is what only a simulation knows."""
    e = estimate
    columns = {"estimate": e.values, "lower": e.lower, "upper": e.upper, "deviation": e.deviation}
    if truth is not None:
        columns["truth"] = truth
    with path.open("w", newline="", encoding="utf-8") as stream:
        out = csv.writer(stream)
        out.writerow(["name", *columns])
        for i, name in enumerate(estimate.names):
            out.writerow([name, *(repr(float(column[i])) for column in columns.values())])


def write_picture(path: Path, survey: Survey, estimate: Estimate, truth: Figures | None = None) -> None:
    """At this path bars of a survey's estimate with intervals, or its distribution; the truth where known."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 4.5), layout="constrained")
    axes = draw(estimate, figure.subplots(), truth)
    if "edges" not in estimate.more:
        axes.set_ylabel("people" if survey.query.unit == "people" else "")
    axes.set_title(f"{survey.query.kind}, {survey.randomizer.describe()}", size=9)
    figure.savefig(path, dpi=120)


def answer_table(e: Estimate, truth: Figures | None = None) -> Table:
    """The answer in figures of an estimate e, all or the largest that the picture shows, beside the truth if known."""
    shown = listed(e)
    drawn = labels([e.names[i] for i in shown])
    rows = [
        (
            e.names[i] if name == e.names[i] else f"{name} {e.names[i]}",
            written(e.values[i], 5),
            f"{written(e.lower[i], 5)} … {written(e.upper[i], 5)}",
            *(() if truth is None else (written(truth[i], 5),)),
        )
        for i, name in zip(shown, drawn, strict=True)
    ]
    title = "Answer" if len(rows) == len(e.names) else f"Answer, the {len(rows)} largest"
    heads = ("", "estimate", f"{e.confidence:.0%} interval", *(() if truth is None else ("truth",)))
    return Table(title, rows, heads)


def _document(picture: Path, outcome: Outcome, facts: dict[str, Any], proof: Path | str) -> Document:
    plan, e = facts["plan"], outcome.estimate
    error = facts["root_mean_squared_error"]
    rows: dict[str, object] = {
        **run_rows(outcome.survey, e),
        "predicted root mean squared error": _predicted(plan),
        "root mean squared error": "–" if error is None else f"{rounded_up(error)} {facts['unit']}",
        "intervals that contain the truth": f"{facts['intervals_with_truth']:,} of {len(e.names):,}",
        "seed": facts["seed"],
        "certificate": proof,
        "privacy card": Path(CARD),
    }
    if facts["notice"]:
        rows["values"] = facts["notice"]
    figures = {
        "ε, certified": f"≤ {rounded_up(plan['epsilon'])}",
        "δ": f"{plan['delta']:g}",
        "clients": f"{plan['population']:,}",
        "rounds": f"{plan['rounds']:,}",
        "reports counted": f"{e.reports:,}",
        "confidence": f"{100 * e.confidence:g}%",
    }
    if facts["largest_error"] is not None:
        figures["largest error"] = f"{rounded_up(facts['largest_error'])} {facts['unit']}"
    title = f"{plan['query']['kind'].capitalize()} of {plan['population']:,} clients"
    pictures = {picture: "Estimate with intervals"}
    tabled = tables(answer_table(e, outcome.truth), rows, facts["influence"])
    return Document("Survey report", title, "simulated", plan["statement"], figures, pictures, tabled)


def _predicted(plan: Mapping[str, Any]) -> str:
    """The error that was planned for, in the unit of the figures; beside it the one it was computed in."""
    said = f"{rounded_up(plan['figure_error'])} {plan['figure_unit']}"
    if plan["unit"] == plan["figure_unit"]:
        return said
    return f"{said} if they are spread evenly ({rounded_up(plan['error'])} {plan['unit']})"


def run_rows(survey: Survey, estimate: Estimate) -> dict[str, object]:
    """What the page of every survey says of the run and its estimate, row by row."""
    return {
        "question": survey.query.kind,
        "randomizer": survey.randomizer.describe(),
        "rate": f"{survey.rate:g}",
        "reports dropped": f"{estimate.dropped:,}",
        "bytes of a report": f"{survey.report_bytes:,}",
    }


def tables(answer: Table, rows: Mapping[str, object], influence: Mapping[str, float]) -> tuple[Table, ...]:
    """The tables of a survey's page: the answer (`answer_table`), the rows of the run, the influence of liars."""
    moved = [
        (f"{int(count):,} colluding client{'' if count == '1' else 's'}", f"at most {rounded_up(bound)}")
        for count, bound in influence.items()
    ]
    liars = "How far colluding clients that send at most one report a round can move any figure"
    return (answer, Table("The run", list(rows.items())), Table(liars, moved), versions())
