"""`dpcheckin epsilon`, `delta`, `plan` and `bounds`."""

from __future__ import annotations

import json as json_format
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcheckin.errors import InvalidParameter

if TYPE_CHECKING:
    from dpcheckin.accounting import LocalPair, Round

SHUFFLED = ("shuffled-check-in", "subsampled-shuffle", "shuffle")
_SYNONYMS = {  # what `dpcheckin train` calls them
    "full-shuffle": "shuffle",
    "random-check-ins-fixed": "random-check-in-fixed",
    "random-check-ins-averaged": "random-check-in-averaged",
    "random-check-ins-sliding": "random-check-in-sliding",
}

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


def epsilon(
    population: Population = None,
    rate: Rate = None,
    local_epsilon: LocalEpsilon = None,
    rounds: Rounds = 1,
    delta: Delta = 1e-6,
    randomizer: Randomizer = "any",
    protocol: Protocol = "shuffled-check-in",
    cohort: Cohort = None,
    colluding: Colluding = 0.0,
    dropout: Dropout = 0.0,
    lowest_rate: LowestRate = None,
    local_delta: LocalDelta = 0.0,
    noise_multiplier: Noise = None,
    slots: Slots = None,
    check_in_probability: CheckIn = None,
    json: Json = False,
) -> None:
    """Certified epsilon of a run at the given delta."""
    count = needed("rounds", rounds)
    protocol = _SYNONYMS.get(protocol, protocol)
    if protocol in ("local-only", "central"):
        _comparator(
            protocol, needed("population", population), count, delta, rate,
            _pair(randomizer, local_epsilon, local_delta, noise_multiplier), json,
        )  # fmt: skip
        return
    if protocol not in SHUFFLED:
        _other_protocol(
            protocol, needed("population", population), count, delta, rate, cohort,
            local_epsilon, local_delta, noise_multiplier, slots, check_in_probability, json,
        )  # fmt: skip
        return
    from dpcheckin.accounting import compose, guarantee, lower_bound
    from dpcheckin.accounting.named import round_of

    pair = _pair(randomizer, local_epsilon, local_delta, noise_multiplier)
    one = round_of(
        protocol, needed("population", population), pair, rate, cohort, colluding, dropout,
        lowest_rate,
    )  # fmt: skip
    run = compose([(one, count)])
    said = guarantee(run, delta)
    least = lower_bound(run.rounds, delta)
    data = said.to_json()
    data["lower_bound"] = {"epsilon": least.epsilon.lower, "basis": list(least.basis)}
    _say(data, str(said), json)


def delta_(
    epsilon: Annotated[float, typer.Option(help="Epsilon of the statement.")],
    population: Population = None,
    rate: Rate = None,
    local_epsilon: LocalEpsilon = None,
    rounds: Rounds = 1,
    randomizer: Randomizer = "any",
    protocol: Protocol = "shuffled-check-in",
    cohort: Cohort = None,
    colluding: Colluding = 0.0,
    dropout: Dropout = 0.0,
    lowest_rate: LowestRate = None,
    local_delta: LocalDelta = 0.0,
    noise_multiplier: Noise = None,
    json: Json = False,
) -> None:
    """Certified delta of a run at the given epsilon."""
    from dpcheckin.accounting import Kind, compose
    from dpcheckin.accounting.guarantee import EMPTY_SEAT, REPLACE_ONE
    from dpcheckin.accounting.kinds import rounded_down, rounded_up
    from dpcheckin.accounting.named import round_of

    pair = _pair(randomizer, local_epsilon, local_delta, noise_multiplier)
    one = round_of(
        protocol, needed("population", population), pair, rate, cohort, colluding, dropout,
        lowest_rate,
    )  # fmt: skip
    value = compose([(one, needed("rounds", rounds))]).delta(epsilon)
    data: dict[str, Any] = {
        "kind": Kind.GUARANTEE.value,
        "epsilon": epsilon,
        "delta": {"lower": value.lower, "upper": value.upper},
        "adjacency": REPLACE_ONE,
        "basis": [EMPTY_SEAT],
        "assumptions": list(one.assumptions()),
    }
    if json:
        typer.echo(json_format.dumps(data))
        return
    typer.echo(
        f"delta = {rounded_up(value.upper)} (certified; at least {rounded_down(value.lower)}) "
        f"at {epsilon = :g}"
    )


delta = delta_


def plan(
    epsilon: Annotated[float, typer.Option(help="Target epsilon.")],
    delta: Delta = 1e-6,
    population: Population = None,
    rate: Rate = None,
    local_epsilon: LocalEpsilon = None,
    rounds: Rounds = None,
    randomizer: Randomizer = "any",
    protocol: Protocol = "shuffled-check-in",
    cohort: Cohort = None,
    colluding: Colluding = 0.0,
    dropout: Dropout = 0.0,
    solve: Annotated[
        str | None, typer.Option(help="What to solve for: the one parameter left out.")
    ] = None,
    json: Json = False,
) -> None:
    """Solve for the one parameter left out, so that the run meets the target epsilon."""
    from dpcheckin.accounting import guarantee
    from dpcheckin.accounting.inverse import solve as answer
    from dpcheckin.accounting.named import pair_named, round_of

    given = {"population": population, "rounds": rounds}
    if protocol == "shuffled-check-in":
        given["rate"] = rate  # type: ignore[assignment]
    if not randomizer.startswith("gaussian"):
        given["local_epsilon"] = local_epsilon  # type: ignore[assignment]
    missing = [name for name, value in given.items() if value is None]
    free = solve.replace("-", "_") if solve else (missing[0] if len(missing) == 1 else None)
    if free is None or missing != [free]:
        left_out = solve or ", ".join(missing) or None
        raise InvalidParameter("solve", left_out, f"exactly one of {', '.join(given)} left out")

    def build(value: float) -> tuple[Round, int]:
        chosen = {**given, free: value}
        pair = pair_named(randomizer, chosen.get("local_epsilon"))
        people = int(chosen["population"] or 0)
        one = round_of(protocol, people, pair, chosen.get("rate"), cohort, colluding, dropout)
        return one, int(chosen["rounds"] or 0)

    value = answer(free, build, epsilon=epsilon, delta=delta)
    said = guarantee([build(value)], delta)
    data = said.to_json()
    data["solved"] = {"parameter": free.replace("_", "-"), "value": value}
    _say(data, f"{free.replace('_', ' ')} = {value:g}. {said}", json)


def bounds(
    population: Population = None,
    rate: Rate = None,
    local_epsilon: LocalEpsilon = None,
    rounds: Rounds = 1,
    delta: Delta = 1e-6,
    protocol: Protocol = "shuffled-check-in",
    cohort: Cohort = None,
    local_delta: LocalDelta = 0.0,
    noise_multiplier: Noise = None,
    slots: Slots = None,
    check_in_probability: CheckIn = None,
    json: Json = False,
) -> None:
    """Upper bound, lower bound and every published bound, side by side."""
    from dpcheckin.cli.compare import compare

    compare(
        population=needed("population", population), rounds=needed("rounds", rounds), delta=delta,
        protocol=protocol, rate=rate, cohort=cohort, local_epsilon=local_epsilon,
        local_delta=local_delta, noise_multiplier=noise_multiplier, slots=slots,
        check_in_probability=check_in_probability, over=None, values=None, out=None, every=True,
        json=json,
    )  # fmt: skip


def needed(name: str, value: int | None) -> int:
    """The value of an option that has no default."""
    if value is None:
        raise InvalidParameter(name, None, "a whole number (the option is required)")
    return value


def _pair(
    randomizer: str, local_epsilon: float | None, local_delta: float, noise: float | None
) -> LocalPair:
    from dpcheckin.accounting.named import pair_named

    if noise is not None:
        if randomizer != "any":
            raise InvalidParameter("noise-multiplier", noise, "left out when --randomizer is given")
        randomizer = f"gaussian:{noise}"
    return pair_named(randomizer, local_epsilon, local_delta)


_ASSUMED: dict[str, tuple[str, ...]] = {
    "distributed": (
        "nothing but the sum of the reports and their number is revealed",
        "every client checks in by its own secret coin, independent of its data",
    ),
    "random": (
        "which slot a client chose stays secret, and does not depend on its data",
        "empty slots are filled by randomized dummies",
    ),
}


def _other_protocol(
    protocol: str,
    population: int,
    rounds: int,
    delta: float,
    rate: float | None,
    cohort: int | None,
    local_epsilon: float | None,
    local_delta: float,
    noise_multiplier: float | None,
    slots: int | None,
    check_in_probability: float | None,
    json: bool,
) -> None:
    """Protocols accounted for outside the theorem: the best proved bound of the comparison."""
    from dpcheckin.accounting import Kind, local_guarantee
    from dpcheckin.accounting.kinds import rounded_up
    from dpcheckin.accounting.named import pair_named
    from dpcheckin.accounting.published import Setting
    from dpcheckin.accounting.rounds import AGGREGATORS_COLLUDE, SLOTS_ARE_KNOWN
    from dpcheckin.report import compare as comparison

    if protocol not in comparison.PROTOCOLS:
        raise InvalidParameter("protocol", protocol, ", ".join(comparison.PROTOCOLS))
    if protocol.startswith("random-") and slots is None:
        raise InvalidParameter("slots", slots, "the number of slots of a window")
    setting = Setting(
        protocol=protocol, population=population, rounds=rounds, delta=delta, rate=rate,
        cohort=cohort, local_epsilon=local_epsilon, local_delta=local_delta,
        noise_multiplier=noise_multiplier, slots=slots, check_in_probability=check_in_probability,
    )  # fmt: skip
    lines = comparison.compare(setting)
    best = comparison.best_guarantee(lines)
    lower = max(
        (x.epsilon for x in lines if x.kind is Kind.LOWER_BOUND and x.epsilon is not None),
        default=0.0,
    )
    pair = pair_named("any", local_epsilon, local_delta) if noise_multiplier is None else None
    pair = pair or pair_named(f"gaussian:{noise_multiplier}", None)
    seen = rate if rate is not None else check_in_probability
    summed = "distributed" in protocol
    when = AGGREGATORS_COLLUDE if summed else SLOTS_ARE_KNOWN
    local = local_guarantee([(pair, 1.0 if seen is None else seen, rounds)], delta, when)
    assumed = _ASSUMED["distributed" if summed else "random"]
    one = comparison.theorem_round(setting)
    if one is not None and best.name == comparison.EMPTY_SEAT:
        assumed = one.assumptions()
    data = {
        "kind": best.kind.value,
        "epsilon": {"lower": min(lower, best.epsilon or 0.0), "upper": best.epsilon},
        "delta": delta,
        "lower_bound": {"epsilon": lower},
        "local": local.to_json(),
        "adjacency": "remove one client" if protocol.endswith("removal") else "replace one client",
        "basis": [f"{best.name} ({best.source})"],
        "assumptions": list(assumed),
    }
    spent = rounded_up(best.epsilon or 0.0)
    said = (
        f"The run is ({spent}, {delta:g})-DP by {best.name} ({best.source}), provided that "
        f"{'; '.join(assumed)}."
    )
    _say(data, said, json)


def _comparator(
    protocol: str,
    population: int,
    rounds: int,
    delta: float,
    rate: float | None,
    pair: LocalPair,
    json: bool,
) -> None:
    """What check-ins are compared with: named reports, or a server trusted with everything."""
    from dpcheckin.accounting import GaussianPair
    from dpcheckin.protocols.comparators import CentralDpSgd, local_only_guarantee

    if protocol == "local-only":
        said = local_only_guarantee(pair, rounds, delta)
    elif not isinstance(pair, GaussianPair):
        raise InvalidParameter("randomizer", pair.label, "gaussian:SIGMA with central")
    elif rate is None:
        raise InvalidParameter("rate", rate, "a probability, for central")
    else:
        said = CentralDpSgd(population, rate, rounds, pair.noise_multiplier).guarantee(delta)
    _say(said.to_json(), str(said), json)


def _say(data: dict[str, Any], sentence: str, json: bool) -> None:
    if json:
        typer.echo(json_format.dumps(data))
        return
    from rich.console import Console
    from rich.table import Table

    from dpcheckin.accounting.kinds import rounded_down, rounded_up

    table = Table(show_header=False)
    if "solved" in data:
        table.add_row(data["solved"]["parameter"], f"{data['solved']['value']:g}")
    table.add_row("epsilon (certified)", rounded_up(data["epsilon"]["upper"]))
    table.add_row("  numerically at least", rounded_down(data["epsilon"]["lower"]))
    table.add_row("delta", f"{data['delta']:g}")
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
