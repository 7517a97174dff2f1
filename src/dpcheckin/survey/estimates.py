"""What a survey answers: figures with their intervals, and what they rest on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.display import needed

Figures = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Estimate:
    """One figure for every name, each with an interval.

    Args:
        names: what the figures are about, such as categories.
        values: unbiased estimates, in the unit of the question.
        lower: ends of the intervals.
        upper: ends of the intervals.
        deviation: estimated standard deviation of each value.
        confidence: that an interval contains the truth; of all of them at once if `simultaneous`.
        simultaneous: whether the confidence is that of all intervals together.
        population: clients that were asked.
        reports: answers that were counted.
        dropped: answers that no client could have made.
        more: further figures of the query, such as a whole distribution.
        parts: reports behind each mean that a figure is made of (levels of a tree, last stage of
            heavy hitters); empty if that is all of them.
    """

    names: tuple[str, ...]
    values: Figures
    lower: Figures
    upper: Figures
    deviation: Figures
    confidence: float
    simultaneous: bool
    population: int
    reports: int
    dropped: int = 0
    more: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[int, ...] = ()

    def as_document(self) -> dict[str, Any]:
        """Plain lists and numbers, for JSON."""
        return {
            "names": list(self.names),
            "values": self.values.tolist(),
            "lower": self.lower.tolist(),
            "upper": self.upper.tolist(),
            "deviation": self.deviation.tolist(),
            "confidence": self.confidence,
            "simultaneous": self.simultaneous,
            "population": self.population,
            "reports": self.reports,
            "dropped": self.dropped,
            "parts": list(self.parts or (self.reports,)),
            **{name: _plain(value) for name, value in self.more.items()},
        }

    def to_frame(self) -> Any:
        """The figures as a pandas DataFrame, one row a name; needs pandas."""
        pandas = needed("pandas", "frame")
        columns = ("values", "lower", "upper", "deviation")
        return pandas.DataFrame(
            {name: getattr(self, name) for name in columns}, index=list(self.names)
        )

    def contains(self, truth: Figures) -> NDArray[np.bool_]:
        """Which intervals contain the truth."""
        return np.asarray((self.lower <= truth) & (truth <= self.upper))


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value
