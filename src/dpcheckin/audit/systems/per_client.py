"""A plan played client by client, each with a source of its own, the way deployed clients do.

Slow, and the reference for `systems.simulated`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.audit.systems.base import NOISE
from dpcheckin.audit.systems.simulated import Cohorts, Simulated, Values
from dpcheckin.randomizers import RandomSource, SeededSource

_NOBODY = np.empty(0, dtype=np.int64)
"""The values of no client have the right shape and type all the same."""


@dataclass(frozen=True)
class PerClient(Simulated):
    """The same plan, client by client: every client asks a source of its own.

    Args:
        plan: what is played.
    """

    @property
    def block(self) -> int:
        return 100

    def _reports(
        self, values: Values, seed: tuple[int, ...], runs: Sequence[int], cohorts: Cohorts, t: int
    ) -> NDArray[Any]:
        clients, sizes = cohorts
        reports = [values(_NOBODY)]
        for run, there in zip(runs, np.split(clients, np.cumsum(sizes)[:-1]), strict=True):
            for i, client in enumerate(there):
                source = self.own_source(run, t, int(client))
                reports.append(self.randomized(values(there[i : i + 1]), source))
        return np.concatenate(reports)

    def own_source(self, run: int, round_index: int, client: int) -> RandomSource:
        """The source of one client in one round of one run."""
        return SeededSource((run, round_index, client, NOISE))
