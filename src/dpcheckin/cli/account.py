"""`dpcheckin epsilon`, `delta`, `plan` and `trust`: what a run in plain names and numbers guarantees."""

from __future__ import annotations

import json as json_format
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcheckin.cli.arguments import Json, takes_run
from dpcheckin.console import print_sentence, print_table, waiting
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import number, written
from dpcheckin.options import DEFAULT_DELTA

if TYPE_CHECKING:
    from dpcheckin.accounting import Guarantee
    from dpcheckin.protocols.coalitions import Coalition
    from dpcheckin.protocols.questions import RunQuestion

Out = Annotated[
    Path | None,
    typer.Option(metavar="FILE.html", help="Write a page to hand over, one or two sheets of A4, with card and proof."),
]
Delta = Annotated[float, typer.Option(help="Delta of the statement.")]
_WINDOWS = ("slots", "check_in_probability")


@takes_run("local_epsilon")
def epsilon(
    delta: Delta = DEFAULT_DELTA,
    local_epsilon: Annotated[
        str | None, typer.Option(help="Epsilon of one report; 1..4 if clients choose their own, from 1 to 4.")
    ] = None,
    joins: Annotated[int, typer.Option(help="First round in which the client takes part.")] = 1,
    lower_bound: Annotated[bool, typer.Option(help="Compute the proven lower bound too, which takes longer.")] = True,
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a proof that verify/check.py checks, here.")
    ] = None,
    out: Out = None,
    json: Json = False,
    **given: Any,
) -> None:
    """Certified epsilon of a run at the given delta."""
    from dpcheckin.protocols.questions import RunQuestion

    _check_out(out)
    least, largest = _span(local_epsilon)
    question = RunQuestion(**given, local_epsilon=largest, lowest_local_epsilon=least, joins=joins)
    with waiting("epsilon") as say:
        stated = question.guarantee(delta)
        own = _own(question, delta)
        if certificate is not None:
            say("the certificate")
            from dpcheckin.accounting.proof.certificate import write

            write(stated.certificate(), certificate)
        say("the lower bound")
        wanted = lower_bound and question.has_lower_bound
        below = question.lower_bound(delta) if wanted else None
        _hand_over(out, question, stated, say, least=below)
    data = stated.to_json()
    if below is not None:
        data["lower_bound"] = {"epsilon": below.epsilon.lower, "basis": list(below.basis)}
    if own:
        data["own"] = [{"local_epsilon": e, "epsilon": one.epsilon.upper} for e, one in own.items()]
    if certificate is not None:
        data["certificate"] = str(certificate)
    _show(data, str(stated), json, out)


@takes_run(*_WINDOWS)
def delta_(
    epsilon: Annotated[float, typer.Option(help="Epsilon of the statement.")], json: Json = False, **given: Any
) -> None:
    """Certified delta of a run at the given epsilon."""
    from dpcheckin.accounting.composition.guarantees import guarantee_at
    from dpcheckin.notebook.runs import round_and_run
    from dpcheckin.protocols.questions import RunQuestion

    question = RunQuestion(**given)
    with waiting("delta"):
        _, run = round_and_run(question)
        stated, certified = guarantee_at(run, epsilon)
    data = stated.to_json()
    data |= {"epsilon": epsilon, "delta": {"lower": certified.lower, "upper": certified.upper}}
    _show(data, str(stated), json)


delta = delta_


@takes_run("protocol", *_WINDOWS, rounds=None)
def plan(
    epsilon: Annotated[float, typer.Option(help="Target epsilon.")],
    solve: Annotated[str | None, typer.Option(help="What to solve for: the one parameter left out.")] = None,
    protocol: Annotated[
        str, typer.Option(help="shuffled-check-in, subsampled-shuffle, shuffle or distributed-check-in.")
    ] = "shuffled-check-in",
    delta: Delta = DEFAULT_DELTA,
    lowest_ratio: Annotated[
        float | None, typer.Option(help="Rates lie between this part of the rate and the rate, also of one solved for.")
    ] = None,
    out: Out = None,
    json: Json = False,
    **given: Any,
) -> None:
    """Solve for the one parameter left out, so that the run meets the target epsilon."""
    from dpcheckin.notebook.plans import plan as planned

    _check_out(out)
    with waiting("plan") as say:
        answer = planned(
            epsilon=epsilon, delta=delta, solve_for=solve, protocol=protocol, lowest_ratio=lowest_ratio,
            on_question=say, **given,
        )  # fmt: skip
        _hand_over(out, answer.run, answer.guarantee, say)
    data = answer.guarantee.to_json()
    data["solved"] = {"parameter": answer.parameter.replace("_", "-"), "value": answer.value}
    _show(data, str(answer), json, out)


def _span(text: str | None) -> tuple[float | None, float | None]:
    """Least and largest of 1..4; of a number alone, no least one."""
    if text is None:
        return None, None
    first, dots, last = text.partition("..")
    try:
        return (number(first), number(last)) if dots else (None, number(text))
    except ValueError:
        raise InvalidParameter("local_epsilon", text, "a number such as 2, or two with dots, 1..4") from None


def _own(question: RunQuestion, delta: float) -> dict[float, Guarantee]:
    if question.lowest_local_epsilon is None:
        return {}
    from dpcheckin.protocols.own_terms import own_guarantees

    return own_guarantees(question, delta)


def _check_out(out: Path | None) -> None:
    if out is not None:
        from dpcheckin.notebook.pages import check_page

        check_page(out)


def _hand_over(out: Path | None, question: RunQuestion, stated: Guarantee, say: Any, **more: Any) -> None:
    """Write the page to hand over, if one is wanted."""
    if out is not None:
        from dpcheckin.notebook.pages import run_page

        run_page(out, question, stated, say=say, **more)


def _own_rows(own: list[dict[str, float]]) -> list[tuple[str, str]]:
    from dpcheckin.numerals import rounded_up

    return [(f"… of a client with local epsilon {x['local_epsilon']:g}", rounded_up(x["epsilon"])) for x in own]


def _show(data: dict[str, Any], sentence: str, json: bool, out: Path | None = None) -> None:
    if json:
        typer.echo(json_format.dumps(data))
        return
    from dpcheckin.numerals import rounded_down, rounded_up

    rows = []
    if "solved" in data:
        rows.append((data["solved"]["parameter"], written(data["solved"]["value"])))
    for name in ("epsilon", "delta"):
        value = data[name]
        if isinstance(value, dict):  # what was asked for; the other one was given
            rows.append((f"{name} (certified)", rounded_up(value["upper"])))
        else:
            rows.append((name, f"{value:,}" if name == "epsilon" else rounded_up(value)))
        if name == "epsilon" and "lower_bound" in data:
            rows.append(("proven lower bound", rounded_down(data["lower_bound"]["epsilon"])))
    rows += _own_rows(data.get("own", []))
    local = data.get("local") or {}
    if local.get("epsilon") is not None:
        rows.append((f"if {local['when']}", rounded_up(local["epsilon"])))
    rows.append(("adjacency", data["adjacency"]))
    if data["basis"]:
        rows.append(("basis", "; ".join(data["basis"])))
    print_table(rows)
    print_sentence(sentence)
    if "certificate" in data:
        print_sentence(f"Certificate: {data['certificate']}")
    if out is not None:
        print_sentence(f"written to {out}; card and certificate beside it")


@takes_run(*("protocol", "local_delta", "cohort", "slots", "check_in_probability"))
def trust(
    delta: Delta = DEFAULT_DELTA,
    minimum_batch: Annotated[int, typer.Option(help="Fewest reports of a round that is used.")] = 0,
    issuer: Annotated[bool, typer.Option("--issuer/--no-issuer", help="Do reports carry tokens of an issuer?")] = True,
    out: Out = None,
    json: Json = False,
    **given: Any,
) -> None:
    """Epsilon left against each coalition of shuffler, analyzer and issuer (shuffled check-in)."""
    from dpcheckin.accounting import CheckInRound
    from dpcheckin.document import Table
    from dpcheckin.protocols.coalitions import coalitions
    from dpcheckin.protocols.questions import RunQuestion

    _check_out(out)
    question = RunQuestion(**given)
    one = question.round(delta)
    assert isinstance(one, CheckInRound)
    with waiting("trust") as say:
        priced = coalitions(one, question.rounds, delta, minimum_batch, tokens=issuer)
        rows = [(coalition.parties, coalition.figure, coalition.basis) for coalition in priced]
        table = Table("Who could work together", rows, ("", "ε left", "what it rests on"))
        _hand_over(out, question, question.guarantee(delta), say, tables=[table])
    if json:
        facts = {"delta": delta, "tokens": issuer, "coalitions": [coalition.to_json() for coalition in priced]}
        print(json_format.dumps(facts))
        return
    print_coalitions(priced, issuer=issuer)
    if out is not None:
        print(f"written to {out}; card and certificate beside it")


def print_coalitions(priced: Sequence[Coalition], *, issuer: bool) -> None:
    """The table of who could work with whom, the weakest first; nothing where none is `priced`.

    `issuer` says whether reports carry tokens.
    """
    if priced:
        rows = [(coalition.parties, coalition.figure, coalition.basis) for coalition in priced]
        print_table(rows, "who works together", "epsilon left", "what it rests on", width=100)
    if not issuer:
        print("Without an issuer the shuffler is trusted to invent no reports.")
