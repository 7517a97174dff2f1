"""`dpcheckin survey plan` and `survey run`: what a question costs, and its answer in simulation.

The options are those of `dpcheckin.survey.options`; this file adds where results go, the progress bar and what is
printed.
"""

from __future__ import annotations

import json as json_format
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcheckin.cli.arguments import options_from
from dpcheckin.console import print_sentence, print_table, waiting
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import written
from dpcheckin.survey.options import SurveyOptions
from dpcheckin.survey.questions import KINDS

if TYPE_CHECKING:
    from dpcheckin.survey import Query, SurveyPlan
    from dpcheckin.survey.simulation import Outcome

Kind = Annotated[str, typer.Argument(help=", ".join(KINDS) + ".")]
Json = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]


@options_from(SurveyOptions)
def plan(kind: Kind, options: SurveyOptions, json: Json = False) -> None:
    """The survey of least error at a certified epsilon, or of least epsilon for a wanted error."""
    from dpcheckin.survey import plan_survey

    query = options.query(kind)
    if options.population is None:
        raise InvalidParameter("population", None, "a whole number (the option is required)")
    with waiting("survey plan"):
        planned = plan_survey(options.wish(query, options.population))
    if json:
        typer.echo(json_format.dumps(planned.as_document()))
    else:
        _print_plan(planned)


@options_from(SurveyOptions)
def run(
    kind: Kind,
    options: SurveyOptions,
    data: Annotated[Path, typer.Option(help="CSV file with a header, or JSON objects; one client each.")],
    column: Annotated[str, typer.Option(help="Its column; several with commas for vectors.")],
    out: Annotated[Path, typer.Option(help="Folder for rounds, estimate, picture and page.")],
    seed: Annotated[int, typer.Option(help="Of every draw.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run that OUT already has.")] = False,
    json: Json = False,
) -> None:
    """Plan a survey, play it on the values of a file, and write estimate, intervals and picture."""
    from dpcheckin.survey import plan_survey, simulate
    from dpcheckin.survey.report import write_report

    if out.exists() and not out.is_dir():
        raise InvalidParameter("out", str(out), "a folder")
    if (out / "rounds").exists() and not resume:
        raise InvalidParameter("out", str(out), "a folder without a run, or --resume")
    with waiting("survey run") as say, _interrupted(out):
        say("reading")
        values, query, told = _question(kind, options, data, column)
        say("planning")
        planned = plan_survey(options.wish(query, len(values)))
        total = round(planned.survey.sample.reports)
        before: dict[int, int] = {}

        def show(index: int, done: int, of: int) -> None:
            before[index] = done
            made = sum(before.values())
            say(f"{made:,} of about {total:,} reports", made / max(total, made))

        outcome = simulate(
            planned.survey, values, seed, confidence=options.confidence,
            simultaneous=options.simultaneous, folder=out, on_progress=show,
        )  # fmt: skip
        outcome = replace(outcome, missing=told)
        say("writing")
        facts = write_report(out, planned, outcome)
    if json:
        typer.echo(json_format.dumps(facts))
    else:
        _print_plan(planned)
        _print_estimate(outcome, facts, out)


def _question(kind: str, options: SurveyOptions, data: Path, column: str) -> tuple[Any, Query, str]:
    """The values of the file, the query, and what became of missing values; what is no value is refused here.

    Bounds and categories must be public knowledge.
    """
    from dpcheckin.survey.data import CATEGORY, read_columns, settled
    from dpcheckin.survey.questions.histogram import Histogram

    columns = tuple(part.strip() for part in column.split(",")) if kind == "vector-mean" else (column,)
    given = read_columns(data, columns, empty=options.missing != "refuse")
    try:
        values, told = settled(given if kind == "vector-mean" else given[:, 0], kind, options.missing)
        if kind == "histogram" and (options.categories is None or options.missing == "category"):
            names = sorted(set(map(str, values)))
            if options.categories is None:
                typer.echo(f"the {len(names):,} categories are taken from the data, as if they were public", err=True)
            else:
                names = list(dict.fromkeys((*options.query(kind).names, CATEGORY)))  # type: ignore[attr-defined]
            query: Query = Histogram(tuple(names))
        else:
            query = replace(options, dimension=len(columns)).query(kind)
        query.encode(values)
    except InvalidParameter as problem:
        if problem.name != "values":
            raise
        raise InvalidParameter("data", f"{problem.value} in {column}", problem.allowed) from None
    return values, query, told


def _print_plan(planned: SurveyPlan) -> None:
    from dpcheckin.numerals import rounded_up
    from dpcheckin.survey.planning import WORTH

    facts = planned.as_document()
    shares = facts["unit"] != facts["figure_unit"]
    spread = f", {written(facts['error'], 4)} {facts['unit']}, if spread evenly" if shares else ""
    rows = [
        ("randomizer", facts["randomizer"]),
        ("local epsilon", f"{facts['local_epsilon']:g}"),
        ("rounds × rate", f"{facts['rounds']:,} × {facts['rate']:g}"),
        ("root mean squared error", f"{written(facts['figure_error'], 4)} {facts['figure_unit']}{spread}"),
        (f"{facts['confidence']:.0%} interval", f"± {written(facts['figure_half_width'], 4)} {facts['figure_unit']}"),
        ("bytes", f"{facts['report_bytes']:,} a report, {math.ceil(facts['client_bytes']):,} a client"),
        ("epsilon (certified)", rounded_up(facts["epsilon"])),
        ("if the shuffler colludes", rounded_up(facts["colluding_epsilon"])),
    ]
    for clients, bound in facts["influence"].items():
        moved = f"move no figure by more than {rounded_up(bound)} {facts['unit']}"
        rows.append((f"colluding clients: {int(clients):,}", moved))
    unit = "epsilon" if planned.for_error else facts["unit"]
    for rival in facts["rivals"][:4]:
        name = f"{rival['mechanism']}, {rival['rounds']:,} × {facts['rate']:g}"
        rows.append((f"  or {name}", f"{written(rival['score'], 4)} {unit}"))
    print_table(rows)
    if any(rival["rounds"] > facts["rounds"] for rival in facts["rivals"]):
        print_sentence(f"Doubling the rounds is chosen if it saves {1 - WORTH:.0%}; --rounds decides.")
    print_sentence(facts["statement"])


def _print_estimate(outcome: Outcome, facts: dict[str, Any], out: Path) -> None:
    from dpcheckin.numerals import rounded_up

    e = outcome.estimate
    order = (-e.values).argsort(kind="stable")[:12] if len(e.names) > 12 else range(len(e.names))
    rows = []
    for i in order:
        between = f"{written(e.lower[i], 6)} … {written(e.upper[i], 6)}"
        rows.append((e.names[i], written(e.values[i], 6), between, written(outcome.truth[i], 6)))
    truth = "truth (clipped)" if outcome.clipped else "truth"
    print_table(rows, "", "estimate", f"{e.confidence:.0%} interval", truth)
    if outcome.notice:
        typer.echo(outcome.notice)
    if e.dropped:
        typer.echo(f"{e.dropped:,} reports that no client could have made were dropped")
    for clients, bound in facts["influence"].items():
        moved = f"moved no figure by more than {rounded_up(bound)}"
        typer.echo(f"colluding clients: {int(clients):,} {moved}")
    typer.echo(f"report: {out / 'report.html'} (estimate.csv, .json and .png beside it)")


@contextmanager
def _interrupted(out: Path) -> Iterator[None]:
    """Say how to go on; finished rounds are in the folder."""
    try:
        yield
    except KeyboardInterrupt:
        if (out / "rounds").exists():
            typer.echo("\ninterrupted: the same command with --resume goes on", err=True)
        raise
