"""Randomized response on symbols: tell the truth often enough, otherwise any other symbol.

Warner's binary response and its d-ary form (k-RR; Kairouz, Bonawitz, Ramage, arXiv 1602.07387v3,
section 2). Numbers and vectors are for the other modules.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers.base import CategoryRandomizer, at_least, positive
from dpcheckin.randomizers.source import RandomSource

if TYPE_CHECKING:
    from dpcheckin.accounting import LocalPair


@dataclass(frozen=True)
class DaryResponse(CategoryRandomizer):
    """Report the true symbol e^ε₀ times as often as each other one.

    Args:
        local_epsilon: epsilon of one report, in nats.
        symbols: how many there are, 2 or more.

    >>> round(DaryResponse(local_epsilon=1.0, symbols=3).truth, 4)
    0.5761
    """

    local_epsilon: float
    symbols: int

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
        return f"{self.symbols}-ary response, local epsilon {self.local_epsilon:g}"

    def randomize(self, values: NDArray[np.int64], source: RandomSource) -> NDArray[np.int64]:
        values = self.check_symbols(values)
        others = (values + 1 + source.integers(self.symbols - 1, values.shape)) % self.symbols
        return np.where(source.uniform(values.shape) < self.truth, values, others)

    def estimate(self, reports: NDArray[np.int64]) -> NDArray[np.float64]:
        reports = self.check_symbols(reports)
        seen = np.bincount(reports, minlength=self.symbols)
        return np.asarray((seen - reports.size * self.lie) / (self.truth - self.lie), np.float64)

    def variance(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        counts = np.asarray(counts, dtype=np.float64)
        own = counts * self.truth * (1 - self.truth)
        foreign = (counts.sum() - counts) * self.lie * (1 - self.lie)
        return np.asarray((own + foreign) / (self.truth - self.lie) ** 2)


@dataclass(frozen=True)
class BinaryResponse(DaryResponse):
    """Warner's randomized response on the symbols 0 and 1.

    Args:
        local_epsilon: epsilon of one report, in nats.
    """

    symbols: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.symbols != 2:
            raise InvalidParameter("symbols", self.symbols, "2 (use DaryResponse for more)")
