"""Binomial laws as the engine sums them: windows, and coarser laws that are larger."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.special.binomial import pmf

__all__ = ["CORNER", "Scatter", "coarse_scatter", "exact_scatter", "pmf", "window"]

# Probability below which a corner of a distribution is not enumerated but charged as loss without
# bound, in natural logarithms; exp(-85) = 1e-37 is nothing even after 10^6 rounds.
CORNER = 85.0


def window(trials: int, probability: float) -> tuple[int, int]:
    """Counts outside which a binomial has mass at most 2 exp(-CORNER), by Chernoff's bound."""
    if probability <= 0.0:
        return 0, 0
    if probability >= 1.0:
        return trials, trials
    ends = []
    for outward in (0, trials):
        inner, outer = int(trials * probability), outward
        if _relative_entropy(outward, trials, probability) <= CORNER:
            ends.append(outward)
            continue
        while abs(outer - inner) > 1:
            middle = (inner + outer) // 2
            if _relative_entropy(middle, trials, probability) <= CORNER:
                inner = middle
            else:
                outer = middle
        ends.append(outer)
    return ends[0], ends[1]


def _relative_entropy(count: int, trials: int, probability: float) -> float:
    x, total = count / trials, 0.0
    if count > 0:
        total += count * math.log(x / probability)
    if count < trials:
        total += (trials - count) * (math.log1p(-x) - math.log1p(-probability))
    return total


@dataclass(frozen=True, slots=True)
class Scatter:
    """A centred binomial: one row for every number of trials if `exact`, else one for all."""

    shifts: Array
    weights: Array
    exact: bool


def exact_scatter(fewest: int, most: int, probability: float) -> Scatter:
    """Bin(k, probability) minus its mean, one row each for k = most, most - 1, …, fewest."""
    trials = np.arange(most, fewest - 1, -1)
    ones = np.arange(most + 1)
    weights = pmf(ones[None, :], trials[:, None], probability)
    return Scatter(ones[None, :] - trials[:, None] * probability, weights, True)


def coarse_scatter(
    trials: int, probability: float, points: int, widest: int, harmless: int
) -> Scatter:
    """One law larger in convex order than Bin(k, probability) minus its mean for every k <= trials.

    More trials spread a centred binomial, and moving mass to the neighbouring nodes in proportion
    spreads it further.

    Args:
        trials: The largest number of trials.
        probability: Of one success.
        points: Nodes to use, about.
        widest: Counts up to which the binomial is summed; a wider one becomes its two ends.
        harmless: A distance of nodes that does no harm.
    """
    first, last = window(trials, probability)
    finest = max(1, math.ceil((last - first) / max(points - 2, 1)))
    cell = max(finest, min(harmless, last - first + 1), 1)
    shifts, weights = _on_nodes(trials, probability, first, last, cell, widest)
    return Scatter(shifts, weights, False)


def _on_nodes(
    trials: int, probability: float, first: int, last: int, cell: int, widest: int
) -> tuple[Array, Array]:
    """A centred binomial moved, mean preserving, onto nodes `cell` apart."""
    centre = trials * probability
    if last - first <= cell or last - first > widest:
        # the two ends of the window
        left, right = first - centre, last - centre
        return np.array([left, right]), np.array([right, -left]) / (right - left)
    ones = np.arange(first, last + 1)
    mass = pmf(ones, trials, probability)
    below = (ones - first) // cell
    nodes = first + cell * np.arange(int(below[-1]) + 2)
    share = (ones - nodes[below]) / cell
    weights = np.bincount(below, mass * (1 - share), nodes.size)
    weights = weights + np.bincount(below + 1, mass * share, nodes.size)
    weights = weights / weights.sum()
    return np.asarray(nodes - float(weights @ nodes)), np.asarray(weights)
