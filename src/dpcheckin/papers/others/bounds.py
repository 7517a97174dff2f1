"""Check-in without a shuffler's help.

Alone, check-in is amplified by sampling only, the number k visible: a guarantee for every local pair, and the bar any
amplification by shuffling has to clear.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from dpcheckin.accounting import DistributedRound, compose
from dpcheckin.accounting.engine.arrays import FloatArray
from dpcheckin.accounting.engine.curves import CurveFunction
from dpcheckin.accounting.engine.sampling import FunctionCurve, refined, sampled, visible_counts
from dpcheckin.accounting.statements import Bracket
from dpcheckin.numerals import positive
from dpcheckin.special.normal import gaussian_profile


def round_curve(population: int, rate: float, profile: CurveFunction, largest_loss: float) -> FunctionCurve:
    """One round of check-in alone of a population at a rate; the local profile is constant beyond the largest_loss."""
    counts = visible_counts(population, rate)

    def mixed(cohorts: FloatArray, left_out: float, alpha: FloatArray) -> FloatArray:
        total = np.full_like(alpha, left_out)
        for k, weight in zip(cohorts, counts.probability, strict=True):
            total += weight * sampled(profile, k / population, alpha)
        return total

    upper, lower = partial(mixed, counts.high, counts.tail), partial(mixed, counts.low, 0.0)
    most = float(counts.high[-1]) / population
    return FunctionCurve(upper, lower, math.log1p(most * math.expm1(min(largest_loss, 600.0))))


def pure_epsilon(population: int, rate: float, local_epsilon: float, rounds: int, delta: float) -> Bracket:
    """Epsilon at delta of so many rounds of check-in alone, a population at a rate, local_epsilon of pure reports.

    >>> pure_epsilon(10_000, 1e-2, 2.0, 100, 1e-4).upper < 2.0
    True
    """
    positive("local_epsilon", local_epsilon)
    e0 = math.exp(local_epsilon)

    def profile(alpha: FloatArray) -> FloatArray:
        return np.maximum(e0 - alpha, 0.0) / (e0 + 1.0)

    one_round = round_curve(population, rate, profile, local_epsilon)
    return Bracket(*refined([(one_round, rounds)], delta))


def gaussian_epsilon(population: int, rate: float, noise_multiplier: float, rounds: int, delta: float) -> Bracket:
    """Sampling only: each report is seen with its noise_multiplier, distance 2C. A guarantee.

    Of so many rounds, a population at a rate, at delta.
    """
    distance = 2.0 / noise_multiplier
    largest = distance**2 / 2.0 + distance * 9.5
    one_round = round_curve(population, rate, partial(gaussian_profile, distance), largest)
    return Bracket(*refined([(one_round, rounds)], delta))


def _distributed(population: int, rate: float, noise_multiplier: float, rounds: int, delta: float) -> Bracket:
    return compose([(DistributedRound(population, rate, noise_multiplier), rounds)]).epsilon(delta)
