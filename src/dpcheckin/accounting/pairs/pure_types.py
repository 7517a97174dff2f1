"""The types of pure randomizers: what another client's report can look like, seen from its value.

Client 1 holds a or b, another client x. Type A is the law for x = a, B for x = b, C for a third value. Which types
suffice is proved in docs/theory.md; scales of the noise that some of them need are certified here, alpha by alpha.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache

from dpcheckin.accounting.engine.seats import Hits
from dpcheckin.accounting.engine.typed.curve import TypesAt
from dpcheckin.accounting.engine.typed.laws import AtomLaw, Types, least_smoothing

_WEIGHTS, _FEW_WEIGHTS = (0.5, 0.45, 0.55, 0.4, 0.6, 0.3, 0.7), (0.45,)  # of B beside A
_NEAR_TWO = 1.8, 2.4  # of e0
ALIKE = 1.1  # variances of types that are so near one another need noise that hurts
_STRETCHES = 0.005, 0.01, 0.025, 0.05
_CROWD = 600.0  # reports for which wider types and more noise are weighed against each other
_ROUNDED_UP = 1 + 1e-12  # of a few products and quotients

PureTypesAt = Callable[[float], Types | None]
"""From alpha - 1 to the types there; None where nothing better than the worst law is known."""


class Family(Enum):
    """Randomizers for which it is known what a report can look like from another value."""

    TWO_VALUES = "binary response or a random hemisphere"
    SYMBOLS = "k-ary response, k of 3 or more"
    SETS = "reports that support symbols, three of them or more"
    ANY_PURE = "every randomizer of this local epsilon (and delta)"
    GAUSSIAN = "Gaussian noise"
    LAPLACE = "Laplace noise on an interval"
    OTHER = "not known"


class OthersData(Enum):
    """For which data of the other clients a lower bound of the pair is known."""

    ONE_OF_TWO = "all others hold one of the two values"
    THIRD_VALUE = "k-ary response, all others hold a third value"
    THIRD_DIRECTION = "PrivUnit, all others hold a third direction"
    MERGED_THIRD = "all others hold a third value, reports that say little merged"
    ANY_PURE = "the worse of binary and 3-ary response"


@dataclass(frozen=True, slots=True)
class Symbols:
    """Laws of reports that each support some symbols, all others being less likely: k-ary response, sets and codes.

    `local_epsilon`: logarithm of the ratio e0 by which a report is likelier whose own symbol it supports. `hit`: under
    a value the probability of a report that supports a given other one instead of it. `third`: under a third value,
    that of a report that supports a given one of two values and neither the other nor the third.
    """

    local_epsilon: float
    hit: float
    third: float

    @property
    def _e0(self) -> float:
        return math.exp(self.local_epsilon)

    def at_first(self, rise: float) -> AtomLaw:
        """Type A."""
        gain = math.expm1(self.local_epsilon)
        return _law((gain * (1 + rise) / self._e0, self.hit * self._e0), (-gain * (1 + rise), self.hit))

    def at_second(self, rise: float) -> AtomLaw:
        """Type B."""
        gain = math.expm1(self.local_epsilon)
        return _law((gain, self.hit), (-gain / self._e0, self.hit * self._e0))

    def at_third(self, rise: float) -> AtomLaw:
        """Type C: reports that support one of the three, and reports that support two of them."""
        gain, one, two = math.expm1(self.local_epsilon), self.third, self.hit - self.third
        return _law(
            (gain, one),
            (-gain * (1 + rise), one),
            (rise * gain / self._e0, one * self._e0),
            (-rise * gain, two),
            (gain * (1 + rise) / self._e0, two * self._e0),
            (-gain / self._e0, two * self._e0),
        )

    def worst(self, rise: float) -> AtomLaw:
        """Both tails at once, which no single value has."""
        gain = math.expm1(self.local_epsilon)
        return _law((gain, self.hit), (-gain * (1 + rise), self.hit), (rise, gain * self.hit))


def _law(*atoms: tuple[float, float]) -> AtomLaw:
    """From (value, probability) pairs; what is left of the probability is at zero."""
    return AtomLaw.of(*atoms, (0.0, 1.0 - math.fsum(probability for _, probability in atoms)))


def symbols(local_epsilon: float, count: int) -> Symbols:
    """k-ary response of this `local_epsilon` with so many symbols (`count`)."""
    hit = 1 / (math.exp(local_epsilon) + count - 1)
    return Symbols(local_epsilon, hit, hit)


def two_values(laws: Symbols) -> PureTypesAt:
    """Types A and B of these `laws` as they are, where others hold one of the two values."""
    return lambda rise: Types((laws.at_first(rise), laws.at_second(rise)), laws.worst(rise))


@dataclass(slots=True)
class _Smoothed:
    """Scales found so far, as first guesses for the next alpha."""

    guess: float
    weight: float = 0.5


def sets(laws: Symbols) -> PureTypesAt:
    """Reports of these `laws`: A and B, or C, whichever vary more, and the others put below by noise."""
    ends, third = laws.at_first(0.0).variance, laws.at_third(0.0).variance
    if max(ends, third) < ALIKE * min(ends, third):
        return _widened(laws, laws)
    return _first_and_second(laws, laws) if ends > third else _third_alone(laws, laws)


def any_pure(local_epsilon: float) -> PureTypesAt:
    """Every randomizer of this local epsilon: A and B of binary, C of 3-ary response.

    C has the larger variance for e0 > 2, A and B for e0 < 2; the other is put below by noise.
    """
    two, three = symbols(local_epsilon, 2), symbols(local_epsilon, 3)
    if math.exp(local_epsilon) > 2.0:
        return _third_alone(two, three)
    return _first_and_second(two, three)


def any_pure_near_two(local_epsilon: float) -> PureTypesAt | None:
    """The same for e0 near 2, where no type has a much larger variance: types a little wider.

    Wider about their mean they are larger in convex order, and leave room for less noise.

    `local_epsilon`: logarithm of the ratio e0; None where it is not near 2.
    """
    if not _NEAR_TWO[0] < math.exp(local_epsilon) < _NEAR_TWO[1]:
        return None
    return _widened(symbols(local_epsilon, 2), symbols(local_epsilon, 3))


def _widened(two: Symbols, three: Symbols) -> PureTypesAt:
    ends, third = two.at_first(0.0).variance, three.at_third(0.0).variance
    wider = [
        way(two, three, stretch)
        for way, own, other in ((_first_and_second, ends, third), (_third_alone, third, ends))
        for stretch in _STRETCHES
        if own * (1.0 + stretch) ** 2 > 1.003 * other
    ]

    def spread(types: Types) -> float:
        return types.laws[0].variance + 2.0 * types.smoothing**2 / _CROWD

    def types(rise: float) -> Types | None:
        found = [one for one in (at(rise) for at in wider) if one is not None]
        return min(found, key=spread, default=None)

    return types


def _first_and_second(two: Symbols, three: Symbols, stretch: float = 0.0) -> PureTypesAt:
    """A and B, wider by this part of their distance from the mean, with noise that puts C below."""
    kept = _Smoothed(0.1 * math.expm1(two.local_epsilon))

    def types(rise: float) -> Types | None:
        first, second = two.at_first(rise).wider(stretch), two.at_second(rise).wider(stretch)
        third = three.at_third(rise)
        for weight in (kept.weight, *(_FEW_WEIGHTS if stretch else _WEIGHTS)):
            scale = least_smoothing(third, [(1 - weight, first), (weight, second)], kept.guess)
            if scale is not None:
                kept.guess, kept.weight = scale, weight
                return Types((first, second), two.worst(rise), scale)
        return None

    return cache(types)


def _third_alone(two: Symbols, three: Symbols, stretch: float = 0.0) -> PureTypesAt:
    """C, wider by this part of its distance from the mean, with noise that puts A and B below."""
    kept = _Smoothed(0.3 * math.expm1(two.local_epsilon))

    def types(rise: float) -> Types | None:
        third = three.at_third(rise).wider(stretch)
        scale = 0.0
        for law in (two.at_first(rise), two.at_second(rise)):
            needed = least_smoothing(law, [(1.0, third)], kept.guess)
            if needed is None:
                return None
            scale = max(scale, needed)
        kept.guess = scale
        return Types((third,), two.worst(rise), scale)

    return cache(types)


def with_delta(known: PureTypesAt, local_epsilon: float, local_delta: float) -> PureTypesAt:
    """Every (epsilon, delta)-LDP randomizer: the types of the pure ones, and what delta adds.

    Three laws whose ratios are bounded but for delta can be cut to laws whose ratios are bounded everywhere; that
    changes a call by at most 2 delta and a put by at most 2 alpha delta, and filling up what was cut off adds 2 delta /
    (e0 - 1) times the largest put (docs/theory.md).

    `known`: types of every pure randomizer of this epsilon. `local_epsilon`: logarithm of the ratio e0. `local_delta`:
    by how much a report may exceed it.
    """
    if local_delta == 0.0:
        return known
    e0, gain = math.exp(local_epsilon), math.expm1(local_epsilon)

    def types(rise: float) -> Types | None:
        found, alpha = known(rise), 1.0 + rise
        if found is None:
            return None
        filled = (alpha * e0 - 1.0) / (gain * (e0 + 1.0))
        violation = 2.0 * local_delta * (alpha + filled) * _ROUNDED_UP
        return replace(found, violation=violation)

    return types


def pure_types(family: Family, laws: Symbols, local_delta: float = 0.0) -> TypesAt | None:
    """The types of a family of randomizers, None if none are known.

    `family`: which randomizers. `laws`: of the reports, as far as they support symbols. `local_delta`: by how much a
    report may exceed its epsilon; with the family of every randomizer only.
    """
    if family in (Family.OTHER, Family.GAUSSIAN, Family.LAPLACE) or laws.local_epsilon == 0.0:
        return None
    if family is Family.ANY_PURE:
        ways = (any_pure(laws.local_epsilon), any_pure_near_two(laws.local_epsilon))
        known = [with_delta(way, laws.local_epsilon, local_delta) for way in ways if way is not None]
    else:
        known = [(two_values if family is Family.TWO_VALUES else sets)(laws)]

    def at(rise: float) -> tuple[Types, ...]:
        found = (way(rise) for way in known)
        return tuple(types for types in found if types is not None)

    return at


def alone(family: Family, laws: Symbols, local_delta: float, wider: tuple[float, ...]) -> tuple[PureTypesAt, ...]:
    """Ways in which one type stands for all reports: C, and C `wider` by so much about its mean, with less noise.

    `family`: every randomizer of an epsilon and `local_delta`, or one whose reports have these `laws`.
    """
    two = three = laws
    if family is Family.ANY_PURE:
        two, three = symbols(laws.local_epsilon, 2), symbols(laws.local_epsilon, 3)
    return tuple(with_delta(_third_alone(two, three, by), laws.local_epsilon, local_delta) for by in wider)


def worst_alone(hits: Hits, local_delta: float, rise: float) -> tuple[Types, ...]:
    """The worst law at alpha - 1 = `rise` of reports with these `hits`; none where only `local_delta` is lost."""
    gain = math.expm1(hits.local_epsilon)
    if not (rise < gain and hits.hit > 0.0):
        return ()
    law = AtomLaw.of((gain, hits.hit), (-(1.0 + rise) * gain, hits.hit), (rise, hits.rest))
    return (Types((law,), law, 0.0, local_delta * _ROUNDED_UP),)


def variance_of_types(local_epsilon: float) -> float:
    """The largest variance, at alpha = 1, of the types of every randomizer of this epsilon."""
    e0, gain = math.exp(local_epsilon), math.expm1(local_epsilon)
    return gain**2 / min(e0, 0.5 * (e0 + 2.0))
