"""Plans played by the package's own code: the plan's cohorts, the randomizer, the shuffler's order.

`Simulated` asks the plan who reports, run by run; randomizes the values of all clients of all runs
in one call, which is what the batch interface is for; and lets the deployed shuffler's own chance
put each batch in order. Reports reach the shuffler in the order of enrolment, the target's first:
that is what a shuffler that does not shuffle gives away. `audit.systems.fast` draws coins and
orders of many runs at once instead, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.audit.systems.base import NOISE, System, run_seeds
from dpcheckin.audit.systems.batches import TARGET, IntArray, Neighbours, Released, RoundBatches
from dpcheckin.protocols import Plan, Reveals
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
    """A plan, played by the package's own code.

    Args:
        plan: what is played.
    """

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

    def play_both(
        self, data: Neighbours, seed: tuple[int, ...], runs: int
    ) -> tuple[Released, Released]:
        first, second = self._play(data, (0, 1), seed, runs)
        return first, second

    def _play(
        self, data: Neighbours, datasets: Sequence[int], seed: tuple[int, ...], runs: int
    ) -> list[Released]:
        """Coins and orders do not depend on the data: they are drawn once for both neighbours."""
        numbers = run_seeds(seed, runs)
        drawn = self._drawn(seed, numbers)
        rounds: list[list[RoundBatches]] = [[] for _ in datasets]
        for t in range(self.plan.rounds):
            cohorts = next(drawn)
            order = self.order(cohorts[1], seed, t)
            for released, which in zip(rounds, datasets, strict=True):
                values = partial(data.values, which=which, round_index=t)
                reports = self._reports(values, seed, numbers, cohorts, t)
                released.append(self._revealed(reports, cohorts[1], order))
        return [tuple(released) for released in rounds]

    def drawn(self, seed: tuple[int, ...], runs: int) -> Iterator[Cohorts]:
        """Round by round, who reports in each run: all runs end to end, and how many each has."""
        return self._drawn(seed, run_seeds(seed, runs))

    def _drawn(self, seed: tuple[int, ...], runs: Sequence[int]) -> Iterator[Cohorts]:
        count = self.plan.rounds
        drawn = [[self.participants(run, t) for t in range(count)] for run in runs]
        for t in range(count):
            cohorts = [cohorts[t] for cohorts in drawn]
            sizes = np.array([len(c) for c in cohorts], dtype=np.int64)
            yield np.concatenate(cohorts), sizes

    def _reports(
        self, values: Values, seed: tuple[int, ...], runs: Sequence[int], cohorts: Cohorts, t: int
    ) -> NDArray[Any]:
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
        """Who reports, in the order of enrolment; the target is client 0, dummies are client -1.

        Every run has another of the plan's clients for its target, which changes names with its
        client 0: a fault that spares one client does not spare all.
        """
        cohort, target = self.plan.cohort(run, round_index), run % self.plan.population
        clients = np.where(cohort.clients == TARGET, target, cohort.clients)
        clients[cohort.clients == target] = TARGET
        if cohort.dummies:
            return np.concatenate([clients, np.full(cohort.dummies, -1, dtype=np.int64)])
        return np.sort(clients)

    def order(self, sizes: IntArray, seed: tuple[int, ...], round_index: int) -> IntArray:
        """Which report stands in which place once it is released: each run's batch by itself.

        The deployed shuffler's own chance, which is the operating system's and not the seed's.
        """
        if self.plan.reveals is not Reveals.REPORTS:
            return np.arange(int(sizes.sum()))
        chance, starts = SecureChance(), np.cumsum(sizes) - sizes
        places = [
            start + chance.permutation(int(n)) for start, n in zip(starts, sizes, strict=True)
        ]
        return np.concatenate(places)

    def noise(self, seed: tuple[int, ...], round_index: int) -> RandomSource:
        """Where the randomizer's chance in this round comes from."""
        return SeededSource((*seed, round_index, NOISE))

    def randomized(self, values: NDArray[Any], source: RandomSource) -> NDArray[Any]:
        """One report for each value."""
        reports: NDArray[Any] = self.randomizer.randomize(values, source)
        return reports
