"""`dpcheckin epsilon`, `delta` and `plan`."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import Annotated, Any

import typer

from dpcheckin.cli.arguments.options import takes_run
from dpcheckin.numerals import written
from dpcheckin.options import DEFAULT_DELTA
from dpcheckin.waiting import waiting

Delta = Annotated[float, typer.Option(help="Delta of the statement.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
_WINDOWS = ("slots", "check_in_probability")


@takes_run()
def epsilon(
    delta: Delta = DEFAULT_DELTA,
    lower_bound: Annotated[
        bool, typer.Option(help="Compute the proven lower bound too, which takes longer.")
    ] = True,
    certificate: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a proof that verify/check.py checks, here."),
    ] = None,
    json: Json = False,
    **given: Any,
) -> None:
    """Certified epsilon of a run at the given delta."""
    from dpcheckin.protocols.questions import RunQuestion

    question = RunQuestion(**given)
    with waiting("epsilon") as say:
        stated = question.guarantee(delta)
        if certificate is not None:
            say("the certificate")
            from dpcheckin.accounting.proof.certificate import write

            write(stated.certificate(), certificate)
        say("the lower bound")
        wanted = lower_bound and question.has_lower_bound
        least = question.lower_bound(delta) if wanted else None
    data = stated.to_json()
    if least is not None:
        data["lower_bound"] = {"epsilon": least.epsilon.lower, "basis": list(least.basis)}
    if certificate is not None:
        data["certificate"] = str(certificate)
    _show(data, str(stated), json)


@takes_run(*_WINDOWS)
def delta_(
    epsilon: Annotated[float, typer.Option(help="Epsilon of the statement.")],
    json: Json = False,
    **given: Any,
) -> None:
    """Certified delta of a run at the given epsilon."""
    from dpcheckin.accounting.composition.account import guarantee_at
    from dpcheckin.notebook.runs import round_and_run
    from dpcheckin.protocols.questions import RunQuestion

    question = RunQuestion(**given)
    with waiting("delta"):
        _, run = round_and_run(question)
        stated, found = guarantee_at(run, epsilon)
    data = stated.to_json()
    data |= {"epsilon": epsilon, "delta": {"lower": found.lower, "upper": found.upper}}
    _show(data, str(stated), json)


delta = delta_


@takes_run("protocol", *_WINDOWS, rounds=None)
def plan(
    epsilon: Annotated[float, typer.Option(help="Target epsilon.")],
    solve: Annotated[
        str | None, typer.Option(help="What to solve for: the one parameter left out.")
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(
            help="shuffled-check-in, subsampled-shuffle, shuffle or distributed-check-in."
        ),
    ] = "shuffled-check-in",
    delta: Delta = DEFAULT_DELTA,
    json: Json = False,
    **given: Any,
) -> None:
    """Solve for the one parameter left out, so that the run meets the target epsilon."""
    from dpcheckin.notebook.plans import plan as planned

    with waiting("plan") as say:
        found = planned(
            epsilon=epsilon,
            delta=delta,
            solve_for=solve,
            protocol=protocol,
            on_question=say,
            **given,
        )
    data = found.guarantee.to_json()
    data["solved"] = {"parameter": found.parameter.replace("_", "-"), "value": found.value}
    _show(data, str(found), json)


def _show(data: dict[str, Any], sentence: str, json: bool) -> None:
    if json:
        typer.echo(json_format.dumps(data))
        return
    from rich.console import Console
    from rich.table import Table

    from dpcheckin.accounting.figures import rounded_down, rounded_up

    table = Table(show_header=False)
    if "solved" in data:
        table.add_row(data["solved"]["parameter"], written(data["solved"]["value"]))
    for name in ("epsilon", "delta"):
        value = data[name]
        if isinstance(value, dict):  # what was asked for; the other one was given
            table.add_row(f"{name} (certified)", rounded_up(value["upper"]))
        else:
            table.add_row(name, f"{value:,}" if name == "epsilon" else rounded_up(value))
        if name == "epsilon" and "lower_bound" in data:
            table.add_row("proven lower bound", rounded_down(data["lower_bound"]["epsilon"]))
    local = data.get("local") or {}
    if local.get("epsilon") is not None:
        table.add_row(f"if {local['when']}", rounded_up(local["epsilon"]))
    table.add_row("adjacency", data["adjacency"])
    if data["basis"]:
        table.add_row("basis", "; ".join(data["basis"]))
    console = Console()
    console.print(table)
    console.print(sentence, highlight=False, soft_wrap=True)
    if "certificate" in data:
        console.print(f"Certificate: {data['certificate']}", highlight=False, soft_wrap=True)
