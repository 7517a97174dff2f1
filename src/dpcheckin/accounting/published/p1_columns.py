"""REFUTED: the three columns of P1 Table 2, computed as the paper computed them.

All three turn an (epsilon, delta) statement into a Rényi curve by P1 Lemma 1, which points the
wrong way (see :mod:`dpcheckin.accounting.dp_to_rdp`), so none of the numbers is a guarantee; three
of Table 2's entries lie below an exact lower bound.  Where the text leaves a choice open the one
that comes closest to the printed table is taken, and named.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from dpcheckin.accounting import clones
from dpcheckin.accounting.dp_to_rdp import smallest_renyi
from dpcheckin.accounting.rdp_conversion import RenyiCurve
from dpcheckin.accounting.subsampled_shuffle import wang_subsampled

FloatArray = NDArray[np.float64]

_WANG_ORDERS = np.arange(2.0, 257.0)
_ORDERS = np.unique(np.concatenate([np.arange(2.0, 33.0), np.rint(np.geomspace(33.0, 1e4, 80))]))


def baseline(
    population: int,
    rate: float,
    local_epsilon: float,
    rounds: int,
    delta: float,
    local_delta: float | None = None,
) -> float:
    """Theorem 1 at l check-ins, Lemma 1, Rényi composition.

    P(more than l) is delta / rounds and is left out of delta, the clones formula is used without
    its condition, and delta_0 is delta^2 (the table's "1/delta^2").

    >>> 0.092 <= baseline(10_000, 1e-2, 2.0, 100, 1e-4) <= 0.096
    True
    """
    d0 = delta**2 if local_delta is None else local_delta
    count = min(population, int(binom.isf(delta / rounds, population, rate)) + 1)
    fraction = count / population
    shuffled = min(local_epsilon, clones.formula(local_epsilon, count, delta))
    one, _ = clones.subsampled(shuffled, 0.0, fraction)
    # Eq. 14 puts the subsampled epsilon where the shuffled one belongs; kept as printed.
    one_delta = fraction * clones.approximate_delta(local_epsilon, d0, count, one, delta)
    curve = smallest_renyi(np.array([one]), np.array([min(one_delta, 0.999)]), _ORDERS)[0]
    return RenyiCurve(_ORDERS, curve).times(rounds).epsilon(delta).epsilon


def approach_1(
    population: int,
    rate: float,
    local_epsilon: float,
    rounds: int,
    delta: float,
    local_delta: float | None = None,
) -> float:
    """Shuffled (epsilon, delta) to Rényi by Lemma 1, then Wang et al., then the sum over k."""
    k, weight = _counts(population, rate)
    shuffled, shuffled_delta = _shuffled(k, local_epsilon, delta, local_delta)
    curves = smallest_renyi(shuffled, shuffled_delta, _WANG_ORDERS)
    log_moments = np.array(
        [
            (_WANG_ORDERS - 1.0)
            * wang_subsampled(RenyiCurve(_WANG_ORDERS, row), count / population, math.inf).epsilons
            for count, row in zip(k, curves, strict=True)
        ]
    )
    return _mixed(weight, log_moments, _WANG_ORDERS, rounds, delta)


def approach_2(
    population: int,
    rate: float,
    local_epsilon: float,
    rounds: int,
    delta: float,
    local_delta: float | None = None,
) -> float:
    """Subsampled and shuffled (epsilon, delta) to Rényi by Lemma 1, then the sum over k."""
    k, weight = _counts(population, rate)
    shuffled, shuffled_delta = _shuffled(k, local_epsilon, delta, local_delta)
    fraction = k / population
    one = np.log1p(fraction * np.expm1(shuffled))
    curves = smallest_renyi(one, fraction * shuffled_delta, _ORDERS)
    return _mixed(weight, (_ORDERS - 1.0) * curves, _ORDERS, rounds, delta)


def _counts(population: int, rate: float) -> tuple[NDArray[np.int64], FloatArray]:
    """At most 80 visible numbers of check-ins and their probabilities (0 check-ins left out)."""
    low = max(1, int(binom.ppf(1e-15, population, rate)) - 1)
    high = min(population, int(binom.isf(1e-15, population, rate)) + 1)
    if high - low < 80:
        k = np.arange(low, high + 1)
        return k, np.asarray(binom.pmf(k, population, rate))
    edges = np.unique(np.linspace(low - 1, high, 81).astype(np.int64))
    weight = np.diff(binom.cdf(edges, population, rate))
    return edges[1:], np.asarray(weight)


def _shuffled(
    k: NDArray[np.int64], local_epsilon: float, delta: float, local_delta: float | None
) -> tuple[FloatArray, FloatArray]:
    """Epsilon by the exact clones pair (its authors' numerical routine), delta by P1 Eq. 9."""
    d0 = delta**2 if local_delta is None else local_delta
    nodes = np.unique(k[np.linspace(0, k.size - 1, 12).astype(int)])
    values = [clones.numerical(local_epsilon, int(x), delta) for x in nodes]
    epsilons = np.interp(k, nodes, values)  # a refuted figure: interpolation is good enough
    # Eq. 9 has exp(eps_0) + 1 where exp(eps) + 1 belongs (conservative); kept as printed.
    deltas = clones.approximate_delta(local_epsilon, d0, 1, local_epsilon, 0.0) * k + delta
    return epsilons, np.minimum(deltas, 0.999)


def _mixed(
    weight: FloatArray, log_moments: FloatArray, orders: FloatArray, rounds: int, delta: float
) -> float:
    top = log_moments.max(axis=0)
    rest = max(1.0 - float(weight.sum()), 0.0)  # no check-in at all: moment 1
    total = (weight[:, None] * np.exp(log_moments - top)).sum(axis=0) + rest * np.exp(-top)
    mixed = np.maximum(0.0, top + np.log(total)) / (orders - 1.0)
    return RenyiCurve(orders, mixed).times(rounds).epsilon(delta).epsilon


def shuffle_only(reports: int, local_epsilon: float, rounds: int, delta: float) -> float:
    """The upper curve of P1 Figure 3: full shuffling by clones, Lemma 1, Rényi composition."""
    d0 = delta**2
    one = min(local_epsilon, clones.formula(local_epsilon, reports, delta))
    one_delta = clones.approximate_delta(local_epsilon, d0, reports, one, delta)
    curve = smallest_renyi(np.array([one]), np.array([min(one_delta, 0.999)]), _ORDERS)[0]
    return RenyiCurve(_ORDERS, curve).times(rounds).epsilon(delta).epsilon
