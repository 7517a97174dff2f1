"""Coins and orders of many runs drawn at once: not the code that ships, a faster copy of it.

`CoinByCoin` flips the coins of shuffled check-in, `Everybody` needs none; both draw the orders of
all batches of a block in one call. Their laws are those of `audit.systems.simulated` (tested), so
figures about *theorems* (published claims, how tight a certificate is) can be measured with them;
faults of the shipped cohorts and orders are not seen, and findings say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from dpcheckin.audit.systems.base import COINS, PERMUTE, seeded_generator
from dpcheckin.audit.systems.batches import IntArray
from dpcheckin.audit.systems.simulated import BLOCK_WORK, Cohorts, Simulated
from dpcheckin.errors import InvalidParameter
from dpcheckin.protocols import FullShuffle, Plan, ShuffledCheckIn


@dataclass(frozen=True)
class _Fast(Simulated):
    @property
    def played(self) -> str:
        return "fast coins: cohorts and orders are the audit's own, not the shipped ones"

    def order(self, sizes: IntArray, seed: tuple[int, ...], round_index: int) -> IntArray:
        """A uniformly random order within each run, all in one draw."""
        generator, total = seeded_generator(*seed, round_index, PERMUTE), int(sizes.sum())
        if sizes.size and (sizes == sizes[0]).all():
            rows = np.arange(total).reshape(sizes.size, -1)
            return generator.permuted(rows, axis=1).ravel()
        return np.argsort(np.repeat(np.arange(sizes.size), sizes) + generator.random(total))


@dataclass(frozen=True)
class CoinByCoin(_Fast):
    """Shuffled check-in with every client's coin flipped, those of many runs in one draw.

    The plan draws how many check in and then who, run by run; here all coins of a block are one
    long row of which the heads are found at once. The law is the same (tested).
    """

    plan: ShuffledCheckIn

    def __post_init__(self) -> None:
        if self.plan.lowest_rate is not None or self.plan.dropout:
            raise InvalidParameter("plan", self.plan.describe(), "one rate and no dropout")

    @property
    def block(self) -> int:
        work = 2 * self.plan.population * self.plan.rate + 30
        return int(np.clip(BLOCK_WORK // (self.plan.rounds * work), 16, 8192))

    def _drawn(self, seed: tuple[int, ...], runs: Sequence[int]) -> Iterator[Cohorts]:
        n = self.plan.population
        for t in range(self.plan.rounds):
            places = heads(seeded_generator(*seed, t, COINS), n * len(runs), self.plan.rate)
            yield places % n, np.bincount(places // n, minlength=len(runs))


@dataclass(frozen=True)
class Everybody(_Fast):
    """A full shuffle: no coins, so there is nobody to draw."""

    plan: FullShuffle

    @property
    def block(self) -> int:
        work = 2 * self.plan.population + 30
        return int(np.clip(BLOCK_WORK // (self.plan.rounds * work), 16, 8192))

    def _drawn(self, seed: tuple[int, ...], runs: Sequence[int]) -> Iterator[Cohorts]:
        n = self.plan.population
        everybody = np.tile(self.plan.cohort(0, 0).clients, len(runs))
        return repeat((everybody, np.full(len(runs), n)), self.plan.rounds)


def heads(generator: np.random.Generator, coins: int, rate: float) -> IntArray:
    """Which of so many independent coins show heads.

    When heads are rare the gaps between them are drawn instead, which are geometric.

    Args:
        generator: where chance comes from.
        coins: how many.
        rate: probability of heads.
    """
    if rate > 0.25:
        return np.flatnonzero(generator.random(coins) < rate)
    found, place = [], -1
    while place < coins:
        gaps = generator.geometric(rate, size=int(1.05 * rate * (coins - place)) + 10)
        found.append(place + np.cumsum(gaps))
        place = int(found[-1][-1])
    places = np.concatenate(found)
    return places[places < coins]


def fast_system(plan: Plan) -> Simulated:
    """The fast copy of a plan's play.

    Args:
        plan: a full shuffle, or shuffled check-in with one rate and no dropout.
    """
    if isinstance(plan, FullShuffle):
        return Everybody(plan)
    if isinstance(plan, ShuffledCheckIn):
        return CoinByCoin(plan)
    raise InvalidParameter(
        "fast-coins", plan.describe(), "left out: only shuffled check-in and full shuffle have them"
    )
