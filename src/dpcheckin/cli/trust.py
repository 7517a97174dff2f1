"""`dpcheckin trust`: who could work with whom, and the epsilon that is left against each."""

from __future__ import annotations

import json as json_format
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcheckin.cli.account import Delta, Json
from dpcheckin.cli.arguments.options import takes_run
from dpcheckin.options import DEFAULT_DELTA
from dpcheckin.waiting import waiting

if TYPE_CHECKING:
    from dpcheckin.protocols.coalitions import Coalition


@takes_run(
    *("protocol", "local_delta", "noise_multiplier", "lowest_rate", "dropout", "cohort"),
    *("slots", "check_in_probability"),
)
def trust(
    delta: Delta = DEFAULT_DELTA,
    minimum_batch: Annotated[int, typer.Option(help="Fewest reports of a round that is used.")] = 0,
    issuer: Annotated[
        bool, typer.Option("--issuer/--no-issuer", help="Do reports carry tokens of an issuer?")
    ] = True,
    json: Json = False,
    **given: Any,
) -> None:
    """Epsilon left against each coalition of shuffler, analyzer and issuer (shuffled check-in)."""
    from dpcheckin.accounting import CheckInRound
    from dpcheckin.protocols.coalitions import coalitions
    from dpcheckin.protocols.questions import RunQuestion

    question = RunQuestion(**given)
    one = question.round(delta)
    assert isinstance(one, CheckInRound)
    with waiting("trust"):
        found = coalitions(one, question.rounds, delta, minimum_batch, tokens=issuer)
    if json:
        said = {"delta": delta, "tokens": issuer, "coalitions": [c.to_json() for c in found]}
        print(json_format.dumps(said))
        return
    print_coalitions(found, issuer=issuer)


def print_coalitions(found: Sequence[Coalition], *, issuer: bool) -> None:
    """The table of who could work with whom; nothing where none is priced.

    Args:
        found: the weakest first.
        issuer: whether reports carry tokens.
    """
    from rich.console import Console
    from rich.table import Table

    table = Table("who works together", "epsilon left", "what it rests on")
    for coalition in found:
        table.add_row(coalition.parties, coalition.figure, coalition.basis)
    if found:
        Console(width=100).print(table)
    if not issuer:
        print("Without an issuer the shuffler is trusted to invent no reports.")
