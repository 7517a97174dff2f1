import numpy as np
import pytest
from scipy import stats

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers import SecureSource, SeededSource, SkellamInteger, stochastic_round
from randomizers.checks import assert_frequencies, assert_mean


@pytest.mark.parametrize("source", [SeededSource(5), SecureSource()], ids=["seeded", "secure"])
def test_noise_is_skellam(source):
    """The table agrees with SciPy's Skellam law and the draws with the table."""
    randomizer = SkellamInteger(bound=1, variance=3.0, modulus=256)
    noise = randomizer.noise(50_000, source)
    inside = np.clip(noise, -5, 5)
    law = stats.skellam(1.5, 1.5)
    masses = np.array([law.cdf(-5), *law.pmf(range(-4, 5)), law.sf(4)])
    assert_frequencies(np.bincount(inside + 5, minlength=11), masses)


def test_sums_are_unbiased_with_the_stated_variance_whatever_the_modulus_hides():
    randomizer, source = SkellamInteger(bound=2, variance=5.0, modulus=512), SeededSource(1)
    values = np.array([2, -2, 1, 2, 2])
    sums = np.array([randomizer.estimate_sum(randomizer.randomize(values, source)) for _ in range(20_000)])
    assert_mean(sums, 5.0)
    assert_mean((sums - 5.0) ** 2, randomizer.sum_variance(5))


def test_pair_is_the_divergence_of_the_farthest_inputs():
    randomizer = SkellamInteger(bound=1, variance=4.0, modulus=1024)
    law, grid = stats.skellam(2.0, 2.0), np.arange(-80, 81)
    for alpha in (1.0, 1.5, 4.0):
        true = np.maximum(law.pmf(grid - 1) - alpha * law.pmf(grid + 1), 0).sum()
        assert float(randomizer.pair.profile(alpha)) == pytest.approx(true, abs=1e-12)
        assert float(randomizer.pair.profile(alpha)) >= true * (1 - 1e-12)


def test_stochastic_rounding_keeps_the_mean():
    rounded = stochastic_round(np.full(40_000, -1.3), SeededSource(2))
    assert set(np.unique(rounded)) == {-2, -1}
    assert_mean(rounded, -1.3)


def test_bad_input_is_refused():
    with pytest.raises(InvalidParameter, match="modulus"):
        SkellamInteger(bound=3, variance=1.0, modulus=7)
    with pytest.raises(InvalidParameter, match="values"):
        SkellamInteger(1, 1.0, 16).randomize(np.array([2]), SeededSource(0))
