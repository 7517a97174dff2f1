"""What accounting must know of a local randomizer: one pair (P, Q), as the law of W = dP/dQ.

A pair stands for every two inputs: its profile h(alpha) = E_Q[(W - alpha)+] bounds the hockey-stick divergence of the
reports on any two inputs, in both directions (pairs are closed under swapping). Nothing here draws samples; that is the
randomizers' business.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, ClassVar

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.curves import UPPER_SLACK, Curve, Unshuffled, left_of
from dpcheckin.accounting.engine.lattice_curve import lattice_curve
from dpcheckin.accounting.engine.loss import Atoms
from dpcheckin.accounting.engine.lower.lattice import HomogeneousCurve
from dpcheckin.accounting.engine.seats import WHOLE, Hits, Mixture, RealPair, Seats
from dpcheckin.accounting.engine.three_atoms import ThreeAtomCurve, atoms
from dpcheckin.accounting.engine.typed.curve import BadCase, TypesAt, merged_case, with_types
from dpcheckin.accounting.pairs.pure_types import Family, OthersData, Symbols, pure_types
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import LARGEST_LOCAL_EPSILON, local_epsilon_in_range
from dpcheckin.special.roots import least

Described = tuple[tuple[str, Any], ...]
MOST_COMBINATIONS = 200_000  # of reports of a few clients that are enumerated


class LocalPair(ABC):
    """Base of all local pairs."""

    name: str
    local_epsilon: float
    local_delta: float
    full_shuffle_proved: bool  # does the theorem hold when no seat is empty?
    others_data: OthersData = OthersData.ONE_OF_TWO
    family: Family = Family.OTHER
    shared: float = 0.0  # lowest density of a report relative to some law, whatever the value; 0 if not known
    described: Described = ()  # the randomizer as a certificate says it; empty if it cannot
    condition: str = ""  # what must hold for the pair to speak of every client's report, in words
    dear: ClassVar[bool] = False  # do values of its curves take long?
    three_atoms: ClassVar[bool] = False  # has the report at most three ratios, so that no lattice is needed?

    @property
    def typed(self) -> bool:
        """Is it known what a report can look like from another value?"""
        return self.family is not Family.OTHER

    def without_types(self) -> LocalPair:
        """The pair as if nothing were known of that."""
        return self if self.family is Family.OTHER else replace(self, family=Family.OTHER)  # type: ignore[type-var]

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
    def label(self) -> str:
        """How the pair is named in sentences and tables."""
        return self.name

    def simplified(self, local_delta: float) -> ThreeAtoms:
        """The worst report of an epsilon that this one exceeds with at most `local_delta`.

        A profile h is convex and closed under swapping, so with h(e^epsilon) <= delta it lies below its chord between
        e^-epsilon and e^epsilon and below delta beyond: that is the profile of the worst (epsilon, delta)-LDP report.
        Its delta is larger than asked for only where no epsilon up to the largest allowed will do.
        """
        if self.pure and self.local_epsilon <= LARGEST_LOCAL_EPSILON:
            return any_pure(self.local_epsilon)
        allowed = self.local_delta + local_delta
        # where the pair's own epsilon is finite its profile has fallen to its local delta there
        epsilon = min(self.epsilon_within(allowed), self.local_epsilon, LARGEST_LOCAL_EPSILON)
        reached = 0.0 if epsilon == self.local_epsilon else self.profile_above(epsilon)
        delta = min(max(allowed, reached), 1.0)
        hit = (1.0 - delta) / (math.exp(epsilon) + 1.0)
        return ThreeAtoms("any approximate randomizer", epsilon, hit, 0.0, local_delta=delta)

    def epsilon_within(self, delta: float) -> float:
        """An epsilon of one report at this delta; infinite if none below 700 is."""
        return least(lambda e: self.profile_above(e) <= delta, min(1.0, self.local_epsilon), 700.0, halvings=40)

    def profile_above(self, epsilon: float) -> float:
        """An upper bound of the profile, since an epsilon is certified by it."""
        return float(self.profile(left_of(np.array([math.exp(epsilon)])))[0]) * UPPER_SLACK

    @property
    def directions(self) -> tuple[RealPair, ...]:
        """Pairs of laws at most as revealing as this one, for lower bounds.

        A profile that is its own mirror image belongs to one. Mass without counterpart, as much on either side, is
        merged into one report that says nothing.
        """

        def above(alpha: Array) -> Array:
            return np.asarray(np.maximum(self.profile(alpha) - self.local_delta, 0.0))

        def below(alpha: Array) -> Array:
            inside = np.maximum(alpha, 1e-300)
            return np.where(alpha > 0, inside * above(1 / inside), 0.0)

        largest = math.exp(self.local_epsilon) if self.local_epsilon < 700 else math.inf
        return (RealPair(above, below, largest, 1 / largest, self.second_moment),)

    def others_types(self, parts: Mixture) -> TypesAt | None:
        """What the others' reports can look like in a round of these parts; None if nothing is known."""
        return None

    def bad_case(self, parts: Mixture, smallest: float) -> BadCase:
        """What some data lose in a round of these parts, down to the smallest delta: all others at one value."""
        weight, seats = max(parts, key=lambda part: part[0])
        case = HomogeneousCurve(seats, seats.law.directions[0], smallest, min(weight, 1.0))
        return BadCase(cache(case.curves))

    def shuffled_curve(self, parts: Mixture, rate: float, smallest: float, unprotected: float = 0.0) -> Curve:
        """As `curve`, of `parts`, `rate`, `smallest`, `unprotected`; the others are of few types if they are known."""
        worst, types = self.curve(parts, rate, smallest, unprotected), self.others_types(parts)
        if types is None:
            return worst
        # the types' violation has the local delta in it
        local = Unshuffled(self.profile, unprotected, rate, 0.0)
        return with_types(types, worst, parts, local, self.bad_case(parts, smallest), self.dear)

    def at_third_value(self) -> LocalPair | None:
        """The pair when all others hold a third value; None if no such bad case is known."""
        return None

    def at_one_of_two(self, seats: Seats) -> LocalPair | None:
        """The pair when all others hold one of the two values; None if a third is worse in these seats."""
        return self

    def bad_views(self, seats: Seats) -> tuple[Atoms, ...]:
        """Losses of statistics of what is seen in the bad case of these seats; none where all others hold one value."""
        return ()

    def few_outputs(self, seats: Seats, direction: int) -> tuple[Array, Array] | None:
        """Ratios and masses of a report in this direction; None if these seats have too many combinations of them."""
        real = self.directions[min(direction, len(self.directions) - 1)]
        if real.atoms is None or math.comb(seats.count + real.atoms[0].size, seats.count) > MOST_COMBINATIONS:
            return None
        return real.atoms

    def spare(self, clients: int) -> float:
        """The largest share of a report that is known to be a draw from one law, whatever these `clients` hold."""
        return self.shared

    def full_types(self, parts: Mixture) -> TypesAt | None:
        """As `others_types`, of `parts`, and the worst law of all beside them; None where only a lattice has it."""
        return None

    def repeated(self, reports: int) -> LocalPair | None:
        """One pair as revealing as so many reports about one value; None if none is known."""
        return None

    def every_report_seen(self, reports: int, delta: float) -> float:
        """An epsilon, at this delta, of so many reports of one client that are seen; infinite if not known."""
        whole = self.repeated(reports)
        return math.inf if whole is None else whole.epsilon_within(delta)

    def curve(self, parts: Mixture, rate: float, smallest: float, unprotected: float = 0.0) -> Curve:
        """The theorem's curve for seats taken by such reports.

        `parts`: the round as a mixture of seats of this pair. `rate`: a bound on the probability that the target's
        report is there at all. `smallest`: a delta that is negligible. `unprotected`: probability that no seat is
        empty, if nothing is proved then.
        """
        return lattice_curve(self, parts, rate, smallest, unprotected)


@dataclass(frozen=True)
class ThreeAtoms(LocalPair):
    """W = e^epsilon w.p. hit, 1 w.p. neutral, e^-epsilon w.p. e^epsilon * hit (delta at infinity).

    >>> pair = any_pure(1.0)
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
    third_hit: float | None = None  # for MERGED_THIRD: how often a third value's report has the largest ratio
    shared: float = 0.0
    described: Described = field(default=(), repr=False)
    three_atoms: ClassVar[bool] = True

    def __post_init__(self) -> None:
        total = (math.exp(self.local_epsilon) + 1) * self.hit + self.neutral + self.local_delta
        if not (self.hit >= 0 and self.neutral >= 0 and abs(total - 1) < 1e-9):
            raise InvalidParameter("hit", self.hit, "masses that add up to one")

    def profile(self, alpha: Array | Sequence[float] | float) -> Array:
        a = np.asarray(alpha, dtype=np.float64)
        e0 = math.exp(self.local_epsilon)
        either = self.hit * np.maximum(e0 - a, 0.0) + self.neutral * np.maximum(1 - a, 0.0)
        return np.asarray(either + self.hit * np.maximum(1 - np.minimum(a, 1.0) * e0, 0.0) + self.local_delta)

    @property
    def hits(self) -> Hits:
        """As the theorem sees them; what is at rest is 1 - 2 hit - neutral, without cancellation."""
        return Hits(self.local_epsilon, self.hit, math.expm1(self.local_epsilon) * self.hit + self.local_delta)

    @property
    def laws(self) -> Symbols:
        """How often its reports support others' symbols."""
        return Symbols(self.local_epsilon, self.hit, self.hit if self.third_hit is None else self.third_hit)

    @property
    def third_value(self) -> Hits:
        """k-ary response seen from a third value: it is reported with e0 * hit and weighs 1/e0.

        Elsewhere whatever does not point at one of the two is merged into one report, and its weight is what the mean
        of one leaves.
        """
        e0, hit = math.exp(self.local_epsilon), self.third_hit
        if hit is None:
            return Hits(self.local_epsilon, self.hit, e0 * self.hit, 1 / e0)
        rest = 1.0 - 2.0 * hit
        return Hits(self.local_epsilon, hit, rest, max(1.0 - hit * (e0 + 1.0), 0.0) / rest)

    @property
    def directions(self) -> tuple[RealPair, ...]:
        e0, blank = math.exp(self.local_epsilon), self.neutral + self.local_delta
        ratios, masses = np.array([e0, 1.0, 1 / e0]), np.array([self.hit, blank, e0 * self.hit])
        (real,) = super().directions
        return (replace(real, atoms=(ratios[masses > 0], masses[masses > 0])),)

    def simplified(self, local_delta: float) -> ThreeAtoms:
        return self

    def curve(self, parts: Mixture, rate: float, smallest: float, unprotected: float = 0.0) -> Curve:
        if any(seats.shares != WHOLE for _, seats in parts):
            return lattice_curve(self, parts, rate, smallest, unprotected)
        local = Unshuffled(self.profile, unprotected, rate, self.local_delta)
        return ThreeAtomCurve(parts, self.hits, local)

    def others_types(self, parts: Mixture) -> TypesAt | None:
        return pure_types(self.family, self.laws, self.local_delta)

    def bad_case(self, parts: Mixture, smallest: float) -> BadCase:
        """As in the base, of `parts` and `smallest`; a third value is worse for k-ary response, and once e0 > 2."""
        if self.others_data in (OthersData.THIRD_VALUE, OthersData.MERGED_THIRD):
            return merged_case(parts, self.third_value)
        if self.family is Family.ANY_PURE and math.exp(self.local_epsilon) > 2.0:
            return merged_case(parts, self._three_ary.third_value)
        return super().bad_case(parts, smallest)

    @property
    def _three_ary(self) -> ThreeAtoms:
        """3-ary response of the same local epsilon."""
        hit = 1 / (math.exp(self.local_epsilon) + 2)
        return replace(any_pure(self.local_epsilon), hit=hit, neutral=hit, others_data=OthersData.THIRD_VALUE)

    def at_third_value(self) -> LocalPair | None:
        if self.others_data is OthersData.ANY_PURE:
            # in the limit of many clients 3-ary response is worse than binary once e0 > 2
            return self._three_ary if self.local_epsilon > 0.55 else None
        return None if self.others_data is OthersData.ONE_OF_TWO else self

    def at_one_of_two(self, seats: Seats) -> LocalPair | None:
        if self.others_data is OthersData.ANY_PURE:
            binary = replace(any_pure(self.local_epsilon), others_data=OthersData.ONE_OF_TWO)
            return binary if self.local_epsilon < 0.85 else None
        return self

    def bad_views(self, seats: Seats) -> tuple[Atoms, ...]:
        third = self.others_data in (OthersData.THIRD_VALUE, OthersData.MERGED_THIRD)
        return (atoms(seats, self.third_value)[1],) if third else ()

    @property
    def second_moment(self) -> float:
        return self.hit * math.expm1(self.local_epsilon) ** 2

    @property
    def label(self) -> str:
        return f"{self.name} with local epsilon {self.local_epsilon:g}"


def two_atoms(
    name: str, kind: str, local_epsilon: object, family: Family, others: OthersData = OthersData.ONE_OF_TWO
) -> ThreeAtoms:
    """The worst pair of this `local_epsilon` and `family`, its `name`, `kind` in certificates, and worst `others`."""
    epsilon = local_epsilon_in_range(local_epsilon)
    described = ("kind", kind), ("local_epsilon", epsilon)
    hit = 1 / (math.exp(epsilon) + 1)
    shared = 0.0 if family is Family.ANY_PURE else 2 * hit  # relative to a uniform report
    return ThreeAtoms(name, epsilon, hit, 0.0, True, 0.0, others, family, shared=shared, described=described)


def any_pure(local_epsilon: float) -> ThreeAtoms:
    """The worst case over all epsilon-LDP randomizers."""
    return two_atoms("any pure randomizer", "any", local_epsilon, Family.ANY_PURE, OthersData.ANY_PURE)
