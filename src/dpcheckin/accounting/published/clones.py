"""Amplification by shuffling "among the clones": closed form, its condition, and the exact pair.

Feldman, McMillan and Talwar, arXiv 2012.12803v3: Theorem 3.1 (closed form, pure local epsilon),
Theorem 3.2 (the pair behind it, evaluated here exactly), Theorem 3.8 ((epsilon_0, delta_0)
randomizers).  Sound, and superseded in this package by the empty-seat theorem; kept because four
of the five papers build on it.  Sampling and composition on top are at the end of the file.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dpcheckin.accounting.engine.noise import gaussian_profile
from dpcheckin.accounting.pairs.local import LocalPair
from dpcheckin.accounting.published import strong_composition
from dpcheckin.errors import InvalidParameter, OutsideTheorem
from dpcheckin.special import binomial
from dpcheckin.special.roots import root

_LARGEST_CLONED = 40.0  # beyond this local epsilon there are no clones to speak of
_TAIL = 18.0 * math.log(10.0)


def smallest_shuffle(local_epsilon: float, delta: float) -> float:
    """The number of reports the closed form needs: n >= 16 e^eps0 log(2/delta).

    >>> round(smallest_shuffle(2.0, 1e-4))
    1171
    """
    _check(local_epsilon, delta)
    return 16.0 * math.exp(local_epsilon) * math.log(2.0 / delta)


def closed_form(local_epsilon: float, reports: int, delta: float) -> float:
    """Theorem 3.1; raises :class:`OutsideTheorem` when there are too few reports.

    >>> round(closed_form(1.0, 10_000, 1e-6), 4)
    0.214
    """
    need = smallest_shuffle(local_epsilon, delta)
    if reports < need:
        raise OutsideTheorem(
            f"clones (arXiv 2012.12803v3, Thm 3.1) needs at least {math.ceil(need):,} reports for "
            f"local_epsilon = {local_epsilon:g} and delta = {delta:g}, got {reports:,}; "
            "use the exact pair (clones.numerical) or the empty-seat theorem"
        )
    return min(local_epsilon, formula(local_epsilon, reports, delta))


def formula(local_epsilon: float, reports: float, delta: float) -> float:
    """The closed form without its condition: what P1 Table 2 evaluated.  Not a guarantee."""
    e0 = math.exp(local_epsilon)
    inside = 8.0 * math.sqrt(e0 * math.log(4.0 / delta) / reports) + 8.0 * e0 / reports
    return math.log1p(math.tanh(local_epsilon / 2.0) * inside)


def numerical_delta(local_epsilon: float, reports: int, epsilon: float) -> float:
    """delta(epsilon) of the pair of Theorem 3.2, exact up to a tail of 2e-18 that is added on.

    Others are clones of either input with probability exp(-eps0); given c clones the two counts
    are binomial, and the likelihood ratio is monotone in the first of them.
    """
    if reports < 1:
        raise InvalidParameter("reports", reports, "at least 1")
    if not (local_epsilon > 0.0 and math.isfinite(local_epsilon)):
        raise InvalidParameter("local_epsilon", local_epsilon, "positive and finite")
    if not epsilon >= 0.0:
        raise InvalidParameter("epsilon", epsilon, "at least 0")
    e0, alpha = math.exp(local_epsilon), math.exp(epsilon)
    if alpha >= e0:
        return 0.0
    clone = math.exp(-local_epsilon)
    # Bernstein: fewer or more clones than this with probability at most 1e-18 each.
    mean = (reports - 1) * clone
    reach = math.sqrt(2.0 * mean * _TAIL) + 2.0 * _TAIL / 3.0 + 1.0
    low, high = max(0, math.floor(mean - reach)), min(reports - 1, math.ceil(mean + reach))
    c = np.arange(low, high + 1, dtype=np.float64)
    weight = binomial.pmf(c, reports - 1, clone)
    cut = np.floor((c + 1.0) * (alpha * e0 - 1.0) / ((e0 - 1.0) * (1.0 + alpha)))
    above = binomial.sf(cut, c, 0.5)  # P(A > cut)
    above_one_less = above + binomial.pmf(cut, c, 0.5)  # P(A + 1 > cut)
    p = (e0 * above_one_less + above) / (e0 + 1.0)
    q = (above_one_less + e0 * above) / (e0 + 1.0)
    return float(np.dot(weight, np.maximum(0.0, p - alpha * q))) + 2.0 * math.exp(-_TAIL)


@lru_cache(maxsize=512)
def numerical(local_epsilon: float, reports: int, delta: float) -> float:
    """Smallest epsilon with ``numerical_delta`` <= delta, by bisection, to 1e-7 from above.

    >>> round(numerical(1.0, 10_000, 1e-6), 4)
    0.053
    """
    _check(local_epsilon, delta)
    low, high = 0.0, local_epsilon
    if numerical_delta(local_epsilon, reports, 0.0) <= delta:
        return 0.0

    def too_much(epsilon: float) -> float:
        return math.log(max(numerical_delta(local_epsilon, reports, epsilon), 1e-300) / delta)

    # delta falls about exponentially: its logarithm's secant finds what bisection then confirms
    guess = root(too_much, low, high, relative=2e-8)
    tries = [guess * (1 + 4e-8), guess * (1 - 4e-8)]
    while high - low > 1e-7 * high:
        middle = tries.pop(0) if tries else (low + high) / 2.0
        if numerical_delta(local_epsilon, reports, middle) <= delta:
            high = min(high, middle)
        else:
            low = max(low, middle)
    return high


def approximate_delta(
    local_epsilon: float, local_delta: float, reports: int, epsilon: float, delta: float
) -> float:
    """Theorem 3.8: the delta of (eps0, delta0) randomizers, given the pure pair's (eps, delta)."""
    extra = (math.exp(epsilon) + 1.0) * (1.0 + math.exp(-local_epsilon) / 2.0)
    return delta + extra * reports * local_delta


def numerical_with_delta(pair: LocalPair, reports: int, delta: float) -> float:
    """The least epsilon that Theorem 3.8 gives for reports with a delta of their own.

    Half of delta pays for the pure pair, the rest for the distance from it; the report's own
    (eps0, delta0) is chosen on a grid. It holds for adaptive sequences as Theorem 3.2 does: the
    proof is in docs/random-check-ins.md.

    Args:
        pair: What one report gives away.
        reports: In random order.
        delta: Of the statement.

    >>> from dpcheckin.accounting import gaussian
    >>> numerical_with_delta(gaussian(4.0), 10_000, 1e-5) < 1.0
    True
    """
    best = math.inf
    for local_delta in np.geomspace(1e-5, 0.2, 24) * delta / reports:
        local_epsilon = pair.epsilon_within(float(local_delta))
        if not 0.0 < local_epsilon < min(best, _LARGEST_CLONED):
            continue
        epsilon = numerical(local_epsilon, reports, delta / 2.0)
        total = approximate_delta(local_epsilon, float(local_delta), reports, epsilon, delta / 2.0)
        if total <= delta:
            best = min(best, epsilon)
        # a smaller delta0 is cheaper but its epsilon is larger: the grid decides
    if math.isinf(best):
        raise OutsideTheorem(
            f"Theorem 3.8 of arXiv 2012.12803v3 covers no part of {pair.label} among {reports:,} "
            f"reports at delta = {delta:g}; more noise or a fixed window will do"
        )
    return best


def subsampled(epsilon: float, delta: float, fraction: float) -> tuple[float, float]:
    """A uniformly random cohort without replacement (Balle et al., arXiv 1807.01647v2, Thm 9)."""
    if not 0.0 <= fraction <= 1.0:
        raise InvalidParameter("fraction", fraction, "between 0 and 1")
    return math.log1p(fraction * math.expm1(epsilon)), fraction * delta


def composed_subsample(
    population: int,
    cohort: int,
    local_epsilon: float,
    rounds: int,
    delta: float,
    *,
    exact: bool = False,
) -> float:
    """Clones, then subsampling, then strong composition; half of delta for each of the last two.

    With ``exact`` the pair of Theorem 3.2 replaces the closed form.  Where the closed form does not
    apply there is no amplification by shuffling, only by subsampling (P3, Appendix G).
    """
    if not 1 <= cohort <= population:
        raise InvalidParameter("cohort", cohort, f"between 1 and the population {population:,}")
    fraction = cohort / population
    per_round = min(0.5, delta / (2.0 * rounds) / fraction)  # before subsampling shrinks it
    shuffled = _shuffled(local_epsilon, cohort, per_round, exact)
    one_round, _ = subsampled(shuffled, per_round, fraction)
    return strong_composition.closed_form(one_round, rounds, delta / 2.0)


def composed_check_in(
    population: int, rate: float, local_epsilon: float, rounds: int, delta: float
) -> float:
    """The same for shuffled check-in: P1 Theorem 1 with its slips repaired, strongly composed.

    A quarter of delta, spread over the rounds, pays for rounds with more than l check-ins; the
    bound must hold for every k up to l, and since it grows with k on either side of the point
    where the closed form starts to apply, two values of k decide.
    """
    if not 0.0 < rate <= 1.0:
        raise InvalidParameter("rate", rate, "above 0 and at most 1")
    tail = delta / (4.0 * rounds)
    most = min(population, binomial.upper_quantile(tail, population, rate) + 1)
    per_round = min(0.5, delta / (4.0 * rounds) / (most / population))
    starts = math.ceil(smallest_shuffle(local_epsilon, per_round))
    one_round = max(
        subsampled(_shuffled(local_epsilon, k, per_round, False), 0.0, k / population)[0]
        for k in {most, max(1, min(most, starts - 1))}
    )
    return strong_composition.closed_form(one_round, rounds, delta / 2.0)


def _shuffled(local_epsilon: float, reports: int, delta: float, exact: bool) -> float:
    if exact:
        return numerical(local_epsilon, reports, delta)
    try:
        return closed_form(local_epsilon, reports, delta)
    except OutsideTheorem:
        return local_epsilon


def _check(local_epsilon: float, delta: float) -> None:
    if not (local_epsilon > 0.0 and math.isfinite(local_epsilon)):
        raise InvalidParameter("local_epsilon", local_epsilon, "positive and finite")
    if not 0.0 < delta < 1.0:
        raise InvalidParameter("delta", delta, "strictly between 0 and 1")


def gaussian_check_in(
    population: int, rate: float, noise_multiplier: float, rounds: int, delta: float
) -> float:
    """(eps_0, delta_0)-clones (Theorem 3.8), sampling, strong composition; best eps_0 of a grid."""
    distance = 2.0 / noise_multiplier
    budget = delta / (4.0 * rounds)
    most = min(population, binomial.upper_quantile(budget, population, rate) + 1)
    fraction = most / population
    best = math.inf
    for local_epsilon in np.geomspace(0.05, 16.0, 120):
        e0 = float(local_epsilon)
        d0 = float(gaussian_profile(distance, np.array([math.exp(e0)]))[0])
        widest = approximate_delta(e0, d0, most, e0, 0.0)
        spare = budget / fraction - widest
        if spare <= 0.0:
            continue
        starts = math.ceil(smallest_shuffle(e0, spare))
        one = 0.0
        for k in {most, max(1, min(most, starts - 1))}:
            shuffled = closed_form(e0, k, spare) if k >= starts else e0
            one = max(one, subsampled(shuffled, 0.0, k / population)[0])
        best = min(best, strong_composition.closed_form(one, rounds, delta / 2.0))
    if math.isinf(best):
        raise OutsideTheorem(
            "n delta_0 exceeds the delta of a round for every local epsilon up to 16; "
            "the empty-seat theorem has no such term"
        )
    return best


def gaussian_shuffles(
    reports: int,
    noise_multiplier: float,
    rounds: int,
    delta: float,
    *,
    distance: float = 2.0,
    classical: bool = False,
) -> float:
    """Full shuffles of Gaussian reports: Theorem 3.8 at the best eps_0, epsilons added up.

    How the clones row of P4 Table 1 is made, with ``classical`` (a report's eps_0 by
    d sqrt(2 log(1.25/delta_0)) / sigma) and distance 2, though the table says sensitivity 1.

    Args:
        reports: Number of reports in a shuffle.
        noise_multiplier: Noise of one report, in clipping norms.
        rounds: Number of shuffles; each has delta / rounds.
        delta: Of all shuffles.
        distance: Of two values, in clipping norms.
        classical: The textbook's eps_0 (which needs eps_0 <= 1) for the exact one; no guarantee.

    >>> round(gaussian_shuffles(60_000, 9.48, 1, 1 / 60_000, classical=True), 4)
    0.1851
    """
    shift, budget = distance / noise_multiplier, delta / rounds

    def at(log_local_delta: float) -> tuple[float, float]:
        d0 = math.exp(log_local_delta)
        if classical:
            e0 = shift * math.sqrt(2.0 * math.log(1.25 / d0))
        else:
            e0 = _gaussian_local_epsilon(shift, d0)
        if e0 <= 0.0 or reports < smallest_shuffle(e0, d0):
            return e0, math.inf
        shuffled = closed_form(e0, reports, d0)
        return shuffled, approximate_delta(e0, d0, reports, shuffled, d0)

    low, high = math.log(1e-18), math.log(budget)
    if at(low)[1] > budget:
        raise OutsideTheorem("n delta_0 exceeds the delta of a shuffle for every eps_0")
    for _ in range(50):  # the larger delta_0, the smaller epsilon
        middle = (low + high) / 2.0
        low, high = (middle, high) if at(middle)[1] <= budget else (low, middle)
    return rounds * at(low)[0]


def _gaussian_local_epsilon(shift: float, delta: float) -> float:
    low, high = 0.0, 40.0 * shift + shift**2
    for _ in range(60):
        middle = (low + high) / 2.0
        above = float(gaussian_profile(shift, np.array([math.exp(middle)]))[0]) > delta
        low, high = (middle, high) if above else (low, middle)
    return high
