"""What P3's Algorithm 1 costs in utility (arXiv 2107.08763, Theorem 3, Appendix F).

Nothing here is a privacy statement. The bound keeps the constants of the proof, which the theorem
hides in O(.). The proof's step (b) leaves out that the cohort is drawn at random; its conclusion
holds all the same, since given the cohort the mean gradient has norm at most L √max(d^(1-2/p), 1)
and the randomizer's variance is divided by k.
"""

from __future__ import annotations

import math

from dpcheckin.errors import InvalidParameter


def largest_square(dimension: int, norm: float, lipschitz: float) -> float:
    """Largest squared l2 norm of a gradient of lp norm at most L: max(d^(1-2/p), 1) L².

    Args:
        dimension: of a gradient.
        norm: the p, from 1 to infinity.
        lipschitz: the L.

    >>> largest_square(16, 1, 2.0), largest_square(16, math.inf, 2.0)
    (4.0, 64.0)
    """
    if not norm >= 1:
        raise InvalidParameter("norm", norm, "at least 1")
    return float(max(dimension ** (1 - 2 / norm), 1.0) * lipschitz**2)


def printed_variance(dimension: int, norm: float, lipschitz: float, local_epsilon: float) -> float:
    """The variance of one report that Equation 48 allows for.

    Args:
        dimension: of a gradient.
        norm: the p.
        lipschitz: the L.
        local_epsilon: of one report.
    """
    constant = 4 if norm in (1, math.inf) else 14
    shrunk = math.tanh(local_epsilon / 2)
    return constant * dimension * largest_square(dimension, norm, lipschitz) / shrunk**2


def second_moment(
    *, cohort: int, dimension: int, norm: float, lipschitz: float, variance: float
) -> float:
    """G²: Lemma 9 with the variance of one report.

    Args:
        cohort: reports of a round.
        dimension: of a gradient.
        norm: the p.
        lipschitz: the L.
        variance: of one report, exact or `printed_variance`.
    """
    return largest_square(dimension, norm, lipschitz) + variance / cohort


def risk(*, rounds: int, diameter: float, second_moment: float) -> float:
    """Equation 49: excess empirical risk of the last iterate with steps D/(G √t).

    Args:
        rounds: the T.
        diameter: of the set of models.
        second_moment: G².
    """
    if rounds < 1:
        raise InvalidParameter("rounds", rounds, "at least 1")
    root = math.sqrt(second_moment)
    return 2 * diameter * root * (2 + math.log(rounds)) / math.sqrt(rounds)
