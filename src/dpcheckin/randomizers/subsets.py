"""Randomizers whose report is a set of symbols: subset selection and unary encoding.

With many symbols and little local epsilon a report that names several of them says more than one that names a single
wrong one. Subset selection (Ye, Barg, arXiv 1702.00610v2; Wang et al., arXiv 1607.08025) names a fixed number;
optimised unary encoding (Wang, Blocki, Li, Jha, USENIX Security 2017) sends a bit for every symbol.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcheckin import accounting
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import at_least
from dpcheckin.randomizers.base import Argument
from dpcheckin.randomizers.formats import IntegerRows
from dpcheckin.randomizers.response import Counts, FrequencyRandomizer, Reports
from dpcheckin.randomizers.source import RandomSource

CHUNK = 1 << 22
"""Entries of a matrix with one client a row that are worked on at a time."""
_FEW = 24  # symbols drawn one after another; more are drawn by sorting random keys


def bit_rows(reports: Reports, symbols: int) -> NDArray[np.uint8]:
    """Rows of packed bytes, the `reports`, as rows of bits, one for each of the `symbols`."""
    packed = np.asarray(reports).astype(np.uint8)
    return np.unpackbits(packed, axis=1, bitorder="little")[:, :symbols]


class _BitRandomizer(FrequencyRandomizer):
    """Reports are rows of bits, one a symbol, eight to a byte."""

    def randomize(self, values: NDArray[np.int64], source: RandomSource) -> Reports:
        values = self.check_symbols(values)
        step = max(CHUNK // self._width, 1)
        parts = [self._randomized(values[i : i + step], source) for i in range(0, len(values), step)]
        return np.concatenate(parts) if parts else np.zeros((0, self.report_format.width), np.int64)

    @property
    def _width(self) -> int:
        """Draws for one client."""
        return self.symbols

    @abstractmethod
    def _randomized(self, values: NDArray[np.int64], source: RandomSource) -> Reports:
        """Reports about some of the values."""

    def _packed(self, bits: NDArray[np.bool_]) -> Reports:
        return np.packbits(bits, axis=1, bitorder="little").astype(np.int64)

    @property
    def report_format(self) -> IntegerRows:
        return IntegerRows((256,) * ((self.symbols + 7) // 8))

    def well_formed(self, reports: Reports) -> NDArray[np.bool_]:
        """Bytes only, and no bit set beyond the last symbol."""
        reports = np.asarray(reports)
        good = ((reports >= 0) & (reports < 256)).all(axis=1)
        spare = -self.symbols % 8
        return np.asarray(good & (reports[:, -1] < (1 << (8 - spare))))

    def support(self, reports: Reports) -> Counts:
        reports = np.asarray(reports)
        total = np.zeros(self.symbols)
        step = max(CHUNK // self.symbols, 1)
        for start in range(0, len(reports), step):
            total += bit_rows(reports[start : start + step], self.symbols).sum(axis=0, dtype=np.int64)
        return total

    def supports(self, reports: Reports, symbol: int) -> NDArray[np.bool_]:
        return np.asarray(np.asarray(reports)[:, symbol // 8] >> (symbol % 8) & 1, dtype=np.bool_)


@dataclass(frozen=True)
class SubsetSelection(_BitRandomizer):
    """A set of `chosen` symbols, e^ε₀ times as likely if it contains the client's own.

    A report lists the symbols in increasing order or, where that is shorter, is a row of bits, eight to a byte.

    Args:
        chosen: symbols in a report, from 1 to symbols - 1.

    >>> subsets = SubsetSelection(local_epsilon=1.0, symbols=20, chosen=5)
    >>> round(subsets.own_support, 4), round(subsets.other_support, 4)
    (0.4754, 0.2381)
    """

    chosen: int

    name, label = "subset", "subset selection"
    description = "subsets of {0.chosen:,} of {0.symbols:,} symbols, local epsilon {0.local_epsilon:g}"
    arguments = (Argument("symbols", "K", 10), Argument("chosen", "W", 2))

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("chosen", self.chosen, 1)
        if self.chosen >= self.symbols:
            raise InvalidParameter("chosen", self.chosen, f"below the {self.symbols:,} symbols")

    @property
    def own_support(self) -> float:
        rest = (self.symbols - self.chosen) * math.exp(-self.local_epsilon)
        return self.chosen / (self.chosen + rest)

    @property
    def other_support(self) -> float:
        return (self.chosen - self.own_support) / (self.symbols - 1)

    @property
    def lie(self) -> float:
        return (self.symbols / self.chosen - 1) * math.exp(-self.local_epsilon) * self.own_support

    @property
    def pair(self) -> accounting.LocalPair:
        return accounting.subset_selection(self.local_epsilon, self.symbols, self.chosen)

    @property
    def packed(self) -> bool:
        """Is a row of bits shorter than a list of symbols?"""
        width = 1 if self.symbols <= 256 else 2 if self.symbols <= 65536 else 4
        return self.chosen * width > (self.symbols + 7) // 8

    @property
    def report_format(self) -> IntegerRows:
        if self.packed:
            return super().report_format
        return IntegerRows((self.symbols,) * self.chosen, in_rows=self.chosen > 1)

    @property
    def _width(self) -> int:
        return self.chosen if self.chosen <= _FEW else self.symbols

    def _randomized(self, values: NDArray[np.int64], source: RandomSource) -> Reports:
        """Others first, as if the own symbol did not exist; then it or one more of them."""
        others = _distinct(len(values), self.symbols - 1, self.chosen, source)
        others += others >= values[:, None]  # the symbols without one's own
        own = source.uniform(values.shape) >= self.lie
        rows = np.where(own[:, None] & (np.arange(self.chosen) == 0), values[:, None], others)
        if not self.packed:
            rows.sort(axis=1)
            return rows if self.chosen > 1 else rows[:, 0]
        bits = np.zeros((len(values), self.symbols), dtype=np.bool_)
        bits[np.arange(len(values))[:, None], rows] = True
        return self._packed(bits)

    def well_formed(self, reports: Reports) -> NDArray[np.bool_]:
        reports = np.asarray(reports)
        if self.packed:
            good = super().well_formed(reports)
            sizes = np.bitwise_count(np.where(good[:, None], reports, 0)).sum(axis=1)
            return np.asarray(good & (sizes == self.chosen))
        possible = self.report_format.possible(reports)
        if self.chosen == 1:
            return possible
        return np.asarray(possible & (np.diff(reports, axis=1) > 0).all(axis=1))

    def support(self, reports: Reports) -> Counts:
        if self.packed:
            return super().support(reports)
        seen = np.bincount(np.asarray(reports).ravel(), minlength=self.symbols)
        return seen.astype(np.float64)

    def supports(self, reports: Reports, symbol: int) -> NDArray[np.bool_]:
        if self.packed:
            return super().supports(reports, symbol)
        return np.asarray((np.asarray(reports).reshape(len(reports), -1) == symbol).any(axis=1))


@dataclass(frozen=True)
class UnaryEncoding(_BitRandomizer):
    """A bit for every symbol: the own one set with probability `truth`, the others far less often.

    Args:
        truth: probability that the own bit is set; ½ is the choice of least local variance.
    """

    truth: float = 0.5

    name, label = "unary", "unary encoding"
    description = "unary encoding of {0.symbols:,} symbols, local epsilon {0.local_epsilon:g}"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.truth < 1.0:
            raise InvalidParameter("truth", self.truth, "strictly between 0 and 1")
        if not self.other_support >= self.smallest:
            raise InvalidParameter("truth", self.truth, "at least 2**-900 for the other bits too")

    @property
    def own_support(self) -> float:
        return self.truth

    @property
    def other_support(self) -> float:
        p = self.truth
        return p / (p + math.exp(self.local_epsilon) * (1 - p))

    @property
    def pair(self) -> accounting.LocalPair:
        return accounting.unary_encoding(self.local_epsilon, self.symbols, self.truth)

    def _randomized(self, values: NDArray[np.int64], source: RandomSource) -> Reports:
        draws = source.uniform((len(values), self.symbols))
        bits = draws < self.other_support
        clients = np.arange(len(values))
        bits[clients, values] = draws[clients, values] < self.own_support
        return self._packed(bits)


def _distinct(rows: int, symbols: int, chosen: int, source: RandomSource) -> NDArray[np.int64]:
    """Rows of distinct symbols in a uniformly random order of the set's elements."""
    if chosen > _FEW:
        keys = source.integers(1 << 62, (rows, symbols))
        picked = np.argpartition(keys, chosen - 1, axis=1)[:, :chosen].astype(np.int64)
        # the first place is replaced by the own symbol: which element stands there must be chance
        first = source.integers(chosen, rows)
        at = np.arange(rows)
        picked[at, 0], picked[at, first] = picked[at, first].copy(), picked[at, 0].copy()
        return picked
    picked = np.empty((rows, chosen), dtype=np.int64)
    for place in range(chosen):
        fresh = source.integers(symbols, rows)
        again = np.flatnonzero((picked[:, :place] == fresh[:, None]).any(axis=1))
        while again.size:
            fresh[again] = source.integers(symbols, again.size)
            clash = (picked[again, :place] == fresh[again, None]).any(axis=1)
            again = again[clash]
        picked[:, place] = fresh
    return picked
