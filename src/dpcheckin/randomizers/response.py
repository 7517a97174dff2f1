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
from dpcheckin.randomizers.base import at_least, positive
from dpcheckin.randomizers.frequency import Counts, FrequencyRandomizer, Reports
from dpcheckin.randomizers.source import RandomSource

if TYPE_CHECKING:
    from dpcheckin.accounting import LocalPair


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
    def limits(self) -> tuple[int, ...]:
        return (self.symbols,)

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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.symbols != 2:
            raise InvalidParameter("symbols", self.symbols, "2 (use DaryResponse for more)")
