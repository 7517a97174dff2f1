"""Variances and intervals against enumeration and exact laws."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dpcheckin.errors import InvalidParameter
from dpcheckin.survey import Histogram, Survey
from dpcheckin.survey.estimates import Sample, critical_value, gaussian_mu, sample_of, score_interval
from dpcheckin.survey.questions.histogram import ShareLaw


@pytest.mark.parametrize("size", [1, 2, 4, 5])
def test_the_draw_from_a_finite_population_is_counted_exactly(size):
    """Every cohort of five people: the variance of its share, without any noise."""
    people = np.array([1, 1, 0, 0, 0])
    means = [people[list(some)].mean() for some in itertools.combinations(range(5), size)]
    sample = Sample(5, (float(size),))
    share = people.mean()
    assert sample.who * share * (1 - share) == pytest.approx(np.var(means), abs=1e-15)


def test_two_rounds_are_two_draws():
    people, sizes = np.array([1, 0, 0, 1]), (2, 3)
    rounds = [list(itertools.combinations(range(4), k)) for k in sizes]
    means = [(people[list(a)].sum() + people[list(b)].sum()) / 5 for a, b in itertools.product(*rounds)]
    assert sample_of(4, sizes).who * 0.25 == pytest.approx(np.var(means))


def test_variance_of_a_histogram_is_exact_by_enumeration():
    """Four people, two asked, binary response: every cohort and every outcome of the coins."""
    survey = Survey(Histogram(2), 4, 1.0, rate=0.5)
    p, q = survey.randomizer.own_support, survey.randomizer.other_support
    values, found, weights = [1, 1, 1, 0], [], []
    for a, b in itertools.combinations(values, 2):
        for coins in itertools.product((0, 1), repeat=2):
            chances = [p if x else q for x in (a, b)]
            weight = math.prod(c if y else 1 - c for c, y in zip(chances, coins, strict=True))
            found.append((sum(coins) / 2 - q) / (p - q))
            weights.append(weight / 6)
    mean = np.average(found, weights=weights)
    assert mean == pytest.approx(0.75)
    variance = np.average((np.array(found) - mean) ** 2, weights=weights)
    law = ShareLaw(p, q, Sample(4, (2.0,)))
    assert law.deviation(np.array([0.75]))[0] ** 2 == pytest.approx(variance)


@pytest.mark.parametrize("z", [1.96, 4.0])
def test_intervals_of_small_counts_have_their_confidence(z):
    """A category nobody holds, 24 false reports on average: exact Poisson-like tails."""
    n, q = 100_000, 24 / 100_000
    law = ShareLaw(0.99, q, Sample(n, (float(n),)))
    seen = np.arange(0, 120)
    shares = (seen / n - q) / (0.99 - q)
    lower, _ = score_interval(shares, law.moments, z)
    miss = float(stats.binom.pmf(seen[lower > 1e-12], n, q).sum())
    wanted = stats.norm.sf(z)
    assert 0.4 * wanted < miss < 1.35 * wanted


def test_intervals_lie_within_all_and_nothing():
    law = ShareLaw(0.7, 0.3, Sample(50, (50.0,)))
    lower, upper = score_interval(np.array([-0.3, 0.0, 0.5, 1.0, 1.4]), law.moments, 2.0)
    assert (lower >= 0).all() and (upper <= 1).all() and (lower <= upper).all()


@pytest.mark.parametrize("confidence", [0.0, 1.0, 2.0])
def test_a_confidence_is_a_probability(confidence):
    with pytest.raises(InvalidParameter, match="confidence"):
        critical_value(confidence)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-8), (1.0, 1e-5), (4.0, 1e-6)])
def test_the_mu_of_a_gaussian_mechanism_gives_its_delta_back(epsilon, delta):
    mu = gaussian_mu(epsilon, delta)
    first = stats.norm.cdf(mu / 2 - epsilon / mu)
    assert first - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu) == pytest.approx(delta, rel=1e-6)
