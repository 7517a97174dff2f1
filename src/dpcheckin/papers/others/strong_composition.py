"""Composition of (epsilon, delta) statements: Kairouz, Oh and Viswanath, closed form and optimal.

arXiv 1311.0776v4: Theorem 3.3 (optimal for equal rounds), Theorem 3.4 (closed form), Theorem 3.5 (unequal rounds).
These compose *statements*; composing whole loss distributions is never worse and is what guarantees elsewhere in the
package use.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import open_probability
from dpcheckin.special.gamma import log_gamma


def closed_form(epsilon: float, rounds: int, slack: float) -> float:
    """Epsilon of so many rounds of epsilon-DP at the extra delta `slack` (Theorem 3.4).

    >>> round(closed_form(0.1, 100, 1e-5), 3)
    5.298
    """
    return unequal([epsilon], slack, repeats=[rounds])


def unequal(epsilons: Sequence[float], slack: float, repeats: Sequence[int] | None = None) -> float:
    """Theorem 3.5: the least of three closed forms at `slack` for rounds of these epsilons, with their repeats."""
    open_probability("slack", slack)
    e = np.asarray(epsilons, dtype=np.float64)
    t = np.ones(e.size) if repeats is None else np.asarray(repeats, dtype=np.float64)
    if np.any(~(e >= 0.0)) or np.any(~(t >= 0)):
        raise InvalidParameter("epsilons", e.tolist()[:3], "non-negative numbers")
    plain = float(np.dot(t, e))
    drift = float(np.dot(t, e * np.tanh(e / 2.0)))
    square = float(np.dot(t, e * e))
    spread = math.sqrt(2.0 * square * math.log(1.0 / slack))
    spread_small = math.sqrt(2.0 * square * math.log(math.e + math.sqrt(square) / slack))
    return min(plain, drift + spread, drift + spread_small)


def optimal(epsilon: float, rounds: int, slack: float) -> float:
    """Optimal epsilon of equal rounds (Theorem 3.3): randomized response composed exactly.

    The composed loss takes the values (rounds - 2 i) * epsilon; the returned value is the exact solution of delta(eps)
    = slack between two of them, never above `closed_form`.

    >>> round(optimal(0.1, 100, 1e-5), 3)
    4.307
    """
    open_probability("slack", slack)
    if rounds < 0:
        raise InvalidParameter("rounds", rounds, "at least 0")
    if rounds == 0 or epsilon == 0.0:
        return 0.0
    # Losses in decreasing order, with their probability under P and under Q.
    i = np.arange(rounds + 1, dtype=np.float64)
    loss = (rounds - 2.0 * i) * epsilon
    positive = loss > 0.0
    i, loss = i[positive], loss[positive]
    choose = log_gamma(rounds + 1.0) - log_gamma(i + 1.0) - log_gamma(rounds - i + 1.0)
    total = rounds * np.logaddexp(0.0, epsilon)
    p = np.cumsum(np.exp(choose + (rounds - i) * epsilon - total))
    log_q = np.logaddexp.accumulate(choose + i * epsilon - total)
    # delta(eps) = p_j - e^eps q_j on [loss_{j+1}, loss_j]: decreasing in eps, so in that piece
    # the solution is log((p_j - slack) / q_j).
    next_loss = np.append(loss[1:], 0.0)
    delta_at_next = p - np.exp(next_loss + log_q)
    enough = np.nonzero(delta_at_next >= slack)[0]
    if enough.size == 0:
        return 0.0
    j = int(enough[0])
    return min(rounds * epsilon, float(np.log(p[j] - slack) - log_q[j]))


def classical(epsilon: float, rounds: int, slack: float) -> float:
    """Dwork, Rothblum and Vadhan (2010), Theorem III.3: the older, looser closed form.

    Of so many rounds of epsilon-DP at `slack`. P3's "strong composition" curves have this size (its text cites Kairouz
    et al.).
    """
    open_probability("slack", slack)
    spread = epsilon * math.sqrt(2.0 * rounds * math.log(1.0 / slack))
    return min(rounds * epsilon, rounds * epsilon * math.expm1(epsilon) + spread)
