"""Check-in without a shuffler's help: amplification by sampling only, the number k visible.

A guarantee for every local pair, and the bar any amplification by shuffling has to clear.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from dpcheckin.accounting.engine.arrays import FloatArray
from dpcheckin.accounting.engine.curves import CurveFunction, FunctionCurve
from dpcheckin.accounting.engine.noise import gaussian_profile
from dpcheckin.accounting.engine.sampling import refined, sampled, visible_counts
from dpcheckin.accounting.figures import Bracket
from dpcheckin.accounting.parameters import positive


def round_curve(
    population: int, rate: float, profile: CurveFunction, largest_loss: float
) -> FunctionCurve:
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
    return FunctionCurve(upper, lower, math.log1p(most * math.expm1(min(largest_loss, 600.0))))


def pure_epsilon(
    population: int, rate: float, local_epsilon: float, rounds: int, delta: float
) -> Bracket:
    """Epsilon of ``rounds`` rounds of check-in alone with a pure local randomizer.

    >>> pure_epsilon(10_000, 1e-2, 2.0, 100, 1e-4).upper < 2.0
    True
    """
    positive("local_epsilon", local_epsilon)
    e0 = math.exp(local_epsilon)

    def profile(alpha: FloatArray) -> FloatArray:
        return np.maximum(e0 - alpha, 0.0) / (e0 + 1.0)

    one = round_curve(population, rate, profile, local_epsilon)
    return Bracket(*refined([(one, rounds)], delta))


def gaussian_epsilon(
    population: int, rate: float, noise_multiplier: float, rounds: int, delta: float
) -> Bracket:
    """Sampling only: each report is seen with its noise, distance 2C.  A guarantee."""
    distance = 2.0 / noise_multiplier
    largest = distance**2 / 2.0 + distance * 9.5
    one = round_curve(population, rate, partial(gaussian_profile, distance), largest)
    return Bracket(*refined([(one, rounds)], delta))
