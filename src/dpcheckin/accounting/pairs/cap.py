"""The local pair of reports that fall into a cap round the client's direction: PrivUnit.

Beside the law of one report the pair knows its caps, because a lower bound needs the others' data: three directions a,
b and x on one great circle, with angles (A, X, X) and A + 2X a full turn. Zero is then a positive combination of the
three, so no report is in all three caps, and overlaps of two caps are all there is to know (docs/theory.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from dpcheckin.accounting.engine.loss import Atoms
from dpcheckin.accounting.engine.lower.preference_sums import FEW_SEATS, PreferenceLaw, preference_atoms
from dpcheckin.accounting.engine.seats import Hits, RealPair, Seats
from dpcheckin.accounting.engine.three_atoms import atoms
from dpcheckin.accounting.pairs.local import ThreeAtoms
from dpcheckin.accounting.pairs.pure_types import OthersData
from dpcheckin.errors import NumericalFailure
from dpcheckin.numerals import count, local_epsilon_in_range
from dpcheckin.special.cap_overlaps import height_bounds, overlap_of_caps, widest_angle
from dpcheckin.special.gamma import log_beta
from dpcheckin.special.roots import root
from dpcheckin.special.sphere import cap_measure

_SLACK = 1 - 1e-13  # of a handful of products


@dataclass(frozen=True, slots=True)
class ThirdDirection:
    """Reports of clients at x, as seen by who compares a with b."""

    angle: float  # between a and b, in radians; x is at the same angle from both
    preference: PreferenceLaw  # lower bounds of what is in the cap of a or b alone, and in that of x as well
    neutral: float  # a lower bound of the probability of a report outside all three caps
    rest: float  # mean weight of reports that are neither neutral nor strong, times their probability


@dataclass(frozen=True)
class CapPair(ThreeAtoms):
    """The pair of two opposite directions, whose caps do not meet."""

    others_data: OthersData = OthersData.THIRD_DIRECTION
    dimension: int = 2  # of the space, 2 or more
    cap_measure: float = 0.5  # share of the sphere that a cap covers, at most 1/2

    @property
    def directions(self) -> tuple[RealPair, ...]:
        """The pair's own three ratios: few clients can be enumerated."""
        e0 = math.exp(self.local_epsilon)
        ratios, masses = [e0, 1.0, 1 / e0], [self.hit, self.neutral, e0 * self.hit]
        (real,) = super().directions
        return (replace(real, atoms=(np.array(ratios), np.array(masses))),)

    @cached_property
    def third_direction(self) -> ThirdDirection | None:
        """Where the others do most harm; None if caps are hemispheres, and no x beats a or b."""
        return _third_direction(self.local_epsilon, self.dimension, self.cap_measure)

    def at_third_value(self) -> CapPair | None:
        return self if self.third_direction else None

    def at_one_of_two(self, seats: Seats) -> CapPair | None:
        if self.third_direction and seats.count > FEW_SEATS:
            return None
        return replace(self, others_data=OthersData.ONE_OF_TWO)

    def bad_views(self, seats: Seats) -> tuple[Atoms, ...]:
        """Others between the two directions, and two statistics of what is seen.

        One looks at reports in two caps at once, the other counts them as saying nothing, but knows how many reports
        are in no cap: that is better where reports are few, or caps hardly overlap.
        """
        if self.others_data is OthersData.ONE_OF_TWO:
            return ()
        third = self.third_direction
        if third is None:
            raise NumericalFailure("no third direction is known for caps of this measure")
        hit = third.preference.strong
        rest = max(1 - 2 * hit - third.neutral, 1e-300)
        merged = atoms(seats, Hits(self.local_epsilon, hit, rest, third.rest / rest))[1]
        return preference_atoms(seats, third.preference), merged


@lru_cache(maxsize=256)
def _third_direction(local_epsilon: float, dimension: int, q: float) -> ThirdDirection | None:
    """Directions with the largest variance 2 c (e0-1)^2 (q - o(A) - (1 - 1/e0) o(X)).

    Where an overlap is known between bounds, a share of the reports is relabelled as saying nothing: who knows a
    report's region can do that, so lower bounds of its measure will do.
    """
    height = height_bounds(dimension, q)
    if height is None:
        return None
    e0 = math.exp(local_epsilon)
    density = 1 / (1 - q + e0 * q)  # outside a client's cap; e0 times that inside
    angle = widest_angle(dimension, height.lower, -math.expm1(-local_epsilon))
    between = overlap_of_caps(dimension, q, angle)
    beside = overlap_of_caps(dimension, q, math.pi - angle / 2)
    if between is None or beside is None:
        return None
    strong = max(q - between.upper - beside.upper, 0.0) * density * _SLACK
    weak = beside.lower * density * e0 * _SLACK
    neutral = max(1 - 3 * q + between.lower + 2 * beside.lower, 0.0) * density * _SLACK
    # what is left of the mean; or from the overlaps, where it would be lost in rounding
    left = 1 - strong * (e0 + 1) - neutral
    rest = max(left, density * (q + (e0 - 1) * beside.lower + e0 * between.lower))
    return ThirdDirection(angle, PreferenceLaw(local_epsilon, strong, weak), neutral, rest)


def cap_pair(local_epsilon: float, dimension: int, cap_measure: float) -> CapPair:
    """The pair of reports that prefer a cap of this measure as far as local_epsilon allows.

    `local_epsilon`: of one report, in nats. `dimension`: of the space, 2 or more. `cap_measure`: q, at most 1/2.
    """
    q = cap_measure
    density = 1 / (1 - q + math.exp(local_epsilon) * q)  # outside the cap
    inside = math.exp(local_epsilon) * q * density
    return CapPair(
        f"PrivUnit in {dimension:,} dimensions",
        float(local_epsilon),
        q * density,
        (1 - 2 * q) * density,
        True,
        dimension=dimension,
        cap_measure=q,
        shared=density,
        described=(("kind", "privunit"), ("p", inside), ("q", float(q))),
    )


def privunit(local_epsilon: float, dimension: int) -> CapPair:
    """PrivUnit of this `local_epsilon` on unit vectors of so many `dimension`s (or their signs), with the best cap."""
    _, q, _ = privunit_parameters(local_epsilon, dimension)
    return cap_pair(local_epsilon, dimension, q)


def privunit_parameters(local_epsilon: float, dimension: int) -> tuple[float, float, float]:
    """(p, q, t) of least variance at this `local_epsilon` and `dimension`: cap <u, v> >= t of measure q, hit with p.

    The estimator's scale is the mean of <report, u>; the larger it is, the smaller the variance.
    """
    epsilon = local_epsilon_in_range(local_epsilon)
    d = count("dimension", dimension, 2)
    lift, log_whole = math.expm1(epsilon), log_beta(0.5, (d - 1) / 2)

    def cap(t: float) -> float:
        return float(cap_measure(t, d))

    def growth(t: float) -> float:
        """The derivative of the scale's logarithm, (d-1)/2 log(1 - t²) - log(1 + lift q)."""
        rest = (1 - t) * (1 + t)
        density = math.exp((d - 3) / 2 * math.log1p(-t * t) - log_whole)
        return lift * density / (1 + lift * cap(t)) - (d - 1) * t / rest

    # where the scale is largest it is flat: its derivative knows the place to the last digits
    widest = min(0.999999, math.sqrt(2 * (epsilon + 5) / (d - 1)) + 1e-9)
    t = root(growth, 0.0, widest) if growth(widest) < 0.0 else widest
    q = cap(t)
    return (1 + lift) * q / (1 + lift * q), q, t
