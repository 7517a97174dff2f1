"""Lower bounds look at the two datasets in both orders."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from dpcheckin.accounting import ShuffleRound, binary_response, guarantee, lower_bound


@pytest.mark.parametrize(
    ("population", "local_epsilon", "delta"),
    [(100, 4.0, 0.03), (100, 4.0, 1e-3), (100, 2.0, 1e-3), (1000, 2.0, 1e-4)],
)
def test_a_full_shuffle_of_binary_responses_is_worse_from_the_other_side(
    population: int, local_epsilon: float, delta: float
) -> None:
    """Against complete enumeration: the absence of a symbol tells more than its presence."""
    lie = 1 / (1 + math.exp(local_epsilon))
    others = stats.binom.pmf(np.arange(population), population - 1, lie)

    def law(p: float) -> np.ndarray:
        return np.append(others * (1 - p), 0.0) + np.append(0.0, others * p)

    def exact(one: np.ndarray, other: np.ndarray) -> float:
        def excess(epsilon: float) -> float:
            return float(np.maximum(one - math.exp(epsilon) * other, 0.0).sum()) - delta

        return float(brentq(excess, 0.0, local_epsilon))

    with_it, without = law(1 - lie), law(lie)
    worse, better = exact(without, with_it), exact(with_it, without)
    run = [(ShuffleRound(population, binary_response(local_epsilon)), 1)]
    bound = lower_bound(run, delta).epsilon.lower
    assert better < 0.97 * worse <= bound <= worse
    assert worse <= guarantee(run, delta).epsilon.upper
