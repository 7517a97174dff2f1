import math

import numpy as np
import pytest
import torch

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers import LdpSgd, PrivUnit, SecureSource, SeededSource
from dpcheckin.randomizers.caps import cap_height, cap_probability, mean_cosine
from randomizers.checks import assert_frequencies, assert_mean, assert_same_law

KINDS = [LdpSgd, PrivUnit]
CLIENTS = 40_000


def rows(norm, dimension, count=CLIENTS):
    direction = np.arange(1.0, dimension + 1)
    return np.tile(norm * direction / np.linalg.norm(direction), (count, 1))


@pytest.mark.parametrize("arrays", ["numpy", "torch"])
@pytest.mark.parametrize("norm", [0.0, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("kind", KINDS)
def test_estimates_are_unbiased_with_the_stated_variance(kind, norm, arrays):
    """For norms below, at and above the clip, in NumPy and torch."""
    randomizer, values = kind(2.0, 6, clip=1.0), rows(norm, 6)
    given = values if arrays == "numpy" else torch.tensor(values, dtype=torch.float32)
    reports = randomizer.randomize(given, SeededSource(11, arrays))
    estimates = np.asarray(randomizer.estimate(reports), dtype=float)
    clipped = values * min(1.0, 1.0 / max(norm, 1e-12))
    assert_mean(estimates, clipped[0])
    assert np.allclose(np.linalg.norm(np.asarray(reports), axis=1), 1.0, atol=1e-5)
    squared = ((estimates - clipped) ** 2).sum(axis=1)
    assert_mean(squared, randomizer.total_variance(values[:1])[0])


@pytest.mark.parametrize("kind", KINDS)
def test_the_fast_sampler_agrees_with_rejection_from_the_operating_system(kind):
    """Cosine and one coordinate across have one law, however the report was made."""
    randomizer, values = kind(1.5, 5), rows(1.0, 5, 6000)
    fast = randomizer.randomize(values, SeededSource(3))
    secure = randomizer.randomize(values, SecureSource())
    assert_same_law((fast * values).sum(axis=1), (secure * values).sum(axis=1))
    assert_same_law(fast[:, 0], secure[:, 0])


@pytest.mark.parametrize("kind", KINDS)
def test_empirical_likelihood_ratios_follow_the_pair(kind):
    """Reports about -v, weighed against v: e₀, 1 and 1/e₀ as often as the pair says."""
    randomizer = kind(2.0, 6)
    values = rows(1.0, 6)
    cosines = (randomizer.randomize(-values, SeededSource(8)) * values).sum(axis=1)
    hits = (cosines >= randomizer.height).sum()  # near v: e₀ times likelier under v
    away = (-cosines >= randomizer.height).sum()
    pair, e0 = randomizer.pair, math.exp(2.0)
    observed = np.array([hits, away, CLIENTS - hits - away])
    assert_frequencies(observed, np.array([pair.hit, e0 * pair.hit, pair.neutral]))


def test_cap_geometry_against_simulation():
    """Cap measure and mean cosine agree with uniform directions."""
    draws = np.random.default_rng(0).standard_normal((200_000, 4))
    cosines = draws[:, 0] / np.linalg.norm(draws, axis=1)
    for measure in (0.5, 0.2, 0.01):
        inside = cosines >= cap_height(measure, 4)
        assert_frequencies(np.bincount(inside, minlength=2), np.array([1 - measure, measure]))
    p = cap_probability(1.0, 0.2)
    inside = cosines >= cap_height(0.2, 4)
    weights = np.where(inside, p / 0.2, (1 - p) / 0.8)
    assert_mean(weights * cosines, mean_cosine(1.0, 0.2, 4))


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0, 8.0])
@pytest.mark.parametrize("dimension", [2, 50, 26_010])
def test_the_chosen_cap_is_the_best_one(epsilon, dimension):
    """No cap on a fine grid has a larger mean cosine, and none beats the pair's epsilon."""
    randomizer = PrivUnit(epsilon, dimension)
    p, q = randomizer.cap_probability, randomizer.cap_measure
    assert math.log(p * (1 - q) / (q * (1 - p))) == pytest.approx(epsilon, abs=1e-9)
    others = [mean_cosine(epsilon, m, dimension) for m in np.geomspace(1e-5, 0.5, 400)]
    assert randomizer.mean_cosine >= max(others) * (1 - 1e-9)
    assert randomizer.mean_cosine >= LdpSgd(epsilon, dimension).mean_cosine * (1 - 1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_accounted_cap_is_the_sampled_cap(kind):
    """The pair that accounting uses describes exactly this sampler's p and q."""
    randomizer = kind(4.0, 1000)
    p, q = randomizer.cap_probability, randomizer.cap_measure
    assert randomizer.pair.hit == pytest.approx(q * (1 - p) / (1 - q), rel=1e-6)
    assert randomizer.pair.neutral == pytest.approx((1 - p) * (1 - 2 * q) / (1 - q), abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sum_has_the_moments_of_summed_reports(kind):
    """Mean and energy of the short cut agree with sums of individually drawn estimates."""
    dimension, clients = 40, 30
    randomizer, source = kind(3.0, dimension), SeededSource(4)
    values = np.random.default_rng(1).standard_normal((clients, dimension)) * 0.2
    norms = np.linalg.norm(values, axis=1)
    short = []
    for _ in range(4000):
        drawn = randomizer.summed(norms, dimension, source)
        short.append(drawn.weights @ values + drawn.noise_deviation * source.normal((dimension,)))
    short = np.array(short)
    clipped = values / np.maximum(norms, 1.0)[:, None]
    assert_mean(short, clipped.sum(axis=0))
    energy = ((short - clipped.sum(axis=0)) ** 2).sum(axis=1).mean()
    assert energy == pytest.approx(randomizer.total_variance(values).sum(), rel=2.5 / dimension)


def test_bad_input_is_refused():
    with pytest.raises(InvalidParameter, match="dimension"):
        PrivUnit(1.0, 1)
    with pytest.raises(InvalidParameter, match="local_epsilon"):
        PrivUnit(float("nan"), 10)
    with pytest.raises(InvalidParameter, match="clip"):
        LdpSgd(1.0, 10, clip=0)
    with pytest.raises(InvalidParameter, match="values"):
        PrivUnit(1.0, 3).randomize(np.full((2, 3), np.nan), SeededSource(0))
    with pytest.raises(InvalidParameter, match="values"):
        PrivUnit(1.0, 3).randomize(np.zeros((2, 4)), SeededSource(0))
