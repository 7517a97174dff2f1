"""Where the shuffler's randomness comes from.

`SecureChance` is the only one a service may use. Tests inject their own, of another type.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]


class Chance(Protocol):
    """The draws the core makes."""

    def ids(self, count: int) -> list[int]:
        """Identifiers of reports, from 0 to 2**63 - 1, independent of everything else."""

    def permutation(self, count: int) -> Ids:
        """A uniformly random order of 0, …, count - 1."""


class SecureChance:
    """Chance from the operating system."""

    def ids(self, count: int) -> list[int]:
        words = os.urandom(8 * count)
        return [int.from_bytes(words[place : place + 8]) >> 1 for place in range(0, 8 * count, 8)]

    def permutation(self, count: int) -> Ids:
        return sorted_by_keys(lambda: np.frombuffer(os.urandom(8 * count), dtype=np.uint64))


def sorted_by_keys(draw: Callable[[], NDArray[np.uint64]]) -> Ids:
    """The order that sorts fresh random keys; when no two keys are equal it is exactly uniform.

    What `draw` gives with a tie is thrown away as a whole: keeping the order of the others would favour the order in
    which tied items happened to stand.
    """
    while True:
        keys = draw()
        order = np.argsort(keys, kind="stable")
        ranked = keys[order]
        if not bool(np.any(ranked[1:] == ranked[:-1])):
            return order.astype(np.int64, copy=False)
