"""`dpcheckin advise`: reports, rate and rounds with the largest signal for a target epsilon."""

from __future__ import annotations

import json as json_format
from typing import Annotated

import typer

from dpcheckin.cli.arguments import Json
from dpcheckin.console import waiting
from dpcheckin.options import DEFAULT_DELTA


def advise(
    epsilon: Annotated[float, typer.Option(help="Target epsilon.")],
    population: Annotated[int, typer.Option(help="Number of clients.")],
    dimension: Annotated[int, typer.Option(help="Numbers of a report: the model's parameters.")],
    delta: Annotated[float, typer.Option(help="Delta of the statement.")] = DEFAULT_DELTA,
    rate: Annotated[list[float] | None, typer.Option(help="Check-in rate; repeatable. [0.1]")] = None,
    passes: Annotated[float | None, typer.Option(help="Most check-ins of one client, on average.")] = None,
    local_epsilon: Annotated[
        list[float] | None, typer.Option(help="PrivUnit reports to try; repeatable. [1 to 6]")
    ] = None,
    noise_multiplier: Annotated[
        list[float] | None, typer.Option(help="Gaussian reports to try; repeatable. [1.6 to 2.7]")
    ] = None,
    json: Json = False,
) -> None:
    """Reports, rate and rounds that leave the largest signal for learning at a target epsilon."""
    from dpcheckin.notebook.advice import advise as advised

    with waiting("advise") as say:
        advice = advised(
            epsilon=epsilon,
            population=population,
            dimension=dimension,
            delta=delta,
            rates=rate or (0.1,),
            passes=passes,
            local_epsilons=local_epsilon,
            noise_multipliers=noise_multiplier,
            on_question=say,
        )
    if json:
        typer.echo(json_format.dumps({"delta": advice.delta, "choices": advice.records()}))
        return
    from rich.console import Console
    from rich.table import Table

    rows = advice.shown()
    table = Table(caption=advice.caption, caption_justify="left")
    for name in rows[0]:
        table.add_column(name, justify="left" if name == "reports" else "right")
    for row in rows:
        table.add_row(*row.values())
    Console().print(table)
    best, words = advice.best, ["dpcheckin train --data YOURS"]
    if best.noise_multiplier is not None:
        words.append(f"--randomizer gaussian --noise-multiplier {best.noise_multiplier:g}")
    else:
        words.append(f"--local-epsilon {best.local_epsilon:g}")
    words.append(f"--rate {best.rate:g} --rounds {best.rounds} --epsilon-budget {advice.epsilon:g}")
    typer.echo(f"largest signal, for a fleet of {population:,}: " + " ".join(words))
    typer.echo("choose --clip and --learning-rate with --validate, never on the test records")
