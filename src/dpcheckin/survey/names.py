"""The one table of questions: their names as people type them, and where each is described.

Nothing is computed here, so that help texts and documents need no mathematics.
"""

from __future__ import annotations

from collections.abc import Mapping

QUERIES: Mapping[str, tuple[str, str]] = {
    "count": ("histogram", "Count"),
    "histogram": ("histogram", "Histogram"),
    "mean": ("numbers", "Mean"),
    "sum": ("numbers", "Sum"),
    "vector-mean": ("vectors", "VectorMean"),
    "quantiles": ("distribution", "Quantiles"),
    "distribution": ("distribution", "Distribution"),
    "heavy-hitters": ("heavy_hitters", "HeavyHitters"),
}
"""The module and the class of every kind of query."""

KINDS = tuple(QUERIES)
