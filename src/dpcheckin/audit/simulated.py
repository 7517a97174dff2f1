"""Plans played by the package's own code: the plan's cohorts, the randomizer, the shuffler's order.

`Simulated` asks the plan who reports, run by run; randomizes the values of all runs in one call; and lets the deployed
shuffler's own chance put each batch in order, of reports that arrive in the order of enrolment, the target's first.
`PerClient` is its slow reference. `CoinByCoin` draws cohorts and orders of many runs at once: figures about *theorems*
can be measured with them, faults of the shipped ones are not seen, and findings say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.audit.systems import (
    COINS,
    NOISE,
    PERMUTE,
    TARGET,
    IntArray,
    Neighbours,
    Released,
    RoundBatches,
    System,
    run_seeds,
    seeded_generator,
)
from dpcheckin.errors import InvalidParameter, Superfluous
from dpcheckin.protocols import FullShuffle, Plan, Reveals, ShuffledCheckIn
from dpcheckin.randomizers import Randomizer, RandomSource, SeededSource, VectorRandomizer
from dpcheckin.service.shuffler.chance import SecureChance

BLOCK_WORK = 1_500_000
"""Reports, or their worth in coin flips, of one block."""

_COIN_WORK = 1000  # drawing and ordering one cohort costs about as much as so many reports

Cohorts = tuple[IntArray, IntArray]
"""Who reports in one round: all runs end to end, and how many each run has."""

Values = Callable[[IntArray], NDArray[Any]]
"""What these clients hold in one dataset and round, one row a client."""


@dataclass(frozen=True)
class Simulated(System):
    """A plan, played by the package's own code."""

    plan: Plan

    @property
    def played(self) -> str:
        if self.plan.reveals is Reveals.REPORTS:
            return "the plan's own cohorts, in the shuffler's own order"
        return "the plan's own cohorts"

    def audited_plan(self) -> Plan:
        return self.plan

    @property
    def randomizer(self) -> Randomizer:
        """What clients use."""
        return self.plan.randomizer

    @property
    def block(self) -> int:
        cohort = len(self.plan.cohort(0, 0).clients)
        return int(np.clip(BLOCK_WORK // (self.plan.rounds * (cohort + _COIN_WORK)), 8, 4096))

    def play(self, data: Neighbours, which: int, seed: tuple[int, ...], runs: int) -> Released:
        return self._play(data, (which,), seed, runs)[0]

    def play_both(self, data: Neighbours, seed: tuple[int, ...], runs: int) -> tuple[Released, Released]:
        first, second = self._play(data, (0, 1), seed, runs)
        return first, second

    def _play(self, data: Neighbours, datasets: Sequence[int], seed: tuple[int, ...], runs: int) -> list[Released]:
        """Coins and orders do not depend on the data: they are drawn once for both neighbours."""
        rounds: list[list[RoundBatches]] = [[] for _ in datasets]
        for t, cohorts in enumerate(self.drawn(seed, runs)):
            order = self.order(cohorts[1], seed, t)
            for released, which in zip(rounds, datasets, strict=True):
                values = partial(data.values, which=which, round_index=t)
                reports = self._reports(values, seed, cohorts, t)
                released.append(self._revealed(reports, cohorts[1], order))
        return [tuple(released) for released in rounds]

    def drawn(self, seed: tuple[int, ...], runs: int) -> Iterator[Cohorts]:
        """Round by round, who reports in each of the `runs` of `seed`: all end to end, and how many each has."""
        numbers = run_seeds(seed, runs)
        for t in range(self.plan.rounds):
            cohorts = [self.participants(number, t) for number in numbers]
            yield np.concatenate(cohorts), np.array([len(c) for c in cohorts], dtype=np.int64)

    def _reports(self, values: Values, seed: tuple[int, ...], cohorts: Cohorts, t: int) -> NDArray[Any]:
        """Reports of one round of all runs, as they reach the shuffler."""
        return self.randomized(values(cohorts[0]), self.noise(seed, t))

    def _revealed(self, reports: NDArray[Any], sizes: IntArray, order: IntArray) -> RoundBatches:
        if self.plan.reveals is Reveals.SUM:
            made = self.randomizer
            assert isinstance(made, VectorRandomizer)
            ends = np.concatenate([[0.0], np.cumsum(made.estimate(reports)[:, 0])])
            places = np.concatenate([[0], np.cumsum(sizes)])
            return RoundBatches(ends[places[1:]] - ends[places[:-1]], sizes, only_sums=True)
        return RoundBatches(reports[order], sizes)

    def participants(self, run: int, round_index: int) -> IntArray:
        """Who reports in a round of a run, in the order of enrolment; the target is client 0, dummies are client -1.

        Every run has another of the plan's clients for its target, which changes names with its client 0: a fault that
        spares one client does not spare all. `round_index` counts from 0.
        """
        cohort, target = self.plan.cohort(run, round_index), run % self.plan.population
        clients = np.where(cohort.clients == TARGET, target, cohort.clients)
        clients[cohort.clients == target] = TARGET
        if cohort.dummies:
            return np.concatenate([clients, np.full(cohort.dummies, -1, dtype=np.int64)])
        return np.sort(clients)

    def order(self, sizes: IntArray, seed: tuple[int, ...], round_index: int) -> IntArray:
        """Which report stands in which place once it is released: each run's batch by itself, of these sizes.

        By the deployed shuffler's own chance, the operating system's; `seed` and `round_index` are for faster copies.
        """
        if self.plan.reveals is not Reveals.REPORTS:
            return np.arange(int(sizes.sum()))
        chance, starts = SecureChance(), np.cumsum(sizes) - sizes
        places = [start + chance.permutation(int(n)) for start, n in zip(starts, sizes, strict=True)]
        return np.concatenate(places)

    def noise(self, seed: tuple[int, ...], round_index: int) -> RandomSource:
        """Where the randomizer's chance in the round of `round_index` comes from, of runs of one `seed`."""
        return SeededSource((*seed, round_index, NOISE))

    def randomized(self, values: NDArray[Any], source: RandomSource) -> NDArray[Any]:
        """One report for each of the `values`, with chance from `source`."""
        reports: NDArray[Any] = self.randomizer.randomize(values, source)
        return reports


@dataclass(frozen=True)
class CoinByCoin(Simulated):
    """Shuffled check-in, or a full shuffle, with the coins and orders of many runs each in one draw.

    The plan draws how many check in and then who, run by run; here all coins of a block are one long row of which the
    heads are found at once. The laws are the same (tested).
    """

    plan: ShuffledCheckIn | FullShuffle

    def __post_init__(self) -> None:
        if isinstance(self.plan, ShuffledCheckIn) and (self.plan.lowest_rate is not None or self.plan.dropout):
            raise InvalidParameter("plan", self.plan.describe(), "one rate and no dropout")

    played = "fast coins: cohorts and orders are the audit's own, not the shipped ones"

    @property
    def rate(self) -> float:
        """Probability of checking in, 1 if everybody does."""
        return self.plan.rate if isinstance(self.plan, ShuffledCheckIn) else 1.0

    @property
    def block(self) -> int:
        work = 2 * self.plan.population * self.rate + 30
        return int(np.clip(BLOCK_WORK // (self.plan.rounds * work), 16, 8192))

    def drawn(self, seed: tuple[int, ...], runs: int) -> Iterator[Cohorts]:
        n = self.plan.population
        for t in range(self.plan.rounds):
            places = heads(seeded_generator(*seed, t, COINS), n * runs, self.rate)
            yield places % n, np.bincount(places // n, minlength=runs)

    def order(self, sizes: IntArray, seed: tuple[int, ...], round_index: int) -> IntArray:
        """A uniformly random order within each run of these sizes, all in one draw from `seed` and `round_index`."""
        generator, total = seeded_generator(*seed, round_index, PERMUTE), int(sizes.sum())
        if sizes.size and (sizes == sizes[0]).all():
            rows = np.arange(total).reshape(sizes.size, -1)
            return generator.permuted(rows, axis=1).ravel()
        return np.argsort(np.repeat(np.arange(sizes.size), sizes) + generator.random(total))


def heads(generator: np.random.Generator, coins: int, rate: float) -> IntArray:
    """Which of so many independent coins show heads at a rate, by a generator; gaps are drawn where they are rare."""
    if rate == 1.0:
        return np.arange(coins)
    if rate > 0.25:
        return np.flatnonzero(generator.random(coins) < rate)
    gaps_ended, place = [], -1
    while place < coins:
        gaps = generator.geometric(rate, size=int(1.05 * rate * (coins - place)) + 10)
        gaps_ended.append(place + np.cumsum(gaps))
        place = int(gaps_ended[-1][-1])
    places = np.concatenate(gaps_ended)
    return places[places < coins]


def fast_system(plan: Plan) -> Simulated:
    """The fast copy of a plan's play: of a full shuffle, or of shuffled check-in with one rate and no dropout."""
    if isinstance(plan, ShuffledCheckIn | FullShuffle):
        return CoinByCoin(plan)
    raise Superfluous("fast-coins", plan.describe(), "leave it out: only shuffled check-in and full shuffle have them")


@dataclass(frozen=True)
class PerClient(Simulated):
    """The slow reference: every client by itself, with a source of its own, as deployed clients do it."""

    block = 100

    def _reports(self, values: Values, seed: tuple[int, ...], cohorts: Cohorts, t: int) -> NDArray[Any]:
        clients, sizes = cohorts
        # the values of no client have the right shape and type all the same
        reports = [values(np.empty(0, dtype=np.int64))]
        for run, there in zip(run_seeds(seed, sizes.size), np.split(clients, np.cumsum(sizes)[:-1]), strict=True):
            for i, client in enumerate(there):
                source = self.own_source(run, t, int(client))
                reports.append(self.randomized(values(there[i : i + 1]), source))
        return np.concatenate(reports)

    def own_source(self, run: int, round_index: int, client: int) -> RandomSource:
        """The source of one client in the round of `round_index` of one run."""
        return SeededSource((run, round_index, client, NOISE))
