"""Randomizers that count: a report *supports* some of the symbols. First of all d-ary response.

A report supports the client's own symbol with one probability and any other with a smaller one,
the same for all; how many people hold a symbol follows from how many reports support it. Warner's
binary response and its d-ary form (k-RR; Kairouz, Bonawitz, Ramage, arXiv 1602.07387v3, section 2)
support the symbol they name; sets of symbols (`subsets`) and codes (`codes`) differ in nothing
else.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers.base import Argument, CategoryRandomizer, Value, at_least, positive
from dpcheckin.randomizers.formats import IntegerRows
from dpcheckin.randomizers.source import RandomSource

if TYPE_CHECKING:
    from dpcheckin.accounting import LocalPair

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
    def report_format(self) -> IntegerRows:
        """Integers, in a row or one alone."""

    @abstractmethod
    def support(self, reports: Reports) -> Counts:
        """How many of the reports support each symbol."""

    @abstractmethod
    def supports(self, reports: Reports, symbol: int) -> NDArray[np.bool_]:
        """Which of the reports support one symbol.

        Args:
            reports: well formed.
            symbol: from 0.
        """

    def log_ratio(self, reports: NDArray[Any], value: Value, others: Value) -> NDArray[np.float64]:
        assert isinstance(value, int) and isinstance(others, int)
        held = [self.supports(reports, one).astype(np.float64) for one in (value, others)]
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

    Args:
        local_epsilon: epsilon of one report, in nats.
        symbols: how many there are, 2 or more.

    >>> round(DaryResponse(local_epsilon=1.0, symbols=3).truth, 4)
    0.5761
    """

    local_epsilon: float
    symbols: int

    name, label = "dary", "k-ary response"
    aliases: ClassVar[tuple[str, ...]] = ("d-ary",)
    arguments: ClassVar[tuple[Argument, ...]] = (Argument("symbols", "K", 10),)

    def __post_init__(self) -> None:
        positive("local_epsilon", self.local_epsilon)
        at_least("symbols", self.symbols, 2)

    @property
    def truth(self) -> float:
        """Probability of reporting one's own symbol."""
        return 1.0 / (1.0 + (self.symbols - 1) * math.exp(-self.local_epsilon))

    @property
    def lie(self) -> float:
        """Probability of reporting one given other symbol."""
        return self.truth * math.exp(-self.local_epsilon)

    @property
    def pair(self) -> LocalPair:
        from dpcheckin.accounting import binary_response, dary_response

        if self.symbols == 2:
            return binary_response(self.local_epsilon)
        return dary_response(self.local_epsilon, self.symbols)

    def describe(self) -> str:
        return f"{self.symbols:,}-ary response, local epsilon {self.local_epsilon:g}"

    def randomize(self, values: NDArray[np.int64], source: RandomSource) -> NDArray[np.int64]:
        values = self.check_symbols(values)
        others = (values + 1 + source.integers(self.symbols - 1, values.shape)) % self.symbols
        return np.where(source.uniform(values.shape) < self.truth, values, others)

    @property
    def own_support(self) -> float:
        return self.truth

    @property
    def other_support(self) -> float:
        return self.lie

    @property
    def report_format(self) -> IntegerRows:
        return IntegerRows((self.symbols,), in_rows=False)

    def supports(self, reports: Reports, symbol: int) -> NDArray[np.bool_]:
        return np.asarray(np.asarray(reports) == symbol)

    def support(self, reports: Reports) -> Counts:
        reports = self.check_symbols(reports)
        return np.bincount(reports, minlength=self.symbols).astype(np.float64)


@dataclass(frozen=True)
class BinaryResponse(DaryResponse):
    """Warner's randomized response on the symbols 0 and 1.

    Args:
        local_epsilon: epsilon of one report, in nats.
    """

    symbols: int = 2

    name, label = "binary", "binary response"
    aliases = ()
    arguments = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.symbols != 2:
            raise InvalidParameter("symbols", self.symbols, "2 (use DaryResponse for more)")


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


def has_bit(reports: Reports, symbol: int) -> NDArray[np.bool_]:
    """Which packed rows have the bit of one symbol set."""
    return np.asarray(np.asarray(reports)[:, symbol // 8] >> (symbol % 8) & 1, dtype=np.bool_)


def bits_well_formed(reports: Reports, symbols: int) -> NDArray[np.bool_]:
    """Bytes only, and no bit set beyond the last symbol."""
    reports = np.asarray(reports)
    good = ((reports >= 0) & (reports < 256)).all(axis=1)
    spare = -symbols % 8
    return np.asarray(good & (reports[:, -1] < (1 << (8 - spare))))
