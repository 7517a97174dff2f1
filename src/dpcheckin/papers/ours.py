"""Our own figures beside the papers': what columns that panels share are computed by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial

from dpcheckin.accounting import (
    Kind,
    LocalPair,
    Round,
    ShuffleRound,
    any_pure,
    compose,
    dary_response,
    gaussian,
    lower_bound,
)
from dpcheckin.papers.catalogue import catalogue
from dpcheckin.papers.entry import Setting
from dpcheckin.papers.panel import Column, Parameters, called
from dpcheckin.papers.tables import function

_PAIRS: dict[str, Callable[[float], LocalPair]] = {"any": any_pure, "3-ary": partial(dary_response, symbols=3)}


def _rounds(place: str, pair: str | None, p: Parameters) -> list[tuple[Round, int]]:
    """The equal rounds of a row's parameters, made by what stands at this place."""
    own = {} if pair is None else {"pair": _PAIRS[pair](p["local_epsilon"])}
    return [(called(function(place), {**p, **own}), int(p.get("rounds", 1)))]


def guarantee(label: str, place: str, pair: str | None = None) -> Column:
    """A column with this label: epsilon, certified, of equal rounds made at a place, perhaps of pure reports' pair."""
    return Column(
        label, Kind.GUARANTEE, lambda p: compose(_rounds(place, pair, p)).epsilon(p["delta"]).upper, ours=True
    )


def lower(label: str, place: str, pair: str | None = None) -> Column:
    """A column with this label: what no guarantee of equal rounds, place and pair as above, can undercut."""
    return Column(label, Kind.LOWER_BOUND, lambda p: lower_bound(_rounds(place, pair, p), p["delta"]).epsilon.lower)


def entry(label: str, name: str, protocol: str) -> Column:
    """A column with this label: the bound of this name about a protocol, an entry of the catalogue."""
    (bound,) = (b for b in catalogue() if b.name == name and b.protocols == (protocol,))
    known = [field.name for field in fields(Setting)]

    def compute(p: Parameters) -> float | None:
        run = {name: p[name] for name in known if name in p}
        return bound.evaluate(Setting(protocol, **run)).epsilon  # type: ignore[arg-type]

    return Column(label, bound.kind, compute)


def gaussian_shuffle(population: int, noise_multiplier: float) -> ShuffleRound:
    """A full shuffle of a population's Gaussian reports with a noise_multiplier, values 1 apart."""
    # the papers' unit is one end of the ball to its centre; gaussian() tells its two ends apart
    return ShuffleRound(population, gaussian(2.0 * noise_multiplier))
