"""P1 (arXiv 2206.03151v2): Lemma 1 and Table 2, both REFUTED, and Theorem 4 with its missing term.

Lemma 1, "every (epsilon, delta)-DP mechanism has this Rényi divergence", holds for no delta > 0: the formula is the
SMALLEST divergence that a tight pair can have (docs/errata.md). All three columns of Table 2 pass through it, so none
is a guarantee. Where the text leaves a choice open the one that comes closest to the printed table is taken, and named.
A cell has a population, a rate, reports of some `Base`, rounds and a delta; its local_delta is delta^2 where none is
given.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpcheckin.accounting import DistributedRound, LocalPair, lower_bound
from dpcheckin.accounting.composition.clones import approximate_delta, numerical
from dpcheckin.accounting.engine.arrays import FloatArray
from dpcheckin.accounting.engine.sampling import VisibleCounts, visible_counts
from dpcheckin.accounting.renyi import MAX_ORDER, RenyiCurve, over_counts, sampled_rdp, summed_rdp, wang_subsampled
from dpcheckin.accounting.statements import Bracket
from dpcheckin.errors import OutsideTheorem
from dpcheckin.numerals import positive
from dpcheckin.papers.others import clones
from dpcheckin.papers.p1 import coupling
from dpcheckin.papers.p3 import bounds as p3
from dpcheckin.papers.p4.bounds import check_in_rdp, subsampled_rdp
from dpcheckin.special import binomial, intervals

_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
_WANG_ORDERS = np.arange(2.0, 257.0)
_ORDERS = np.unique(np.concatenate([np.arange(2.0, 33.0), np.rint(np.geomspace(33.0, 1e4, 80))]))


Base = float | LocalPair | RenyiCurve
"""What one report gives away: a local epsilon, a profile, or a Rényi curve."""


def local_statement(base: Base, local_delta: float) -> float:
    """The eps_0 of a base mechanism at a local_delta: of any pair's profile, of any Rényi curve.

    >>> from dpcheckin.accounting import gaussian
    >>> round(local_statement(gaussian(4.0), 1e-8), 3)
    2.708
    """
    if isinstance(base, RenyiCurve):
        return base.epsilon(local_delta).epsilon
    return base.epsilon_within(local_delta) if isinstance(base, LocalPair) else base


def baseline(
    population: int, rate: float, base: Base, rounds: int, delta: float, local_delta: float = 0.0,
    counts: VisibleCounts | None = None,
) -> float:  # fmt: skip
    """Theorem 1 at l check-ins, Lemma 1, Rényi composition: population, rate, base and local_delta as above.

    P(more than l) is delta / rounds and is left out of delta, the clones formula is used without its condition, and
    delta_0 is delta^2 (the table's "1/delta^2"). `counts` is another distribution of the number of check-ins.

    >>> 0.092 <= baseline(10_000, 1e-2, 2.0, 100, 1e-4) <= 0.096
    True
    """
    d0 = local_delta or delta**2
    e0 = local_statement(base, d0)
    if counts is None:
        count = min(population, intervals.upper_quantile(delta / rounds, population, rate) + 1)
    else:
        beyond = np.cumsum(counts.probability[::-1])[::-1] - counts.probability
        count = max(1, int(counts.high[np.argmax(beyond <= delta / rounds)]))
    fraction = count / population
    shuffled = min(e0, clones.formula(e0, count, delta))
    one_round, _ = clones.subsampled(shuffled, 0.0, fraction)
    # Eq. 14 puts the subsampled epsilon where the shuffled one belongs; kept as printed.
    one_delta = fraction * approximate_delta(e0, d0, count, one_round, delta)
    return _by_lemma_1(one_round, one_delta, rounds, delta)


def _by_lemma_1(one_round: float, one_delta: float, rounds: int, delta: float) -> float:
    curve = smallest_renyi(np.array([one_round]), np.array([min(one_delta, 0.999)]), _ORDERS)[0]
    return RenyiCurve(_ORDERS, curve).times(rounds).epsilon(delta).epsilon


def approach_1(
    population: int, rate: float, base: Base, rounds: int, delta: float, local_delta: float = 0.0,
    counts: VisibleCounts | None = None,
) -> float:  # fmt: skip
    """Shuffled (epsilon, delta) to Rényi by Lemma 1, then Wang et al., then the sum over k.

    population, rate, base, rounds, delta, local_delta and counts as above.
    """
    k, weight = _counts(population, rate, counts)
    shuffled, shuffled_delta = _shuffled(k, base, delta, local_delta)
    curves = smallest_renyi(shuffled, shuffled_delta, _WANG_ORDERS)
    log_moments = np.array(
        [
            (_WANG_ORDERS - 1.0) * wang_subsampled(RenyiCurve(_WANG_ORDERS, row), count / population, math.inf).epsilons
            for count, row in zip(k, curves, strict=True)
        ]
    )
    return _mixed(weight, log_moments, _WANG_ORDERS, rounds, delta)


def approach_2(
    population: int, rate: float, base: Base, rounds: int, delta: float, local_delta: float = 0.0,
    counts: VisibleCounts | None = None,
) -> float:  # fmt: skip
    """Shuffled, sampled to Rényi (Lemma 1), sum over k: population, rate, base, rounds, delta, local_delta, counts."""
    k, weight = _counts(population, rate, counts)
    shuffled, shuffled_delta = _shuffled(k, base, delta, local_delta)
    fraction = k / population
    one_round = np.log1p(fraction * np.expm1(shuffled))
    curves = smallest_renyi(one_round, fraction * shuffled_delta, _ORDERS)
    return _mixed(weight, (_ORDERS - 1.0) * curves, _ORDERS, rounds, delta)


def _counts(population: int, rate: float, counts: VisibleCounts | None) -> tuple[NDArray[np.int64], FloatArray]:
    """At most 80 visible numbers of check-ins and their probabilities (0 check-ins left out)."""
    if counts is not None:
        some = counts.high > 0.0
        return counts.high[some].astype(np.int64), counts.probability[some]
    low = max(1, intervals.quantile(1e-15, population, rate) - 1)
    high = min(population, intervals.upper_quantile(1e-15, population, rate) + 1)
    if high - low < 80:
        k = np.arange(low, high + 1)
        return k, np.asarray(binomial.pmf(k, population, rate))
    edges = np.unique(np.linspace(low - 1, high, 81).astype(np.int64))
    weight = np.diff(binomial.cdf(edges, population, rate))
    return edges[1:], np.asarray(weight)


def _shuffled(k: NDArray[np.int64], base: Base, delta: float, local_delta: float) -> tuple[FloatArray, FloatArray]:
    """Epsilon by the exact clones pair (its authors' numerical routine), delta by P1 Eq. 9."""
    d0 = local_delta or delta**2
    e0 = local_statement(base, d0)
    # of many clients nearly the same number checks in: epsilon is as good as linear in between
    count = 12 if k[-1] > 1.2 * k[0] else 3
    nodes = np.unique(k[np.linspace(0, k.size - 1, count).astype(int)])
    values = [numerical(e0, int(x), delta) for x in nodes]
    epsilons = np.interp(k, nodes, values)  # a refuted figure: interpolation is good enough
    # Eq. 9 has exp(eps_0) + 1 where exp(eps) + 1 belongs (conservative); kept as printed.
    deltas = approximate_delta(e0, d0, 1, e0, 0.0) * k + delta
    return epsilons, np.minimum(deltas, 0.999)


def _mixed(weight: FloatArray, log_moments: FloatArray, orders: FloatArray, rounds: int, delta: float) -> float:
    top = log_moments.max(axis=0)
    rest = max(1.0 - float(weight.sum()), 0.0)  # no check-in at all: moment 1
    total = (weight[:, None] * np.exp(log_moments - top)).sum(axis=0) + rest * np.exp(-top)
    mixed = np.maximum(0.0, top + np.log(total)) / (orders - 1.0)
    return RenyiCurve(orders, mixed).times(rounds).epsilon(delta).epsilon


def shuffle_only(reports: int, local_epsilon: float, rounds: int, delta: float) -> float:
    """The upper curve of P1 Figure 3: rounds of reports of this local_epsilon by clones, Lemma 1, Rényi, at delta."""
    one_round = min(local_epsilon, clones.formula(local_epsilon, reports, delta))
    return _by_lemma_1(one_round, approximate_delta(local_epsilon, delta**2, reports, one_round, delta), rounds, delta)


def smallest_renyi(epsilon: FloatArray, delta: FloatArray, orders: FloatArray) -> FloatArray:
    """P1 Eq. 2 for all combinations: shape (len(epsilon), len(orders)).

    The minimum over r in (delta, 1) of a convex function, by golden section in the logarithm of
    (r - delta) / (1 - r).
    """
    e = np.atleast_1d(np.asarray(epsilon, dtype=np.float64))[:, None]
    d = np.atleast_1d(np.asarray(delta, dtype=np.float64))[:, None]
    a = np.asarray(orders, dtype=np.float64)[None, :]
    shape = np.broadcast_shapes(e.shape, d.shape, a.shape)

    def log_moment(logit: FloatArray) -> FloatArray:
        # r = delta + (1 - delta) * u, u = sigmoid(logit); P = (r, 1 - r),
        # Q = ((r - delta) e^-eps, 1 - (r - delta) e^-eps).
        log_u = -np.logaddexp(0.0, -logit)
        log_1_u = -np.logaddexp(0.0, logit)
        log_p = np.log(d + (1.0 - d) * np.exp(log_u))
        log_p_rest = np.log1p(-d) + log_1_u
        log_q = np.log1p(-d) + log_u - e
        log_q_rest = np.log1p(-np.exp(log_q))
        return np.asarray(np.logaddexp(a * log_p + (1.0 - a) * log_q, a * log_p_rest + (1.0 - a) * log_q_rest))

    low, high = np.full(shape, -40.0), np.full(shape, 40.0)
    left = high - _GOLDEN * (high - low)
    right = low + _GOLDEN * (high - low)
    f_left, f_right = log_moment(left), log_moment(right)
    for _ in range(45):
        smaller = f_left < f_right
        high = np.where(smaller, right, high)
        low = np.where(smaller, low, left)
        left = high - _GOLDEN * (high - low)
        right = low + _GOLDEN * (high - low)
        f_left, f_right = log_moment(left), log_moment(right)
    return np.asarray(np.maximum(0.0, np.minimum(f_left, f_right)) / (a - 1.0))


def mixed_theorem_1(population: int, rate: float, local_epsilon: float, max_order: int = 300) -> RenyiCurve:
    """P1 Theorem 2 with P3 Theorem 1 inside: log E_k exp((order-1) eps_k(order)), k = 0 included.

    For a population, rate and local_epsilon, orders 2 to max_order; each group of k costs what its worst end would.
    """
    orders = np.arange(2.0, max_order + 1.0)

    def log_moment(fewest: float, most: float) -> FloatArray:
        # in P3 Theorem 1 the rate k/n grows with the cohort and everything else shrinks with it
        return p3.printed_log_moments(most / population, int(fewest), local_epsilon, max_order)

    # outside the grouped range: the local bound itself
    outside = (orders * local_epsilon, orders * local_epsilon)
    return over_counts(visible_counts(population, rate), orders, log_moment, outside)


def theorem_4_rdp(population: int, rate: float, noise_multiplier: float, *, sensitivity: float = 2.0) -> RenyiCurve:
    """P1 Theorem 4 (arXiv 2206.03151v2) with the k = 0 term it omits: a guarantee.

    For a population, rate and noise_multiplier of one report, values this sensitivity apart.
    """
    positive("noise_multiplier", noise_multiplier)

    def gaussian(reports: float, orders: FloatArray) -> FloatArray:
        return orders * sensitivity**2 / (2.0 * reports * noise_multiplier**2)

    return summed_rdp(population, rate, gaussian)


def theorem_4(population: int, rate: float, noise_multiplier: float, rounds: int, delta: float) -> float:
    """Epsilon by P1 Theorem 4 (k = 0 included) for a population, rate and noise_multiplier, over rounds, at delta."""
    return theorem_4_rdp(population, rate, noise_multiplier).times(rounds).epsilon(delta).epsilon


def fixed_cohort_rdp(population: int, cohort: int, noise_multiplier: float) -> RenyiCurve:
    """The blue line of P1 Figure 5: a cohort drawn from the population, reports with this noise_multiplier."""
    positive("noise_multiplier", noise_multiplier)
    orders = np.arange(2.0, MAX_ORDER + 1.0)
    base = RenyiCurve(orders, 2.0 * orders / (cohort * noise_multiplier**2))
    return wang_subsampled(base, cohort / population, math.inf)


def _coupling(population: int, rate: float, local_epsilon: float, delta: float) -> float:
    return coupling.epsilon_of_one_round(population, rate, local_epsilon, delta)


def _theorem_5(population: int, cohort: int, noise_multiplier: float) -> RenyiCurve:
    return subsampled_rdp(cohort / population, cohort, noise_multiplier)


def _sampled_sum(population: int, rate: float, noise_multiplier: float, rounds: int, delta: float) -> Bracket:
    return lower_bound([(DistributedRound(population, rate, noise_multiplier), rounds)], delta).epsilon


def _report(local_epsilon: float | None, noise_multiplier: float | None, local_delta: float) -> float:
    """The eps_0 of a report; of Gaussian ones by section 4's profile, values 2 clips apart as Appendix D.2 asks."""
    if local_epsilon is not None:
        return local_epsilon
    if noise_multiplier is None:
        raise OutsideTheorem("needs a local epsilon, or Gaussian reports (a noise multiplier)")
    return 2.0 * math.sqrt(2.0 * math.log(1.25 / local_delta)) / noise_multiplier


def _baseline(
    population: int, rate: float, rounds: int, delta: float, local_epsilon: float | None = None,
    local_delta: float = 0.0, noise_multiplier: float | None = None,
) -> float:  # fmt: skip
    base = _report(local_epsilon, noise_multiplier, local_delta or delta**2)
    return baseline(population, rate, base, rounds, delta, local_delta)


def _approach_1(
    population: int, rate: float, rounds: int, delta: float, local_epsilon: float | None = None,
    local_delta: float = 0.0, noise_multiplier: float | None = None,
) -> float:  # fmt: skip
    base = _report(local_epsilon, noise_multiplier, local_delta or delta**2)
    return approach_1(population, rate, base, rounds, delta, local_delta)


def _approach_2(
    population: int, rate: float, rounds: int, delta: float, local_epsilon: float | None = None,
    local_delta: float = 0.0, noise_multiplier: float | None = None,
) -> float:  # fmt: skip
    base = _report(local_epsilon, noise_multiplier, local_delta or delta**2)
    return approach_2(population, rate, base, rounds, delta, local_delta)


def _gaussian_rdp(population: int, rate: float, noise_multiplier: float) -> RenyiCurve:
    def unshuffled(reports: float, orders: FloatArray) -> FloatArray:
        return 2.0 * orders / noise_multiplier**2  # two values are 2 clips apart

    return sampled_rdp(population, visible_counts(population, rate), unshuffled)


def _homogeneous_rdp(population: int, rate: float, noise_multiplier: float) -> RenyiCurve:
    return check_in_rdp(population, rate, noise_multiplier, 1_000, sensitivity=2.0)
