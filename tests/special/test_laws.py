"""Binomial, Poisson and hypergeometric laws against mpmath, for few and for 10^9 trials."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from dpcheckin.special import binomial, intervals


def exact_mass(k: int, n: int, p: float) -> mp.mpf:
    q = mp.mpf(p)
    logs = mp.loggamma(n + 1) - mp.loggamma(k + 1) - mp.loggamma(n - k + 1)
    return mp.exp(logs + k * mp.log(q) + (n - k) * mp.log1p(-q))


def exact_tails(k: int, n: int, p: float) -> tuple[mp.mpf, mp.mpf]:
    """P(≤ k) and P(> k), summed from k outward on the side away from the mean."""
    q, upward = mp.mpf(p), k >= n * mp.mpf(p)
    at = k + 1 if upward else k
    term, total = exact_mass(at, n, p), mp.mpf(0)
    while 0 <= at <= n and term > total * mp.mpf(10) ** -22:
        total += term
        if upward:
            term *= mp.mpf(n - at) / (at + 1) * q / (1 - q)
            at += 1
        else:
            term *= mp.mpf(at) / (n - at + 1) * (1 - q) / q
            at -= 1
    return (1 - total, total) if upward else (total, 1 - total)


def cases(count: int, seed: int) -> list[tuple[int, int, float]]:
    rng = np.random.default_rng(seed)
    found = []
    while len(found) < count:
        n = int(10 ** rng.uniform(0, 5))
        p = float(rng.choice([0.5, rng.random(), 10 ** rng.uniform(-8, -0.3)]))
        p = p if rng.random() < 0.7 else 1.0 - p
        deviation = math.sqrt(n * p * (1 - p))
        k = int(n * p + deviation * rng.uniform(-12, 12) + rng.integers(-3, 4))
        if 0 <= k < n and 0.0 < p < 1.0:
            found.append((k, n, p))
    return found


def allowed(truth: mp.mpf) -> float:
    return 2e-14 + 1e-15 * abs(float(mp.log(truth)))


def test_binomial_masses_and_tails() -> None:
    """The smaller tail to its relative error, the other to a rounding."""
    with mp.workdps(50):
        for k, n, p in cases(400, 5):
            mass = exact_mass(k, n, p)
            if mass > mp.mpf(10) ** -290:
                found = mp.mpf(float(binomial.pmf(k, n, p)))
                assert abs(found / mass - 1) <= allowed(mass), (k, n, p)
            below, above = exact_tails(k, n, p)
            small = min(below, above)
            if small < mp.mpf(10) ** -290:
                continue
            ours = [mp.mpf(float(one)) for one in binomial.tails(k, n, p)]
            if below > above:
                ours.reverse()
            assert abs(ours[0] / small - 1) <= allowed(small), (k, n, p)
            assert abs(ours[1] - (1 - small)) <= 2.0**-53 + allowed(small) * small, (k, n, p)


@pytest.mark.parametrize("deviations", [-9.0, -3.0, 3.0, 9.0])
def test_binomial_tails_of_very_many_trials(deviations: float) -> None:
    n, p = 10**7, 0.1
    k = int(n * p + deviations * math.sqrt(n * p * (1 - p)))
    with mp.workdps(40):
        small = min(exact_tails(k, n, p))
        found = min(float(one) for one in binomial.tails(k, n, p))
        assert abs(mp.mpf(found) / small - 1) <= allowed(small)


def test_binomial_tails_of_far_more_trials_are_nearly_normal() -> None:
    """At the mean of a fair coin: 1/2 and half a mass, exactly by symmetry."""
    for n in (10**9, 10**12):
        below, above = (float(one) for one in binomial.tails(n // 2, n, 0.5))
        middle = float(binomial.pmf(n // 2, n, 0.5))
        assert below == pytest.approx(0.5 + middle / 2, rel=1e-14)
        assert above == pytest.approx(0.5 - middle / 2, rel=1e-14)


def test_binomial_ends() -> None:
    below, above = binomial.tails([-5, -1, 0, 3, 4, 9], 4, 0.25)
    assert below[[0, 1, 4, 5]].tolist() == [0.0, 0.0, 1.0, 1.0]
    assert above[[0, 1, 4, 5]].tolist() == [1.0, 1.0, 0.0, 0.0]
    assert below[2] == pytest.approx(0.75**4, rel=1e-15)
    assert above[3] == pytest.approx(0.25**4, rel=1e-14)
    assert [float(x) for x in binomial.tails(0, 3, 0.0)] == [1.0, 0.0]
    assert [float(x) for x in binomial.tails(2, 3, 1.0)] == [0.0, 1.0]
    assert [float(x) for x in binomial.tails(0, 0, 0.3)] == [1.0, 0.0]
    assert binomial.sf(np.zeros((2, 1)), np.array([[1, 2, 3]]), 0.5).shape == (2, 3)


@pytest.mark.parametrize("bad", [math.nan, -0.1, 1.1])
def test_what_is_no_probability_raises(bad: float) -> None:
    with pytest.raises(ValueError):
        binomial.tails(1, 2, bad)
    with pytest.raises(ValueError):
        intervals.quantile(bad, 2, 0.5)
    with pytest.raises(ValueError):
        intervals.upper_quantile(bad, 2, 0.5)
    with pytest.raises(ValueError):
        intervals.least_probability(1, 2, bad)
    with pytest.raises(ValueError):
        intervals.largest_probability(1, 2, bad)
    with pytest.raises(ValueError):
        binomial.tails(0.5, 2, 0.5)
    with pytest.raises(ValueError):
        binomial.tails(math.nan, 2, 0.5)
    with pytest.raises(ValueError):
        intervals.largest_probability(3, 2, 0.5)


def test_quantiles_are_the_smallest_counts() -> None:
    for n, p in ((1, 0.5), (10, 0.3), (1000, 0.02), (10**6, 0.1), (10**9, 0.001)):
        for level in (1e-12, 1e-3, 0.3, 0.9, 1.0 - 1e-6):
            k = intervals.quantile(level, n, p)
            assert binomial.cdf(k, n, p) >= level > binomial.cdf(k - 1, n, p)
            k = intervals.upper_quantile(level, n, p)
            assert binomial.sf(k, n, p) <= level < binomial.sf(k - 1, n, p)
    assert intervals.quantile(0.0, 5, 0.5) == 0
    assert intervals.upper_quantile(0.0, 5, 0.5) == 5


def test_intervals_of_clopper_and_pearson() -> None:
    """Put into the tails with many digits they give the chance of a miss back."""
    with mp.workdps(40):
        for seen, n in ((0, 5), (1, 10), (3, 3), (40, 100), (999, 10**4), (9999, 10**4)):
            for miss in (1e-10, 0.025, 0.5):
                low = intervals.least_probability(seen, n, miss)
                high = intervals.largest_probability(seen, n, miss)
                assert low < (seen + 0.5) / (n + 0.5) + 0.5
                if seen:
                    chance = exact_tails(seen - 1, n, low)[1]
                    assert abs(chance / miss - 1) < 1e-11, (seen, n)
                else:
                    assert low == 0.0
                if seen < n and high < 1.0 - 1e-9:
                    chance = exact_tails(seen, n, high)[0]
                    assert abs(chance / miss - 1) < 1e-11, (seen, n)
    assert intervals.largest_probability(7, 7, 0.01) == 1.0
    assert intervals.largest_probability(10**6 - 1, 10**6, 1e-12) == 1.0  # the next double below


def test_poisson() -> None:
    rng = np.random.default_rng(6)
    with mp.workdps(40):
        for _ in range(200):
            mean = 10 ** rng.uniform(-6, 4)
            k = int(max(0.0, mean + math.sqrt(mean) * rng.uniform(-9, 9) + rng.integers(-2, 20)))
            m = mp.mpf(mean)
            mass = mp.exp(k * mp.log(m) - m - mp.loggamma(k + 1))
            if mass > mp.mpf(10) ** -290:
                found = mp.mpf(float(binomial.poisson_pmf(k, mean)))
                assert abs(found / mass - 1) <= allowed(mass), (k, mean)
            truth = mp.gammainc(k + 1, m, regularized=True)
            off = abs(mp.mpf(float(binomial.poisson_cdf(k, mean))) - truth)
            small = min(truth, 1 - truth)
            relative = truth if truth < 0.5 else small
            rounding = 0.0 if truth < 0.5 else 2.0**-53
            if small > mp.mpf(10) ** -290:
                assert off <= allowed(small) * relative + rounding, (k, mean)
    assert binomial.poisson_cdf([-1, 0], 1e-300).tolist() == [0.0, 1.0]
    assert binomial.poisson_cdf(0, 1e5) == 0.0
    for bad in (math.nan, 0.0, -1.0, math.inf):
        with pytest.raises(ValueError):
            binomial.poisson_cdf(1, bad)


@pytest.mark.parametrize("mean", [1e7, 1e9, 1e11])
def test_poisson_with_a_large_mean(mean: float) -> None:
    """Cornish and Fisher's first terms: 1/2 + 2/(3 sqrt(2 pi mean)), the next are below 1/mean."""
    expected = 0.5 + 2 / (3 * math.sqrt(2 * math.pi * mean))
    assert float(binomial.poisson_cdf(mean, mean)) == pytest.approx(expected, abs=1 / mean)


@pytest.mark.parametrize(("population", "marked", "drawn"), [(6, 3, 3), (100, 40, 20), (10**9, 9 * 10**8, 10**5)])
def test_hypergeometric(population: int, marked: int, drawn: int) -> None:
    mean = drawn * marked / population
    deviation = math.sqrt(mean * (1 - marked / population))
    counts = np.unique(np.rint(mean + deviation * np.linspace(-8, 8, 33)))
    found = intervals.hypergeometric_pmf(counts, population, marked, drawn)

    def choose(n: int, k: int) -> mp.mpf:
        return mp.loggamma(n + 1) - mp.loggamma(k + 1) - mp.loggamma(n - k + 1)

    with mp.workdps(60):
        for count, mass in zip(counts.astype(int).tolist(), found, strict=True):
            if not max(0, drawn - (population - marked)) <= count <= min(drawn, marked):
                assert mass == 0.0
                continue
            logs = choose(marked, count) + choose(population - marked, drawn - count)
            truth = mp.exp(logs - choose(population, drawn))
            if truth > 1e-20:
                assert abs(mp.mpf(float(mass)) / truth - 1) < 5e-14
    low, high = int(mean - 12 * deviation) - 2, int(mean + 12 * deviation) + 2
    cells = intervals.hypergeometric_masses([low - 1, int(mean), high], population, marked, drawn)
    assert math.fsum(cells) == pytest.approx(1.0, abs=1e-13)
    each = intervals.hypergeometric_pmf(np.arange(low, int(mean) + 1, dtype=float), population, marked, drawn)
    assert cells[0] == pytest.approx(math.fsum(each), rel=1e-13)
