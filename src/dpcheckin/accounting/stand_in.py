"""A report of at most three likelihood ratios that is nowhere more private than a given one.

Rounds of such reports have a short sum where others need a lattice. A profile h is convex and
closed under swapping, so with h(e^epsilon) <= delta it lies below its chord between e^-epsilon and
e^epsilon and below delta beyond: that is the profile of the worst (epsilon, delta)-LDP randomizer.
"""

from __future__ import annotations

import math

import numpy as np

from dpcheckin.accounting.curves import UPPER_SLACK
from dpcheckin.accounting.local_pairs import (
    LARGEST_LOCAL_EPSILON,
    LocalPair,
    ThreeAtoms,
    any_pure,
)
from dpcheckin.accounting.safe_side import left_of


def stand_in(pair: LocalPair, local_delta: float) -> ThreeAtoms:
    """The worst report of an epsilon that this one exceeds with at most `local_delta`.

    Its own local delta is larger than that only where no epsilon up to the largest allowed will do.

    >>> from dpcheckin.accounting.local_pairs import gaussian, laplace
    >>> stand_in(laplace(2.0), 1e-9) == any_pure(2.0)
    True
    >>> worst = stand_in(gaussian(2.0), 1e-9)
    >>> worst.local_delta, round(worst.local_epsilon, 2)
    (1e-09, 6.17)
    """
    if isinstance(pair, ThreeAtoms):
        return pair
    if pair.pure and pair.local_epsilon <= LARGEST_LOCAL_EPSILON:
        return any_pure(pair.local_epsilon)
    allowed = pair.local_delta + local_delta
    # where the pair's own epsilon is finite its profile has fallen to its local delta there
    epsilon = min(epsilon_within(pair, allowed), pair.local_epsilon, LARGEST_LOCAL_EPSILON)
    reached = 0.0 if epsilon == pair.local_epsilon else _profile(pair, epsilon)
    delta = min(max(allowed, reached), 1.0)
    hit = (1.0 - delta) / (math.exp(epsilon) + 1.0)
    return ThreeAtoms("any approximate randomizer", epsilon, hit, 0.0, local_delta=delta)


def epsilon_within(pair: LocalPair, delta: float) -> float:
    """An epsilon at which one report's profile is below delta; infinite if none below 700 is."""
    low, high = 0.0, min(1.0, pair.local_epsilon)
    while _profile(pair, high) > delta:
        if high >= 700.0:
            return math.inf
        low, high = high, min(2 * high, 700.0)
    for _ in range(40):
        middle = 0.5 * (low + high)
        if _profile(pair, middle) > delta:
            low = middle
        else:
            high = middle
    return high


def _profile(pair: LocalPair, epsilon: float) -> float:
    """An upper bound of the profile, since an epsilon is certified by it."""
    return float(pair.profile(left_of(np.array([math.exp(epsilon)])))[0]) * UPPER_SLACK
