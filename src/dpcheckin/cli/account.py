"""`dpcheckin epsilon`, `delta`, `plan` and `bounds`."""

from __future__ import annotations

import inspect
import json as json_format
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcheckin.errors import InvalidParameter

if TYPE_CHECKING:
    from dpcheckin.accounting import Round
    from dpcheckin.protocols.questions import RunQuestion

Population = Annotated[int | None, typer.Option(help="Number of clients.")]
Rate = Annotated[float | None, typer.Option(help="Probability that a client checks in.")]
LocalEpsilon = Annotated[float | None, typer.Option(help="Epsilon of one report.")]
LocalDelta = Annotated[float, typer.Option(help="Delta of one report.")]
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
        "random-check-in-fixed, random-check-in-averaged or random-check-in-sliding; "
        "epsilon also knows local-only and central."
    ),
]
Cohort = Annotated[int | None, typer.Option(help="Size of a fixed cohort.")]
Colluding = Annotated[float, typer.Option(help="Fraction of clients working with the analyzer.")]
Dropout = Annotated[float, typer.Option(help="Largest probability that a check-in gets lost.")]
LowestRate = Annotated[float | None, typer.Option(help="Rates lie between this and --rate.")]
Noise = Annotated[float | None, typer.Option(help="Gaussian noise per clipping norm.")]
Slots = Annotated[int | None, typer.Option(help="Slots of a random check-in window.")]
CheckIn = Annotated[float | None, typer.Option(help="Probability to check in to a window.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


# the options of a run, with what they are when they are left out
_OPTIONS: dict[str, tuple[Any, Any]] = {
    "population": (Population, None),
    "rate": (Rate, None),
    "local_epsilon": (LocalEpsilon, None),
    "rounds": (Rounds, 1),
    "delta": (Delta, 1e-6),
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
def epsilon(json: Json = False, **given: Any) -> None:
    """Certified epsilon of a run at the given delta."""
    delta = given.pop("delta")
    question = _question(given)
    stated = question.guarantee(delta)
    data = stated.to_json()
    if question.has_lower_bound:
        least = question.lower_bound(delta)
        data["lower_bound"] = {"epsilon": least.epsilon.lower, "basis": list(least.basis)}
    _show(data, str(stated), json)


@_takes(*(name for name in _OPTIONS if name not in ("delta", "slots", "check_in_probability")))
def delta_(
    epsilon: Annotated[float, typer.Option(help="Epsilon of the statement.")],
    json: Json = False,
    **given: Any,
) -> None:
    """Certified delta of a run at the given epsilon."""
    from dpcheckin.accounting import Kind, compose
    from dpcheckin.accounting.statements import rounded_down, rounded_up

    question = _question(given)
    one = question.round(delta=_AVERAGED_LOADS)
    value = compose([(one, question.rounds)]).delta(epsilon)
    data: dict[str, Any] = {
        "kind": Kind.GUARANTEE.value,
        "epsilon": epsilon,
        "delta": {"lower": value.lower, "upper": value.upper},
        "adjacency": one.adjacency.value,
        "basis": list(one.basis()),
        "assumptions": list(one.assumptions()),
    }
    if json:
        typer.echo(json_format.dumps(data))
        return
    typer.echo(
        f"delta = {rounded_up(value.upper)} (certified; at least {rounded_down(value.lower)}) "
        f"at epsilon = {epsilon!r}"
    )


delta = delta_
# a window whose reports are averaged sets this part aside for unlucky loads
_AVERAGED_LOADS = 1e-9


@_takes(
    *("delta", "population", "rate", "local_epsilon", "rounds", "randomizer", "protocol"),
    *("cohort", "colluding", "dropout"),
    rounds=None,
)
def plan(
    epsilon: Annotated[float, typer.Option(help="Target epsilon.")],
    solve: Annotated[
        str | None, typer.Option(help="What to solve for: the one parameter left out.")
    ] = None,
    json: Json = False,
    **given: Any,
) -> None:
    """Solve for the one parameter left out, so that the run meets the target epsilon."""
    from dpcheckin.accounting import guarantee
    from dpcheckin.accounting.solve import solve as answer
    from dpcheckin.protocols.questions import RunQuestion

    delta = given.pop("delta")
    asked = ["population", "rounds"]
    if given["protocol"] == "shuffled-check-in":
        asked.append("rate")
    if not given["randomizer"].startswith("gaussian"):
        asked.append("local_epsilon")
    free = _left_out({name: given[name] for name in asked}, solve)

    def build(value: float) -> tuple[Round, int]:
        chosen = {**given, free: value}
        whole = {name: int(chosen[name] or 0) for name in ("population", "rounds")}
        question = RunQuestion(**{**chosen, **whole})
        return question.round(delta), question.rounds

    value = answer(free, build, epsilon=epsilon, delta=delta)
    stated = guarantee([build(value)], delta)
    data = stated.to_json()
    data["solved"] = {"parameter": free.replace("_", "-"), "value": value}
    _show(data, f"{free.replace('_', ' ')} = {_in_full(value)}. {stated}", json)


def _left_out(given: dict[str, float | None], solve: str | None) -> str:
    """The one parameter to solve for."""
    missing = [name for name, value in given.items() if value is None]
    free = solve.replace("-", "_") if solve else (missing[0] if len(missing) == 1 else None)
    if free is None or missing != [free]:
        left_out = solve or ", ".join(missing) or None
        raise InvalidParameter("solve", left_out, f"exactly one of {', '.join(given)} left out")
    return free


@_takes(
    *("population", "rate", "local_epsilon", "rounds", "delta", "protocol", "cohort"),
    *("local_delta", "noise_multiplier", "slots", "check_in_probability"),
)
def bounds(json: Json = False, **given: Any) -> None:
    """Upper bound, lower bound and every published bound, side by side."""
    from dpcheckin.cli.compare import compare

    people, rounds = needed("population", given["population"]), needed("rounds", given["rounds"])
    asked = {**given, "population": people, "rounds": rounds}
    compare(**asked, over=None, values=None, out=None, every=True, json=json)


def needed(name: str, value: int | None) -> int:
    """The value of an option that has no default."""
    if value is None:
        raise InvalidParameter(name, None, "a whole number (the option is required)")
    return value


def _in_full(value: float) -> str:
    """An answer as it is: whole numbers with every digit, others as the decimal that was found.

    >>> _in_full(9133405), _in_full(0.03215)
    ('9,133,405', '0.03215')
    """
    return f"{int(value):,}" if float(value).is_integer() else repr(float(value))


def _show(data: dict[str, Any], sentence: str, json: bool) -> None:
    if json:
        typer.echo(json_format.dumps(data))
        return
    from rich.console import Console
    from rich.table import Table

    from dpcheckin.accounting.statements import rounded_down, rounded_up

    table = Table(show_header=False)
    if "solved" in data:
        table.add_row(data["solved"]["parameter"], _in_full(data["solved"]["value"]))
    table.add_row("epsilon (certified)", rounded_up(data["epsilon"]["upper"]))
    table.add_row("  numerically at least", rounded_down(data["epsilon"]["lower"]))
    table.add_row("delta", rounded_up(data["delta"]))
    if "lower_bound" in data:
        table.add_row("proven lower bound", rounded_down(data["lower_bound"]["epsilon"]))
    local = data.get("local") or {}
    if local.get("epsilon") is not None:
        table.add_row(f"if {local['when']}", rounded_up(local["epsilon"]))
    table.add_row("adjacency", data["adjacency"])
    table.add_row("basis", "; ".join(data["basis"]))
    console = Console()
    console.print(table)
    console.print(sentence, highlight=False, soft_wrap=True)
