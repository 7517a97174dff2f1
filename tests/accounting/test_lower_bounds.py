"""Lower bounds look at the two datasets in both orders."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from dpcheckin.accounting import (
    CheckInRound,
    DistributedRound,
    LowerBound,
    ShuffleRound,
    ThreeAtoms,
    any_pure,
    binary_response,
    dary_response,
    guarantee,
    hemisphere,
    lower_bound,
    privunit,
)
from dpcheckin.errors import InvalidParameter


@pytest.mark.parametrize(
    ("population", "local_epsilon", "delta"), [(100, 4.0, 0.03), (100, 4.0, 1e-3), (100, 2.0, 1e-3), (1000, 2.0, 1e-4)]
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


@pytest.mark.parametrize(
    "pair",
    [privunit(2.0, 50), binary_response(2.0), hemisphere(2.0), dary_response(2.0, 5), any_pure(2.0)],
    ids=lambda pair: pair.name,
)
def test_a_label_proves_nothing(pair: ThreeAtoms) -> None:
    """Which data of the others are bad hangs on what a pair is, not on what it is called."""
    called = replace(pair, name="PrivUnit" if "ary" in pair.name else "3-ary response")
    same = [lower_bound([(CheckInRound(200, 0.1, p), 3)], 1e-4) for p in (pair, called)]
    assert isinstance(same[0], LowerBound) and same[0] == same[1]
    full = [guarantee([(ShuffleRound(200, p), 1)], 1e-5).epsilon for p in (pair, called)]
    assert full[0] == full[1]


def test_mixtures_without_a_known_bad_case_are_refused() -> None:
    mixed = [(DistributedRound(500, 0.1, 1.0), 2), (CheckInRound(500, 0.1, any_pure(1.0)), 3)]
    with pytest.raises(InvalidParameter, match="no bad case of such a mixture"):
        lower_bound(mixed, 1e-5)


@pytest.mark.parametrize("rounds", [1, 2])
def test_rates_in_an_interval_among_two_clients_have_a_lower_bound(rounds: int) -> None:
    """Perhaps zero: no number of the others was worth a part, and that crashed."""
    one = CheckInRound(2, 0.03, any_pure(1.0), lowest_rate=0.0155)
    stated = guarantee((one, rounds), 1e-9).epsilon.upper
    assert 0.0 <= lower_bound((one, rounds), 1e-9).epsilon.lower <= stated


def test_a_lower_bound_of_rates_in_an_interval_counts_how_often_the_seats_are_taken() -> None:
    """A single part, whose probability was forgotten; the exact run of two rounds has 1.4204."""
    one = CheckInRound(2, 0.66, dary_response(0.85, 3), lowest_rate=0.0503)
    assert 0.0 < lower_bound((one, 2), 0.027).epsilon.lower <= 1.4204
