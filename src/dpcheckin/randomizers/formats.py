"""Reports as bytes: how a randomized answer travels, and which bytes are no answer at all.

Every report of a survey has the same length, so its size tells nothing. What arrives is checked before it is counted:
wrong length, numbers out of range and rows that no client could have made are dropped, and how many were dropped is
said.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter

Reports = NDArray[Any]


class ReportFormat(ABC):
    """Rows of numbers and their bytes."""

    width: int
    """Numbers of one report."""
    in_rows: bool = True
    """Whether a report is a row; one of a single integer need not be."""

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

    @abstractmethod
    def possible(self, reports: Reports) -> NDArray[np.bool_]:
        """Which rows the format can hold."""

    def shaped(self, reports: Reports) -> Reports:
        """Reports as numbers in rows of the right length; others are refused.

        Args:
            reports: of many clients.
        """
        if reports.dtype.kind not in "iuf":
            raise InvalidParameter("reports", str(reports.dtype), "numbers")
        if reports.shape[1:] == self._row and reports.ndim:
            return reports
        if reports.size:
            many = f"a row of {self.width} numbers a report"
            allowed = many if self.in_rows else "one number a report"
            raise InvalidParameter("reports", reports.shape, allowed)
        return reports.reshape((0, *self._row))

    @property
    def _row(self) -> tuple[int, ...]:
        return (self.width,) if self.in_rows else ()

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

    >>> form = IntegerRows((1024, 256))
    >>> form.size, form.encode(np.array([[1000, 7]]))
    (3, [b'\\xe8\\x03\\x07'])
    """

    limits: tuple[int, ...]
    in_rows: bool = True

    @property
    def width(self) -> int:  # type: ignore[override]
        return len(self.limits)

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

    def possible(self, reports: Reports) -> NDArray[np.bool_]:
        reports = np.asarray(reports)
        inside = (reports >= 0) & (reports < np.array(self.limits))
        return np.asarray(inside.all(axis=1) if self.in_rows else inside)

    def shaped(self, reports: Reports) -> Reports:
        """As integers; rows with fractions are no reports and are left out."""
        reports = super().shaped(reports)
        if reports.dtype.kind != "f":
            return reports
        whole = (np.abs(reports) < 2.0**53) & (reports == np.floor(reports))
        return np.asarray(reports[whole.all(axis=1) if self.in_rows else whole].astype(np.int64))


@dataclass(frozen=True)
class FloatRows(ReportFormat):
    """Vectors in single precision.

    Args:
        width: entries of a vector.
    """

    width: int

    @property
    def size(self) -> int:
        return 4 * self.width

    def encode(self, reports: Reports) -> list[bytes]:
        table = np.asarray(reports, dtype="<f4").reshape(-1, self.width)
        return [row.tobytes() for row in table]

    def rows(self, payload: bytes) -> Reports:
        table = np.frombuffer(payload, dtype="<f4").reshape(-1, self.width)
        return table.astype(np.float64)

    def possible(self, reports: Reports) -> NDArray[np.bool_]:
        return np.asarray(np.isfinite(reports).all(axis=1))
