"""Kinds of questions: how values become reports, and reports an estimate with its interval.

The one table of them stands here, where help texts, settings and pages read it without any mathematics.
"""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """What a kind of question asks, where it is described, and the options that its class takes, in this order."""

    label: str
    module: str
    cls: str
    options: tuple[str, ...] = ()


_RANGE = ("low", "high")
QUERIES = {
    "count": Kind("How many have a property?", "histogram", "Count"),
    "histogram": Kind("How many in each category?", "histogram", "Histogram", ("categories",)),
    "mean": Kind("Mean of a number", "means", "Mean", _RANGE),
    "sum": Kind("Sum of a number", "means", "Sum", _RANGE),
    "vector-mean": Kind("Mean of a vector", "means", "VectorMean", ("dimension", "clip")),
    "quantiles": Kind("Quantiles of a number", "distribution", "Quantiles", (*_RANGE, "bins", "quantiles")),
    "distribution": Kind("Distribution of a number", "distribution", "Distribution", (*_RANGE, "bins")),
    "heavy-hitters": Kind(
        "Most frequent values", "heavy_hitters", "HeavyHitters", ("bits", "top", "false_positives", "alphabet")
    ),
}
KINDS = tuple(QUERIES)
MISSING = ("refuse", "drop", "category")
"""What may become of missing values: none is allowed; those clients are left out; they are a category of their own."""
ANY = "any"
"""The alphabet of all strings."""
