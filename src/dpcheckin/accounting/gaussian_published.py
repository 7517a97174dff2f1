"""Gaussian reports beside the empty-seat theorem: what others would say about the same run.

Guarantees: check-in alone, and (epsilon_0, delta_0)-clones with its n delta_0.  Refuted: P4's
Equation 17, Theorems 2 and 3 and P1 Theorem 5, which treat the homogeneous pair as the worst case
(and Equation 17 keeps the rate where k/n belongs).
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from scipy.stats import binom

from dpcheckin.accounting import clones, curve_composition, strong_composition
from dpcheckin.accounting.bracket import Bracket
from dpcheckin.accounting.check_in_alone import round_curve
from dpcheckin.accounting.normal import gaussian_profile
from dpcheckin.accounting.rdp_conversion import RenyiCurve
from dpcheckin.accounting.shuffle_gaussian import full_shuffle_rdp
from dpcheckin.accounting.subsampled_shuffle import wang_subsampled
from dpcheckin.errors import OutsideTheorem

P4_ORDERS = 60


def check_in_alone(
    population: int, rate: float, noise_multiplier: float, rounds: int, delta: float
) -> Bracket:
    """Sampling only: each report is seen with its noise, distance 2C.  A guarantee."""
    distance = 2.0 / noise_multiplier
    largest = distance**2 / 2.0 + distance * 9.5
    one = round_curve(population, rate, partial(gaussian_profile, distance), largest)
    return curve_composition.epsilon([(one, rounds)], delta)


def clones_check_in(
    population: int, rate: float, noise_multiplier: float, rounds: int, delta: float
) -> float:
    """(eps_0, delta_0)-clones (Theorem 3.8), sampling, strong composition; best eps_0 of a grid."""
    distance = 2.0 / noise_multiplier
    budget = delta / (4.0 * rounds)
    most = min(population, int(binom.isf(budget, population, rate)) + 1)
    fraction = most / population
    best = math.inf
    for local_epsilon in np.geomspace(0.05, 16.0, 120):
        e0 = float(local_epsilon)
        d0 = float(gaussian_profile(distance, np.array([math.exp(e0)]))[0])
        widest = clones.approximate_delta(e0, d0, most, e0, 0.0)
        spare = budget / fraction - widest
        if spare <= 0.0:
            continue
        starts = math.ceil(clones.smallest_shuffle(e0, spare))
        one = 0.0
        for k in {most, max(1, min(most, starts - 1))}:
            shuffled = clones.closed_form(e0, k, spare) if k >= starts else e0
            one = max(one, clones.subsampled(shuffled, 0.0, k / population)[0])
        best = min(best, strong_composition.closed_form(one, rounds, delta / 2.0))
    if math.isinf(best):
        raise OutsideTheorem(
            "n delta_0 exceeds the delta of a round for every local epsilon up to 16; "
            "the empty-seat theorem has no such term"
        )
    return best


def p4_subsampled_rdp(rate: float, reports: int, noise_multiplier: float) -> RenyiCurve:
    """P4 Theorem 2 / P1 Theorem 5: Wang et al. on the homogeneous pair at distance 1.  Refuted."""
    base = full_shuffle_rdp(reports, noise_multiplier, P4_ORDERS, sensitivity=1.0)
    return wang_subsampled(base, rate, math.inf)


def p4_theorem_3(
    population: int, rate: float, noise_multiplier: float, rounds: int, delta: float
) -> float:
    """P4 Theorem 3 at the best of 20 splitting points.  Refuted."""
    mean = population * rate
    one = p4_subsampled_rdp(rate, 1, noise_multiplier)
    best = math.inf
    for split in np.linspace(0.05, 0.95, 19):
        kept = math.floor((1.0 - split) * mean) + 1
        many = p4_subsampled_rdp(rate, kept, noise_multiplier)
        few = (one.orders - 1.0) * one.epsilons - split**2 * mean / 2.0
        log_moment = np.logaddexp(few, (many.orders - 1.0) * many.epsilons)
        curve = RenyiCurve(many.orders, np.maximum(log_moment, 0.0) / (many.orders - 1.0))
        best = min(best, curve.times(rounds).epsilon(delta).epsilon)
    return best
