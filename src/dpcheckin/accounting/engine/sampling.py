"""Sampling, when the number of those who took part is seen: curves averaged over that number.

Given k check-ins out of n the target is among them with probability q = k/n: the curve of one round
is q h(1 + (alpha - 1)/q) on alpha >= 1 and its mirror image (sampling without replacement,
replace-one; Balle, Barthe and Gaboardi, arXiv 1807.01647v2, Theorem 9 as a curve). k is visible and
independent of the data, so the curves are averaged over k ~ Bin(n, rate).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpcheckin.accounting.engine.arrays import FloatArray
from dpcheckin.accounting.engine.curves import CurveFunction, FunctionCurve
from dpcheckin.errors import InvalidParameter

TAIL = 1e-20
BINS = 192
LARGEST_LOSS = 40.0


@dataclass(frozen=True, slots=True, eq=False)
class VisibleCounts:
    """k ~ Bin(n, rate) in groups [low, high] with their probabilities."""

    low: FloatArray
    high: FloatArray
    probability: FloatArray
    tail_below: float
    tail_above: float

    @property
    def tail(self) -> float:
        """Probability of being outside all groups."""
        return self.tail_below + self.tail_above


def visible_counts(population: int, rate: float, groups: int = BINS) -> VisibleCounts:
    """Group the visible number of check-ins; what is left out has probability at most ``tail``."""
    if not population >= 1:
        raise InvalidParameter("population", population, "at least 1")
    if not 0.0 <= rate <= 1.0:
        raise InvalidParameter("rate", rate, "between 0 and 1")
    if rate in (0.0, 1.0):
        only = np.array([population * rate])
        return VisibleCounts(only, only, np.ones(1), 0.0, 0.0)
    mean, log_tail = population * rate, -math.log(TAIL)
    reach = math.sqrt(2.0 * mean * log_tail) + 2.0 * log_tail / 3.0 + 1.0  # Bernstein
    first, last = max(0, math.floor(mean - reach)), min(population, math.ceil(mean + reach))
    # narrow groups where the mass is, wide ones in the tails
    core = 5.0 * math.sqrt(mean) + 2.0
    knots = np.concatenate(
        [
            np.linspace(first - 1, mean - core, groups // 8),
            np.linspace(mean - core, mean + core, groups),
            np.linspace(mean + core, last, groups // 8),
        ]
    )
    from scipy.stats import binom  # slow to load, and only sums need it

    edges = np.unique(np.clip(np.rint(knots), first - 1, last).astype(np.int64))
    # differences of the nearer tail: those of the other one would lose the digits far out
    below = np.diff(binom.cdf(edges, population, rate))
    above = -np.diff(binom.sf(edges, population, rate))
    probability = np.where(edges[1:] < mean, below, above)
    return VisibleCounts(
        low=(edges[:-1] + 1).astype(np.float64),
        high=edges[1:].astype(np.float64),
        probability=np.asarray(probability),
        tail_below=0.0 if first == 0 else TAIL,
        tail_above=0.0 if last == population else TAIL,
    )


def sampled(profile: CurveFunction, fraction: float, alpha: FloatArray) -> FloatArray:
    """q h(1 + (alpha - 1)/q): the curve after sampling a fraction q without replacement."""
    if fraction <= 0.0:
        return np.zeros_like(alpha)
    return fraction * profile(1.0 + (alpha - 1.0) / fraction)


def sampled_backward(profile: CurveFunction, fraction: float, alpha: FloatArray) -> FloatArray:
    """H_alpha(Q || (1-q) Q + q P) = (1 - a (1-q)) h(a q / (1 - a (1-q))), and 0 from there on."""
    left = 1.0 - alpha * (1.0 - fraction)
    some = left > 0.0
    value = np.zeros_like(alpha)
    value[some] = left[some] * profile(np.maximum(alpha[some] * fraction / left[some], 1.0))
    return value


def mixture(
    population: int,
    counts: VisibleCounts,
    upper_profile: Callable[[float], CurveFunction],
    lower_profile: Callable[[float], CurveFunction],
    smallest: float,
) -> FunctionCurve:
    """Average over visible k: k/n grows with k, the profile shrinks, so groups use both ends.

    Args:
        population: Number of clients n.
        counts: The visible numbers, in groups.
        upper_profile: Upper bound of the profile of a sum of k reports, as a function of k.
        lower_profile: Lower bound likewise.
        smallest: A delta of which a millionth is negligible.
    """
    above = [
        (w, high / population, upper_profile(max(low, 1.0)))
        for low, high, w in zip(counts.low, counts.high, counts.probability, strict=True)
        if high > 0.0 and w > 0.0
    ]
    below = [
        (w, low / population, lower_profile(high))
        for low, high, w in zip(counts.low, counts.high, counts.probability, strict=True)
        if low > 0.0 and w > 0.0
    ]

    def upper(alpha: FloatArray) -> FloatArray:
        total = np.full_like(alpha, counts.tail)
        for weight, fraction, profile in above:
            total += weight * sampled(profile, fraction, alpha)
        return total

    def lower(alpha: FloatArray) -> FloatArray:
        total = np.zeros_like(alpha)
        for weight, fraction, profile in below:
            total += weight * sampled(profile, fraction, alpha)
        return total

    return FunctionCurve(upper, lower, reach(upper, 1e-6 * smallest + counts.tail))


def reach(curve: CurveFunction, negligible: float, largest: float = LARGEST_LOSS) -> float:
    """Smallest loss at which the curve is negligible (it is charged to delta from there on)."""
    low, high = 0.0, largest
    for _ in range(6):  # many places at a time: the price of a curve is that of its first value
        losses = np.linspace(low, high, 65)
        over = np.flatnonzero(curve(np.exp(losses)) > negligible)
        last = int(over[-1]) if over.size else 0
        if last == losses.size - 1:
            return high
        low, high = float(losses[last]), float(losses[last + 1])
    return high
