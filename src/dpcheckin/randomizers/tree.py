"""One answer about one level of a tree: which node the client's leaf lies under.

The level is drawn at random, independent of the leaf, and is part of the report; on each level the
node is randomized by d-ary or Hadamard response, whichever varies less there. The local pair is the
average of the levels' pairs, which is proved for two leaves that differ on every level and is
smaller for others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers.base import Argument, Randomizer, at_least, positive
from dpcheckin.randomizers.codes import HadamardResponse
from dpcheckin.randomizers.formats import IntegerRows
from dpcheckin.randomizers.response import DaryResponse, FrequencyRandomizer
from dpcheckin.randomizers.source import RandomSource

if TYPE_CHECKING:
    from dpcheckin.accounting import LocalPair


@dataclass(frozen=True)
class TreeResponse(Randomizer):
    """A leaf 0, …, leaves - 1 as (level, report about the node of that level).

    Args:
        local_epsilon: epsilon of one report, in nats.
        leaves: how many there are, 2 or more.
        branching: children of a node, 2 or more; with as many as there are leaves the tree has one
            level.

    >>> TreeResponse(local_epsilon=1.0, leaves=64, branching=8).sizes
    (8, 64)
    """

    local_epsilon: float
    leaves: int
    branching: int

    name, label = "tree", "tree of levels"
    arguments = (Argument("leaves", "N", 64), Argument("branching", "CHILDREN", 4))

    def __post_init__(self) -> None:
        positive("local_epsilon", self.local_epsilon)
        at_least("leaves", self.leaves, 2)
        at_least("branching", self.branching, 2)
        if self.branching > self.leaves:
            raise InvalidParameter("branching", self.branching, f"at most {self.leaves:,} leaves")

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Leaves under a node of each level, the root's children first."""
        width, found = 1, []
        while width < self.leaves:
            found.append(width)
            width *= self.branching
        return tuple(reversed(found))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Nodes of each level."""
        return tuple(-(-self.leaves // width) for width in self.widths)

    @cached_property
    def levels(self) -> tuple[FrequencyRandomizer, ...]:
        """What randomizes the node of each level."""
        return tuple(_steadier(self.local_epsilon, size) for size in self.sizes)

    @property
    def pair(self) -> LocalPair:
        from dpcheckin.accounting import ThreeAtoms, mixed

        pairs = [level.pair for level in self.levels]
        name = f"tree of {self.leaves:,} leaves"
        return mixed([pair for pair in pairs if isinstance(pair, ThreeAtoms)], name)

    @cached_property
    def kinds(self) -> tuple[int, ...]:
        """How many reports there can be of each level."""
        return tuple(level.report_format.limits[0] for level in self.levels)

    @property
    def report_format(self) -> IntegerRows:
        return IntegerRows((len(self.sizes), max(self.kinds)))

    def describe(self) -> str:
        if len(self.sizes) == 1:
            return self.levels[0].describe()
        shape = " × ".join(map(str, self.sizes))
        return f"tree of levels {shape}, local epsilon {self.local_epsilon:g}"

    def randomize(self, values: NDArray[np.int64], source: RandomSource) -> NDArray[np.int64]:
        values = np.asarray(values)
        if values.dtype.kind not in "iu":
            raise InvalidParameter("values", values.dtype, "integers")
        if values.size and not (values.min() >= 0 and values.max() < self.leaves):
            raise InvalidParameter("values", "some", f"leaves from 0 to {self.leaves - 1}")
        chosen = source.integers(len(self.sizes), len(values))
        reports = np.empty((len(values), 2), dtype=np.int64)
        reports[:, 0] = chosen
        for index, (level, width) in enumerate(zip(self.levels, self.widths, strict=True)):
            here = chosen == index
            reports[here, 1] = level.randomize(values[here] // width, source)
        return reports

    def well_formed(self, reports: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which reports could have been made by `randomize`."""
        reports = np.asarray(reports)
        inside = (reports[:, 0] >= 0) & (reports[:, 0] < len(self.sizes))
        most = np.array(self.kinds)[np.where(inside, reports[:, 0], 0)]
        return np.asarray(inside & (reports[:, 1] >= 0) & (reports[:, 1] < most))


def _steadier(local_epsilon: float, size: int) -> FrequencyRandomizer:
    plain = DaryResponse(local_epsilon, size)
    if size == 2:
        return plain
    coded = HadamardResponse(local_epsilon, size)
    even = np.full(size, 1.0 / size)
    return min((plain, coded), key=lambda one: float(one.variance(even)[0]))
