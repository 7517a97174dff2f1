"""A run in the words and numbers of a certificate: what is not covered is refused by name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from dpcheckin.accounting.pairs.gaussian import GaussianPair
from dpcheckin.accounting.pairs.laplace import LaplacePair
from dpcheckin.accounting.pairs.local import LocalPair
from dpcheckin.accounting.proof.trapezoid import above, short
from dpcheckin.accounting.rounds.base import Round
from dpcheckin.accounting.rounds.shuffled import CheckInRound, ShuffledRound, ShuffleRound, SubsampleRound
from dpcheckin.accounting.statements import rounds_in_words
from dpcheckin.errors import OutsideTheorem

_PROTOCOLS = {CheckInRound: "shuffled-check-in", SubsampleRound: "subsampled-shuffle", ShuffleRound: "shuffle"}
# losses at which the profile of Gaussian reports is kept, in deviations of a loss; and on
_GRID, _ON = ((0.06, 45), (0.12, 12)), 0.3
_STEP, _FEWEST = 0.035, 40  # of Laplace reports, in losses up to the largest
_CUT = 5e-5  # of delta, for what lies beyond
_DIGITS = 10**18  # of the entries of a matrix


def number(value: float) -> str:
    """A number as it was meant: 1/30 where that is this very float, else its digits.

    >>> number(1 / 30), number(2.0), number(1e-5), number(0.25)
    ('1/30', '2', '1e-05', '0.25')
    """
    simple = Fraction(value).limit_denominator(1000)
    if float(simple) == value and len(repr(value)) > 8 and simple.denominator > 1:
        return f"{simple.numerator}/{simple.denominator}"
    return repr(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def randomizer_entry(pair: LocalPair, negligible: float) -> dict[str, Any]:
    """The randomizer in numbers, with a `negligible` delta of what a `pair` has beyond its grid of losses."""
    entry = dict(pair.described)
    if isinstance(pair, GaussianPair):
        entry = {"kind": "gaussian", "noise_multiplier": float(pair.noise_multiplier)}
        entry["grid"] = _grid(pair, negligible)
    if isinstance(pair, LaplacePair) and not pair.local_delta:
        step = max(min(_STEP, pair.local_epsilon / _FEWEST), pair.local_epsilon / (2 * _FEWEST))
        entry = {"kind": "laplace", "local_epsilon": float(pair.local_epsilon)}
        entry["grid"] = [[above(step, 4), math.ceil(pair.local_epsilon / float(above(step, 4)))]]
    if not entry:
        raise OutsideTheorem(f"a certificate does not cover {pair.label}")
    if entry["kind"] == "matrix":
        entry["rows"] = [_row(row) for row in entry["rows"]]
    return {name: number(value) if isinstance(value, float) else value for name, value in entry.items()}


def _row(masses: Sequence[float]) -> list[str]:
    """A law with sum one exactly: what rounding leaves goes to the largest mass."""
    whole = [round(Fraction(mass) * _DIGITS) for mass in masses]
    whole[whole.index(max(whole))] += _DIGITS - sum(whole)
    return [f"{mass}/{_DIGITS}" for mass in whole]


def _grid(pair: GaussianPair, negligible: float) -> list[list[Any]]:
    """Losses as far as they count: tails further out would make every sum long."""
    grid: list[list[Any]] = [[short(step * pair.s, 3), count] for step, count in _GRID]
    on = short(_ON * pair.s, 3)
    end, more = float(sum(Fraction(step) * count for step, count in grid)), 1
    while float(pair.profile(math.exp(end + more * float(on)))) > negligible and more < 100:
        more += 1
    return [*grid, [on, more]]


def round_entry(one: Round, count: int, delta: float) -> dict[str, Any]:
    """A round `one` in numbers, `count` times in a run with this `delta`, without its proof."""
    protocol = _PROTOCOLS.get(type(one))
    if protocol is None or not isinstance(one, ShuffledRound):
        raise OutsideTheorem(f"a certificate does not cover rounds of {type(one).__name__}")
    entry: dict[str, Any] = {
        "count": count,
        "protocol": protocol,
        "population": one.population,
        "randomizer": randomizer_entry(one.pair, _CUT * delta / (count * one.participation)),
    }
    if one.honest < one.population:
        entry["colluding"] = one.population - one.honest
    if one.honest < 2:
        raise OutsideTheorem("a certificate needs two honest clients")
    if isinstance(one, CheckInRound):
        entry |= _rates(one)
    if isinstance(one, SubsampleRound):
        if one.cohort == one.population:
            del entry["randomizer"]
            return round_entry(ShuffleRound(one.population, one.pair, one.colluding), count, delta)
        entry["cohort"] = one.cohort
    return entry


def _rates(one: CheckInRound) -> dict[str, str]:
    if not one.rate < 1.0:
        raise OutsideTheorem("a certificate of check-in needs a rate below 1: say shuffle")
    rates = {"rate": number(one.rate)}
    if one.lowest_rate is not None and one.lowest_rate < one.rate:
        rates["lowest_rate"] = number(one.lowest_rate)
    if one.dropout > 0.0:
        rates["dropout"] = number(one.dropout)
    return rates


def in_words(one: Round, count: int) -> str:
    """A round `one` that takes place `count` times as a sentence of the run."""
    assert one.pair is not None
    protocol = _PROTOCOLS[type(one)].replace("-", " ")
    assumed = "; ".join(one.assumptions())
    return f"{rounds_in_words(count)} of {protocol}, {one.pair.label}: {assumed}"


def value_of(text: str) -> float:
    """The float nearest to a number of the file."""
    value = float(Fraction(text))
    assert math.isfinite(value)
    return value
