"""Our own figures as the panels need them: one number for one set of parameters."""

from __future__ import annotations

from collections.abc import Mapping

from dpcheckin.accounting import (
    CheckInRound,
    LocalPair,
    ShuffleRound,
    SubsampleRound,
    WindowRound,
    any_pure,
    compose,
    dary_response,
    gaussian,
    lower_bound,
)
from dpcheckin.papers.p1.homogeneous_pair import check_in_epsilon

Parameters = Mapping[str, float]

EMPTY_SEATS = 50
"""Full shuffling of Gaussian reports: every client stays away with probability 50/n."""


def check_in(p: Parameters) -> float:
    """Guarantee: shuffled check-in, any pure randomizer."""
    one = CheckInRound(int(p["n"]), p["rate"], any_pure(p["e0"]))
    return compose([(one, int(p["rounds"]))]).epsilon(p["delta"]).upper


def check_in_lower(p: Parameters) -> float:
    """Lower bound: shuffled check-in of three-valued response."""
    one = CheckInRound(int(p["n"]), p["rate"], dary_response(p["e0"], 3))
    return lower_bound([(one, int(p["rounds"]))], p["delta"]).epsilon.lower


def subsample(p: Parameters) -> float:
    """Guarantee: subsampled shuffle, any pure randomizer."""
    one = SubsampleRound(int(p["n"]), int(p["cohort"]), any_pure(p["e0"]))
    return compose([(one, int(p["rounds"]))]).epsilon(p["delta"]).upper


def full_shuffle(p: Parameters) -> float:
    """Guarantee: one full shuffle, any pure randomizer."""
    one = ShuffleRound(int(p["n"]), any_pure(p["e0"]))
    return compose([(one, 1)]).epsilon(p["delta"]).upper


def full_shuffle_lower(p: Parameters) -> float:
    """Lower bound: one full shuffle of three-valued response."""
    return subsample_lower({**p, "cohort": p["n"], "rounds": 1})


def window(p: Parameters) -> float:
    """Guarantee: one window of random check-ins, any pure randomizer."""
    one = WindowRound(int(p["m"]), any_pure(p["e0"]))
    return compose([(one, 1)]).epsilon(p["delta"]).upper


def gaussian_nearly_full(p: Parameters) -> float:
    """Guarantee: Gaussian reports, all but about fifty clients, noise as in P4 (sensitivity 1).

    The papers' unit is one end of the ball to its centre; here the two ends are told apart.
    """
    n = int(p["n"])
    one = CheckInRound(n, 1.0 - EMPTY_SEATS / n, _gaussian_pair(p))
    return compose([(one, int(p["rounds"]))]).epsilon(p["delta"]).upper


def gaussian_lower(p: Parameters) -> float:
    """Lower bound for the same: the homogeneous pair at the same distance."""
    n = int(p["n"])
    return check_in_epsilon(
        n,
        1.0 - EMPTY_SEATS / n,
        p["noise"],
        int(p["rounds"]),
        p["delta"],
        sensitivity=p.get("distance", 1.0),
    ).lower


def _gaussian_pair(p: Parameters) -> LocalPair:
    # gaussian() takes noise per clipping norm and puts two points 2 norms apart.
    return gaussian(2.0 * p["noise"] / p.get("distance", 1.0))


def subsample_lower(p: Parameters) -> float:
    """Lower bound: fixed cohort of three-valued response."""
    one = SubsampleRound(int(p["n"]), int(p["cohort"]), dary_response(p["e0"], 3))
    return lower_bound([(one, int(p["rounds"]))], p["delta"]).epsilon.lower
