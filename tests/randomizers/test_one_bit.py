import math

import numpy as np
import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers import L1Bit, LInfinityBit, PrivUnit, SecureSource, SeededSource
from dpcheckin.randomizers import lp_randomizer as pick
from randomizers.checks import assert_frequencies, assert_mean

VECTOR = np.array([0.5, -0.2, 0.1, 0.0, -0.1])


@pytest.mark.parametrize("source", [SeededSource(5), SecureSource()], ids=["seeded", "secure"])
@pytest.mark.parametrize("kind", [L1Bit, LInfinityBit])
def test_estimates_are_unbiased_with_the_stated_variance(kind, source):
    randomizer, values = kind(1.0, 5), np.tile(VECTOR, (40_000, 1))
    estimates = randomizer.estimate(randomizer.randomize(values, source))
    assert_mean(estimates, VECTOR)
    squared = ((estimates - VECTOR) ** 2).sum(axis=1)
    assert_mean(squared, randomizer.total_variance(values[:1])[0])


@pytest.mark.parametrize("kind,order", [(L1Bit, 8), (LInfinityBit, 5)])
def test_likelihood_ratios_never_pass_the_epsilon(kind, order):
    """Coordinates are uniform, and given one the bit is a binary response at the extreme."""
    randomizer = kind(1.5, 5, clip=1.0)
    values = np.zeros((60_000, 5))
    values[:, 0] = 1.0  # the first Hadamard row is all ones, so coordinate 0 shows the extreme
    reports = randomizer.randomize(values, SeededSource(6))
    assert_frequencies(np.bincount(reports[:, 0], minlength=order), np.full(order, 1 / order))
    bits = reports[reports[:, 0] == 0, 1]
    truth = 1 / (1 + math.exp(-1.5))
    counts = np.array([(bits == 1).sum(), (bits == -1).sum()])
    assert_frequencies(counts, np.array([truth, 1 - truth]))
    assert randomizer.pair.hit == pytest.approx(1 / (math.exp(1.5) + 1))


def test_l1_clips_by_l1_norm():
    randomizer, values = L1Bit(2.0, 5, clip=0.3), np.tile(VECTOR, (40_000, 1))
    estimates = randomizer.estimate(randomizer.randomize(values, SeededSource(7)))
    assert_mean(estimates, VECTOR / 3)


def test_picked_by_p():
    assert isinstance(pick(2, 1.0, 10), PrivUnit)
    assert isinstance(pick(1, 1.0, 10), L1Bit)
    assert isinstance(pick(math.inf, 1.0, 10), LInfinityBit)
    assert isinstance(pick(3, 1.0, 64), PrivUnit) and pick(3, 1.0, 64).clip == pytest.approx(2.0)
    assert pick(1.5, 1.0, 64, 0.3).clip == 0.3  # the lp ball lies in the l2 ball
    for p in (0.5, math.nan):
        with pytest.raises(InvalidParameter, match="p ="):
            pick(p, 1.0, 10)
