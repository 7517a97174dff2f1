"""Quantiles of counts, intervals for a probability, and the hypergeometric law."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from dpcheckin.special import Floats
from dpcheckin.special.binomial import cdf, pmf, sf
from dpcheckin.special.roots import root, whole_switch

_HIGHEST = 36.0  # log odds of the largest probability below 1
_BLOCK = 1 << 16  # counts whose masses are summed at once


def quantile(level: float, trials: int, probability: float) -> int:
    """The smallest count with cdf(count, trials, probability) ≥ level.

    >>> quantile(0.5, 10, 0.5)
    5
    """
    return _first(level, trials, lambda count: float(cdf(count, trials, probability)) >= level)


def upper_quantile(level: float, trials: int, probability: float) -> int:
    """The smallest count with sf(count, trials, probability) ≤ level.

    >>> upper_quantile(0.001, 10, 0.5)
    9
    """
    return _first(level, trials, lambda count: float(sf(count, trials, probability)) <= level)


def _first(level: float, trials: int, enough: Callable[[int], bool]) -> int:
    if not 0.0 <= level <= 1.0:
        raise ValueError(f"a level is a probability, not {level!r}")
    return whole_switch(enough, trials, -1)


def least_probability(seen: int, trials: int, miss: float) -> float:
    """The probability at which `seen` or more of `trials` have probability `miss` (Clopper).

    >>> round(least_probability(3, 3, 0.125), 12)
    0.5
    """
    _check_seen(seen, trials, miss)
    if seen == 0:
        return 0.0
    return _solved(lambda p: float(sf(seen - 1, trials, p)), miss)


def largest_probability(seen: int, trials: int, miss: float) -> float:
    """The probability at which `seen` or fewer of `trials` have probability `miss` (Pearson).

    >>> round(largest_probability(0, 3, 0.125), 12)
    0.5
    """
    _check_seen(seen, trials, miss)
    if seen == trials or float(cdf(seen, trials, _probability(_HIGHEST))) > miss:
        return 1.0
    return _solved(lambda p: float(cdf(seen, trials, p)), miss)


def _check_seen(seen: int, trials: int, miss: float) -> None:
    if not 0 <= seen <= trials:
        raise ValueError(f"{seen!r} of {trials!r}")
    if not 0.0 < miss < 1.0:
        raise ValueError(f"a probability strictly between 0 and 1, not {miss!r}")


def _solved(chance: Callable[[float], float], miss: float) -> float:
    """The p at which a monotone chance is `miss`; in logarithms it is nearly a line."""

    def excess(log_odds: float) -> float:
        return math.log(max(chance(_probability(log_odds)), 1e-320)) - math.log(miss)

    return _probability(root(excess, -700.0, _HIGHEST, relative=1e-15, absolute=1e-15))


def _probability(log_odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-log_odds))


def hypergeometric_pmf(count: Floats, population: int, marked: int, drawn: int) -> Floats:
    """P(count of the marked are among those drawn from the population without replacement), to 5e-14 down to 1e-20.

    Three binomial probabilities (Loader): nothing cancels for populations of 10^9. Impossible counts have probability
    zero; drawn are some, not all.

    >>> hypergeometric_pmf(np.arange(4.0), 6, 3, 3).round(6).tolist()
    [0.05, 0.45, 0.45, 0.05]
    """
    rate = drawn / population
    here = pmf(count, marked, rate)
    rest = pmf(drawn - count, population - marked, rate)
    return np.asarray(here * rest / float(pmf(drawn, population, rate)))


def hypergeometric_masses(edges: list[int], population: int, marked: int, drawn: int) -> list[float]:
    """P(edge < count ≤ next edge) for neighbouring, rising edges; population, marked, drawn as for the masses.

    >>> [round(one, 6) for one in hypergeometric_masses([-1, 0, 3], 6, 3, 3)]
    [0.05, 0.95]
    """
    masses = []
    for left, right in pairwise(edges):
        starts = range(left + 1, right + 1, _BLOCK)
        blocks = (np.arange(a, min(a + _BLOCK, right + 1), dtype=np.float64) for a in starts)
        masses.append(sum(float(hypergeometric_pmf(one, population, marked, drawn).sum()) for one in blocks))
    return masses
