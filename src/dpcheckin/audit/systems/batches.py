"""What an adversary sees of many runs, and whose data the runs were about.

`RoundBatches` holds one round's released batches of many runs end to end, so that statistics are a
few vector operations. `Neighbours` is a pair of datasets that differ in one client. Nothing here
knows how batches come about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers import Randomizer
from dpcheckin.randomizers.base import Value

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
TARGET = 0
"""The number of the client whose data differs."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """All others hold one value; the target holds another in either dataset.

    A value may be a sequence with one entry per round: what a client holds may depend on what it
    is asked, as a gradient depends on the model.

    Args:
        others: what all other clients hold.
        first: what the target holds in the first dataset.
        second: and in the second.
    """

    others: Value | Sequence[Value]
    first: Value | Sequence[Value]
    second: Value | Sequence[Value]

    @staticmethod
    def worst(randomizer: Randomizer) -> Neighbours:
        """The values that are hardest to hide, by the randomizer's own word."""
        return Neighbours(*randomizer.neighbours)

    def values(self, clients: IntArray, which: int, round_index: int) -> NDArray[Any]:
        """What these clients hold in dataset `which` (0 or 1), one row a client."""
        own = in_round(self.second if which else self.first, round_index)
        other = in_round(self.others, round_index)
        target = clients == TARGET
        if isinstance(other, int):
            return np.where(target, np.int64(np.asarray(own)), np.int64(other))
        return np.where(target[:, None], np.asarray(own, float), np.asarray(other, float))


def in_round(value: Value | Sequence[Value], round_index: int) -> Value:
    """The value in one round: a list has one entry per round, anything else is constant."""
    if isinstance(value, list):
        found: Value = value[round_index]
        return found
    assert isinstance(value, int | tuple)
    return value


@dataclass(frozen=True, slots=True)
class RoundBatches:
    """One round of many runs: their reports end to end, and how many each run has.

    When only sums are revealed, `reports` has one row a run and `sizes` the number of reports
    behind it.

    Args:
        reports: of all runs, end to end; or one sum a run.
        sizes: number of reports of each run.
        only_sums: whether only sums are revealed.
    """

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
    """Batches given one by one, `runs[run][round]`, in the form that statistics take.

    Args:
        runs: batches of each run and round, as arrays.

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
