"""Rounds and randomizers by the names people type: what the command line and the page share.

No protocol is accounted for here; a name and its arguments become a `Round` or a `LocalPair`, and
contradictory arguments are refused.
"""

from __future__ import annotations

from dpcheckin import accounting as a
from dpcheckin.accounting.local_pairs import LocalPair
from dpcheckin.accounting.rounds import Round
from dpcheckin.errors import InvalidParameter


def pair_named(name: str, local_epsilon: float | None, local_delta: float = 0.0) -> LocalPair:
    """The local pair that a --randomizer text stands for."""
    kind, _, argument = name.partition(":")
    allowed = "any, binary, dary:K, hemisphere, privunit:DIM, gaussian:SIGMA or laplace"
    try:
        number = float(argument) if argument else None
    except ValueError:
        raise InvalidParameter("randomizer", name, allowed) from None
    if kind == "gaussian":
        if number is None:
            raise InvalidParameter("randomizer", name, "gaussian:SIGMA, SIGMA the noise multiplier")
        if local_epsilon is not None:
            raise InvalidParameter(
                "local-epsilon", local_epsilon, "left out: gaussian:SIGMA says it all"
            )
        return a.gaussian(number)
    if local_epsilon is None:
        raise InvalidParameter("local-epsilon", None, "a number, for every randomizer but gaussian")
    if local_delta:
        if kind != "any":
            raise InvalidParameter("local-delta", local_delta, "0 unless --randomizer any")
        return a.approximate(local_epsilon, local_delta)
    simple = {
        "any": a.any_pure,
        "binary": a.binary_response,
        "hemisphere": a.hemisphere,
        "laplace": a.laplace,
    }
    if kind in simple and number is None:
        return simple[kind](local_epsilon)
    if kind == "dary" and number is not None and number.is_integer():
        return a.dary_response(local_epsilon, int(number))
    if kind == "privunit" and number is not None and number.is_integer():
        return a.privunit(local_epsilon, int(number))
    raise InvalidParameter("randomizer", name, allowed)


def round_of(
    protocol: str,
    population: int,
    pair: LocalPair,
    rate: float | None,
    cohort: int | None,
    colluding: float = 0.0,
    dropout: float = 0.0,
    lowest_rate: float | None = None,
) -> Round:
    """One round of the named protocol; contradictory arguments are refused."""
    if protocol == "shuffled-check-in":
        if cohort is not None:
            raise InvalidParameter("cohort", cohort, "left out: check-in has a rate, not a cohort")
        if rate is None:
            raise InvalidParameter("rate", rate, "a probability, for shuffled-check-in")
        return a.CheckInRound(population, rate, pair, colluding, dropout, lowest_rate)
    if dropout or lowest_rate is not None:
        raise InvalidParameter(
            "dropout" if dropout else "lowest-rate", dropout or lowest_rate, "used with check-ins"
        )
    if protocol == "subsampled-shuffle":
        if cohort is None and rate is not None:
            cohort = round(rate * population)
            if abs(cohort - rate * population) > 1e-6 * max(cohort, 1):
                raise InvalidParameter(
                    "rate", rate, "a rate that gives a whole cohort, or --cohort"
                )
        elif rate is not None:
            raise InvalidParameter("rate", rate, "left out when --cohort is given")
        if cohort is None:
            raise InvalidParameter("cohort", cohort, "a whole number, for subsampled-shuffle")
        return a.SubsampleRound(population, cohort, pair, colluding)
    if protocol == "shuffle":
        if rate not in (None, 1.0) or cohort not in (None, population):
            raise InvalidParameter("rate", rate, "left out: everybody takes part in a full shuffle")
        return a.ShuffleRound(population, pair, colluding)
    raise InvalidParameter("protocol", protocol, "a protocol named in --help")
