"""From reports about the levels of a tree to running shares of its leaves, with their variances.

Every level estimates the shares of its nodes. Weighted least squares makes one histogram of the
leaves of all of them, whose sum is one. That is linear in the reports, so the variance of a running
share is the variance among the reports' contributions to it, level by level.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers import FrequencyRandomizer, HadamardResponse, TreeResponse
from dpcheckin.survey.sampling import Sample

Matrix = NDArray[np.float64]


def running_shares(
    tree: TreeResponse, reports: NDArray[np.int64], sample: Sample
) -> tuple[Matrix, Matrix]:
    """Unbiased running shares of the leaves, and the variance of each.

    Args:
        tree: that made the reports.
        reports: rows (level, report).
        sample: how many came in each round.
    """
    seen = [
        np.bincount(reports[reports[:, 0] == i, 1], minlength=kinds).astype(np.float64)
        for i, kinds in enumerate(tree.kinds)
    ]
    plain = len(seen) == 1 and not isinstance(tree.levels[0], HadamardResponse)
    shares, variance = _flat(tree, seen[0]) if plain else _levels(tree, seen)
    inside = np.clip(shares, 0.0, 1.0)
    # what asking the same people again takes away: each level hears only its part of them
    spared = inside * (1 - inside) * sample.repeated / sample.reports
    return shares, np.maximum(variance - spared, variance * 1e-3)


def _flat(tree: TreeResponse, seen: Matrix) -> tuple[Matrix, Matrix]:
    """d-ary response on the leaves alone: a running sum of what was seen."""
    level, total = tree.levels[0], seen.sum()
    gap = level.own_support - level.other_support
    parts = seen.cumsum() / total
    edges = np.arange(1, tree.leaves + 1)
    return (parts - edges * level.other_support) / gap, parts * (1 - parts) / (total * gap**2)


def _levels(tree: TreeResponse, seen: list[Matrix]) -> tuple[Matrix, Matrix]:
    shares, moves = _linear(tree)
    shares, variance = shares.copy(), np.zeros(tree.leaves)
    for each, counts in zip(moves, seen, strict=True):
        total = counts.sum()
        if total == 0:
            raise InvalidParameter("reports", 0, "at least one about every level of the tree")
        mean = each @ counts / total
        shares += mean
        variance += np.maximum(each**2 @ counts / total - mean**2, 0.0) / total
    return shares, variance


@lru_cache(maxsize=8)
def _linear(tree: TreeResponse) -> tuple[Matrix, list[Matrix]]:
    """Running shares without any report, and what a report of each kind adds, level by level."""
    places = [_nodes(tree.leaves, width, size) for width, size in _shape(tree)]
    weights = [_weight(level) for level in tree.levels]
    normal = sum(
        (weight * place.T @ place for weight, place in zip(weights, places, strict=True)),
        np.zeros((tree.leaves, tree.leaves)),
    )
    # the sum is one: a level with one node that is known as good as exactly
    sure = 1e4 * max(weights)
    normal += sure
    running = np.linalg.solve(normal, np.triu(np.ones((tree.leaves, tree.leaves)))).T
    each = [
        running @ (weight * place.T) @ _contributions(level)
        for level, weight, place in zip(tree.levels, weights, places, strict=True)
    ]
    return running @ np.full(tree.leaves, sure), each


def even_variance(tree: TreeResponse) -> Matrix:
    """Variance of a report's part in each running share when all reports are equally likely.

    Args:
        tree: that makes the reports.
    """
    return np.asarray(sum(each.var(axis=1) for each in _linear(tree)[1]))


def reach_of(tree: TreeResponse) -> Matrix:
    """How far one report in place of another can move each running share (rows) by level (columns).

    In units of one over the level's reports.

    Args:
        tree: that made the reports.
    """
    if len(tree.levels) == 1 and not isinstance(tree.levels[0], HadamardResponse):
        return np.array([[1.0 / (tree.levels[0].own_support - tree.levels[0].other_support)]])
    _, moves = _linear(tree)
    return np.stack([each.max(axis=1) - each.min(axis=1) for each in moves], axis=1)


def _shape(tree: TreeResponse) -> list[tuple[int, int]]:
    return list(zip(tree.widths, tree.sizes, strict=True))


def _nodes(leaves: int, width: int, size: int) -> Matrix:
    """Which leaves lie under each node."""
    under = np.arange(leaves)[None, :] // width == np.arange(size)[:, None]
    return np.asarray(under, dtype=np.float64)


def _weight(level: FrequencyRandomizer) -> float:
    """One over the variance of a report's part in a node's share, for leaves spread evenly."""
    even = np.full(level.symbols, 1.0 / level.symbols)
    return 1.0 / float(level.variance(even)[0] + (1 - even[0]) * even[0])


def _contributions(level: FrequencyRandomizer) -> Matrix:
    """What one report of each kind says about the share of each node."""
    every = np.arange(level.report_format.limits[0])
    supports = np.array([level.supports(every, node) for node in range(level.symbols)], float)
    gap = level.own_support - level.other_support
    return np.asarray((supports - level.other_support) / gap)
