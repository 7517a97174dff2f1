"""What accounting must know of a local randomizer: one pair (P, Q), as the law of W = dP/dQ.

A pair stands for every two inputs: its profile h(alpha) = E_Q[(W - alpha)+] bounds the hockey-stick
divergence of the reports on any two inputs, in both directions (pairs are closed under swapping).
Nothing here draws samples; that is the randomizers' business.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.curves import (
    UPPER_SLACK,
    Curve,
    LocalCurve,
    Unshuffled,
    left_of,
    no_loss,
)
from dpcheckin.accounting.engine.lattice_curve import lattice_curve
from dpcheckin.accounting.engine.seats import WHOLE, Law, Mixture, RealPair
from dpcheckin.accounting.engine.three_atoms import ThreeAtomCurve, reseated
from dpcheckin.accounting.parameters import LARGEST_LOCAL_EPSILON, count, local_epsilon_in_range
from dpcheckin.accounting.types.cases import (
    OthersData,
    all_at_one_value,
    all_at_third_value,
    with_types,
)
from dpcheckin.accounting.types.pure import Family, pure_types, third_is_worse
from dpcheckin.errors import InvalidParameter

Described = tuple[tuple[str, Any], ...]


class LocalPair(ABC):
    """Base of all local pairs."""

    name: str
    local_epsilon: float
    local_delta: float
    full_shuffle_proved: bool  # does the theorem hold when no seat is empty?
    others_data: OthersData = OthersData.ONE_OF_TWO
    family: Family = Family.OTHER
    described: Described = ()  # the randomizer as a certificate says it; empty if it cannot

    @property
    def typed(self) -> bool:
        """Is it known what a report can look like from another value?"""
        return self.family is not Family.OTHER

    def without_types(self) -> LocalPair:
        """The pair as if nothing were known of that."""
        return self

    @abstractmethod
    def profile(self, alpha: Array | Sequence[float] | float) -> Array:
        """h(alpha) for alpha >= 0, including the mass at infinite ratio."""

    @property
    @abstractmethod
    def second_moment(self) -> float:
        """E_Q[(W - 1)+^2]: what the large-population limit depends on."""

    @property
    def pure(self) -> bool:
        """Is the randomizer epsilon-LDP with delta = 0?"""
        return math.isfinite(self.local_epsilon) and self.local_delta == 0.0

    @property
    def largest_loss(self) -> float:
        """A loss that one report never exceeds; infinite if there is a delta."""
        return self.local_epsilon if self.local_delta == 0.0 else math.inf

    @property
    def three_atoms(self) -> bool:
        """Has the report at most three likelihood ratios, so that no lattice is needed?"""
        return False

    @property
    def label(self) -> str:
        """How the pair is named in sentences and tables."""
        return self.name

    def simplified(self, local_delta: float) -> ThreeAtoms:
        """The worst report of an epsilon that this one exceeds with at most `local_delta`.

        It has at most three likelihood ratios. A profile h is convex and closed under swapping, so
        with h(e^epsilon) <= delta it lies below its chord between e^-epsilon and e^epsilon and
        below delta beyond: that is the profile of the worst (epsilon, delta)-LDP report. Its delta
        is larger than asked for only where no epsilon up to the largest allowed will do.

        >>> from dpcheckin.accounting import gaussian
        >>> worst = gaussian(2.0).simplified(1e-9)
        >>> worst.local_delta, round(worst.local_epsilon, 2)
        (1e-09, 6.17)
        """
        if self.pure and self.local_epsilon <= LARGEST_LOCAL_EPSILON:
            return any_pure(self.local_epsilon)
        allowed = self.local_delta + local_delta
        # where the pair's own epsilon is finite its profile has fallen to its local delta there
        epsilon = min(self.epsilon_within(allowed), self.local_epsilon, LARGEST_LOCAL_EPSILON)
        reached = 0.0 if epsilon == self.local_epsilon else self._profile_above(epsilon)
        delta = min(max(allowed, reached), 1.0)
        hit = (1.0 - delta) / (math.exp(epsilon) + 1.0)
        return ThreeAtoms("any approximate randomizer", epsilon, hit, 0.0, local_delta=delta)

    def epsilon_within(self, delta: float) -> float:
        """An epsilon of one report at this delta; infinite if none below 700 is."""
        low, high = 0.0, min(1.0, self.local_epsilon)
        while self._profile_above(high) > delta:
            if high >= 700.0:
                return math.inf
            low, high = high, min(2 * high, 700.0)
        for _ in range(40):
            half = 0.5 * (low + high)
            low, high = (half, high) if self._profile_above(half) > delta else (low, half)
        return high

    def _profile_above(self, epsilon: float) -> float:
        """An upper bound of the profile, since an epsilon is certified by it."""
        return float(self.profile(left_of(np.array([math.exp(epsilon)])))[0]) * UPPER_SLACK

    @property
    def directions(self) -> tuple[RealPair, ...]:
        """Pairs of laws at most as revealing as this one, for lower bounds.

        A profile that is its own mirror image belongs to one. Mass without counterpart, as much on
        either side, is merged into one report that says nothing.
        """

        def above(alpha: Array) -> Array:
            return np.asarray(np.maximum(self.profile(alpha) - self.local_delta, 0.0))

        def below(alpha: Array) -> Array:
            inside = np.maximum(alpha, 1e-300)
            return np.where(alpha > 0, inside * above(1 / inside), 0.0)

        largest = math.exp(self.local_epsilon) if self.local_epsilon < 700 else math.inf
        return (RealPair(above, below, largest, 1 / largest, self.second_moment),)

    def shuffled_curve(
        self, parts: Mixture[Law], rate: float, smallest: float, unprotected: float = 0.0
    ) -> Curve:
        """The same when all seats are taken at once: the others are then of few types, if known."""
        return self.curve(parts, rate, smallest, unprotected)

    def repeated(self, reports: int) -> LocalPair | None:
        """One pair as revealing as so many reports about one value; None if none is known."""
        return None

    def local_curve(self, rate: float) -> Curve:
        """The curve of a round in which it is seen who reported, at this rate."""
        if rate == 0.0:
            return no_loss()
        local = Unshuffled(self.profile, 0.0, rate, self.local_delta)
        real = self.directions[0] if len(self.directions) > 1 else None
        return LocalCurve(local, self.local_epsilon, real)

    def curve(
        self, parts: Mixture[Law], rate: float, smallest: float, unprotected: float = 0.0
    ) -> Curve:
        """The theorem's curve for seats taken by such reports.

        Args:
            parts: The round as a mixture of seats of this pair.
            rate: A bound on the probability that the target's report is there at all.
            smallest: A delta that is negligible.
            unprotected: Probability that no seat is empty, if nothing is proved then.
        """
        return lattice_curve(self, parts, rate, smallest, unprotected)


def local_pair(name: str, value: object) -> LocalPair:
    """The value if it is a local pair; a number is a frequent mistake and gets a hint."""
    if isinstance(value, LocalPair):
        return value
    example = value if isinstance(value, int | float) and not isinstance(value, bool) else 2.0
    raise InvalidParameter(
        name, value, f"what one report gives away: any_pure({example!r}), gaussian(2.0), ..."
    )


@dataclass(frozen=True)
class ThreeAtoms(LocalPair):
    """W = e^epsilon w.p. hit, 1 w.p. neutral, e^-epsilon w.p. e^epsilon * hit (delta at infinity).

    >>> pair = dary_response(1.0, 10)
    >>> round(pair.hit * (math.e + 1) + pair.neutral, 12)
    1.0
    """

    name: str
    local_epsilon: float
    hit: float
    neutral: float
    full_shuffle_proved: bool = False
    local_delta: float = 0.0
    others_data: OthersData = OthersData.ONE_OF_TWO
    family: Family = Family.OTHER
    third_hit: float | None = None
    """For MERGED_THIRD: how often a third value's report has the largest ratio."""
    described: Described = field(default=(), repr=False)

    def __post_init__(self) -> None:
        total = (math.exp(self.local_epsilon) + 1) * self.hit + self.neutral + self.local_delta
        if not (self.hit >= 0 and self.neutral >= 0 and abs(total - 1) < 1e-9):
            raise InvalidParameter("hit", self.hit, "masses that add up to one")

    def without_types(self) -> ThreeAtoms:
        return replace(self, family=Family.OTHER)

    def profile(self, alpha: Array | Sequence[float] | float) -> Array:
        a = np.asarray(alpha, dtype=np.float64)
        e0 = math.exp(self.local_epsilon)
        finite = (
            self.hit * np.maximum(e0 - a, 0.0)
            + self.neutral * np.maximum(1 - a, 0.0)
            + self.hit * np.maximum(1 - np.minimum(a, 1.0) * e0, 0.0)
        )
        return np.asarray(finite + self.local_delta)

    @property
    def rest(self) -> float:
        """Mass of Z* at zero: 1 - 2 hit - neutral, without cancellation."""
        return math.expm1(self.local_epsilon) * self.hit + self.local_delta

    @property
    def rest_weight(self) -> float:
        return 0.0

    @property
    def three_atoms(self) -> bool:
        return True

    @property
    def directions(self) -> tuple[RealPair, ...]:
        e0, blank = math.exp(self.local_epsilon), self.neutral + self.local_delta
        ratios, masses = np.array([e0, 1.0, 1 / e0]), np.array([self.hit, blank, e0 * self.hit])
        (real,) = super().directions
        return (replace(real, atoms=(ratios[masses > 0], masses[masses > 0])),)

    def simplified(self, local_delta: float) -> ThreeAtoms:
        return self

    def curve(
        self, parts: Mixture[Law], rate: float, smallest: float, unprotected: float = 0.0
    ) -> Curve:
        if any(seats.shares != WHOLE for _, seats in parts):
            return lattice_curve(self, parts, rate, smallest, unprotected)
        local = Unshuffled(self.profile, unprotected, rate, self.local_delta)
        return ThreeAtomCurve(reseated(parts, self), local)

    def shuffled_curve(
        self, parts: Mixture[Law], rate: float, smallest: float, unprotected: float = 0.0
    ) -> Curve:
        worst = self.curve(parts, rate, smallest, unprotected)
        symbols = 2 + round(self.neutral / self.hit) if self.hit > 0.0 else 2
        known = pure_types(self.family, self.local_epsilon, symbols, self.local_delta)
        if known is None:
            return worst
        third = self if self.family is Family.SYMBOLS else dary_response(self.local_epsilon, 3)
        below = (
            all_at_third_value(parts, third)
            if third_is_worse(self.family, self.local_epsilon)
            else all_at_one_value(parts, smallest)
        )
        # the types' violation has the local delta in it
        local = Unshuffled(self.profile, unprotected, rate, 0.0)
        return with_types(known, worst, parts, local, below)

    @property
    def second_moment(self) -> float:
        return self.hit * math.expm1(self.local_epsilon) ** 2

    @property
    def label(self) -> str:
        return f"{self.name} with local epsilon {self.local_epsilon:g}"


def _two_atoms(
    name: str,
    kind: str,
    local_epsilon: object,
    family: Family = Family.TWO_VALUES,
    others: OthersData = OthersData.ONE_OF_TWO,
) -> ThreeAtoms:
    epsilon = local_epsilon_in_range(local_epsilon)
    said = ("kind", kind), ("local_epsilon", epsilon)
    hit = 1 / (math.exp(epsilon) + 1)
    return ThreeAtoms(name, epsilon, hit, 0.0, True, 0.0, others, family, described=said)


def any_pure(local_epsilon: float) -> ThreeAtoms:
    """The worst case over all epsilon-LDP randomizers."""
    return _two_atoms(
        "any pure randomizer", "any", local_epsilon, Family.ANY_PURE, OthersData.ANY_PURE
    )


def binary_response(local_epsilon: float) -> ThreeAtoms:
    """Warner's binary randomized response."""
    return _two_atoms("binary response", "binary", local_epsilon)


def hemisphere(local_epsilon: float) -> ThreeAtoms:
    """LDP-SGD: a random vector of the hemisphere of the (randomly signed) direction."""
    return _two_atoms("hemisphere (LDP-SGD)", "hemisphere", local_epsilon)


def dary_response(local_epsilon: float, symbols: int) -> ThreeAtoms:
    """k-ary randomized response: the truth with probability e^epsilon / (e^epsilon + k - 1)."""
    epsilon, k = local_epsilon_in_range(local_epsilon), count("symbols", symbols, 2)
    if k == 2:
        return _two_atoms("2-ary response", "binary", epsilon)
    weight, others = math.exp(epsilon) + k - 1, OthersData.THIRD_VALUE
    hit, neutral = 1 / weight, (k - 2) / weight
    said = ("kind", "dary"), ("local_epsilon", epsilon), ("values", k)
    name, family = f"{k}-ary response", Family.SYMBOLS
    return ThreeAtoms(name, epsilon, hit, neutral, True, 0.0, others, family, described=said)
