"""Randomizers that count: a report *supports* some of the symbols. First of all d-ary response.

A report supports the client's own symbol with one probability and any other with a smaller one, the same for all; how
many people hold a symbol follows from how many reports support it. Warner's binary response and its d-ary form (k-RR;
Kairouz, Bonawitz, Ramage, arXiv 1602.07387v3, section 2) support the symbol they name, Hadamard response (Acharya, Sun,
Zhang, arXiv 1802.04705v2, section 3), which names a column of a matrix of signs, half of all symbols. Sets of symbols
(`subsets`) differ in nothing else.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcheckin import accounting
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import at_least, positive
from dpcheckin.randomizers.base import LARGEST_EPSILON, Argument, CategoryRandomizer, Value
from dpcheckin.randomizers.formats import IntegerRows
from dpcheckin.randomizers.source import RandomSource

Reports = NDArray[np.int64]
Counts = NDArray[np.float64]


@dataclass(frozen=True)
class FrequencyRandomizer(CategoryRandomizer):
    """A randomizer of symbols whose reports each support some of them.

    Args:
        local_epsilon: epsilon of one report, in nats.
        symbols: how many there are, 2 or more.
    """

    local_epsilon: float
    symbols: int

    arguments: ClassVar[tuple[Argument, ...]] = (Argument("symbols", "K", 10),)

    def __post_init__(self) -> None:
        positive("local_epsilon", self.local_epsilon, LARGEST_EPSILON)
        at_least("symbols", self.symbols, 2)

    @property
    @abstractmethod
    def own_support(self) -> float:
        """Probability that a report supports the client's own symbol."""

    @property
    @abstractmethod
    def other_support(self) -> float:
        """Probability that a report supports one given other symbol."""

    @property
    def lie(self) -> float:
        """Probability that a report does not; to be drawn, since it keeps its digits where the other is next to 1."""
        return 1.0 - self.own_support

    @property
    @abstractmethod
    def report_format(self) -> IntegerRows:
        """Integers, in a row or one alone."""

    @abstractmethod
    def support(self, reports: Reports) -> Counts:
        """How many of the reports support each symbol."""

    @abstractmethod
    def supports(self, reports: Reports, symbol: int) -> NDArray[np.bool_]:
        """Which of the well-formed `reports` support one `symbol`, counted from 0."""

    def log_ratio(self, reports: NDArray[Any], value: Value, others: Value) -> NDArray[np.float64]:
        assert isinstance(value, int) and isinstance(others, int)
        held = [self.supports(reports, symbol).astype(np.float64) for symbol in (value, others)]
        return np.asarray(self.local_epsilon * (held[0] - held[1]))

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


@dataclass(frozen=True)
class DaryResponse(FrequencyRandomizer):
    """Report the true symbol e^ε₀ times as often as each other one.

    >>> round(DaryResponse(local_epsilon=1.0, symbols=3).own_support, 4)
    0.5761
    """

    name, label = "dary", "k-ary response"
    aliases: ClassVar[tuple[str, ...]] = ("d-ary",)
    description = "{0.symbols:,}-ary response, local epsilon {0.local_epsilon:g}"

    @property
    def own_support(self) -> float:
        return 1.0 / (1.0 + (self.symbols - 1) * math.exp(-self.local_epsilon))

    @property
    def other_support(self) -> float:
        return self.own_support * math.exp(-self.local_epsilon)

    @property
    def lie(self) -> float:
        return (self.symbols - 1) * self.other_support

    @property
    def pair(self) -> accounting.LocalPair:
        if self.symbols == 2:
            return accounting.binary_response(self.local_epsilon)
        return accounting.dary_response(self.local_epsilon, self.symbols)

    @property
    def report_format(self) -> IntegerRows:
        return IntegerRows((self.symbols,), in_rows=False)

    def randomize(self, values: NDArray[np.int64], source: RandomSource) -> NDArray[np.int64]:
        values = self.check_symbols(values)
        others = (values + 1 + source.integers(self.symbols - 1, values.shape)) % self.symbols
        return np.where(source.uniform(values.shape) < self.lie, others, values)

    def supports(self, reports: Reports, symbol: int) -> NDArray[np.bool_]:
        return np.asarray(np.asarray(reports) == symbol)

    def support(self, reports: Reports) -> Counts:
        reports = self.check_symbols(reports)
        return np.bincount(reports, minlength=self.symbols).astype(np.float64)


@dataclass(frozen=True)
class BinaryResponse(DaryResponse):
    """Warner's randomized response on the symbols 0 and 1."""

    symbols: int = 2

    name, label = "binary", "binary response"
    aliases = ()
    arguments = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.symbols != 2:
            raise InvalidParameter("symbols", self.symbols, "2 (use DaryResponse for more)")


def _parity(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.bitwise_count(numbers).astype(np.int64) & 1


@dataclass(frozen=True)
class HadamardResponse(FrequencyRandomizer):
    """A column of a Hadamard matrix, likelier where the row of the client's symbol is positive.

    Symbol x has row x + 1; the first row, which is positive everywhere, belongs to nobody. Half of all columns support
    a symbol.

    >>> HadamardResponse(local_epsilon=1.0, symbols=20).order
    32
    """

    name, label = "hadamard", "Hadamard response"
    description = "Hadamard response of {0.symbols:,} symbols, local epsilon {0.local_epsilon:g}"

    @property
    def order(self) -> int:
        """Columns of the matrix: the power of two above the number of symbols."""
        return 1 << self.symbols.bit_length()

    @property
    def own_support(self) -> float:
        return 1.0 / (1.0 + math.exp(-self.local_epsilon))

    @property
    def other_support(self) -> float:
        return 0.5

    @property
    def lie(self) -> float:
        return math.exp(-self.local_epsilon) * self.own_support

    @property
    def pair(self) -> accounting.LocalPair:
        return accounting.hadamard_response(self.local_epsilon, self.symbols)

    @property
    def report_format(self) -> IntegerRows:
        return IntegerRows((self.order,), in_rows=False)

    def randomize(self, values: NDArray[np.int64], source: RandomSource) -> Reports:
        rows = self.check_symbols(values) + 1
        columns = source.integers(self.order, rows.shape)
        own = source.uniform(rows.shape) >= self.lie
        # flipping one bit that the row has turns a column of one sign into one of the other
        wrong = (_parity(rows & columns) == 0) != own
        return np.asarray(np.where(wrong, columns ^ (rows & -rows), columns))

    def supports(self, reports: Reports, symbol: int) -> NDArray[np.bool_]:
        return np.asarray(_parity(np.asarray(reports) & (symbol + 1)) == 0)

    def support(self, reports: Reports) -> Counts:
        seen = np.bincount(np.asarray(reports), minlength=self.order).astype(np.float64)
        return np.asarray((seen.sum() + _signed_sums(seen))[1 : self.symbols + 1] / 2)


def _signed_sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The product with a Hadamard matrix (Sylvester's), in n log n steps."""
    total = np.asarray(values, dtype=np.float64).copy()
    half = 1
    while half < len(total):
        pairs = total.reshape(-1, 2, half)
        total = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).ravel()
        half *= 2
    return total
