"""What a system under audit is, and the two that need no plan.

A system turns a dataset and a seed into released batches. `OneReport` is a single client's report;
`BlackBox` takes any function that returns batches. Systems that play plans are in
`systems.simulated` and `systems.per_client`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.audit.systems.batches import Neighbours, Released, RoundBatches, gathered
from dpcheckin.errors import InvalidParameter
from dpcheckin.protocols import Plan
from dpcheckin.randomizers import Randomizer, SeededSource

NOISE, PERMUTE, RUNS, COINS = 51, 52, 53, 54
"""Purposes of seeds: one for every kind of chance, so that none is used twice."""


class System(ABC):
    """Whatever releases batches about a dataset."""

    paired: bool = True
    """Whether equal seeds mean equal coins and noise on both neighbours."""

    @abstractmethod
    def play(self, data: Neighbours, which: int, seed: tuple[int, ...], runs: int) -> Released:
        """The batches of `runs` independent runs on dataset `which`."""

    def play_both(
        self, data: Neighbours, seed: tuple[int, ...], runs: int
    ) -> tuple[Released, Released]:
        """Pairs of runs, one on each dataset; with the same chance if the system can do that."""
        seeds = (seed, seed) if self.paired else ((*seed, 0), (*seed, 1))
        return self.play(data, 0, seeds[0], runs), self.play(data, 1, seeds[1], runs)

    @property
    def block(self) -> int:
        """Runs to play at a time."""
        return 256

    @property
    def played(self) -> str:
        """A few words for findings: whose coins, whose order."""
        return "the system that was given"

    def audited_plan(self) -> Plan | None:
        """The plan whose rounds are played, None if there is none to compare with."""
        return None


@dataclass(frozen=True)
class OneReport(System):
    """A single client's report, seen as it is: what is left when the shuffler colludes.

    Args:
        randomizer: what makes the report.
    """

    randomizer: Randomizer

    @property
    def block(self) -> int:
        return 20_000

    @property
    def played(self) -> str:
        return "the randomizer's own reports"

    def play(self, data: Neighbours, which: int, seed: tuple[int, ...], runs: int) -> Released:
        values = data.values(np.zeros(runs, dtype=np.int64), which, 0)
        reports = self.randomizer.randomize(values, SeededSource((*seed, NOISE)))
        return (RoundBatches(reports, np.ones(runs, dtype=np.int64)),)


@dataclass(frozen=True)
class BlackBox(System):
    """Any function from (dataset 0 or 1, a fresh number) to the batches that were released.

    The number may be ignored, as by a deployed service that takes its chance from the operating
    system; set `paired` only if it decides all chance.

    Args:
        release: called with the dataset (0 or 1) and a number; returns one array a round.
        paired: whether the number decides all chance.
        runs_at_once: runs of a block.
    """

    release: Callable[[int, int], Sequence[NDArray[Any]]]
    paired: bool = False
    runs_at_once: int = 64

    @property
    def block(self) -> int:
        return self.runs_at_once

    def play(self, data: Neighbours, which: int, seed: tuple[int, ...], runs: int) -> Released:
        played = []
        for number in run_seeds(seed, runs):
            batches = self.release(which, number)
            if not all(isinstance(batch, np.ndarray) for batch in batches):
                raise InvalidParameter("release", type(batches), "a sequence of arrays")
            played.append(batches)
        return gathered(played)


def run_seeds(seed: tuple[int, ...], runs: int, purpose: int = RUNS) -> list[int]:
    """One number for each of so many runs, all from one seed."""
    return [int(s) >> 1 for s in seed_sequence(*seed, purpose).generate_state(runs, np.uint64)]


def seed_sequence(*seed: int) -> np.random.SeedSequence:
    """NumPy's sequence of seeds for a tuple of numbers."""
    return np.random.SeedSequence(seed)


def seeded_generator(*seed: int) -> np.random.Generator:
    """A generator that is a function of a tuple of numbers."""
    return np.random.Generator(np.random.PCG64(seed_sequence(*seed)))
