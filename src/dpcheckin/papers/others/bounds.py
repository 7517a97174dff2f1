"""Check-in without a shuffler's help, and what others proved in the catalogue.

Alone, check-in is amplified by sampling only, the number k visible: a guarantee for every local pair, and the bar any
amplification by shuffling has to clear.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from dpcheckin.accounting import DistributedRound, compose
from dpcheckin.accounting.composition.clones import numerical
from dpcheckin.accounting.engine.arrays import FloatArray
from dpcheckin.accounting.engine.curves import CurveFunction
from dpcheckin.accounting.engine.sampling import FunctionCurve, refined, sampled, visible_counts
from dpcheckin.accounting.statements import Bracket
from dpcheckin.numerals import Kind, positive
from dpcheckin.papers.entry import CHECK_IN, DISTRIBUTED, SHUFFLE, SUBSAMPLE, PublishedBound
from dpcheckin.papers.others import clones
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


def _exact_subsample(population: int, cohort: int, local_epsilon: float, rounds: int, delta: float) -> float:
    return clones.composed_subsample(population, cohort, local_epsilon, rounds, delta, exact=True)


_G = Kind.GUARANTEE
_COMPOSED = "Thm 3.1 + BBG Thm 9 + KOV Thm 3.4"

ENTRIES = (
    PublishedBound(
        "clones, sampling, strong composition", "FMT", _COMPOSED,
        "closed form at every k up to a high-probability number of check-ins",
        _G, (CHECK_IN,), clones.composed_check_in,
    ),
    PublishedBound(
        "clones, sampling, strong composition", "FMT", _COMPOSED,
        "closed form for a fixed cohort; local epsilon where its condition fails",
        _G, (SUBSAMPLE,), clones.composed_subsample,
    ),
    PublishedBound(
        "exact clones, sampling, strong composition", "FMT", "Thm 3.2 + BBG Thm 9 + KOV Thm 3.4",
        "the pair of Theorem 3.2 evaluated exactly for a fixed cohort", _G, (SUBSAMPLE,), _exact_subsample,
    ),
    PublishedBound("clones", "FMT", "Thm 3.1", "closed form, one shuffle", _G, (SHUFFLE,), clones.closed_form),
    PublishedBound("exact clones", "FMT", "Thm 3.2", "the pair of Theorem 3.2, one shuffle", _G, (SHUFFLE,), numerical),
    PublishedBound(
        "check-in alone", "BBG", "Thm 9, averaged over the visible number of check-ins",
        "amplification by sampling only; nothing is gained from the shuffler", _G, (CHECK_IN,), pure_epsilon,
    ),
    PublishedBound(
        "check-in alone, Gaussian reports", "BBG", "Thm 9 as a curve, averaged over check-ins",
        "amplification by sampling only", _G, (CHECK_IN,), gaussian_epsilon,
    ),
    PublishedBound(
        "(eps0, delta0)-clones, Gaussian reports", "FMT", "Thm 3.8 + BBG Thm 9 + KOV Thm 3.4",
        "clones of an approximate randomizer, best eps0, paying n delta0", _G, (CHECK_IN,), clones.gaussian_check_in,
    ),
    PublishedBound(
        "distributed check-in, loss distribution", "BBG", "Thm 9 as a curve, averaged over k",
        "the tight one-round curve, composed numerically", _G, (DISTRIBUTED,), _distributed,
    ),
)  # fmt: skip
