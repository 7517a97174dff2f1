import numpy as np
import pytest
from scipy import stats

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers import SecureSource, SeededSource
from randomizers.checks import FALSE_ALARM, assert_frequencies


@pytest.mark.parametrize("source", [SeededSource(1), SecureSource()], ids=["seeded", "secure"])
def test_draws_follow_their_laws(source):
    """Uniforms, integers, normals and signs of either source pass goodness-of-fit tests."""
    assert stats.kstest(source.uniform(20_000), "uniform").pvalue > FALSE_ALARM
    assert stats.kstest(source.normal((100, 200)).ravel(), "norm").pvalue > FALSE_ALARM
    assert_frequencies(np.bincount(source.integers(7, 20_000), minlength=7), np.full(7, 1 / 7))
    signs = source.sign(np.full(20_000, 0.3))
    assert_frequencies(np.array([(signs == 1).sum(), (signs == -1).sum()]), np.array([0.3, 0.7]))


def test_seeded_sources_repeat_and_secure_ones_do_not():
    """Equal seeds give equal draws, different seeds and the operating system do not."""
    assert np.array_equal(SeededSource((3, 4)).uniform(5), SeededSource((3, 4)).uniform(5))
    assert not np.array_equal(SeededSource((3, 4)).uniform(5), SeededSource((3, 5)).uniform(5))
    assert not np.array_equal(SecureSource().uniform(5), SecureSource().uniform(5))


def test_uniform_never_touches_the_ends():
    """0 and 1 would break inversion, so uniforms stay strictly inside."""
    draws = SeededSource(0).uniform(10_000)
    assert draws.min() > 0 and draws.max() < 1


def test_unknown_array_library_is_refused():
    with pytest.raises(InvalidParameter, match="arrays"):
        SeededSource(0, arrays="jax")
