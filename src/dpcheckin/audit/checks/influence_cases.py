"""A small survey of every kind, with values, for attacks on what colluding clients can do."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpcheckin.errors import InvalidParameter
from dpcheckin.survey import (
    Count,
    Distribution,
    HeavyHitters,
    Histogram,
    Mean,
    Quantiles,
    Query,
    Sum,
    Survey,
    VectorMean,
)
from dpcheckin.survey.names import KINDS

POPULATION, LOCAL_EPSILON = 1000, 4.0
_QUERIES: dict[str, tuple[Query, tuple[str, ...]]] = {
    "count": (Count(), ("dary",)),
    "histogram": (Histogram(20), ("dary", "subset:3", "unary", "hadamard")),
    "mean": (Mean(0, 100), ("levels:8",)),
    "sum": (Sum(0, 100), ("levels:8",)),
    "vector-mean": (VectorMean(5), ("privunit", "hemisphere")),
    "distribution": (Distribution(0, 100, 32), ("flat", "tree:4")),
    "quantiles": (Quantiles(0, 100, 32, (0.5,)), ("flat", "tree:4")),
    "heavy-hitters": (HeavyHitters(12, 5), ("hash:7",)),
}


def attacked_surveys(
    kind: str | None = None,
    randomizer: str | None = None,
    population: int = POPULATION,
    local_epsilon: float = LOCAL_EPSILON,
    rate: float = 1.0,
    rounds: int | None = None,
) -> list[tuple[Survey, Any]]:
    """Surveys to attack, each with a value for every client.

    Args:
        kind: of the question; all if left out.
        randomizer: by the query's name; all of a small selection if left out.
        population: clients.
        local_epsilon: of one report.
        rate: probability of reporting in a round.
        rounds: how many; without it as few as the question needs.
    """
    if kind is not None and kind not in KINDS:
        raise InvalidParameter("question", kind, "one of " + ", ".join(KINDS))
    if kind is None and randomizer is not None:
        raise InvalidParameter("randomizer", randomizer, "given with --question")
    found = []
    for name in [kind] if kind else KINDS:
        query, ways = _QUERIES[name]
        for way in [randomizer] if randomizer else ways:
            survey = Survey(query, population, local_epsilon, way, rate, rounds or query.stages)
            found.append((survey, _values(name, population)))
    return found


def _values(kind: str, people: int) -> Any:
    """The same every time: what is attacked is the estimator, not the data."""
    draw = np.random.default_rng(5)
    if kind == "count":
        return (draw.random(people) < 0.3).astype(np.int64)
    if kind == "histogram":
        return np.minimum(draw.geometric(0.15, people) - 1, 19)
    if kind == "vector-mean":
        return draw.standard_normal((people, 5)) / 4
    if kind == "heavy-hitters":
        return np.where(draw.random(people) < 0.4, draw.integers(1, 4, people), 99)
    return 100 * draw.beta(2, 2, people)
