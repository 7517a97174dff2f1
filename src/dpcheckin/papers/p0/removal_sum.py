"""Distributed check-in under removal of a client: sum and number of reports seen, any dimension.

The setting of P0 Theorem 5 (arXiv 2206.03151v1), with one thing more given away: besides the average of the Gaussian
reports, their number k is seen. With b_k = P(Bin(n-1, g) = k), h_k the profile of two normal laws d / (s sqrt k)
deviations apart and c = 1 - a (1 - g), the two directions cost at most sum_{k>0} g b_{k-1} h_k((a - 1 + g) b_k / (g
b_{k-1})) and c sum_k b_k h_k(a g b_{k-1} / (c b_k)), 0 if c <= 0, for a >= 1. The proof is in docs/errata.md.
"""

from __future__ import annotations

import math

import numpy as np

from dpcheckin.accounting.engine.arrays import FloatArray
from dpcheckin.accounting.engine.curves import CurveFunction
from dpcheckin.accounting.engine.sampling import FunctionCurve, reach, refined
from dpcheckin.accounting.statements import Bracket
from dpcheckin.errors import NumericalFailure
from dpcheckin.numerals import count, open_probability, positive
from dpcheckin.special import binomial
from dpcheckin.special.normal import gaussian_profile

_TAIL = 1e-20
MOST_COUNTS = 20_000


def epsilon(
    population: int, rate: float, noise_multiplier: float, rounds: int, delta: float, *, distance: float = 2.0
) -> Bracket:
    """Epsilon at delta of so many rounds, the larger of the two directions; `upper` is guaranteed.

    The target is one of the population, each of which checks in at this rate, below 1, with this noise_multiplier, in
    clipping norms, as is the largest distance of two clients' vectors (2 in a ball).

    >>> epsilon(200, 0.3, 1.0, 1, 1e-4, distance=1.0).upper < 0.6
    True
    """
    positive("delta", delta)
    added, removed, tail = curves(population, rate, noise_multiplier, distance=distance)
    smallest = 1e-6 * delta / rounds + tail
    largest = max(reach(added, smallest), reach(removed, smallest))

    def below(curve: CurveFunction) -> CurveFunction:
        return lambda alpha: np.maximum(curve(alpha) - tail, 0.0)

    one_round = FunctionCurve(added, below(added), largest, (removed, below(removed)))
    return Bracket(*refined([(one_round, rounds)], delta))


def curves(
    population: int, rate: float, noise_multiplier: float, *, distance: float = 2.0
) -> tuple[CurveFunction, CurveFunction, float]:
    """Both curves of a round, and what they add for numbers left out: population, rate, noise_multiplier, distance."""
    count("population", population)
    positive("noise_multiplier", noise_multiplier)
    positive("distance", distance)
    open_probability("rate", rate)
    others = population - 1
    first, last, tail = _range(others, rate)
    if last - first > MOST_COUNTS:
        raise NumericalFailure(
            f"{last - first:,} numbers of reports are likely, more than {MOST_COUNTS:,}; the "
            "replacement curves (DistributedRound) are grouped and have no such limit"
        )
    k = np.arange(first, last + 2)  # the target makes one more
    here = binomial.pmf(k, others, rate)  # b_k
    before = binomial.pmf(k - 1, others, rate)  # b_{k-1}
    shift = distance / (noise_multiplier * np.sqrt(np.maximum(k, 1)))
    odds = (population - k) * rate / (np.maximum(k, 1) * (1.0 - rate))  # b_k / b_{k-1}
    seats = list(zip(*(column.tolist() for column in (shift, here, before, odds, k)), strict=True))

    def added(alpha: FloatArray) -> FloatArray:
        total = np.full_like(alpha, tail)
        for far, _, chance, ratio, i in seats:
            if i >= 1:
                total += rate * chance * gaussian_profile(far, (alpha - 1.0 + rate) / rate * ratio)
        return total

    def removed(alpha: FloatArray) -> FloatArray:
        left = np.maximum(1.0 - alpha * (1.0 - rate), 0.0)
        total = np.full_like(alpha, tail)
        some = left > 0.0
        scaled = alpha[some] * rate / left[some]
        for far, chance, _, ratio, i in seats:
            if i == 0:
                total += left * chance
            elif ratio > 0.0:
                total[some] += left[some] * chance * gaussian_profile(far, scaled / ratio)
        return total

    return added, removed, tail


def _range(others: int, rate: float) -> tuple[int, int, float]:
    """Numbers of other reports that are summed, and the probability of the rest (Bernstein)."""
    mean, log_tail = others * rate, -math.log(_TAIL)
    spread = math.sqrt(2.0 * mean * (1.0 - rate) * log_tail) + 2.0 * log_tail / 3.0 + 1.0
    first, last = max(0, math.floor(mean - spread)), min(others, math.ceil(mean + spread))
    whole = first == 0 and last == others
    return first, last, 0.0 if whole else 2.0 * _TAIL
