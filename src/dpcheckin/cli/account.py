"""`dpcheckin epsilon`, `delta` and `plan`."""

from __future__ import annotations

import inspect
import json as json_format
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import written
from dpcheckin.options import DEFAULT_DELTA
from dpcheckin.waiting import waiting

if TYPE_CHECKING:
    from dpcheckin.protocols.questions import RunQuestion

Population = Annotated[int | None, typer.Option(help="Number of clients.")]
Rate = Annotated[float | None, typer.Option(help="Probability that a client checks in.")]
LocalEpsilon = Annotated[float | None, typer.Option(help="Epsilon of one report.")]
LocalDelta = Annotated[float, typer.Option(help="Delta of one report, with --randomizer any.")]
Rounds = Annotated[int | None, typer.Option(help="Number of rounds.")]
Delta = Annotated[float, typer.Option(help="Delta of the statement.")]
Randomizer = Annotated[
    str,
    typer.Option(help="any, binary, dary:K, hemisphere, privunit:DIM, gaussian:SIGMA or laplace."),
]
Protocol = Annotated[
    str,
    typer.Option(
        help="shuffled-check-in, subsampled-shuffle, shuffle, distributed-check-in, "
        "random-check-in-fixed, random-check-in-averaged, random-check-in-sliding, local-only or "
        "central."
    ),
]
Cohort = Annotated[int | None, typer.Option(help="Size of a fixed cohort, for subsampled-shuffle.")]
Colluding = Annotated[float, typer.Option(help="Fraction of clients working with the analyzer.")]
Dropout = Annotated[float, typer.Option(help="Largest probability that a check-in gets lost.")]
LowestRate = Annotated[float | None, typer.Option(help="Rates lie between this and --rate.")]
Noise = Annotated[float | None, typer.Option(help="Noise per clipping norm, for Gaussian reports.")]
Slots = Annotated[int | None, typer.Option(help="Slots of a random check-in window.")]
PlannedProtocol = Annotated[
    str,
    typer.Option(help="shuffled-check-in, subsampled-shuffle, shuffle or distributed-check-in."),
]
CheckIn = Annotated[float | None, typer.Option(help="Probability to check in to a window.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


# the options of a run, with what they are when they are left out
_OPTIONS: dict[str, tuple[Any, Any]] = {
    "population": (Population, None),
    "rate": (Rate, None),
    "local_epsilon": (LocalEpsilon, None),
    "rounds": (Rounds, 1),
    "delta": (Delta, DEFAULT_DELTA),
    "randomizer": (Randomizer, "any"),
    "protocol": (Protocol, "shuffled-check-in"),
    "cohort": (Cohort, None),
    "colluding": (Colluding, 0.0),
    "dropout": (Dropout, 0.0),
    "lowest_rate": (LowestRate, None),
    "local_delta": (LocalDelta, 0.0),
    "noise_multiplier": (Noise, None),
    "slots": (Slots, None),
    "check_in_probability": (CheckIn, None),
}
Command = Callable[..., None]


def _takes(*names: str, **defaults: Any) -> Callable[[Command], Command]:
    """Let a command take these options of the table, after its own first and before its last."""

    def decorate(command: Command) -> Command:
        signature = inspect.signature(command, eval_str=True)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        shared = []
        for name in names:
            annotation, default = _OPTIONS[name]
            default = defaults.get(name, default)
            kind = inspect.Parameter.KEYWORD_ONLY
            shared.append(inspect.Parameter(name, kind, default=default, annotation=annotation))
        first = [p for p in own if p.default is p.empty]
        last = [p for p in own if p.default is not p.empty]
        parameters = [p.replace(kind=p.KEYWORD_ONLY) for p in (*first, *shared, *last)]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {p.name: p.annotation for p in parameters}
        return command

    return decorate


def _question(given: dict[str, Any]) -> RunQuestion:
    from dpcheckin.protocols.questions import RunQuestion

    people, rounds = needed("population", given["population"]), needed("rounds", given["rounds"])
    return RunQuestion(**{**given, "population": people, "rounds": rounds})


@_takes(*_OPTIONS)
def epsilon(
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
    delta = given.pop("delta")
    question = _question(given)
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


@_takes(*(name for name in _OPTIONS if name not in ("delta", "slots", "check_in_probability")))
def delta_(
    epsilon: Annotated[float, typer.Option(help="Epsilon of the statement.")],
    json: Json = False,
    **given: Any,
) -> None:
    """Certified delta of a run at the given epsilon."""
    from dpcheckin.accounting.account import guarantee_at
    from dpcheckin.notebook.runs import round_and_run

    question = _question(given)
    with waiting("delta"):
        _, run = round_and_run(question)
        stated, found = guarantee_at(run, epsilon)
    data = stated.to_json()
    data |= {"epsilon": epsilon, "delta": {"lower": found.lower, "upper": found.upper}}
    _show(data, str(stated), json)


delta = delta_


@_takes(
    *("delta", "population", "rate", "local_epsilon", "rounds", "randomizer"),
    *("cohort", "colluding", "dropout", "lowest_rate", "local_delta", "noise_multiplier"),
    rounds=None,
)
def plan(
    epsilon: Annotated[float, typer.Option(help="Target epsilon.")],
    solve: Annotated[
        str | None, typer.Option(help="What to solve for: the one parameter left out.")
    ] = None,
    protocol: PlannedProtocol = "shuffled-check-in",
    json: Json = False,
    **given: Any,
) -> None:
    """Solve for the one parameter left out, so that the run meets the target epsilon."""
    from dpcheckin.notebook.plans import plan as planned

    with waiting("plan") as say:
        found = planned(
            epsilon=epsilon, solve_for=solve, protocol=protocol, on_question=say, **given
        )
    data = found.guarantee.to_json()
    data["solved"] = {"parameter": found.parameter.replace("_", "-"), "value": found.value}
    _show(data, str(found), json)


def needed(name: str, value: int | None) -> int:
    """The value of an option that has no default."""
    if value is None:
        raise InvalidParameter(name, None, "a whole number (the option is required)")
    return value


def _show(data: dict[str, Any], sentence: str, json: bool) -> None:
    if json:
        typer.echo(json_format.dumps(data))
        return
    from rich.console import Console
    from rich.table import Table

    from dpcheckin.accounting.statements import rounded_down, rounded_up

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
