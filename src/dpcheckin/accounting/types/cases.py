"""Curves of rounds whose others are of few types, and the data that lose nearly as much.

For the guarantee: types beside the worst law. For the lower end: all others at one value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from functools import cache

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.curves import LOWER_SLACK, Curve, Unshuffled
from dpcheckin.accounting.engine.loss import Atoms
from dpcheckin.accounting.engine.lower.homogeneous import HomogeneousCurve
from dpcheckin.accounting.engine.seats import Law, Mixture, RealPair, ThreeAtomLaw
from dpcheckin.accounting.engine.three_atoms import atoms, reseated
from dpcheckin.accounting.engine.typed.curve import (
    FEWER_PLACES,
    LowerCurve,
    TypedCurve,
    TypesAt,
    nobody_absent,
)
from dpcheckin.accounting.engine.typed.sparing import SparingCurve


class OthersData(Enum):
    """For which data of the other clients a lower bound of the pair is known."""

    ONE_OF_TWO = "all others hold one of the two values"
    THIRD_VALUE = "k-ary response, all others hold a third value"
    THIRD_DIRECTION = "PrivUnit, all others hold a third direction"
    MERGED_THIRD = "all others hold a third value, reports that say little merged"
    ANY_PURE = "the worse of binary and 3-ary response"


@dataclass(frozen=True, slots=True)
class ThirdValue:
    """Reports of a third value: a hit for either of two others, something of less weight, or none.

    Args:
        pair: The report.
        hit: Probability of a hit for one of the two.
        rest: Probability of a report that is less likely under both.
        rest_weight: How much less.
    """

    pair: ThreeAtomLaw
    hit: float
    rest: float
    rest_weight: float

    @property
    def local_epsilon(self) -> float:
        return self.pair.local_epsilon

    @property
    def local_delta(self) -> float:
        return self.pair.local_delta

    @property
    def second_moment(self) -> float:
        return self.pair.second_moment

    @property
    def directions(self) -> tuple[RealPair, ...]:
        return self.pair.directions

    def profile(self, alpha: Array) -> Array:
        return self.pair.profile(alpha)

    def simplified(self, local_delta: float) -> ThreeAtomLaw:
        return self.pair


def third_value(pair: ThreeAtomLaw, hit: float | None = None) -> ThirdValue:
    """k-ary response seen from a third value: it is reported with e0 * hit and weighs 1/e0.

    Elsewhere whatever does not point at one of the two is merged into one report, and its weight is
    what the mean of one leaves.

    Args:
        pair: The report.
        hit: How often a third value's report has the largest ratio; None for k-ary response.
    """
    e0 = math.exp(pair.local_epsilon)
    if hit is None:
        return ThirdValue(pair, pair.hit, e0 * pair.hit, 1 / e0)
    rest = 1.0 - 2.0 * hit
    return ThirdValue(pair, hit, rest, max(1.0 - hit * (e0 + 1.0), 0.0) / rest)


@dataclass(frozen=True, slots=True)
class BadCase:
    """What some data lose: lower bounds, and how many of them are worth computing."""

    curves: LowerCurve
    most: int


def with_types(
    types: TypesAt,
    worst: Curve,
    parts: Mixture[Law],
    local: Unshuffled,
    below: BadCase,
    dear: bool = False,
) -> Curve:
    """The curve of a round whose others are of these types, nowhere above that of the worst law.

    Args:
        types: Types at every alpha.
        worst: The curve with the worst law in every seat.
        parts: The round as a mixture of seats.
        local: What holds without shuffling, as for the worst law.
        below: A lower bound of what some data lose.
        dear: Whether each value of either bound takes long, so that few are computed.
    """
    unprotected = max(local.unprotected, nobody_absent(parts, local.rate))
    whole = Unshuffled(local.profile, unprotected, local.rate, local.local_delta)
    if dear:
        return SparingCurve(worst, parts, whole, types, below.curves, below.most, FEWER_PLACES)
    return TypedCurve(worst, parts, whole, types, below.curves, below.most)


def all_at_one_value(parts: Mixture[Law], smallest: float) -> BadCase:
    """What is lost when all others hold one of the two values."""
    weight, seats = max(parts, key=lambda part: part[0])
    case = HomogeneousCurve(seats, seats.law.directions[0], smallest, min(weight, 1.0))
    return BadCase(cache(case.curves), 100_000)


def all_at_third_value(parts: Mixture[Law], pair: ThreeAtomLaw) -> BadCase:
    """What is lost when all others hold a third value of k-ary response."""
    found: list[tuple[float, Atoms]] = []

    def below(step: float, points: int) -> tuple[Array, Array]:
        if not found:
            for weight, seats in reseated(parts, third_value(pair)):
                found.append((min(weight, 1.0), atoms(seats)[1]))
        total = np.zeros(points)
        for weight, merged in found:
            total += weight * LOWER_SLACK * merged.curve(step, points)
        return total, total

    return BadCase(below, 100_000)
