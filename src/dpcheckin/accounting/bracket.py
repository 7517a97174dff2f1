"""A number known to lie between two certified bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpcheckin.errors import NumericalFailure


@dataclass(frozen=True, slots=True)
class Bracket:
    """The closed interval [lower, upper]; `upper` is the end a guarantee may quote.

    >>> Bracket(0.646, 0.647).relative_width < 0.002
    True
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        if math.isnan(self.lower) or math.isnan(self.upper):
            raise NumericalFailure("a bound came out as NaN; no figure can be stated")
        if self.lower > self.upper:
            raise NumericalFailure(f"bounds crossed: lower {self.lower!r} > upper {self.upper!r}")

    @property
    def relative_width(self) -> float:
        """(upper - lower) / upper; 0 when both ends are 0, 1 when only the upper is known."""
        if self.upper == self.lower:
            return 0.0
        if math.isinf(self.upper):
            return 1.0
        return (self.upper - self.lower) / self.upper
