import math

import numpy as np
import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers import BinaryResponse, DaryResponse, SecureSource, SeededSource
from randomizers.checks import assert_frequencies, assert_mean


@pytest.mark.parametrize("source", [SeededSource(5), SecureSource()], ids=["seeded", "secure"])
@pytest.mark.parametrize("randomizer", [BinaryResponse(1.0), DaryResponse(2.0, 5)])
def test_reports_have_the_stated_probabilities(randomizer, source):
    """The truth comes with probability e₀/(e₀+d-1), every other symbol with 1/(e₀+d-1)."""
    reports = randomizer.randomize(np.full(40_000, 1), source)
    law = np.full(randomizer.symbols, randomizer.other_support)
    law[1] = randomizer.own_support
    assert_frequencies(np.bincount(reports, minlength=randomizer.symbols), law)
    assert math.isclose(randomizer.own_support / randomizer.other_support, math.exp(randomizer.local_epsilon))


def test_estimate_is_unbiased_with_the_stated_variance():
    """Over many repetitions the estimated counts have the exact mean and variance."""
    randomizer, counts = DaryResponse(1.5, 4), np.array([50, 30, 20, 0])
    values, source = np.repeat(np.arange(4), counts), SeededSource(2)
    draws = np.array([randomizer.estimate(randomizer.randomize(values, source)) for _ in range(4000)])
    assert_mean(draws, counts)
    assert_mean((draws - counts) ** 2, randomizer.variance(counts))


@pytest.mark.parametrize("symbols", [2, 3, 6])
def test_pair_is_the_law_of_the_likelihood_ratio(symbols):
    """The pair's profile equals the worst hockey-stick divergence of the reports' own law."""
    randomizer = DaryResponse(1.2, symbols)
    one, other = np.full(symbols, randomizer.other_support), np.full(symbols, randomizer.other_support)
    one[0] = other[1] = randomizer.own_support
    for alpha in (0.5, 1.0, 1.7, 3.0):
        true = np.maximum(one - alpha * other, 0).sum()
        assert float(randomizer.pair.profile(alpha)) == pytest.approx(true, abs=1e-12)


@pytest.mark.parametrize("values", [np.array([0, 5]), np.array([-1]), np.array([0.5])])
def test_values_that_are_not_symbols_are_refused(values):
    with pytest.raises(InvalidParameter, match="values"):
        DaryResponse(1.0, 5).randomize(values, SeededSource(0))


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_bad_epsilon_is_refused(epsilon):
    with pytest.raises(InvalidParameter, match="local_epsilon"):
        BinaryResponse(epsilon)


def test_binary_response_has_two_symbols():
    with pytest.raises(InvalidParameter, match="symbols"):
        BinaryResponse(1.0, symbols=3)
