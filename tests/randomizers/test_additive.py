import numpy as np
import pytest
import torch
from scipy import stats

from dpcheckin.errors import InvalidParameter, OutsideTheorem
from dpcheckin.randomizers import ClipOnly, Gaussian, Laplace, SecureSource, SeededSource
from randomizers.checks import FALSE_ALARM, assert_mean

VALUES = np.tile(np.array([3.0, -4.0, 0.0]), (20_000, 1))


@pytest.mark.parametrize("arrays", ["numpy", "torch"])
def test_gaussian_clips_and_adds_the_stated_noise(arrays):
    """Reports are the clipped vector plus normals of deviation noise_multiplier · clip."""
    randomizer = Gaussian(noise_multiplier=0.5, clip=2.0)
    given = VALUES if arrays == "numpy" else torch.tensor(VALUES, dtype=torch.float32)
    reports = np.asarray(randomizer.randomize(given, SeededSource(1, arrays)), dtype=float)
    noise = (reports - VALUES * 2.0 / 5.0).ravel()
    assert stats.kstest(noise, "norm", args=(0, 1.0)).pvalue > FALSE_ALARM
    assert randomizer.total_variance(VALUES)[0] == pytest.approx(3.0)


def test_gaussian_sum_is_exact():
    """Weights are the clipping factors, the noise that of all reports together."""
    drawn = Gaussian(2.0, clip=1.0).summed(np.array([0.5, 4.0]), 7, SeededSource(0))
    assert drawn.weights.tolist() == [1.0, 0.25]
    assert drawn.noise_deviation == pytest.approx(2.0 * np.sqrt(2))


def test_laplace_clips_in_l1_and_adds_the_stated_noise():
    randomizer = Laplace(local_epsilon=0.5, dimension=3, clip=1.0)
    reports = randomizer.randomize(VALUES, SeededSource(2))
    noise = reports - VALUES / 7.0
    assert stats.kstest(noise.ravel(), "laplace", args=(0, 4.0)).pvalue > FALSE_ALARM
    assert_mean((noise**2).sum(axis=1), randomizer.total_variance(VALUES[:1])[0])


@pytest.mark.parametrize("randomizer", [Gaussian(1.0), Laplace(1.0, 3)])
def test_real_reports_lie_on_a_grid(randomizer):
    """Reports from the secure source keep no bits below a millionth of the noise."""
    reports = randomizer.randomize(VALUES[:50], SecureSource())
    scale = randomizer.deviation if isinstance(randomizer, Gaussian) else randomizer.scale
    steps = reports / (scale * 2.0**-20)
    assert np.array_equal(steps, np.round(steps))


@pytest.mark.parametrize(
    "randomizer,quantile",
    [(Gaussian(1.7), stats.norm(scale=1.7).cdf), (Laplace(1.3), stats.laplace(scale=2 / 1.3).cdf)],
)
def test_empirical_divergence_follows_the_pair(randomizer, quantile):
    """The best test of one report, +clip against -clip, wins what the profile at 1 says."""
    ones = np.ones((200_000, 1))
    up = randomizer.randomize(ones, SeededSource(3))[:, 0] > 0
    down = randomizer.randomize(-ones, SeededSource(4))[:, 0] > 0
    assert_mean(up.astype(float) - down, float(randomizer.pair.profile(np.array([1.0]))[0]))
    assert quantile(1.0) - quantile(-1.0) == pytest.approx(float(randomizer.pair.profile(np.array([1.0]))[0]))


def test_clipping_alone_has_no_pair():
    """A randomizer without noise must never reach the accountant."""
    with pytest.raises(OutsideTheorem):
        _ = ClipOnly(1.0).pair


def test_bad_noise_is_refused():
    with pytest.raises(InvalidParameter, match="noise_multiplier"):
        Gaussian(0.0)
