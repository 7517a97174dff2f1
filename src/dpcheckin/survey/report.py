"""The end of a survey: estimate and intervals as JSON, CSV, a picture and one page.

Files in the run's folder: `estimate.json`, `estimate.csv`, `estimate.png` (by matplotlib) and `report.html`,
with `certificate.json` where certificates cover the run. In a simulation the truth stands beside the estimate; a
deployment knows none.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from dpcheckin.accounting import Guarantee
from dpcheckin.accounting.proof.certificate import beside
from dpcheckin.document import Document, Table, versions
from dpcheckin.handover import CARD, card_beside, hand_over
from dpcheckin.numerals import rounded_up, written
from dpcheckin.survey.drawing import WITHIN, draw, grouped, labels, listed
from dpcheckin.survey.estimates import COLLUDING_CLIENTS, Estimate, Figures
from dpcheckin.survey.planning import SurveyPlan
from dpcheckin.survey.simulation import Outcome
from dpcheckin.survey.surveys import Survey
from dpcheckin.survey.together import Questionnaire


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
    if find_spec("matplotlib") is not None:
        write_picture(folder / "estimate.png", outcome.survey, outcome.estimate, outcome.truth)
    proof = beside(plan.guarantee, folder)
    survey_card(folder, plan.guarantee, outcome.survey, proof)
    page = _document(folder / "estimate.png", outcome, facts, proof)
    page.write(folder / "report.html")
    return facts


def write_together(folder: Path, together: Questionnaire, outcomes: Sequence[Outcome]) -> None:
    """Write the page of all questions together to a folder: what they cost, and the answer to each (their outcomes)."""
    answers = [
        replace(answer_table(outcome.estimate, outcome.truth), title=f"{name}: {outcome.survey.query.kind}")
        for name, outcome in zip(together.plans, outcomes, strict=True)
    ]
    asked = {
        f"question {name}": f"{survey.query.kind}, {survey.randomizer.describe()}, {survey.rounds:,} × {survey.rate:g}"
        for name, survey in ((name, plan.survey) for name, plan in together.plans.items())
    }
    run = {
        **asked,
        "population": max(outcome.survey.population for outcome in outcomes),
        "rounds": sum(outcome.survey.rounds for outcome in outcomes),
    }
    hand_over(folder / "report.html", together.guarantee, run, tables=answers)


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


def answer_rows(e: Estimate, truth: Figures | None, shown: Iterable[int]) -> list[tuple[str, ...]]:
    """Estimate, interval and truth of the figures of an estimate e that are `shown`, all to the same digits.

    There are as many as say something beside the intervals, whose ends are rounded outwards.

    >>> one = Estimate(("a",), *np.array([[1710.85], [1697.82], [1723.91], [6.6]]), 0.95, False, 5000, 5000)
    >>> answer_rows(one, np.array([1706.0]), [0])
    [('1,711', '1,697 … 1,724', '1,706')]
    """
    half = float(np.median(e.upper - e.lower)) / 2 if len(e.names) else 0.0
    digits = max(1 - math.floor(math.log10(half)), 0) if 0.0 < half < math.inf else 6
    unit = 10.0**digits

    def read(x: float) -> str:
        return f"{x:z,.{digits}f}"  # z: no minus before zero

    return [
        (
            read(e.values[i]),
            f"{read(math.floor(e.lower[i] * unit) / unit)} … {read(math.ceil(e.upper[i] * unit) / unit)}",
            *(() if truth is None else (read(truth[i]),)),
        )
        for i in shown
    ]


def answer_table(e: Estimate, truth: Figures | None = None) -> Table:
    """The answer in figures of an estimate e, all or the largest that the picture shows, beside the truth if known."""
    shown = listed(e)
    drawn = labels([e.names[i] for i in shown])
    figures = answer_rows(e, truth, shown)
    rows = [
        (e.names[i] if name == e.names[i] else f"{name} {e.names[i]}", *row)
        for i, name, row in zip(shown, drawn, figures, strict=True)
    ]
    title = "Answer" if len(rows) == len(e.names) else f"Answer, the {len(rows)} largest"
    heads = ("", "estimate", f"{e.confidence:.0%} interval", *(() if truth is None else ("truth",)))
    return Table(title, rows, heads)


def _shares(e: Estimate) -> list[Table]:
    """Of a histogram within groups: how many each group has, and the share of each category in it."""
    groups = grouped(e.names)
    if "" in groups:
        return []
    rows = []
    for group, places in groups.items():
        whole = e.values[places].sum()
        shares = [f"{100 * value / whole:.1f}%" if whole > 0 else "–" for value in e.values[places]]
        rows.append((group, written(whole, 5), *shares))
    categories = [e.names[place].partition(WITHIN)[2] for place in next(iter(groups.values()))]
    return [Table("Within each group", rows, ("", "people", *categories))]


def _document(picture: Path, outcome: Outcome, facts: dict[str, Any], proof: Path | str) -> Document:
    plan, e = facts["plan"], outcome.estimate
    error = facts["root_mean_squared_error"]
    rows: dict[str, object] = {
        **run_rows(outcome.survey, e),
        "predicted root mean squared error": _predicted(plan),
        "root mean squared error": "–" if error is None else f"{written(error, 4)} {facts['unit']}",
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
        figures["largest error"] = f"{written(facts['largest_error'], 4)} {facts['unit']}"
    title = f"{plan['query']['kind'].capitalize()} of {plan['population']:,} clients"
    pictures = {picture: "Estimate with intervals"} if picture.exists() else {}
    answer, *others = tables(answer_table(e, outcome.truth), rows, facts["influence"], facts["unit"])
    tabled = (answer, *_shares(e), *others)
    return Document("Survey report", title, "simulated", plan["statement"], figures, pictures, tabled)


def _predicted(plan: Mapping[str, Any]) -> str:
    """The error that was planned for, in the unit of the figures; beside it the one it was computed in."""
    said = f"{written(plan['figure_error'], 4)} {plan['figure_unit']}"
    if plan["unit"] == plan["figure_unit"]:
        return said
    return f"{said} if they are spread evenly ({written(plan['error'], 4)} {plan['unit']})"


def run_rows(survey: Survey, estimate: Estimate) -> dict[str, object]:
    """What the page of every survey says of the run and its estimate, row by row."""
    return {
        "question": survey.query.kind,
        "randomizer": survey.randomizer.describe(),
        "rate": f"{survey.rate:g}",
        "reports dropped": f"{estimate.dropped:,}",
        "bytes of a report": f"{survey.report_bytes:,}",
    }


def tables(answer: Table, rows: Mapping[str, object], influence: Mapping[str, float], unit: str) -> tuple[Table, ...]:
    """The tables of a survey's page: the answer (`answer_table`), the rows of the run, the influence of liars.

    The influence is counted in this `unit`, that of the figures.
    """
    moved = [
        (f"{int(count):,} colluding client{'' if count == '1' else 's'}", f"at most {rounded_up(bound)} {unit}")
        for count, bound in influence.items()
    ]
    liars = "How far colluding clients that send at most one report a round can move any figure"
    return (answer, Table("The run", list(rows.items())), Table(liars, moved), versions())
