"""Check-in without a shuffler's help: amplification by sampling only, the number k visible.

Given k check-ins the target is among them with probability q = k/n and everything else is known:
the curve of one round is q h(1 + (alpha - 1)/q) on alpha >= 1 and its mirror image (sampling
without replacement, replace-one; Balle, Barthe and Gaboardi, arXiv 1807.01647v2, Theorem 9 as a
curve).  k is visible and independent of the data, so the curves are averaged over k ~ Bin(n, rate).
A guarantee for every local pair, and the bar any amplification by shuffling has to clear.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from dpcheckin.accounting import curve_composition
from dpcheckin.accounting.bracket import Bracket
from dpcheckin.accounting.curve_composition import CurveRound
from dpcheckin.errors import InvalidParameter

FloatArray = NDArray[np.float64]
Profile = Callable[[FloatArray], FloatArray]

TAIL = 1e-20
BINS = 192


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
    edges = np.unique(np.clip(np.rint(knots), first - 1, last).astype(np.int64))
    probability = np.diff(binom.cdf(edges, population, rate))
    return VisibleCounts(
        low=(edges[:-1] + 1).astype(np.float64),
        high=edges[1:].astype(np.float64),
        probability=np.asarray(probability),
        tail_below=0.0 if first == 0 else TAIL,
        tail_above=0.0 if last == population else TAIL,
    )


def sampled(profile: Profile, fraction: float, alpha: FloatArray) -> FloatArray:
    """q h(1 + (alpha - 1)/q): the curve after sampling a fraction q without replacement."""
    if fraction <= 0.0:
        return np.zeros_like(alpha)
    return fraction * profile(1.0 + (alpha - 1.0) / fraction)


def round_curve(population: int, rate: float, profile: Profile, largest_loss: float) -> CurveRound:
    """One round of check-in alone.  ``largest_loss``: beyond it the local profile is constant."""
    counts = visible_counts(population, rate)

    def upper(alpha: FloatArray) -> FloatArray:
        total = np.full_like(alpha, counts.tail)
        for k, weight in zip(counts.high, counts.probability, strict=True):
            total += weight * sampled(profile, k / population, alpha)
        return total

    def lower(alpha: FloatArray) -> FloatArray:
        total = np.zeros_like(alpha)
        for k, weight in zip(counts.low, counts.probability, strict=True):
            total += weight * sampled(profile, k / population, alpha)
        return total

    most = float(counts.high[-1]) / population
    return CurveRound(upper, lower, math.log1p(most * math.expm1(min(largest_loss, 600.0))))


def pure_epsilon(
    population: int, rate: float, local_epsilon: float, rounds: int, delta: float
) -> Bracket:
    """Epsilon of ``rounds`` rounds of check-in alone with a pure local randomizer.

    >>> pure_epsilon(10_000, 1e-2, 2.0, 100, 1e-4).upper < 2.0
    True
    """
    if not (local_epsilon > 0.0 and math.isfinite(local_epsilon)):
        raise InvalidParameter("local_epsilon", local_epsilon, "a positive, finite number")
    e0 = math.exp(local_epsilon)

    def profile(alpha: FloatArray) -> FloatArray:
        return np.maximum(e0 - alpha, 0.0) / (e0 + 1.0)

    one = round_curve(population, rate, profile, local_epsilon)
    return curve_composition.epsilon([(one, rounds)], delta)
