"""Random check-ins (P2): the closed forms of the paper, with their conditions as code.

P2 is Balle, Kairouz, McMahan, Thakkar and Thakurta, arXiv 2007.06605v2. A client picks one slot of a window at random
and reports there. Three protocols: fixed window (one accepted report per slot), averaged updates, sliding window; and
plain shuffling, which the same proof improves. Adjacency is replacing one client's data. The posteriors of the same
proofs stand below; `PosteriorRound` composes them numerically instead of by P2's Lemma A.2. Dummy updates and utility
are in `papers.p2.utility`.
"""

from __future__ import annotations

import math

import numpy as np

from dpcheckin.accounting.composition.account import compose
from dpcheckin.accounting.pairs.local import any_pure
from dpcheckin.accounting.rounds.windows import PosteriorRound, typical_averaged_posteriors
from dpcheckin.accounting.statements import Bracket
from dpcheckin.errors import InvalidParameter, OutsideTheorem
from dpcheckin.numerals import count, open_probability, positive, probability, written
from dpcheckin.papers.entry import AVERAGED, SHUFFLE, Statement
from dpcheckin.special.roots import switch


def fixed_window(slots: int, check_in_probability: float, local_epsilon: float, delta: float) -> Statement:
    """Theorem 3.2 at delta: a window of slots, a check_in_probability, pure reports of this local_epsilon.

    >>> round(fixed_window(1000, 1.0, 1.0, 1e-6).epsilon, 3)
    0.475
    """
    count("slots", slots)
    probability("check_in_probability", check_in_probability)
    _local(local_epsilon, delta)
    rise = check_in_probability * math.expm1(local_epsilon)
    return Statement(lemma_a2(slots, rise, -math.expm1(-local_epsilon), delta), delta)


def sliding_window(slots: int, local_epsilon: float, delta: float) -> Statement:
    """Theorem 4.3 at delta for reports of this local_epsilon: a window of slots that moves by one step per client."""
    return fixed_window(slots, 1.0, local_epsilon, delta)


def averaged(population: int, slots: int, local_epsilon: float, delta: float, load_delta: float) -> Statement:
    """Theorem 4.1: population, slots, local_epsilon, no collusion; load_delta pays for unlucky loads beside delta."""
    count("population", population)
    count("slots", slots)
    _local(local_epsilon, delta)
    _local(local_epsilon, load_delta)
    e0 = math.exp(local_epsilon)
    load = lemma_a6(population, slots, load_delta) / population
    a = e0**2 * math.expm1(local_epsilon) * load
    epsilon = a * a / 2.0 + a * math.sqrt(2.0 * math.log(1.0 / delta))
    return Statement(epsilon, delta + load_delta)


def shuffling(reports: int, local_epsilon: float, delta: float) -> Statement:
    """Theorem 5.1 for reports of this local_epsilon at delta: amplification by shuffling (solid in P2 Figure 2)."""
    count("reports", reports)
    _local(local_epsilon, delta)
    a = math.exp(1.5 * local_epsilon) * math.expm1(local_epsilon) / math.sqrt(reports)
    return Statement(a * a / 2.0 + a * math.sqrt(2.0 * math.log(1.0 / delta)), delta)


def shuffling_before(reports: int, local_epsilon: float, delta: float) -> Statement:
    """Erlingsson et al. 2019, Theorem 7 for reports of local_epsilon at delta: dotted in Figure 2."""
    count("reports", reports)
    _local(local_epsilon, delta)
    a = 2.0 * math.exp(2.0 * local_epsilon) * math.expm1(local_epsilon)
    exponent = a / reports
    drift = a * math.expm1(exponent) if exponent < 700.0 else math.inf
    return Statement(drift + a * math.sqrt(2.0 * math.log(1.0 / delta) / reports), delta)


def lemma_a1(local_epsilon: float, own: float) -> float:
    """Lemma A.1: how much likelier a report is from one's value than from one that is one's `own` with this chance.

    e^eps0 / (1 + own (e^eps0 - 1)) for reports of this local_epsilon, whatever the other values are.

    >>> lemma_a1(1.0, 0.0) == math.e, lemma_a1(1.0, 1.0)
    (True, 1.0)
    """
    positive("local_epsilon", local_epsilon)
    return math.exp(local_epsilon) / (1.0 + probability("own", own) * math.expm1(local_epsilon))


def lemma_a2(steps: int, rise: float, slope: float, delta: float) -> float:
    """Lemma A.2: epsilon at delta of k adaptive steps of which the i-th is log(1 + a / (k - b (i - 1)))-DP.

    k is the number of steps, a the rise, above 0, and b the slope, between 0 and 1.

    >>> whole = lemma_a2(1000, math.e - 1, 1 - 1 / math.e, 1e-6)
    >>> whole == fixed_window(1000, 1.0, 1.0, 1e-6).epsilon
    True
    """
    count("steps", steps)
    open_probability("delta", delta)
    square = positive("rise", rise) ** 2 / (steps * (1.0 - open_probability("slope", slope)))
    return square / 2.0 + math.sqrt(2.0 * square * math.log(1.0 / delta))


def lemma_a6(population: int, slots: int, delta: float) -> float:
    """Lemma A.6: the l2 norm of the loads is above this with probability at most delta, a population in m slots.

    >>> lemma_a6(100, 10, 1e-6) >= math.sqrt(10 * 10**2)
    True
    """
    n, m = count("population", population), count("slots", slots)
    return math.sqrt(n + n * n / m) + math.sqrt(n * math.log(1.0 / open_probability("delta", delta)))


def repeated_fixed_window(
    population: int, slots: int, local_epsilon: float, window_delta: float, delta: float
) -> Statement:
    """Corollary 3.3 with its constants: n/m windows of m slots, n the population, check-in probability m/n.

    Reports have this local_epsilon. Each window spends window_delta, the paper's beta, and the composition delta; the
    statement's is the sum. Write x = (e^eps0 - 1) e^{eps0/2} sqrt(m) / n and L = log(1/beta), so that one window has
    eps_1 = x sqrt(2 L) + x^2 / 2 (Theorem 3.2). The first condition, e^{1.5 eps0} <= n / (8 sqrt m), gives x <= (1 -
    e^-eps0) / 8; the second says x^2 L <= sqrt(m) / n, which by the first is at most e^{-1.5 eps0} / 8. Together eps_1
    <= e^{-0.75 eps0} / 2 + (1 - e^-eps0)^2 / 128 <= 1/2, which the proof uses.

    >>> round(repeated_fixed_window(147, 100, 0.405, math.exp(-30), 1e-6).epsilon, 4)
    5.0217
    """
    count("slots", slots)
    _local(local_epsilon, delta)
    _local(local_epsilon, window_delta)
    if not slots <= population:
        raise InvalidParameter("population", population, f"at least the {slots:,} slots")
    n, m, e0 = population, slots, math.exp(local_epsilon)
    log_beta = math.log(1.0 / window_delta)
    widest = 2.0 * math.log(n / (8.0 * math.sqrt(m))) / 3.0
    if local_epsilon > widest:
        raise OutsideTheorem(
            f"P2 Cor. 3.3 needs a local epsilon of at most {widest:.4g} here, got "
            f"{local_epsilon:g}; compose the windows numerically (p2.composed_epsilon)"
        )
    need = math.expm1(local_epsilon) ** 2 * e0 * math.sqrt(m) * log_beta
    if n < need:
        raise OutsideTheorem(f"P2 Cor. 3.3 needs a population of at least {written(need, 4)}, got {n:,}")
    # Inequality 6 doubles the first term of eps_1 to be rid of the second.
    if math.expm1(local_epsilon) * math.sqrt(e0 * m) / n > 2.0 * math.sqrt(2.0 * log_beta):
        raise OutsideTheorem(f"P2 Cor. 3.3 needs a smaller window_delta than {window_delta:g}")
    spread = 4.0 * math.expm1(local_epsilon)
    spread *= math.sqrt(e0 * log_beta * math.log(1.0 / delta) / n)
    drift = 12.0 * math.expm1(local_epsilon) ** 2 * e0 * log_beta / n
    return Statement(spread + drift, n * window_delta / m + delta)


def repeated_window_ceiling(local_epsilon: float) -> float:
    """The largest epsilon of one window that the two conditions of Corollary 3.3 allow.

    >>> repeated_window_ceiling(1e-9) <= 0.5 and repeated_window_ceiling(0.405) < 0.37
    True
    """
    positive("local_epsilon", local_epsilon)
    return 0.5 * math.exp(-0.75 * local_epsilon) + math.expm1(-local_epsilon) ** 2 / 128.0


LARGEST_PURE_DELTA = 2.0 / math.e
"""Lemma A.3 rejects T times, and T must be whole: up to this delta_1 rounding up costs nothing."""


def largest_local_delta(local_epsilon: float, pure_delta: float) -> float:
    """Lemma A.3: the largest delta_0 for which an 8 local_epsilon pure randomizer is pure_delta away.

    The number of rejections T = ln(2/delta_1) / ln(1/(1 - e^{-5 eps0})) need not be whole. With T + x, 0 <= x < 1, the
    distance is delta_1/2 (e^{-a x} + 1 + x/(T + 2)), a = ln(2/delta_1)/T: convex in x, delta_1 at x = 0, and at most
    delta_1 at x = 1 if ln(2/delta_1) >= 1.
    """
    _local(local_epsilon, pure_delta)
    if pure_delta > LARGEST_PURE_DELTA:
        raise OutsideTheorem(
            f"P2 Lemma A.3 is used up to pure_delta = 2/e, got {pure_delta:g}: beyond, a whole "
            "number of rejections may cost more"
        )
    # -log(1 - e^{-5 eps0}); the lemma's proof prints e^{5 eps0}, its statement has it right.
    rejections = math.log(2.0 / pure_delta) / -math.log1p(-math.exp(-5.0 * local_epsilon))
    return -math.expm1(-local_epsilon) * pure_delta / (4.0 * math.exp(local_epsilon)) / (2.0 + rejections)


def smallest_pure_delta(local_epsilon: float, local_delta: float) -> float:
    """The least distance to a pure randomizer that Lemma A.3 gives for this local_epsilon and local_delta."""
    if largest_local_delta(local_epsilon, LARGEST_PURE_DELTA) < local_delta:
        raise OutsideTheorem(
            f"P2 Lemma A.3 does not cover local_delta = {local_delta:g} at local_epsilon = "
            f"{local_epsilon:g}; for Gaussian reports use random allocation"
        )
    enough, _ = switch(
        lambda log: largest_local_delta(local_epsilon, math.exp(log)) >= local_delta,
        math.log(LARGEST_PURE_DELTA), math.log(1e-300),
    )  # fmt: skip
    return math.exp(enough)


def with_local_delta(pure: Statement, steps: int, pure_delta: float) -> Statement:
    """The (eps_0, delta_0) versions: `pure` evaluated at 8 eps_0, plus the distance pure_delta, paid in all steps."""
    if pure.epsilon > 700.0:
        return Statement(pure.epsilon, math.inf)
    return Statement(pure.epsilon, pure.delta + steps * (math.exp(pure.epsilon) + 1.0) * pure_delta)


def _local(local_epsilon: float, delta: float) -> None:
    positive("local_epsilon", local_epsilon)
    open_probability("delta", delta)


def fixed_window_posteriors(slots: int, check_in_probability: float, local_epsilon: float) -> tuple[float, ...]:
    """P2, Theorem A.4: p / (m - (i-1)(1 - e^-eps0)) for m slots, p the check_in_probability, eps0 the local_epsilon."""
    count("slots", slots)
    probability("check_in_probability", check_in_probability)
    positive("local_epsilon", local_epsilon)
    i = np.arange(slots, dtype=np.float64)
    return tuple((check_in_probability / (slots + i * math.expm1(-local_epsilon))).tolist())


def shuffling_posteriors(reports: int, local_epsilon: float) -> tuple[float, ...]:
    """P2, Theorem A.7: q_i = 1 / (1 + (i-1) e^-2eps0 + (n-i) e^-eps0), n the reports, eps0 the local_epsilon."""
    count("reports", reports)
    positive("local_epsilon", local_epsilon)
    i = np.arange(1, reports + 1, dtype=np.float64)
    e = math.exp(-local_epsilon)
    return tuple((1.0 / (1.0 + (i - 1.0) * e * e + (reports - i) * e)).tolist())


def composed_epsilon(posteriors: tuple[float, ...], local_epsilon: float, delta: float, *, repeats: int = 1) -> Bracket:
    """Epsilon at delta of all steps with these posteriors and local_epsilon, the whole run repeated so often (repeats).

    >>> q = fixed_window_posteriors(1000, 1.0, 1.0)
    >>> 0.25 < composed_epsilon(q, 1.0, 1e-6).upper < 0.256
    True
    """
    steps = PosteriorRound(posteriors, any_pure(local_epsilon))
    return compose([(steps, repeats)]).epsilon(delta)


def _fixed_composed(
    slots: int, local_epsilon: float, rounds: int, delta: float, check_in_probability: float = 1.0
) -> Bracket:
    q = fixed_window_posteriors(slots, check_in_probability, local_epsilon)
    return composed_epsilon(q, local_epsilon, delta, repeats=rounds)


def _sliding_composed(slots: int, local_epsilon: float, delta: float) -> Bracket:
    q = fixed_window_posteriors(slots, 1.0, local_epsilon)
    return composed_epsilon(q, local_epsilon, delta)


def _averaged(population: int, slots: int, local_epsilon: float, delta: float) -> Statement:
    return averaged(population, slots, local_epsilon, delta / 2.0, delta / 2.0)


def _averaged_composed(population: int, slots: int, local_epsilon: float, rounds: int, delta: float) -> Bracket:
    q = typical_averaged_posteriors(population, slots, local_epsilon, delta / 2.0 / rounds)
    return composed_epsilon(q, local_epsilon, delta / 2.0, repeats=rounds)


def _repeated(population: int, slots: int, local_epsilon: float, delta: float) -> Statement:
    half = delta / 2.0
    return repeated_fixed_window(population, slots, local_epsilon, half * slots / population, half)


def _shuffling_composed(reports: int, local_epsilon: float, delta: float) -> Bracket:
    q = shuffling_posteriors(reports, local_epsilon)
    return composed_epsilon(q, local_epsilon, delta)


def _with_local_delta(
    protocol: str, population: int, local_delta: float, delta: float, local_epsilon: float | None = None,
    slots: int = 0, check_in_probability: float = 1.0,
) -> Statement:  # fmt: skip
    """The second halves: pure statements at 8 eps0, half of delta for the distance paid."""
    if local_epsilon is None or not local_delta > 0.0:
        raise OutsideTheorem("needs a local epsilon and a positive local delta")
    pure_delta = smallest_pure_delta(local_epsilon, local_delta)
    wide, half = 8.0 * local_epsilon, delta / 2.0
    if protocol != SHUFFLE and not slots:
        raise OutsideTheorem("needs a number of slots")
    if protocol == SHUFFLE:
        steps, pure = population, shuffling(population, wide, half)
    elif protocol == AVERAGED:
        # every client's randomizer is replaced, not one for each slot: n, not the printed m
        steps, pure = population, averaged(population, slots, wide, half / 2.0, half / 2.0)
    else:
        steps, pure = slots, fixed_window(slots, check_in_probability, wide, half)
    total = with_local_delta(pure, steps, pure_delta)
    if total.delta > delta:
        raise OutsideTheorem(
            f"its delta is {total.delta:.3g}, above the {delta:g} asked for; local_delta must be far smaller"
        )
    return total
