"""`dpcheckin utility`: what the papers' theorems promise, beside what a convex task loses."""

from __future__ import annotations

import json as json_format
import math
from typing import TYPE_CHECKING, Annotated

import typer

from dpcheckin.cli.arguments import Json
from dpcheckin.console import waiting
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import written
from dpcheckin.options import DEFAULT_DELTA, listed

if TYPE_CHECKING:
    from dpcheckin.papers.convex_task import UtilityCheck

THEOREMS = ("p2-3.5", "p2-4.2", "p2-4.2-smooth", "p3-3")


def utility(
    theorem: Annotated[str, typer.Argument(help="p2-3.5, p2-4.2, p2-4.2-smooth or p3-3.")],
    population: Annotated[int, typer.Option(help="Clients, one record each.")] = 10_000,
    slots: Annotated[int, typer.Option(help="Of the window (P2).")] = 1_000,
    check_in_probability: Annotated[float, typer.Option(help="Of each client (P2 3.5).")] = 1.0,
    noise: Annotated[float, typer.Option(help="Deviation in each coordinate (P2).")] = 1.0,
    cohort: Annotated[int, typer.Option(help="Clients of a round (P3).")] = 500,
    rounds: Annotated[int, typer.Option(help="Of the run (P3).")] = 200,
    local_epsilon: Annotated[float, typer.Option(help="Of one report (P3).")] = 2.0,
    norm: Annotated[str, typer.Option(help="The p of the randomizer Rₚ, from 1 to inf (P3).")] = "2",
    dimension: Annotated[int, typer.Option(help="Of the model.")] = 10,
    lipschitz: Annotated[float, typer.Option(help="Largest norm of a gradient.")] = 1.0,
    diameter: Annotated[float, typer.Option(help="Of the ball of models.")] = 2.0,
    smoothness: Annotated[float, typer.Option(help="Of the loss.")] = 1.0,
    repeats: Annotated[int, typer.Option(help="Runs of the experiment.")] = 10,
    delta: Annotated[float, typer.Option(help="Of the guarantee beside it.")] = DEFAULT_DELTA,
    seed: Annotated[int, typer.Option(help="Of all chance.")] = 0,
    json: Json = False,
) -> None:
    """Evaluate a utility theorem with the constants of its proof, and play it on a convex task.

    What a run of the plan costs in privacy stands beside it.
    """
    from dpcheckin.errors import OutsideTheorem
    from dpcheckin.papers.convex_task import ConvexTask
    from dpcheckin.papers.p2 import utility as p2
    from dpcheckin.papers.p3 import utility as p3

    if theorem not in THEOREMS:
        raise InvalidParameter("theorem", theorem, listed(THEOREMS))
    p = _norm(norm) if theorem == "p3-3" else 2.0
    task = ConvexTask(dimension, lipschitz, diameter, smoothness, p)
    with waiting("utility"):
        if theorem == "p2-3.5":
            found = p2.fixed_window(task, population, slots, noise, check_in_probability, repeats, seed)
        elif theorem == "p3-3":
            found = p3.subsampled_shuffle(task, population, cohort, rounds, local_epsilon, repeats, seed)
        else:
            smooth = theorem.endswith("smooth")
            found = p2.averaged_window(task, population, slots, noise, smooth, repeats, seed)
        try:
            price: str | float = found.plan.epsilon(delta).upper
        except OutsideTheorem as reason:
            price = str(reason)
    if json:
        typer.echo(json_format.dumps({**found.to_json(), "epsilon": price, "delta": delta}))
    else:
        _print(found, price, delta)


def _norm(text: str) -> float:
    try:
        p = float(text)
    except ValueError:
        p = math.nan
    if not p >= 1.0:
        raise InvalidParameter("norm", text, "a number from 1 on, or inf")
    return p


def _print(found: UtilityCheck, price: str | float, delta: float) -> None:
    from dpcheckin.numerals import rounded_up

    print(f"{found.theorem}: {found.plan.describe()}; {found.plan.randomizer.describe()}")
    print(f"expected excess risk at most {rounded_up(found.bound)}")
    measured = f"{written(found.measured, 4)} ± {rounded_up(found.deviation, 2)}"
    print(f"measured {measured} (mean and its error, {found.repeats:,} runs)")
    for name, value in found.details.items():
        print(f"{name.replace('_', ' ')} {written(value, 4)}")
    if isinstance(price, str):
        print(f"no guarantee: {price}")
    else:
        print(f"ε ≤ {rounded_up(price)} at δ = {delta:g}")
