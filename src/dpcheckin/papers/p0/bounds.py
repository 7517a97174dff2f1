"""Shuffled check-in in P0 (appendix of arXiv 2206.03151v1): Lemmas 4 and 5, Eq. 8 and 18, baseline, Figure 4.

Lemmas 4 and 5 hold with the binomial weights that their displays omit, for f >= 0. Equation 18, the upper bound, is
refuted: it keeps the check-in rate where k/n belongs. Equation 8, the lower bound on moments, holds; a shorter argument
gives more. The baseline's single round holds; here it is composed by Kairouz et al., since P0's own composition goes
through a conversion that does not exist (P1 Lemma 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpcheckin.accounting.engine.arrays import FloatArray
from dpcheckin.accounting.renyi import MAX_ORDER, RenyiCurve, wang_subsampled
from dpcheckin.errors import InvalidParameter, OutsideTheorem
from dpcheckin.numerals import count, open_probability, positive, probability
from dpcheckin.papers.others import strong_composition
from dpcheckin.papers.p3 import bounds as p3
from dpcheckin.special import binomial, intervals


def lemma_4(values: FloatArray, rate: float, kept: int) -> float:
    """A bound on E[f(k); k >= 1], k ~ Bin(n, rate), for values f(1), ..., f(n) >= 0 that never grow.

    P0 prints the sum without the probabilities of k, which its proof has. Its (1 - Delta) n rate is `kept`, a whole
    number between 0 and the mean.

    >>> round(lemma_4(1.0 / np.arange(1.0, 101.0), 0.5, 30), 4)
    0.0506
    """
    n, mean = _decreasing(values), values.size * rate
    probability("rate", rate)
    if not 0 <= kept <= mean:
        raise InvalidParameter("kept", kept, f"between 0 and the mean {mean:g}")
    # exp(-Delta^2 mean / 2) for (1 - Delta) mean = kept
    few = math.exp(-((mean - kept) ** 2) / (2.0 * mean)) if mean > 0.0 else 1.0
    return float(values[0]) * few + float(values[min(kept, n - 1)])


def lemma_5(values: FloatArray, rate: float, summed: int) -> float:
    """The same bound for these values and rate with the first `summed` terms exact, at least the mean.

    >>> round(lemma_5(1.0 / np.arange(1.0, 101.0), 0.5, 80), 4)
    0.0202
    """
    n, mean = _decreasing(values), values.size * rate
    probability("rate", rate)
    if not mean <= summed:
        raise InvalidParameter("summed", summed, f"at least the mean {mean:g}")
    upto = min(summed, n)
    exact = float(np.dot(binomial.pmf(np.arange(1, upto + 1), n, rate), values[:upto]))
    if summed >= n or mean == 0.0:
        return exact
    split = summed / mean - 1.0
    return exact + float(values[summed]) * math.exp(-(split**2) * mean / (2.0 + split))


def _decreasing(values: FloatArray) -> int:
    if values.size == 0 or not np.all(values >= 0.0) or np.any(np.diff(values) > 0.0):
        raise OutsideTheorem("P0 Lemmas 4 and 5 need non-negative values that never grow with k")
    return int(values.size)


def equation_18(population: int, rate: float, local_epsilon: float, kept: int, max_order: int) -> RenyiCurve:
    """P0 Equation 18 (its Theorem 2) as printed for a population and local_epsilon, orders 2..max_order. Refuted.

    One 1, and Theorem 1's other terms at k = 1 (times the Chernoff tail) and at k = kept + 1, the check-in rate in the
    place of k/n.

    >>> curve = equation_18(1000, 1e-5, 1.0, 0, 2)
    >>> f"{math.expm1(curve.epsilons[0]):.2e} {equation_8_sharp(1000, 1e-5, 1.0, 2):.2e}"
    '1.97e-09 1.09e-08'
    """
    count("population", population)
    mean = population * rate
    if not 0 <= kept <= mean:
        raise InvalidParameter("kept", kept, f"between 0 and the mean {mean:g}")
    first = p3.printed_log_excess(rate, 1, local_epsilon, max_order)
    second = p3.printed_log_excess(rate, kept + 1, local_epsilon, max_order)
    log_excess = np.logaddexp(first - (mean - kept) ** 2 / (2.0 * mean), second)
    orders = np.arange(2.0, max_order + 1.0)
    return RenyiCurve(orders, np.logaddexp(0.0, log_excess) / (orders - 1.0))


def equation_18_epsilon(population: int, rate: float, local_epsilon: float, rounds: int, delta: float) -> float:
    """Equation 18 at delta, best split, searched twice: population, rate, local_epsilon, rounds. Refuted."""

    def at(kept: int) -> float:
        curve = equation_18(population, rate, local_epsilon, kept, 300)
        return curve.times(rounds).epsilon(delta).epsilon

    whole = math.floor(population * rate)
    low, high = 0, whole
    for _ in range(2):
        points = np.unique(np.rint(np.linspace(low, high, 101)).astype(int))
        best = min((int(point) for point in points), key=at)
        width = max(1, (high - low) // 100)
        low, high = max(0, best - width), min(whole, best + width)
    return at(best)


def equation_8(population: int, rate: float, local_epsilon: float, order: int, split: float) -> float:
    """P0 Equation 8 (its Theorem 3): a lower bound on the moment of this order minus 1; `split` is Delta.

    For a population, rate and local_epsilon.
    """
    if not split > 0.0:
        raise InvalidParameter("split", split, "positive")
    mean = population * rate
    share = -math.expm1(-(split**2) * mean / (2.0 + split)) / (1.0 + split)
    return share * equation_8_sharp(population, rate, local_epsilon, order)


def equation_8_sharp(population: int, rate: float, local_epsilon: float, order: int) -> float:
    """Moment minus 1 of binary response with this local_epsilon, everybody else on one value: at least this.

    Given k check-ins of a population n the rate is k/n, so Lemma 8 gives C(order, 2) (k/n)^2 (e^eps0 - 1)^2 / (k
    e^eps0), whose mean over k is exact: E[k] = n rate. Equality at order 2.
    """
    probability("rate", rate)
    positive("local_epsilon", local_epsilon)
    pairs = order * (order - 1) / 2.0
    spread = 4.0 * math.sinh(local_epsilon / 2.0) ** 2  # (e^eps0 - 1)^2 / e^eps0
    return pairs * rate / population * spread


def equation_8_epsilon(population: int, rate: float, local_epsilon: float, rounds: int, delta: float) -> float:
    """The sharpened Equation 8 converted to epsilon: neither a guarantee nor a lower bound on it.

    It is what the Rényi route cannot undercut, for a population, rate and local_epsilon, over the rounds, at delta.
    """
    orders = np.arange(2, 301)
    excess = [equation_8_sharp(population, rate, local_epsilon, int(a)) for a in orders]
    curve = RenyiCurve(orders.astype(float), np.log1p(excess) / (orders - 1.0))
    return curve.times(rounds).epsilon(delta).epsilon


def baseline(
    population: int, rate: float, local_epsilon: float, rounds: int, delta: float, local_delta: float = 0.0
) -> float:
    """P0 Appendix D's baseline: no gain from the shuffler, l check-ins at most, composed over the rounds.

    One round is (log(1 + (l/n)(e^eps0 - 1)), (l/n) delta_0 + delta')-DP when more than l of the population, at this
    rate, check in with probability at most delta'; local_epsilon and local_delta are of one report. Half of delta pays
    for the rounds' deltas, half for the composition theorem.

    >>> round(baseline(60_000, 0.1, 2.0, 6800, 1 / 60_000), 1)
    1117.8
    """
    count("population", population)
    probability("rate", rate)
    positive("local_epsilon", local_epsilon)
    open_probability("delta", delta)
    budget = delta / (2.0 * rounds)
    most = min(population, intervals.upper_quantile(budget / 2.0, population, rate) + 1)
    fraction = most / population
    spent = fraction * local_delta + float(binomial.sf(most, population, rate))
    if spent > budget:
        raise OutsideTheorem(
            f"P0's baseline spends {spent:.3g} a round, above the {budget:.3g} there is; local_delta must be smaller"
        )
    one_round = math.log1p(fraction * math.expm1(local_epsilon))
    return strong_composition.closed_form(one_round, rounds, delta / 2.0)


def by_lemma_4(population: int, rate: float, noise_multiplier: float) -> RenyiCurve:
    """P0 Figure 4's "approx. RDP comp": Lemma 4 with Delta = 0.5; population, rate, noise_multiplier. Unproved.

    >>> [round(f(60_000, 1e-3, 0.86).times(100).epsilon(1e-5).epsilon, 2) for f in (by_lemma_4, by_lemma_5)]
    [4.83, 1.76]
    """
    kept = round(0.5 * population * rate)
    return _distributed(population, rate, noise_multiplier, lambda f: lemma_4(f, rate, kept))


def by_lemma_5(population: int, rate: float, noise_multiplier: float, summed: int = 200) -> RenyiCurve:
    """P0 Figure 4's "RDP comp": Lemma 5 with so many terms summed; population, rate, noise_multiplier. Unproved."""
    if population * rate > summed:
        raise OutsideTheorem(f"P0 Lemma 5 with {summed} terms summed needs at most {summed} check-ins on average")
    return _distributed(population, rate, noise_multiplier, lambda f: lemma_5(f, rate, summed))


def _distributed(
    population: int, rate: float, noise_multiplier: float, lemma: Callable[[FloatArray], float]
) -> RenyiCurve:
    """P1 Theorem 4 with the check-in rate in the place of k/n, its sum bounded by a lemma; nobody's moment is 1."""
    orders = np.arange(2.0, MAX_ORDER + 1.0)
    exact = min(population, 256)  # beyond, the last of these: terms fall
    reports = np.arange(1.0, exact + 1.0)
    terms = [
        wang_subsampled(RenyiCurve(orders, 2.0 * orders / (k * noise_multiplier**2)), rate, math.inf).epsilons
        for k in reports
    ]
    logs = np.array(terms).T * (orders - 1.0)[:, None]
    found = []
    for log in logs:  # falling: the first is the largest
        falling = np.full(population, math.exp(log[-1] - log[0]))
        falling[:exact] = np.exp(log - log[0])
        found.append(float(np.logaddexp(math.log(lemma(falling)) + log[0], population * math.log1p(-rate))))
    return RenyiCurve(orders, np.maximum(found, 0.0) / (orders - 1.0))
