"""Randomizers whose report is a set of symbols: subset selection and unary encoding.

With many symbols and little local epsilon a report that names several of them says more than one
that names a single wrong one. Subset selection (Ye, Barg, arXiv 1702.00610v2; Wang et al., arXiv
1607.08025) names a fixed number; optimised unary encoding (Wang, Blocki, Li, Jha, USENIX Security
2017) sends a bit for every symbol.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers.base import Argument, at_least, positive
from dpcheckin.randomizers.formats import IntegerRows
from dpcheckin.randomizers.response import (
    CHUNK,
    Counts,
    FrequencyRandomizer,
    Reports,
    bit_support,
    bits_well_formed,
    has_bit,
    packed_rows,
)
from dpcheckin.randomizers.source import RandomSource

if TYPE_CHECKING:
    from dpcheckin.accounting import LocalPair

_FEW = 24  # symbols drawn one after another; more are drawn by sorting random keys


@dataclass(frozen=True)
class SubsetSelection(FrequencyRandomizer):
    """A set of `chosen` symbols, e^ε₀ times as likely if it contains the client's own.

    A report lists the symbols in increasing order or, where that is shorter, is a row of bits,
    eight to a byte.

    Args:
        local_epsilon: epsilon of one report, in nats.
        symbols: how many there are, 2 or more.
        chosen: symbols in a report, from 1 to symbols - 1.

    >>> one = SubsetSelection(local_epsilon=1.0, symbols=20, chosen=5)
    >>> round(one.own_support, 4), round(one.other_support, 4)
    (0.4754, 0.2381)
    """

    local_epsilon: float
    symbols: int
    chosen: int

    name, label = "subset", "subset selection"
    arguments = (Argument("symbols", "K", 10), Argument("chosen", "W", 2))

    def __post_init__(self) -> None:
        positive("local_epsilon", self.local_epsilon)
        at_least("symbols", self.symbols, 2)
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
    def pair(self) -> LocalPair:
        from dpcheckin.accounting import subset_selection

        return subset_selection(self.local_epsilon, self.symbols, self.chosen)

    @property
    def packed(self) -> bool:
        """Is a row of bits shorter than a list of symbols?"""
        width = 1 if self.symbols <= 256 else 2 if self.symbols <= 65536 else 4
        return self.chosen * width > (self.symbols + 7) // 8

    @property
    def report_format(self) -> IntegerRows:
        if self.packed:
            return IntegerRows((256,) * ((self.symbols + 7) // 8))
        return IntegerRows((self.symbols,) * self.chosen, in_rows=self.chosen > 1)

    def describe(self) -> str:
        return (
            f"subsets of {self.chosen:,} of {self.symbols:,} symbols, "
            f"local epsilon {self.local_epsilon:g}"
        )

    def randomize(self, values: NDArray[np.int64], source: RandomSource) -> Reports:
        values = self.check_symbols(values)
        width = self.chosen if self.chosen <= _FEW else self.symbols
        step = max(CHUNK // width, 1)
        parts = [self._sets(values[i : i + step], source) for i in range(0, len(values), step)]
        return np.concatenate(parts) if parts else np.zeros((0, self.report_format.width), np.int64)

    def _sets(self, values: NDArray[np.int64], source: RandomSource) -> Reports:
        """Others first, as if the own symbol did not exist; then it or one more of them."""
        others = _distinct(len(values), self.symbols - 1, self.chosen, source)
        others += others >= values[:, None]  # the symbols without one's own
        own = source.uniform(values.shape) < self.own_support
        rows = np.where(own[:, None] & (np.arange(self.chosen) == 0), values[:, None], others)
        if not self.packed:
            rows.sort(axis=1)
            return rows if self.chosen > 1 else rows[:, 0]
        bits = np.zeros((len(values), self.symbols), dtype=np.bool_)
        bits[np.arange(len(values))[:, None], rows] = True
        return packed_rows(bits)

    def well_formed(self, reports: Reports) -> NDArray[np.bool_]:
        reports = np.asarray(reports)
        if self.packed:
            good = bits_well_formed(reports, self.symbols)
            sizes = np.bitwise_count(np.where(good[:, None], reports, 0)).sum(axis=1)
            return np.asarray(good & (sizes == self.chosen))
        if self.chosen == 1:
            return super().well_formed(reports)
        return np.asarray(super().well_formed(reports) & (np.diff(reports, axis=1) > 0).all(axis=1))

    def support(self, reports: Reports) -> Counts:
        if self.packed:
            return bit_support(reports, self.symbols)
        seen = np.bincount(np.asarray(reports).ravel(), minlength=self.symbols)
        return seen.astype(np.float64)

    def supports(self, reports: Reports, symbol: int) -> NDArray[np.bool_]:
        if self.packed:
            return has_bit(reports, symbol)
        return np.asarray((np.asarray(reports).reshape(len(reports), -1) == symbol).any(axis=1))


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


@dataclass(frozen=True)
class UnaryEncoding(FrequencyRandomizer):
    """A bit for every symbol: the own one set with probability `truth`, the others far less often.

    Args:
        local_epsilon: epsilon of one report, in nats.
        symbols: how many there are, 2 or more.
        truth: probability that the own bit is set; ½ is the choice of least local variance.
    """

    local_epsilon: float
    symbols: int
    truth: float = 0.5

    name, label = "unary", "unary encoding"
    arguments = (Argument("symbols", "K", 10),)

    def __post_init__(self) -> None:
        positive("local_epsilon", self.local_epsilon)
        at_least("symbols", self.symbols, 2)
        if not 0.0 < self.truth < 1.0:
            raise InvalidParameter("truth", self.truth, "strictly between 0 and 1")

    @property
    def own_support(self) -> float:
        return self.truth

    @property
    def other_support(self) -> float:
        p = self.truth
        return p / (p + math.exp(self.local_epsilon) * (1 - p))

    @property
    def pair(self) -> LocalPair:
        from dpcheckin.accounting import unary_encoding

        return unary_encoding(self.local_epsilon, self.symbols, self.truth)

    @property
    def report_format(self) -> IntegerRows:
        return IntegerRows((256,) * ((self.symbols + 7) // 8))

    def describe(self) -> str:
        return f"unary encoding of {self.symbols:,} symbols, local epsilon {self.local_epsilon:g}"

    def randomize(self, values: NDArray[np.int64], source: RandomSource) -> Reports:
        values = self.check_symbols(values)
        step = max(CHUNK // self.symbols, 1)
        parts = []
        for start in range(0, len(values), step):
            some = values[start : start + step]
            draws = source.uniform((len(some), self.symbols))
            bits = draws < self.other_support
            at = np.arange(len(some))
            bits[at, some] = draws[at, some] < self.own_support
            parts.append(packed_rows(bits))
        return np.concatenate(parts) if parts else np.zeros((0, self.report_format.width), np.int64)

    def well_formed(self, reports: Reports) -> NDArray[np.bool_]:
        return bits_well_formed(reports, self.symbols)

    def support(self, reports: Reports) -> Counts:
        return bit_support(reports, self.symbols)

    def supports(self, reports: Reports, symbol: int) -> NDArray[np.bool_]:
        return has_bit(reports, symbol)
