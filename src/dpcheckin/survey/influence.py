"""How far clients that lie together can move a figure; docs/survey.md has the proof.

Every figure of a survey is a sum of means, one for each *part* of the reports: a level of a tree,
the last stage of heavy hitters, otherwise all of them. What one report adds to a mean lies within a
fixed range, its *reach*, and a client sends at most one report a round. So c clients move a mean by
at most the reach times their share of its reports, and they choose the part.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.special import binomial

Figures = NDArray[np.float64]

FAILURE = 1e-9
"""Probability, over the coins of honest clients, that a bound stated before a run fails."""
COLLUDING_CLIENTS = (1, 10, 100)
"""Of whom bounds are stated unless others are asked for."""


def largest_moves(reach: Figures, sizes: Sequence[float], hostile: float) -> Figures:
    """The most by which so many reports, put in place of others or added, move each figure.

    Whether a report counts in one part or another is its sender's choice: what leaves one part and
    what enters another both count, each at most `hostile` reports.

    Args:
        reach: largest minus smallest part of one report in each figure (rows) by part (columns).
        sizes: reports counted in each part, hostile ones included.
        hostile: reports that may be anything.

    >>> largest_moves(np.array([[2.0]]), [100], 10)
    array([0.2])
    >>> largest_moves(np.array([[2.0, 1.0]]), [100, 100], 10)    # from one part into the other
    array([0.3])
    """
    reach = np.asarray(reach, dtype=np.float64)
    counts = np.maximum(np.asarray(sizes, dtype=np.float64), 0.0)
    if reach.ndim != 2 or reach.shape[1] != len(counts):
        raise InvalidParameter("sizes", len(counts), "a number of reports for each part")
    most = np.minimum(counts, hostile)  # of a part, no more can be moved
    gain = reach / np.maximum(counts, 1.0)
    order = np.argsort(-gain, axis=1, kind="stable")
    left = np.cumsum(most[order], axis=1)
    whole = 2.0 * hostile if len(counts) > 1 else hostile
    taken = np.minimum(left, whole) - np.minimum(left - most[order], whole)
    # a part without a report of its own may be given its first one: then all of it has moved
    empty = (reach * (counts < 1.0)).sum(axis=1)
    moved = (np.take_along_axis(gain, order, axis=1) * taken).sum(axis=1)
    return np.asarray(moved + empty * (hostile > 0))


def least_sizes(honest: int, probability: float, parts: int) -> NDArray[np.float64]:
    """Reports that each part has at least, all of them at once, but with probability `FAILURE`.

    Args:
        honest: how often an honest client may report.
        probability: that it does, in a given part.
        parts: how many there are.
    """
    if probability >= 1.0:
        return np.full(parts, float(honest))
    return np.full(parts, float(binomial.quantile(FAILURE / parts, honest, probability)))


def check_clients(clients: object, population: int, name: str = "clients") -> int:
    """Refuse what cannot be a number of colluding clients."""
    whole = isinstance(clients, int | np.integer) and not isinstance(clients, bool)
    if not whole or not 0 <= clients <= population:  # type: ignore[operator]
        raise InvalidParameter(name, clients, f"a whole number from 0 to {population:,}")
    return int(clients)  # type: ignore[call-overload, no-any-return]
