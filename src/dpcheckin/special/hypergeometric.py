"""The hypergeometric law: how many of the marked are drawn without replacement."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from dpcheckin.special.arrays import Floats
from dpcheckin.special.binomial import pmf as binomial_pmf

_BLOCK = 1 << 16


def pmf(count: Floats, population: int, marked: int, drawn: int) -> Floats:
    """P(count of the marked are among the drawn), to 5e-14 relative down to 1e-20.

    Three binomial probabilities (Loader): nothing cancels for populations of 10^9.

    Args:
        count: Whole numbers; impossible ones have probability zero.
        population: Of both kinds.
        marked: How many are marked.
        drawn: How many are drawn, fewer than the population and more than none.

    >>> pmf(np.arange(4.0), 6, 3, 3).round(6).tolist()
    [0.05, 0.45, 0.45, 0.05]
    """
    rate = drawn / population
    here = binomial_pmf(count, marked, rate)
    rest = binomial_pmf(drawn - count, population - marked, rate)
    return np.asarray(here * rest / float(binomial_pmf(drawn, population, rate)))


def cell_masses(edges: list[int], population: int, marked: int, drawn: int) -> list[float]:
    """P(edge < count ≤ next edge) for neighbouring edges, each summed by itself.

    Args:
        edges: Whole numbers in increasing order.
        population: Of both kinds.
        marked: How many are marked.
        drawn: How many are drawn.

    >>> [round(one, 6) for one in cell_masses([-1, 0, 3], 6, 3, 3)]
    [0.05, 0.95]
    """
    found = []
    for left, right in pairwise(edges):
        starts = range(left + 1, right + 1, _BLOCK)
        blocks = (np.arange(a, min(a + _BLOCK, right + 1), dtype=np.float64) for a in starts)
        found.append(sum(float(pmf(one, population, marked, drawn).sum()) for one in blocks))
    return found
