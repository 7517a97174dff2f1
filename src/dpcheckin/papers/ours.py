"""Our own figures beside the papers': columns that panels share, and what they are computed by."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpcheckin.accounting import (
    CheckInRound,
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
from dpcheckin.accounting.renyi.conversion import RenyiCurve
from dpcheckin.papers.entry import PublishedBound, Setting
from dpcheckin.papers.p1.homogeneous_pair import check_in_epsilon
from dpcheckin.papers.panel import Column, Parameters

EMPTY_SEATS = 50
"""Full shuffling of Gaussian reports: every client stays away with probability 50/n."""


def guarantee(one: Callable[[Parameters], Round], label: str = "empty-seat guarantee") -> Column:
    """The certified epsilon of a run of equal rounds, one if the row names no number.

    Args:
        one: makes a round of a row's parameters.
        label: of the column.
    """

    def compute(p: Parameters) -> float:
        return compose([(one(p), int(p.get("rounds", 1)))]).epsilon(p["delta"]).upper

    return Column(label, Kind.GUARANTEE, compute, ours=True)


def lower(one: Callable[[Parameters], Round], label: str = "3-ary lower bound") -> Column:
    """What no guarantee about such a run can be smaller than.

    Args:
        one: makes a round of a row's parameters.
        label: of the column.
    """

    def compute(p: Parameters) -> float:
        return lower_bound([(one(p), int(p.get("rounds", 1)))], p["delta"]).epsilon.lower

    return Column(label, Kind.LOWER_BOUND, compute)


def converted(label: str, kind: Kind, curve: Callable[[Parameters], RenyiCurve]) -> Column:
    """Epsilon by the Rényi curve of one round.

    Args:
        label: of the column.
        kind: what it is worth.
        curve: makes it of a row's parameters.
    """
    return Column(label, kind, lambda p: curve(p).times(p["rounds"]).epsilon(p["delta"]).epsilon)


def entry(label: str, entries: Sequence[PublishedBound], name: str, protocol: str) -> Column:
    """A bound of the catalogue for pure reports as a column.

    Args:
        label: of the column.
        entries: of one paper.
        name: of the bound among them.
        protocol: it is about.
    """
    (bound,) = (b for b in entries if b.name == name and b.protocols == (protocol,))

    def compute(p: Parameters) -> float | None:
        n, cohort = int(p["n"]), round(p["n"] * p["rate"])
        return bound.evaluate(
            Setting(protocol, n, int(p["rounds"]), p["delta"], p["rate"], cohort, p["e0"])
        ).epsilon

    return Column(label, bound.kind, compute)


CHECK_IN = (
    guarantee(lambda p: CheckInRound(int(p["n"]), p["rate"], any_pure(p["e0"]))),
    lower(lambda p: CheckInRound(int(p["n"]), p["rate"], dary_response(p["e0"], 3))),
)
"""Shuffled check-in of pure reports: any randomizer, and three-valued response."""

SUBSAMPLE = (
    guarantee(lambda p: SubsampleRound(int(p["n"]), int(p["cohort"]), any_pure(p["e0"]))),
    lower(lambda p: SubsampleRound(int(p["n"]), int(p["cohort"]), dary_response(p["e0"], 3))),
)
"""The same for a cohort of fixed size."""

FULL_SHUFFLE = (
    guarantee(lambda p: ShuffleRound(int(p["n"]), any_pure(p["e0"])), "our guarantee"),
    lower(lambda p: SubsampleRound(int(p["n"]), int(p["n"]), dary_response(p["e0"], 3))),
)
"""The same for one full shuffle."""

WINDOW = guarantee(lambda p: WindowRound(int(p["m"]), any_pure(p["e0"])))
"""One window of random check-ins of pure reports."""


def _nearly_full(p: Parameters) -> CheckInRound:
    # the papers' unit is one end of the ball to its centre; gaussian() tells its two ends apart
    return CheckInRound(int(p["n"]), 1.0 - EMPTY_SEATS / p["n"], gaussian(2.0 * p["noise"]))


def _homogeneous(p: Parameters) -> float:
    n, rounds = int(p["n"]), int(p["rounds"])
    rate = 1.0 - EMPTY_SEATS / n
    return check_in_epsilon(n, rate, p["noise"], rounds, p["delta"], sensitivity=1.0).lower


GAUSSIAN_SHUFFLE = (
    guarantee(_nearly_full),
    Column("homogeneous pair, lower", Kind.LOWER_BOUND, _homogeneous),
)
"""Gaussian reports of all but about fifty clients, values 1 apart as in P4."""
