"""What the randomizers that count have in common: a report *supports* some of the symbols.

A report supports the client's own symbol with one probability and any other with a smaller one,
the same for all; how many people hold a symbol follows from how many reports support it. d-ary
response (`response`), sets of symbols (`subsets`) and codes (`codes`) differ in nothing else.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers.base import CategoryRandomizer

Reports = NDArray[np.int64]
Counts = NDArray[np.float64]
CHUNK = 1 << 22
"""Entries of a matrix with one client a row that are worked on at a time."""


class FrequencyRandomizer(CategoryRandomizer):
    """A randomizer of symbols whose reports each support some of them."""

    local_epsilon: float

    @property
    @abstractmethod
    def own_support(self) -> float:
        """Probability that a report supports the client's own symbol."""

    @property
    @abstractmethod
    def other_support(self) -> float:
        """Probability that a report supports one given other symbol."""

    @property
    @abstractmethod
    def limits(self) -> tuple[int, ...]:
        """A report is a row of integers from 0 up to, and without, these; one alone has no row."""

    @property
    def in_rows(self) -> bool:
        """Whether a report is a row even if it is a single number, such as one byte of bits."""
        return len(self.limits) > 1

    @abstractmethod
    def support(self, reports: Reports) -> Counts:
        """How many of the reports support each symbol."""

    def well_formed(self, reports: Reports) -> NDArray[np.bool_]:
        """Which reports could have been made by `randomize`; the rest must not be counted."""
        reports = np.asarray(reports)
        inside = (reports >= 0) & (reports < np.array(self.limits))
        return np.asarray(inside if len(self.limits) == 1 else inside.all(axis=1))

    def estimate(self, reports: Reports) -> Counts:
        reports = np.asarray(reports)
        if not self.well_formed(reports).all():
            raise InvalidParameter("reports", "some", f"reports of {self.describe()}")
        gap = self.own_support - self.other_support
        return np.asarray((self.support(reports) - len(reports) * self.other_support) / gap)

    def variance(self, counts: Counts) -> Counts:
        counts = np.asarray(counts, dtype=np.float64)
        p, q = self.own_support, self.other_support
        foreign = counts.sum() - counts
        return np.asarray((counts * p * (1 - p) + foreign * q * (1 - q)) / (p - q) ** 2)


def bit_rows(reports: Reports, symbols: int) -> NDArray[np.uint8]:
    """Rows of packed bytes as rows of bits, one a symbol."""
    packed = np.asarray(reports).astype(np.uint8)
    return np.unpackbits(packed, axis=1, bitorder="little")[:, :symbols]


def packed_rows(bits: NDArray[np.bool_]) -> Reports:
    """Rows of bits, eight to a byte."""
    return np.packbits(bits, axis=1, bitorder="little").astype(np.int64)


def bit_support(reports: Reports, symbols: int) -> Counts:
    """How many packed rows have each bit set."""
    reports = np.asarray(reports)
    total = np.zeros(symbols)
    step = max(CHUNK // max(symbols, 1), 1)
    for start in range(0, len(reports), step):
        total += bit_rows(reports[start : start + step], symbols).sum(axis=0, dtype=np.int64)
    return total


def bits_well_formed(reports: Reports, symbols: int) -> NDArray[np.bool_]:
    """Bytes only, and no bit set beyond the last symbol."""
    reports = np.asarray(reports)
    good = ((reports >= 0) & (reports < 256)).all(axis=1)
    spare = -symbols % 8
    return np.asarray(good & (reports[:, -1] < (1 << (8 - spare))))
