"""Whose data is whose: from a client's number to its records, at a cost that ignores population.

A fleet never lists its clients. `Fleet.records` gives the data of the clients that checked in, and nothing is stored or
computed for the others: ten million clients bootstrapped from 60,000 records take the memory of the records.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import at_least

Clients = NDArray[np.int64]
Records = tuple[Tensor, Tensor, Tensor | None]
"""Inputs, targets and, for clients with many records, the mask of records that exist."""


def client_hash(clients: Clients, seed: int) -> NDArray[np.uint64]:
    """A fixed pseudo-random 64-bit word for each of the clients, from a seed (the finaliser of SplitMix64)."""
    word = clients.astype(np.uint64) + np.uint64((seed * 0x9E3779B97F4A7C15 + 1) % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        word = (word ^ (word >> np.uint64(shift))) * np.uint64(factor)
    return word ^ (word >> np.uint64(31))


def tensor_digest(values: Tensor | NDArray[Any]) -> str:
    """A fingerprint of an array's shape and bytes; bytes, because sums depend on threads."""
    array = np.ascontiguousarray(values.numpy() if isinstance(values, Tensor) else values)
    digest = hashlib.blake2b(repr((array.shape, array.dtype.str)).encode(), digest_size=16)
    digest.update(array.data if array.size else b"")
    return digest.hexdigest()


class Fleet(ABC):
    """A population of clients and the records they hold."""

    population: int
    many_records: bool = False

    @abstractmethod
    def records(self, clients: Clients) -> Records:
        """The data of these clients, one row each."""

    def digest(self) -> str:
        """A fingerprint of all records, for runs that are taken up again."""
        held = [getattr(self, name, None) for name in ("inputs", "targets", "owners")]
        return " ".join(tensor_digest(part) for part in held if part is not None)


@dataclass(frozen=True)
class OneRecordEach(Fleet):
    """Client i holds record i: row i of the inputs, and of the targets."""

    inputs: Tensor
    targets: Tensor

    @property
    def population(self) -> int:  # type: ignore[override]
        return len(self.targets)

    def records(self, clients: Clients) -> Records:
        where = torch.tensor(clients)  # a copy: arrays that came from another process are read-only
        return self.inputs.index_select(0, where), self.targets[where], None


@dataclass(frozen=True)
class Bootstrapped(Fleet):
    """A population of any size, each client holding one record drawn with replacement, once and for all by a seed."""

    inputs: Tensor
    targets: Tensor
    population: int
    seed: int = 0

    def records(self, clients: Clients) -> Records:
        where = client_hash(clients, self.seed) % np.uint64(len(self.targets))
        index = torch.from_numpy(where.astype(np.int64))
        return self.inputs[index], self.targets[index], None


@dataclass(frozen=True)
class GroupedByOwner(Fleet):
    """Natural clients: each owner's records together, so that the guarantee is per user.

    A client takes part with at most `most_records` of its records (the first ones); its report is about its mean
    gradient, and is clipped as one. The `owners` are those of each record.
    """

    inputs: Tensor
    targets: Tensor
    owners: NDArray[np.int64]
    most_records: int = 128

    many_records = True

    def __post_init__(self) -> None:
        if len(self.owners) != len(self.targets):
            raise InvalidParameter("owners", len(self.owners), f"{len(self.targets):,} entries")
        at_least("most_records", self.most_records, 1)

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        order = np.argsort(self.owners, kind="stable").astype(np.int64)
        _, starts, counts = np.unique(self.owners[order], return_index=True, return_counts=True)
        return order, starts.astype(np.int64), counts.astype(np.int64)

    @property
    def population(self) -> int:  # type: ignore[override]
        return len(self._sorted[1])

    def records(self, clients: Clients) -> Records:
        order, starts, counts = self._sorted
        held = np.minimum(counts[clients], self.most_records)
        width = int(held.max(initial=1))
        steps = np.arange(width)[None, :]
        exists = steps < held[:, None]
        where = order[starts[clients][:, None] + np.where(exists, steps, 0)]
        index = torch.from_numpy(where)
        return self.inputs[index], self.targets[index], torch.from_numpy(exists).float()
