"""P3's ternary |chi|^alpha-DP of the shuffle (arXiv 2107.08763v1, Theorems 4-6, Lemmas 3-8), pure local randomizers.

Three mutually adjacent datasets have laws P, Q and R; zeta(alpha)^alpha bounds E_R |(P - Q)/R|^alpha. Theorem 5 reduces
any data to data in which everybody else holds one value (`reduction`): a client's report is, with probability 1/e0, a
draw from the third dataset's own, and what is left of it may be dropped (Lemmas 3 to 5: the divergence is jointly
convex and shrinks when a client is added). Theorem 6 bounds that special case (`special_case`), Theorem 4 splits the
sum over how many such draws there are at half their mean. Lemma 2 makes a Rényi bound of it
(`accounting.renyi.of_ternary`): with Theorem 4 that is Theorem 1, and with the sum left whole it is less.

All functions work with logarithms of the alpha-th power; `order` is alpha.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

from dpcheckin.accounting.engine.arrays import FloatArray
from dpcheckin.accounting.engine.sampling import visible_counts
from dpcheckin.accounting.renyi import RenyiCurve, of_ternary
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import count, in_range, positive
from dpcheckin.special.gamma import log_gamma


def divergence(p: Sequence[float], q: Sequence[float], r: Sequence[float], reports: int, order: float) -> float:
    """The special case exactly: log E_R |(P - Q)/R|^order of a shuffle of so many reports, all but one with law r.

    The last one has law p, q, or r. A sum over all histograms, for a handful of outputs and reports.

    >>> third = divergence([0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6], 10, 2.0)
    >>> round(math.exp(third), 4)
    0.16
    """
    laws = np.array([p, q, r], dtype=np.float64)
    if laws.ndim != 2 or not (np.all(laws > 0.0) and np.allclose(laws.sum(axis=1), 1.0)):
        raise InvalidParameter("p, q, r", laws.tolist(), "three laws on the same outputs, all of them possible")
    moved = (laws[0] - laws[1]) / laws[2]
    total = 0.0
    for dividers in itertools.combinations(range(reports + moved.size - 1), moved.size - 1):
        held = np.diff((-1, *dividers, reports + moved.size - 1)) - 1
        chance = math.lgamma(reports + 1) - sum(math.lgamma(h + 1) for h in held)
        weight = math.exp(chance + float(held @ np.log(laws[2])))
        total += weight * abs(float(held @ moved) / reports) ** order
    return math.log(total)


def from_one(reports: int | FloatArray, local_epsilon: float, order: float) -> FloatArray:
    """Lemma 7: log E_R |P/R - 1|^order, order 1 or more: reports of this local_epsilon, all but one about one value."""
    in_range("order", order, "at least 1", lambda a: a >= 1.0)
    stretch = 2.0 * math.sinh(local_epsilon)  # e0 - 1/e0
    if order == 2.0:
        return np.asarray(2.0 * math.log(2.0 * math.sinh(local_epsilon / 2.0)) - np.log(reports))
    moment = math.log(order) + float(log_gamma(order / 2.0))
    return np.asarray(moment + order / 2.0 * np.log(stretch**2 / 2.0 / np.asarray(reports, dtype=np.float64)))


def special_case(reports: int | FloatArray, local_epsilon: float, order: float) -> FloatArray:
    """Theorem 6: the same of two changed reports, by Corollary 1 (Lemma 6): |x + y|^a <= 2^(a-1) (|x|^a + |y|^a).

    For so many reports of this local_epsilon and an order; never above one report's, (e0 - 1/e0)^order.

    >>> round(math.exp(special_case(10, 1.0, 2.0)), 4)
    0.4345
    """
    most = order * math.log(2.0 * math.sinh(local_epsilon))
    return np.minimum(order * math.log(2.0) + from_one(reports, local_epsilon, order), most)


def reduction(reports: int, local_epsilon: float, special: Callable[[FloatArray], FloatArray]) -> float:
    """Theorem 5: the logarithm for any data of so many reports of this local_epsilon, from `special` cases of m + 1.

    m of the others, each with probability 1/e0, show the third dataset's own report; `special` falls with m (Lemma 8).

    >>> round(math.exp(reduction(100, 1.0, lambda m: special_case(m, 1.0, 2.0))), 3)
    0.118
    """
    shown = visible_counts(count("reports", reports) - 1, math.exp(-local_epsilon)) if reports > 1 else None
    if shown is None:
        return float(special(np.ones(1))[0])
    with np.errstate(divide="ignore"):
        weights = np.log(np.concatenate([shown.probability, [shown.tail_below, shown.tail_above]]))
    fewest = np.concatenate([shown.low, [0.0, shown.high[-1]]])
    return float(np.logaddexp.reduce(weights + special(fewest + 1.0)))


def theorem_4(reports: int, local_epsilon: float, order: float) -> float:
    """Theorem 4: the logarithm of zeta(order)^order for a shuffle of so many reports of this local_epsilon."""
    e0 = math.exp(local_epsilon)
    kept = math.floor((reports - 1) / (2.0 * e0)) + 1
    few = order * math.log(e0 - 1.0 / e0) - (reports - 1) / (8.0 * e0)
    many = order * math.log(2.0) + float(from_one(kept, local_epsilon, order))
    return float(np.logaddexp(few, many))


def reduced_rdp(population: int, cohort: int, local_epsilon: float, max_order: int = 300) -> RenyiCurve:
    """Lemma 2 with Theorems 5 and 6, the sum over m whole: orders 2..max_order; below Theorem 1.

    A cohort of the population, reports of this local_epsilon.

    >>> mnist = reduced_rdp(60_000, 2_000, 2.0).times(6_000)
    >>> mnist.epsilon(1e-5).epsilon < 5.79
    True
    """
    count("cohort", cohort, largest=population)
    positive("local_epsilon", local_epsilon)
    orders = range(2, count("max_order", max_order, smallest=2) + 1)
    zeta = [reduction(cohort, local_epsilon, _special(local_epsilon, float(order))) for order in orders]
    return of_ternary(np.array(zeta), cohort / population)


def _special(local_epsilon: float, order: float) -> Callable[[FloatArray], FloatArray]:
    return lambda reports: special_case(reports, local_epsilon, order)
