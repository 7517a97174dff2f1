"""P1 Appendix D.1 (arXiv 2206.03151v2): shuffled check-in by coupling, with its first term mended.

With eps = log(1 + g (e^x - 1)), beta = e^{eps - x}, w_k = P(k - 1 of the n - 1 others check in), d_k the profile of a
full shuffle of k reports and x > 0 free, delta(eps) <= g beta sum_{k=1..n} w_k d_k(x) + g (1 - beta) (sum_{k<n} w_k
d_k(x_k) + w_n), x_k = x + log(g / (1 - g) (n/k - 1)). The paper has g beta d_0(x), which is 0, for the first sum;
docs/errata.md says why.
"""

from __future__ import annotations

import math

import numpy as np

from dpcheckin.accounting.composition.clones import numerical_delta
from dpcheckin.errors import NumericalFailure
from dpcheckin.numerals import count, open_probability, positive
from dpcheckin.special import binomial, intervals

_GROUPS = 72
_TAIL = 1e-16


def delta(population: int, rate: float, local_epsilon: float, free: float) -> tuple[float, float]:
    """(epsilon, delta) of one round at the free parameter `free` > 0: a guarantee.

    Of a population at a rate, with pure reports of this local_epsilon; full shuffles are priced by the exact clones
    pair (arXiv 2012.12803v3, Theorem 3.2).

    >>> e, d = delta(1000, 0.1, 1.0, 0.3)
    >>> print(f"{e:.4f} {d:.1e}")
    0.0344 2.3e-04
    """
    count("population", population)
    positive("local_epsilon", local_epsilon)
    positive("free", free)
    open_probability("rate", rate)
    n, g = population, rate
    epsilon = math.log1p(g * math.expm1(free))
    beta = math.exp(epsilon - free)
    parts, left_out = _groups(n, g)
    same = other = left_out
    for low, high, weight in parts:
        # more reports shuffle better, and x_k falls with k: each end where it costs more
        same += weight * shuffle_profile(local_epsilon, low, free)
        if high < n:
            at = free + math.log(g / (1.0 - g) * (n / high - 1.0))
            other += weight * shuffle_profile(local_epsilon, low, at)
        else:
            other += weight
    return epsilon, g * beta * same + g * (1.0 - beta) * other


def epsilon_of_one_round(population: int, rate: float, local_epsilon: float, delta_wanted: float) -> float:
    """Epsilon at delta_wanted, within a thousandth above the least: population, rate, pure reports of local_epsilon."""
    open_probability("delta", delta_wanted)

    def excess(free: float) -> float:
        return math.log(delta(population, rate, local_epsilon, free)[1] / delta_wanted)

    low, high = 1e-3 * local_epsilon, 2.0 * local_epsilon + 4.0
    above, below = excess(low), excess(high)
    if below > 0.0:
        raise NumericalFailure("P1's coupling does not reach this delta")
    if above <= 0.0:
        return math.log1p(rate * math.expm1(low))
    while high - low > 1e-3 * high:
        # log delta falls smoothly: aim a little beyond the secant, not too close to either end
        aim = low + (high - low) * min(max(1.05 * above / (above - below), 0.1), 0.9)
        value = excess(aim)
        if value > 0.0:
            low, above = aim, value
        else:
            high, below = aim, value
    return math.log1p(rate * math.expm1(high))


def shuffle_profile(local_epsilon: float, reports: int, epsilon: float) -> float:
    """delta(epsilon) of a full shuffle of reports of this local_epsilon, also for negative epsilon."""
    if epsilon >= 0.0:
        return numerical_delta(local_epsilon, reports, epsilon)
    there = numerical_delta(local_epsilon, reports, -epsilon)
    return min(1.0, -math.expm1(epsilon) + math.exp(epsilon) * there)


def _groups(n: int, rate: float) -> tuple[list[tuple[int, int, float]], float]:
    """k from low to high with the probability that k - 1 others check in, and what is left out."""
    others = n - 1
    if others == 0:
        return [(1, 1, 1.0)], 0.0
    first = 1 + max(0, intervals.quantile(_TAIL / 2.0, others, rate) - 1)
    last = 1 + min(others, intervals.upper_quantile(_TAIL / 2.0, others, rate) + 1)
    left_out = float(binomial.cdf(first - 2, others, rate) + binomial.sf(last - 1, others, rate))
    if last - first < _GROUPS:
        k = np.arange(first, last + 1)
        chances = binomial.pmf(k - 1, others, rate)
        return [(int(i), int(i), float(w)) for i, w in zip(k, chances, strict=True)], left_out
    # narrow groups where the mass is, wide ones in the tails
    core = 4.0 * math.sqrt(others * rate)
    middle = (max(first - 1.0, others * rate - core), min(float(last), others * rate + core))
    knots = [
        np.linspace(first - 1, middle[0], _GROUPS // 8),
        np.linspace(middle[0], middle[1], _GROUPS),
        np.linspace(middle[1], last, _GROUPS // 8),
    ]
    edges = np.unique(np.rint(np.concatenate(knots)).astype(int))
    chances = np.diff(binomial.cdf(edges - 1, others, rate))
    ends = zip(edges[:-1], edges[1:], chances, strict=True)
    return [(int(a) + 1, int(b), float(w)) for a, b, w in ends], left_out
