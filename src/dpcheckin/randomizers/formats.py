"""Reports as bytes: how a randomized answer travels, and which bytes are no answer at all.

Every report of a survey has the same length, so its size tells nothing. What arrives is checked
before it is counted: wrong length, numbers out of range and rows that no client could have made
are dropped, and how many were dropped is said.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers.base import Randomizer, VectorRandomizer

Reports = NDArray[Any]


class ReportFormat(ABC):
    """Rows of numbers and their bytes."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Bytes of one report."""

    @abstractmethod
    def encode(self, reports: Reports) -> list[bytes]:
        """The bytes of each report."""

    @abstractmethod
    def rows(self, payload: bytes) -> Reports:
        """The reports in bytes of a right length, one after another; nothing is checked."""

    def decode(self, payloads: Sequence[bytes]) -> tuple[Reports, int]:
        """The reports of the right length, and how many had another.

        Args:
            payloads: the bytes of each report.
        """
        good = [payload for payload in payloads if len(payload) == self.size]
        return self.rows(b"".join(good)), len(payloads) - len(good)


def _width(limit: int) -> int:
    return max((int(limit - 1).bit_length() + 7) // 8, 1)


@dataclass(frozen=True)
class IntegerRows(ReportFormat):
    """Integers from 0 up to, and without, the limits; little-endian, as few bytes as will do.

    Args:
        limits: one for every integer of a report.
        in_rows: whether a report is a row; one of a single integer need not be.

    >>> form = IntegerRows((1024, 256), in_rows=True)
    >>> form.size, form.encode(np.array([[1000, 7]]))
    (3, [b'\\xe8\\x03\\x07'])
    """

    limits: tuple[int, ...]
    in_rows: bool

    @property
    def size(self) -> int:
        return sum(map(_width, self.limits))

    def encode(self, reports: Reports) -> list[bytes]:
        table = np.asarray(reports, dtype="<i8").reshape(-1, len(self.limits))
        octets = np.ascontiguousarray(table).view(np.uint8).reshape(len(table), -1, 8)
        parts = [octets[:, i, : _width(limit)] for i, limit in enumerate(self.limits)]
        joined = np.ascontiguousarray(np.concatenate(parts, axis=1))
        return [row.tobytes() for row in joined]

    def rows(self, payload: bytes) -> Reports:
        octets = np.frombuffer(payload, dtype=np.uint8).reshape(-1, self.size)
        table = np.zeros((len(octets), len(self.limits), 8), dtype=np.uint8)
        start = 0
        for i, limit in enumerate(self.limits):
            width = _width(limit)
            table[:, i, :width] = octets[:, start : start + width]
            start += width
        numbers = table.view("<i8")[:, :, 0]  # no -1 in a shape: of no reports it has no value
        return numbers if self.in_rows else numbers[:, 0]


@dataclass(frozen=True)
class FloatRows(ReportFormat):
    """Vectors in single precision.

    Args:
        dimension: entries of a vector.
    """

    dimension: int

    @property
    def size(self) -> int:
        return 4 * self.dimension

    def encode(self, reports: Reports) -> list[bytes]:
        table = np.asarray(reports, dtype="<f4").reshape(-1, self.dimension)
        return [row.tobytes() for row in table]

    def rows(self, payload: bytes) -> Reports:
        table = np.frombuffer(payload, dtype="<f4").reshape(-1, self.dimension)
        return table.astype(np.float64)


def format_of(randomizer: Randomizer) -> ReportFormat:
    """How the reports of a randomizer travel.

    Args:
        randomizer: one that a query has named.
    """
    limits = getattr(randomizer, "limits", None)
    if limits is not None:
        return IntegerRows(tuple(limits), bool(getattr(randomizer, "in_rows", len(limits) > 1)))
    if isinstance(randomizer, VectorRandomizer):
        return FloatRows(int(getattr(randomizer, "dimension", 1)))
    raise InvalidParameter("randomizer", randomizer.describe(), "one that a query has named")


def accepted(randomizer: Randomizer, reports: Reports) -> NDArray[np.bool_]:
    """Which reports could have been made by the randomizer; the rest must not be counted.

    Args:
        randomizer: of the survey.
        reports: as they were decoded.
    """
    check = getattr(randomizer, "well_formed", None)
    if check is not None:
        return np.asarray(check(reports), dtype=np.bool_)
    rows = np.asarray(reports, dtype=np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    # reports of a direction are unit vectors; in single precision their length is off by little
    return np.asarray(np.isfinite(norms) & (np.abs(norms - 1.0) < 1e-4))
