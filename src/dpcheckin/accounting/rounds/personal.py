"""Rounds whose clients choose their own local epsilon: what a client with its own is guaranteed.

Everybody runs one randomizer R of the largest epsilon, and a client that wants less answers at random more often: with
probability 1 - c it reports on a value drawn from a fixed law instead of its own. Binary and k-ary response, random
hemispheres and random coordinates at a smaller epsilon do that by themselves. Others that want less are then others
whose value is random: no data of theirs hide less than the worst ones at the largest epsilon. And the client's own
report is one of R as often as c, so its curve is that of R after sampling a fraction c (docs/theory.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.curves import UPPER_SLACK, Curve, left_of, place
from dpcheckin.accounting.pairs.local import LocalPair, ThreeAtoms, any_pure
from dpcheckin.accounting.pairs.pure_types import Family
from dpcheckin.accounting.rounds.base import SMALLEST_DELTA, Round
from dpcheckin.accounting.rounds.shuffled import ShuffledRound
from dpcheckin.errors import OutsideTheorem
from dpcheckin.numerals import positive

_MOST_POINTS = 200_000


def own_share(pair: LocalPair, own_epsilon: float) -> float:
    """How often a report of `own_epsilon` is one of this `pair`'s, rounded up; else it is about a random value.

    With a fixed law that has at least the density m of the pair's report, relative to its own, it is (e1 - 1) / (e1 - 1
    + m (e0 - e1)): m is 2/(e0 + 1) for two values, k/(e0 + k - 1) for k symbols, and 1 in general.

    >>> round(own_share(any_pure(2.0), 1.0), 4), own_share(any_pure(2.0), 2.0)
    (0.2689, 1.0)
    """
    most = pair.local_epsilon
    if not pair.pure:
        raise OutsideTheorem("clients choose their own epsilon with pure reports only (local_delta = 0)")
    if not positive("own_epsilon", own_epsilon) < most:
        return 1.0
    e0, gain, least = math.exp(most), math.expm1(own_epsilon), 1.0
    if isinstance(pair, ThreeAtoms) and pair.family is Family.TWO_VALUES:
        least = 2.0 / (e0 + 1.0)
    elif isinstance(pair, ThreeAtoms) and pair.family is Family.SYMBOLS:
        symbols = 2 + round(pair.neutral / pair.hit)
        least = symbols / (e0 + symbols - 1)
    return min(gain / (gain + least * (e0 - math.exp(own_epsilon))) * (1.0 + 1e-12), 1.0)


class _SampledCurve(Curve):
    """q B(1 + (alpha - 1)/q), q the `share`, of a certified `whole`, and never above the `own` report's profile."""

    def __init__(self, whole: Curve, share: float, own: LocalPair, rate: float) -> None:
        self._whole, self._share, self._own, self._rate = whole, share, own, rate
        self.spread = share * whole.spread
        self.resolution, self.finest, self.most_lower = whole.resolution, whole.finest, whole.most_lower

    def coarser(self) -> Curve:
        return _SampledCurve(self._whole.coarser(), self._share, self._own, self._rate)

    def reach(self, tolerance: float) -> float:
        loss = math.log1p(self._share * math.expm1(min(self._whole.reach(tolerance / self._share), 600.0)))
        return min(loss, self._own.local_epsilon)

    def _further(self, step: float, points: int) -> tuple[Array, float, int]:
        """1 + (alpha - 1)/q at each point, and a grid of the whole curve that covers them and is nowhere coarser."""
        rises = np.expm1(np.arange(points) * step) / self._share
        furthest = math.log1p(float(rises[-1]))
        fine = max(min(step, furthest), furthest / _MOST_POINTS)
        return rises, fine, math.ceil(furthest / fine) + 2 if furthest > 0.0 else 2

    def upper(self, step: float, points: int) -> Array:
        rises, fine, many = self._further(step, points)
        # the true curve is convex in alpha: below chords of what is above it
        values = np.interp(rises * (1.0 - 1e-14), np.expm1(np.arange(many) * fine), self._whole.upper(fine, many))
        local = self._own.profile(left_of(np.exp(np.arange(points) * step)))
        return np.asarray(np.minimum(self._share * values, self._rate * local) * UPPER_SLACK)

    def lower(self, step: float, points: int) -> tuple[Array, Array | None]:
        return np.zeros(points), None

    def upper_at(self, epsilon: float) -> float:
        further = math.log1p(math.expm1(epsilon) * (1.0 - 1e-14) / self._share)
        step, at = place(epsilon)
        local = self._rate * float(self._own.profile(left_of(np.exp(np.arange(2) * step)))[at])
        return min(self._share * self._whole.upper_at(further * (1.0 - 1e-14)), local) * UPPER_SLACK


@dataclass(frozen=True, slots=True)
class PersonalRound(Round):
    """A shuffled round for a client with a local epsilon of its own, among clients with theirs.

    Args:
        crowd: The round with everybody at the largest local epsilon.
        own_epsilon: The client's own, at most that.
    """

    crowd: ShuffledRound
    own_epsilon: float

    def __post_init__(self) -> None:
        own_share(self.crowd.pair, self.own_epsilon)  # refuses what cannot be

    @property
    def pair(self) -> LocalPair:  # type: ignore[override]
        """The worst report of its own epsilon."""
        return any_pure(min(self.own_epsilon, self.crowd.pair.local_epsilon))

    @property
    def participation(self) -> float:
        return self.crowd.participation

    @property
    def exposed_participation(self) -> float:
        return self.crowd.exposed_participation

    def curves(self, smallest: float = SMALLEST_DELTA) -> Sequence[tuple[Curve, int]]:
        share = own_share(self.crowd.pair, self.own_epsilon)
        whole = self.crowd.curve(smallest)
        return [(whole if share == 1.0 else _SampledCurve(whole, share, self.pair, self.participation), 1)]

    def assumptions(self) -> tuple[str, ...]:
        return (
            *self.crowd.assumptions(),
            f"no client's local epsilon is above {self.crowd.pair.local_epsilon:g}; each chooses its own, whatever "
            "its data, and runs the same randomizer, with a random value in the place of its own as often as that asks",
        )

    def basis(self) -> tuple[str, ...]:
        return (*self.crowd.basis(), "a client's own local epsilon as a sample (docs/theory.md)")
