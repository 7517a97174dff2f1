"""Datasets that differ in one client, systems that release batches about them, and what an adversary sees of many runs.

`OneReport` is a single client's report, `BlackBox` any function that returns batches; `simulated` plays plans.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.protocols import Plan
from dpcheckin.randomizers import Randomizer, RandomSource, SeededSource
from dpcheckin.randomizers.base import Value

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
TARGET = 0
"""The number of the client whose data differs."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """All others hold one value; the target holds another in the first and in the second dataset.

    A value may be a list with one entry per round: what a client holds may depend on what it is asked, as a gradient
    depends on the model.
    """

    others: Value | Sequence[Value]
    first: Value | Sequence[Value]
    second: Value | Sequence[Value]

    @staticmethod
    def worst(randomizer: Randomizer) -> Neighbours:
        """The values that are hardest to hide, by the randomizer's own word."""
        return Neighbours(*randomizer.neighbours)

    def in_round(self, round_index: int) -> tuple[Value, ...]:
        """What the others hold in a round, what the target does in the first dataset, and in the second."""
        held: tuple[Any, ...] = (self.others, self.first, self.second)
        return tuple(value[round_index] if isinstance(value, list) else value for value in held)

    def values(self, clients: IntArray, which: int, round_index: int) -> NDArray[Any]:
        """What these clients hold in dataset `which` (0 or 1) in the round of `round_index`, one row a client."""
        other, *owns = self.in_round(round_index)
        own, target = owns[which], clients == TARGET
        if isinstance(other, int):
            return np.where(target, np.int64(np.asarray(own)), np.int64(other))
        return np.where(target[:, None], np.asarray(own, float), np.asarray(other, float))


@dataclass(frozen=True, slots=True)
class RoundBatches:
    """One round's batches of many runs: `reports` end to end with their `sizes`, or one sum a run if `only_sums`."""

    reports: NDArray[Any]
    sizes: IntArray
    only_sums: bool = False

    def __post_init__(self) -> None:
        expected = self.sizes.size if self.only_sums else int(self.sizes.sum())
        if len(self.reports) != expected:
            raise InvalidParameter("reports", len(self.reports), f"{expected:,} rows")

    @property
    def runs(self) -> int:
        return self.sizes.size

    @property
    def owners(self) -> IntArray:
        """Which run each report belongs to."""
        return np.repeat(np.arange(self.runs), self.sizes)

    def total(self, amounts: FloatArray) -> FloatArray:
        """Sum of one number per report over each run."""
        return np.asarray(np.bincount(self.owners, amounts, self.runs), dtype=np.float64)

    def at(self, place: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The report in this place of each batch (-1: the last), and whether there is one."""
        ends = np.cumsum(self.sizes)
        there = self.sizes > (place if place >= 0 else -place - 1)
        where = ends + place if place < 0 else ends - self.sizes + place
        return self.reports[np.where(there, where, 0)], there


Released = tuple[RoundBatches, ...]
"""All rounds of many runs."""


def gathered(runs: Sequence[Sequence[NDArray[Any]]]) -> Released:
    """Batches given one by one as arrays, `runs[run][round]`, in the form that statistics take.

    >>> gathered([[np.array([1, 2])], [np.array([3])]])[0].sizes.tolist()
    [2, 1]
    """
    if not runs or len({len(rounds) for rounds in runs}) != 1:
        raise InvalidParameter("runs", len(runs), "at least one run, all with as many rounds")
    return tuple(
        RoundBatches(
            np.concatenate([rounds[t] for rounds in runs]),
            np.array([len(rounds[t]) for rounds in runs], dtype=np.int64),
        )
        for t in range(len(runs[0]))
    )


NOISE, PERMUTE, RUNS, COINS = 51, 52, 53, 54
"""Purposes of seeds: one for every kind of chance, so that none is used twice."""


class System(ABC):
    """Whatever releases batches about a dataset."""

    paired: bool = True
    """Whether equal seeds mean equal coins and noise on both neighbours."""

    @abstractmethod
    def play(self, data: Neighbours, which: int, seed: tuple[int, ...], runs: int) -> Released:
        """Batches of `runs` independent runs on dataset `which` of `data`, with chance from `seed` if that can be."""

    def play_both(self, data: Neighbours, seed: tuple[int, ...], runs: int) -> tuple[Released, Released]:
        """Pairs of `runs`, one on each dataset of `data`; with the same chance from `seed` if the system allows it."""
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
    """A single client's report as `randomizer` makes it, seen as it is: what is left when the shuffler colludes."""

    randomizer: Randomizer

    block = 20_000
    played = "the randomizer's own reports"

    def play(self, data: Neighbours, which: int, seed: tuple[int, ...], runs: int) -> Released:
        values = data.values(np.zeros(runs, dtype=np.int64), which, 0)
        reports = self.randomizer.randomize(values, self.source(seed))
        return (RoundBatches(reports, np.ones(runs, dtype=np.int64)),)

    def source(self, seed: tuple[int, ...]) -> RandomSource:
        """Where the chance of a block of reports comes from."""
        return SeededSource((*seed, NOISE))


@dataclass(frozen=True)
class BlackBox(System):
    """Any function from (dataset 0 or 1, a fresh number) to the batches that were released, one array a round.

    The number may be ignored, as by a deployed service that takes its chance from the operating system; set `paired`
    only if it decides all chance. `runs_at_once` are those of a block.
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
    """One number for each of so many runs, all from one seed; a `purpose` of its own for every kind of chance."""
    return [int(s) >> 1 for s in np.random.SeedSequence((*seed, purpose)).generate_state(runs, np.uint64)]


def seeded_generator(*seed: int) -> np.random.Generator:
    """A generator that is a function of a tuple of numbers."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
