"""`dpcheckin survey plan` and `survey run`: what a question costs, and its answer in simulation.

The options are those of `dpcheckin.survey.options`; this file adds where results go, the progress bar and what is
printed.
"""

from __future__ import annotations

import json as json_format
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcheckin.cli.arguments import options_from
from dpcheckin.console import print_sentence, print_table, waiting
from dpcheckin.errors import InvalidParameter, MissingExtra, Superfluous
from dpcheckin.numerals import rounded_up, written
from dpcheckin.survey.options import SurveyOptions
from dpcheckin.survey.questions import KINDS

if TYPE_CHECKING:
    from dpcheckin.survey import Outcome, Questionnaire, SurveyPlan, Wish
    from dpcheckin.survey.asking import Question

Kind = Annotated[str, typer.Argument(help=", ".join(KINDS) + "; or a TOML file of several questions.")]
Json = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]


@options_from(SurveyOptions)
def plan(kind: Kind, options: SurveyOptions, json: Json = False) -> None:
    """The survey of least error at a certified epsilon, or of least epsilon for a wanted error."""
    from dpcheckin.survey import plan_survey

    several = _several(kind, options)
    queries = [question.query() for question in several] if several else [options.query(kind)]
    if options.population is None:
        raise InvalidParameter("population", None, "a whole number (the option is required)")
    with waiting("survey plan"):
        if several:
            wishes = [options.wish(query, options.population) for query in queries]
            together = _together(several, wishes, options)
        else:
            planned = plan_survey(options.wish(queries[0], options.population))
    if json:
        typer.echo(json_format.dumps((together if several else planned).as_document()))
    elif several:
        _print_together(together)
    else:
        _print_plan(planned)


@options_from(SurveyOptions)
def run(
    kind: Kind,
    options: SurveyOptions,
    data: Annotated[Path, typer.Option(help="CSV file with a header, or JSON objects; one client each.")],
    out: Annotated[Path, typer.Option(help="Folder for rounds, estimate, picture and page.")],
    column: Annotated[str | None, typer.Option(help="Its column; several with commas for vectors.")] = None,
    by: Annotated[str | None, typer.Option(help="Column of groups: a histogram within each, by one report.")] = None,
    seed: Annotated[int, typer.Option(help="Of every draw.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run that OUT already has.")] = False,
    json: Json = False,
) -> None:
    """Plan a survey, play it on the values of a file, and write estimate, intervals and picture."""
    from dpcheckin.survey import plan_survey, simulate
    from dpcheckin.survey.asking import Question
    from dpcheckin.survey.report import write_report, write_together

    several = _several(kind, options)
    if several and (column or by):
        raise Superfluous("column", column or by, "leave it out: the file of questions has columns")
    asked = several or (Question(kind, options, column, by),)
    folders = _folders(out, asked, resume)
    with waiting("survey run") as say, _interrupted(out):
        say("reading")
        given = [question.answers(data) for question in asked]
        say("planning")
        wishes = [q.options.wish(query, len(values)) for q, (values, query, _) in zip(asked, given, strict=True)]
        together = _together(several, wishes, options) if several else None
        plans = tuple(together.plans.values()) if together else (plan_survey(wishes[0]),)
        played = []
        for place, (planned, (values, _, told), folder) in enumerate(zip(plans, given, folders, strict=True)):
            outcome = simulate(
                planned.survey, values, seed + place, confidence=options.confidence,
                simultaneous=options.simultaneous, folder=folder, on_progress=_teller(say, planned),
            )  # fmt: skip
            outcome = replace(outcome, missing=told)
            say("writing")
            played.append((outcome, write_report(folder, planned, outcome)))
        if together:
            write_together(out, together, [outcome for outcome, _ in played])
    _print_run(plans, together, played, folders, json)


def _several(kind: str, options: SurveyOptions) -> tuple[Question, ...]:
    """The questions of a file, if the kind names one; else none."""
    from dpcheckin.survey.asking import questions

    if not kind.endswith(".toml"):
        return ()
    if options.error is not None:
        raise Superfluous("error", options.error, "leave it out: several questions have one --epsilon")
    return questions(Path(kind), options)


def _together(asked: Sequence[Question], wishes: Sequence[Wish], options: SurveyOptions) -> Questionnaire:
    from dpcheckin.survey import plan_together

    named = {question.name: wish for question, wish in zip(asked, wishes, strict=True)}
    return plan_together(named, options.epsilon or 1.0, [question.weight for question in asked])


def _folders(out: Path, asked: Sequence[Question], resume: bool) -> list[Path]:
    """The folder of each question; one of another run is refused."""
    folders = [out / question.name for question in asked]
    if any(folder.exists() and not folder.is_dir() for folder in (out, *folders)):
        raise InvalidParameter("out", str(out), "a folder")
    if any((folder / "rounds").exists() for folder in folders) and not resume:
        raise InvalidParameter("out", str(out), "a folder without a run, or --resume")
    return folders


def _teller(say: Callable[..., None], planned: SurveyPlan) -> Callable[[int, int, int], None]:
    """Who says how far a planned survey is."""
    total = round(planned.survey.sample.reports)
    before: dict[int, int] = {}

    def show(index: int, done: int, of: int) -> None:
        before[index] = done
        made = sum(before.values())
        say(f"{made:,} of about {total:,} reports", made / max(total, made))

    return show


def _print_run(
    plans: Sequence[SurveyPlan],
    together: Questionnaire | None,
    played: Sequence[tuple[Outcome, dict[str, Any]]],
    folders: Sequence[Path],
    json: bool,
) -> None:
    if json:
        alone = played[0][1]
        answers = {folder.name: facts for folder, (_, facts) in zip(folders, played, strict=True)}
        typer.echo(json_format.dumps({**together.as_document(), "answers": answers} if together else alone))
        return
    if together:
        _print_together(together)
    else:
        _print_plan(plans[0])
    for folder, (outcome, facts) in zip(folders, played, strict=True):
        _print_estimate(outcome, facts, folder)
    if together:
        typer.echo(f"all together: {folders[0].parent / 'report.html'} (card and certificate beside it)")


def _print_together(together: Questionnaire) -> None:
    """Each question on a line, then what all of them cost."""
    rows = []
    for name, planned in together.plans.items():
        facts = planned.as_document()
        error = f"{written(facts['figure_error'], 4)} {facts['figure_unit']}"
        asked = f"{facts['randomizer']}, {facts['rounds']:,} × {facts['rate']:g}"
        rows.append((name, asked, error, rounded_up(facts["epsilon"])))
    print_table(rows, "question", "randomizer, rounds × rate", "root mean squared error", "epsilon alone")
    print_sentence(str(together.guarantee))


def _print_plan(planned: SurveyPlan) -> None:
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
        moved = f"move no {'share' if shares else 'figure'} by more than {rounded_up(bound)} {facts['unit']}"
        rows.append((f"colluding clients: {int(clients):,}", moved))
    scale = 1.0 if planned.for_error else planned.survey.query.figure_scale
    unit = "epsilon" if planned.for_error else facts["figure_unit"]
    for rival in facts["rivals"][:4]:
        name = f"{rival['mechanism']}, {rival['rounds']:,} × {facts['rate']:g}"
        rows.append((f"  or {name}", f"{written(rival['score'] * scale, 4)} {unit}"))
    print_table(rows)
    if any(rival["rounds"] > facts["rounds"] for rival in facts["rivals"]):
        print_sentence(f"Doubling the rounds is chosen if it saves {1 - WORTH:.0%}; --rounds decides.")
    print_sentence(facts["statement"])


def _print_estimate(outcome: Outcome, facts: dict[str, Any], out: Path) -> None:
    from dpcheckin.survey.report import answer_rows

    e = outcome.estimate
    order = (-e.values).argsort(kind="stable")[:12] if len(e.names) > 12 else range(len(e.names))
    rows = [(e.names[i], *row) for i, row in zip(order, answer_rows(e, outcome.truth, order), strict=True)]
    truth = "truth (clipped)" if outcome.clipped else "truth"
    print_table(rows, "", "estimate", f"{e.confidence:.0%} interval", truth)
    if outcome.notice:
        typer.echo(outcome.notice)
    if e.dropped:
        typer.echo(f"{e.dropped:,} reports that no client could have made were dropped")
    for clients, bound in facts["influence"].items():
        moved = f"moved no figure by more than {rounded_up(bound)} {facts['unit']}"
        typer.echo(f"colluding clients: {int(clients):,} {moved}")
    beside = "estimate.csv, .json and .png"
    if not (out / "estimate.png").exists():
        beside = "estimate.csv and .json"
        typer.echo(f"no picture: {MissingExtra('matplotlib', 'plot')}", err=True)
    typer.echo(f"report: {out / 'report.html'} ({beside} beside it)")


@contextmanager
def _interrupted(out: Path) -> Iterator[None]:
    """Say how to go on; finished rounds are in the folder."""
    try:
        yield
    except KeyboardInterrupt:
        if (out / "rounds").exists():
            typer.echo("\ninterrupted: the same command with --resume goes on", err=True)
        raise
