"""Reports in random order by the clones' pair: a bound of our own plans where nothing is better.

Feldman, McMillan and Talwar, arXiv 2012.12803v3: Theorem 3.2 (pure reports, evaluated exactly), for adaptive sequences:
averaged windows may be priced by it. And the price of Theorem 3.8, for reports with a delta of their own; closed forms
and what papers built on them are in `papers.others.clones`.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import count, open_probability, positive
from dpcheckin.special import binomial
from dpcheckin.special.roots import root, switch

_TAIL = 18.0 * math.log(10.0)


def numerical_delta(local_epsilon: float, reports: int, epsilon: float) -> float:
    """delta(`epsilon`) of Theorem 3.2's pair for so many `reports` of this `local_epsilon`, and a tail of 2e-18 on top.

    Others are clones of either input with probability exp(-eps0); given c clones the two counts are binomial, and the
    likelihood ratio is monotone in the first of them.
    """
    count("reports", reports)
    positive("local_epsilon", local_epsilon)
    if not epsilon >= 0.0:
        raise InvalidParameter("epsilon", epsilon, "at least 0")
    e0, alpha = math.exp(local_epsilon), math.exp(epsilon)
    if alpha >= e0:
        return 0.0
    clone = math.exp(-local_epsilon)
    # Bernstein: fewer or more clones than this with probability at most 1e-18 each.
    mean = (reports - 1) * clone
    reach = math.sqrt(2.0 * mean * _TAIL) + 2.0 * _TAIL / 3.0 + 1.0
    low, high = max(0, math.floor(mean - reach)), min(reports - 1, math.ceil(mean + reach))
    c = np.arange(low, high + 1, dtype=np.float64)
    weight = binomial.pmf(c, reports - 1, clone)
    cut = np.floor((c + 1.0) * (alpha * e0 - 1.0) / ((e0 - 1.0) * (1.0 + alpha)))
    above = binomial.sf(cut, c, 0.5)  # P(A > cut)
    above_one_less = above + binomial.pmf(cut, c, 0.5)  # P(A + 1 > cut)
    p = (e0 * above_one_less + above) / (e0 + 1.0)
    q = (above_one_less + e0 * above) / (e0 + 1.0)
    return float(np.dot(weight, np.maximum(0.0, p - alpha * q))) + 2.0 * math.exp(-_TAIL)


@lru_cache(maxsize=512)
def numerical(local_epsilon: float, reports: int, delta: float) -> float:
    """Smallest epsilon for which `reports` of this `local_epsilon` have ``numerical_delta`` <= `delta`, 1e-7 above it.

    >>> round(numerical(1.0, 10_000, 1e-6), 4)
    0.053
    """
    check_local(local_epsilon, delta)
    if numerical_delta(local_epsilon, reports, 0.0) <= delta:
        return 0.0

    def too_much(epsilon: float) -> float:
        return math.log(max(numerical_delta(local_epsilon, reports, epsilon), 1e-300) / delta)

    # delta falls about exponentially: its logarithm's secant finds what bisection then confirms
    def holds(epsilon: float) -> bool:
        return numerical_delta(local_epsilon, reports, epsilon) <= delta

    guess = root(too_much, 0.0, local_epsilon, relative=2e-8)
    good, bad = local_epsilon, 0.0
    for tried in (guess * (1 + 4e-8), guess * (1 - 4e-8)):
        good, bad = (min(good, tried), bad) if holds(tried) else (good, max(bad, tried))
    return switch(holds, good, bad, relative=1e-7)[0]


def approximate_delta(local_epsilon: float, local_delta: float, reports: int, epsilon: float, delta: float) -> float:
    """Theorem 3.8: delta of `reports`, (`local_epsilon`, `local_delta`), the pure pair's at `epsilon` being `delta`."""
    extra = (math.exp(epsilon) + 1.0) * (1.0 + math.exp(-local_epsilon) / 2.0)
    return delta + extra * reports * local_delta


def check_local(local_epsilon: float, delta: float) -> None:
    """Refuse a `local_epsilon` or `delta` that no theorem about clones is about."""
    positive("local_epsilon", local_epsilon)
    open_probability("delta", delta)
