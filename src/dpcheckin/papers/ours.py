"""Our own figures beside the papers': columns that panels share, and what they are computed by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

from dpcheckin.accounting import (
    Bracket,
    CheckInRound,
    DistributedRound,
    Kind,
    Round,
    ShuffleRound,
    SubsampleRound,
    WindowRound,
    any_pure,
    compose,
    dary_response,
    gaussian,
    lower_bound,
)
from dpcheckin.papers.catalogue import catalogue
from dpcheckin.papers.entry import Setting
from dpcheckin.papers.p1.homogeneous_pair import check_in_epsilon
from dpcheckin.papers.panel import Column, Parameters, called, column


def guarantee(round_of: Callable[..., Round], label: str = "empty-seat guarantee") -> Column:
    """A column with this label: epsilon, certified, of equal rounds, `round_of` a row's parameters."""

    def compute(p: Parameters) -> float:
        return compose([(called(round_of, p), int(p.get("rounds", 1)))]).epsilon(p["delta"]).upper

    return Column(label, Kind.GUARANTEE, compute, ours=True)


def lower(round_of: Callable[..., Round], label: str = "3-ary lower bound") -> Column:
    """A column with this label: what no guarantee of equal rounds, `round_of` a row's parameters, can undercut."""

    def compute(p: Parameters) -> float:
        return lower_bound([(called(round_of, p), int(p.get("rounds", 1)))], p["delta"]).epsilon.lower

    return Column(label, Kind.LOWER_BOUND, compute)


def entry(label: str, name: str, protocol: str) -> Column:
    """A column with this label: the bound of this name about a protocol, an entry of the catalogue."""
    (bound,) = (b for b in catalogue() if b.name == name and b.protocols == (protocol,))
    known = [field.name for field in fields(Setting)]

    def compute(p: Parameters) -> float | None:
        run = {name: p[name] for name in known if name in p}
        return bound.evaluate(Setting(protocol, **run)).epsilon  # type: ignore[arg-type]

    return Column(label, bound.kind, compute)


CHECK_IN = (
    guarantee(lambda population, rate, local_epsilon: CheckInRound(population, rate, any_pure(local_epsilon))),
    lower(lambda population, rate, local_epsilon: CheckInRound(population, rate, dary_response(local_epsilon, 3))),
)
"""Shuffled check-in of pure reports: any randomizer, and three-valued response."""

SUBSAMPLE = (
    guarantee(lambda population, cohort, local_epsilon: SubsampleRound(population, cohort, any_pure(local_epsilon))),
    lower(
        lambda population, cohort, local_epsilon: SubsampleRound(population, cohort, dary_response(local_epsilon, 3))
    ),
)
"""The same for a cohort of fixed size."""

FULL_SHUFFLE = (
    guarantee(lambda population, local_epsilon: ShuffleRound(population, any_pure(local_epsilon)), "our guarantee"),
    lower(lambda population, local_epsilon: SubsampleRound(population, population, dary_response(local_epsilon, 3))),
)
"""The same for one full shuffle."""

WINDOW = guarantee(lambda slots, local_epsilon: WindowRound(slots, any_pure(local_epsilon)))
"""One window of random check-ins of pure reports."""


def _gaussian_shuffle(population: int, noise_multiplier: float) -> ShuffleRound:
    # the papers' unit is one end of the ball to its centre; gaussian() tells its two ends apart
    return ShuffleRound(population, gaussian(2.0 * noise_multiplier))


def _homogeneous(population: int, noise_multiplier: float, rounds: int, delta: float) -> Bracket:
    return check_in_epsilon(population, 1.0, noise_multiplier, rounds, delta, sensitivity=1.0)


GAUSSIAN_SHUFFLE = (guarantee(_gaussian_shuffle), column("homogeneous pair, lower", Kind.LOWER_BOUND, _homogeneous))
"""Gaussian reports of all clients, values 1 apart as in P4."""

COLUMNS = {
    "check-in": CHECK_IN,
    "subsample": SUBSAMPLE,
    "full-shuffle": FULL_SHUFFLE,
    "window": (WINDOW,),
    "gaussian-shuffle": GAUSSIAN_SHUFFLE,
    "distributed": (
        guarantee(DistributedRound, "our guarantee, by loss distribution"),
        lower(DistributedRound, "everybody else on one value"),
    ),
}
"""All of them by the names that figures have for them."""
