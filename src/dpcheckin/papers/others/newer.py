"""Newer work on shuffling, as far as it was at hand (docs/related-systems.md).

Su, Cheng and Wang, arXiv 2504.07414v6: of all decompositions of local randomizers the privacy blanket is the best, and
its bound is computed by FFT; here our own engine computes the blanket's pair. Chen, Cao and Ge, arXiv 2312.14388v3:
clients with local epsilons and deltas of their own, approximated by Gaussian differential privacy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpcheckin.accounting import any_pure
from dpcheckin.accounting.engine.arrays import FloatArray
from dpcheckin.accounting.engine.curves import crossing
from dpcheckin.accounting.engine.seats import Seats
from dpcheckin.accounting.pairs.local import LocalPair
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import count, open_probability, positive
from dpcheckin.special.normal import gaussian_profile
from dpcheckin.special.roots import least


def blanket(reports: int, pair: LocalPair, delta: float) -> float:
    """The blanket's epsilon at delta of one full shuffle of reports with this pair.

    >>> from dpcheckin.numerals import rounded_up
    >>> [rounded_up(blanket(n, any_pure(1.0), 1e-6)) for n in (1_000, 10_000, 100_000)]
    ['0.1487', '0.04321', '0.01243']
    """
    n, smallest = count("reports", reports), open_probability("delta", delta) * 1e-6
    curve = pair.curve([(1.0, Seats(n, pair, 0.0, float(n)))], 1.0, smallest)
    return crossing(curve.upper_at, delta, pair.local_epsilon, up=True)


def personalised_mu(epsilons: Sequence[float] | FloatArray, deltas: Sequence[float] | float = 0.0) -> float:
    """mu of one shuffle of reports with these local epsilons and deltas, approximately (the abstract's formula).

    >>> round(personalised_mu([1.0] * 1_001), 4) == round(math.sqrt(2 * (1 + math.e) / 1_000), 4)
    True
    """
    e, d = np.broadcast_arrays(np.asarray(epsilons, dtype=np.float64), np.asarray(deltas, dtype=np.float64))
    if not (e.size >= 2 and np.all(e > 0.0) and np.all((d >= 0.0) & (d < 1.0))):
        raise InvalidParameter("epsilons", e.tolist()[:3], "at least two, above 0, with deltas in [0, 1)")
    hidden = (1.0 - d) / (1.0 + np.exp(e))
    return math.sqrt(2.0 / (math.fsum(hidden.tolist()) - float(hidden.max())))


def personalised(population: int, local_epsilon: float, rounds: int, delta: float, local_delta: float = 0.0) -> float:
    """Epsilon at delta of so many rounds at that mu, if all of the population have this local_epsilon and local_delta.

    >>> round(personalised(10_000, 1.0, 1, 1e-6), 3)
    0.099
    """
    one = personalised_mu(
        np.full(count("population", population), positive("local_epsilon", local_epsilon)), local_delta
    )
    mu = one * math.sqrt(rounds)

    def within(epsilon: float) -> bool:
        return float(gaussian_profile(mu, np.array([math.exp(epsilon)]))[0]) <= delta

    return least(within, 1.0, 600.0, halvings=60)


def _any_blanket(reports: int, local_epsilon: float, delta: float) -> float:
    return blanket(reports, any_pure(local_epsilon), delta)
