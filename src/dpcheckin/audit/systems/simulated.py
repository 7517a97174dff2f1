"""Plans played by the package's own code, many runs at a time.

`Simulated` takes the plan's coins, the randomizer and a permutation; one run after the other for
the coins, all clients of all runs at once for the randomizer, which is what its batch interface is
for. `CoinByCoin` flips the coins of many runs at once, too, and `Everybody` needs none. Their steps
are methods so that an audit can be tested on systems in which one step is wrong
(`audit.tables.mutants`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.audit.systems.base import (
    COINS,
    NOISE,
    PERMUTE,
    System,
    run_seeds,
    seeded_generator,
)
from dpcheckin.audit.systems.batches import IntArray, Neighbours, Released, RoundBatches
from dpcheckin.errors import InvalidParameter
from dpcheckin.protocols import FullShuffle, Plan, Reveals, ShuffledCheckIn
from dpcheckin.randomizers import Randomizer, RandomSource, SeededSource

_BLOCK_WORK = 1_500_000  # reports, or their worth in coin flips, of one block
_COIN_WORK = 700  # drawing one cohort costs about as much as randomizing so many reports


Cohorts = tuple[IntArray, IntArray]
"""Who reports in one round: all runs end to end, and how many each run has."""

Values = Callable[[IntArray], NDArray[Any]]
"""What these clients hold in one dataset and round, one row a client."""


@dataclass(frozen=True)
class Simulated(System):
    """A plan, played by the package's own code.

    Args:
        plan: what is played.
    """

    plan: Plan

    @property
    def randomizer(self) -> Randomizer:
        """What clients really use; the plan says what they should use."""
        return self.plan.randomizer

    @property
    def block(self) -> int:
        cohort = len(self.plan.cohort(0, 0).clients)
        return int(np.clip(_BLOCK_WORK // (self.plan.rounds * (cohort + _COIN_WORK)), 8, 4096))

    def play(self, data: Neighbours, which: int, seed: tuple[int, ...], runs: int) -> Released:
        return self._play(data, (which,), seed, runs)[0]

    def play_both(
        self, data: Neighbours, seed: tuple[int, ...], runs: int
    ) -> tuple[Released, Released]:
        first, second = self._play(data, (0, 1), seed, runs)
        return first, second

    def _play(
        self, data: Neighbours, datasets: Sequence[int], seed: tuple[int, ...], runs: int
    ) -> list[Released]:
        """Coins do not depend on the data, so they are drawn once for both neighbours."""
        numbers = run_seeds(seed, runs)
        drawn = self._drawn(seed, numbers)
        rounds: list[list[RoundBatches]] = [[] for _ in datasets]
        for t in range(self.plan.rounds):
            cohorts = next(drawn)
            for released, which in zip(rounds, datasets, strict=True):
                values = partial(data.values, which=which, round_index=t)
                released.append(self._round(values, seed, numbers, cohorts, t))
        return [tuple(released) for released in rounds]

    def drawn(self, seed: tuple[int, ...], runs: int) -> Iterator[Cohorts]:
        """Round by round, who reports in each run: all runs end to end, and how many each has."""
        return self._drawn(seed, run_seeds(seed, runs))

    def released(
        self, reports: NDArray[Any], sizes: IntArray, seed: tuple[int, ...], round_index: int
    ) -> NDArray[Any]:
        """What leaves the shuffler in one round of many runs."""
        return self.shuffled(reports, sizes, (*seed, round_index, PERMUTE))

    def _drawn(self, seed: tuple[int, ...], runs: Sequence[int]) -> Iterator[Cohorts]:
        count = self.plan.rounds
        drawn = [[self.participants(run, t) for t in range(count)] for run in runs]
        for t in range(count):
            cohorts = [cohorts[t] for cohorts in drawn]
            sizes = np.array([len(c) for c in cohorts], dtype=np.int64)
            yield np.concatenate(cohorts), sizes

    def _round(
        self, values: Values, seed: tuple[int, ...], runs: Sequence[int], cohorts: Cohorts, t: int
    ) -> RoundBatches:
        clients, sizes = cohorts
        reports = self.randomized(values(clients), self.noise(seed, t))
        reports, sizes = self.delivered(reports, clients, sizes)
        if self.plan.reveals is Reveals.SUM:
            ends = np.concatenate([[0.0], np.cumsum(reports[:, 0])])
            places = np.concatenate([[0], np.cumsum(sizes)])
            return RoundBatches(ends[places[1:]] - ends[places[:-1]], sizes, only_sums=True)
        if self.plan.reveals is Reveals.NAMED:
            return RoundBatches(reports, sizes)
        return RoundBatches(self.released(reports, sizes, seed, t), sizes)

    def participants(self, run: int, round_index: int) -> IntArray:
        """Who reports; the target is client 0, dummies are client -1."""
        cohort = self.plan.cohort(run, round_index)
        if cohort.dummies:
            return np.concatenate([cohort.clients, np.full(cohort.dummies, -1, dtype=np.int64)])
        return cohort.clients

    def noise(self, seed: tuple[int, ...], round_index: int) -> RandomSource:
        """Where the randomizer's chance in this round comes from."""
        return SeededSource((*seed, round_index, NOISE))

    def randomized(self, values: NDArray[Any], source: RandomSource) -> NDArray[Any]:
        """One report for each value."""
        reports: NDArray[Any] = self.randomizer.randomize(values, source)
        return reports

    def delivered(
        self, reports: NDArray[Any], clients: IntArray, sizes: IntArray
    ) -> tuple[NDArray[Any], IntArray]:
        """What reaches the shuffler: every report once."""
        return reports, sizes

    def shuffled(
        self, reports: NDArray[Any], sizes: IntArray, seed: tuple[int, ...]
    ) -> NDArray[Any]:
        """Each run's reports in an order that says nothing."""
        return np.asarray(reports[_order(seed, sizes.tobytes())])


@dataclass(frozen=True)
class CoinByCoin(Simulated):
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
        return int(np.clip(_BLOCK_WORK // (self.plan.rounds * work), 16, 8192))

    def _drawn(self, seed: tuple[int, ...], runs: Sequence[int]) -> Iterator[Cohorts]:
        n = self.plan.population
        for t in range(self.plan.rounds):
            places = heads(seeded_generator(*seed, t, COINS), n * len(runs), self.plan.rate)
            yield places % n, np.bincount(places // n, minlength=len(runs))


@dataclass(frozen=True)
class Everybody(Simulated):
    """A full shuffle: no coins, so there is nobody to draw."""

    plan: FullShuffle

    @property
    def block(self) -> int:
        work = 2 * self.plan.population + 30
        return int(np.clip(_BLOCK_WORK // (self.plan.rounds * work), 16, 8192))

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


@lru_cache(maxsize=2)
def _order(seed: tuple[int, ...], sizes_as_bytes: bytes) -> IntArray:
    """A uniformly random order within each run; kept, as the other neighbour uses it next."""
    sizes = np.frombuffer(sizes_as_bytes, dtype=np.int64)
    generator, total = seeded_generator(*seed), int(sizes.sum())
    if sizes.size and (sizes == sizes[0]).all():
        rows = np.arange(total).reshape(sizes.size, -1)
        return generator.permuted(rows, axis=1).ravel()
    return np.argsort(np.repeat(np.arange(sizes.size), sizes) + generator.random(total))
