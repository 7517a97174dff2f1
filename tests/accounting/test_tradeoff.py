"""Trade-off curves between certified bounds: closed forms, exact laws of small runs, order."""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest

from dpcheckin.accounting import (
    CheckInRound,
    DistributedRound,
    LocalRound,
    SampledGaussianRound,
    SkellamRound,
    any_pure,
    approximate,
    binary_response,
    gaussian,
    guarantee,
    lower_bound,
    tradeoff,
)
from dpcheckin.accounting.composition.tradeoff import gaussian_false_negatives
from dpcheckin.errors import InvalidParameter, OutsideTheorem

RATES = [0.0, 1e-6, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.8, 0.99, 1.0]
NORMAL = NormalDist()


def exact_curve(p: np.ndarray, q: np.ndarray, a: float) -> float:
    """What the best test misses at false positives a: outcomes in order of p/q."""
    order = sorted(zip(p, q, strict=True), key=lambda w: w[0] / w[1], reverse=True)
    caught = spent = 0.0
    for here, there in order:
        if spent + there >= a:
            return 1.0 - caught - here * (a - spent) / there
        caught, spent = caught + here, spent + there
    return max(1.0 - caught, 0.0)


@pytest.mark.parametrize(("noise", "rounds"), [(2.0, 1), (4.0, 4), (3.0, 9)])
def test_gaussian_reports_have_the_curve_of_the_gaussian_mechanism(noise: float, rounds: int) -> None:
    """Two points of the ball are 2 clips apart: mu = 2 sqrt(T) / sigma, and G_mu is the truth."""
    mu = 2 * math.sqrt(rounds) / noise
    curve = tradeoff([(LocalRound(gaussian(noise)), rounds)])
    found = curve.false_negatives(RATES)
    for a, lower, upper in zip(RATES, found.lower, found.upper, strict=True):
        truth = NORMAL.cdf(NORMAL.inv_cdf(1 - a) - mu) if 0 < a < 1 else 1.0 - a
        assert lower <= truth <= upper
        assert truth - 2e-5 <= lower
        assert upper <= truth + 1e-2
    assert mu * 0.99 <= curve.gdp.lower <= mu
    assert mu * (1 - 1e-3) <= curve.gdp.upper <= mu * (1 + 1e-4)


def shuffled_law(values: tuple[int, ...], rate: float, e0: float) -> dict[tuple[int, int], float]:
    """Exactly how often so many zeros and ones come out of a round of check-ins."""
    keep = e0 / (e0 + 1)
    law = {(0, 0): 1.0}
    for value in values:
        step: dict[tuple[int, int], float] = {}
        for (zeros, ones), mass in law.items():
            one = rate * (keep if value else 1 - keep)
            zero = rate - one
            for key, part in (((zeros, ones), 1 - rate), ((zeros + 1, ones), zero), ((zeros, ones + 1), one)):
                step[key] = step.get(key, 0.0) + mass * part
        law = step
    return law


@pytest.mark.parametrize(("n", "rate", "epsilon", "rounds"), [(3, 0.3, 1.0, 2), (4, 0.5, 2.0, 1)])
def test_the_truth_about_a_few_clients_lies_between(n: int, rate: float, epsilon: float, rounds: int) -> None:
    """Every dataset of others, both orders: the guarantee below all, one attack above the least."""
    curve = tradeoff([(CheckInRound(n, rate, binary_response(epsilon)), rounds)])
    least = dict.fromkeys(RATES, 1.0)
    for others in itertools.product((0, 1), repeat=n - 1):
        laws = [shuffled_law((x, *others), rate, math.exp(epsilon)) for x in (0, 1)]
        p, q = (np.array([law[key] for key in laws[0]]) for law in laws)
        for _ in range(rounds - 1):
            p, q = (np.outer(v, w).ravel() for v, w in ((p, p), (q, q)))
        for a in RATES:
            least[a] = min(least[a], exact_curve(p, q, a), exact_curve(q, p, a))
    found = curve.false_negatives(RATES)
    for a, lower, upper in zip(RATES, found.lower, found.upper, strict=True):
        assert lower <= least[a] + 1e-12
        assert least[a] <= upper + 1e-12
    # and neither is idle
    assert np.max(found.upper - found.lower) < 0.1
    assert found.upper[4] < 1 - RATES[4] - 0.05


def test_the_curve_agrees_with_epsilon_and_delta() -> None:
    """Its lines at the stated epsilon: what is missed is at least 1 - delta - e^epsilon a."""
    run = [(CheckInRound(10_000, 0.01, any_pure(2.0)), 100)]
    curve, stated = tradeoff(run), guarantee(run, 1e-4)
    for a in RATES:
        line = 1 - stated.delta - math.exp(stated.epsilon.upper) * a
        assert curve.false_negatives(a)[0].lower >= line - 1e-7
    # a mu below the necessary one would contradict the proven lower bound on epsilon
    least = lower_bound(run, 1e-4).epsilon.lower
    mu = curve.gdp.lower
    delta = NORMAL.cdf(mu / 2 - least / mu) - math.exp(least) * NORMAL.cdf(-mu / 2 - least / mu)
    assert delta >= 1e-4 * 0.98
    assert curve.gdp.upper < 1.02 * mu


def test_curves_fall_and_are_convex_and_ordered() -> None:
    rates = np.linspace(0.0, 1.0, 101)
    found = tradeoff([(CheckInRound(1_000, 0.1, any_pure(3.0)), 50)]).false_negatives(rates)
    assert np.all(found.lower <= found.upper)
    assert np.all(np.diff(found.lower) <= 0)
    assert np.all(np.diff(found.lower, 2) >= -1e-12)
    assert np.all(found.upper <= 1 - rates + 1e-15)


def test_more_rounds_reveal_more() -> None:
    one = CheckInRound(2_000, 0.05, any_pure(1.0))
    few, many = (tradeoff([(one, n)]) for n in (10, 100))
    assert many.gdp.lower > few.gdp.upper
    assert many.true_positives().lower > few.true_positives().upper


def test_a_row_in_plain_words() -> None:
    curve = tradeoff([(LocalRound(gaussian(2.0)), 1)])
    caught = curve.true_positives()
    truth = 1 - gaussian_false_negatives(1.0, 0.001)
    assert caught.lower <= truth <= caught.upper
    assert curve.in_words.startswith("true positives at 0.1% false positives: at most 1.83%")


def test_mass_without_bound_leaves_no_gaussian_statement() -> None:
    one = CheckInRound(1_000, 0.1, approximate(1.0, 1e-4))
    curve = tradeoff([(one, 20)], delta=1e-9)
    assert math.isinf(curve.gdp.upper)
    assert curve.false_negatives(0.0)[0].lower < 1.0


@pytest.mark.slow
def test_sums_have_a_certified_side_too() -> None:
    """Central noise is remove-one, and of sums no bad pair's curve is known: guesses above."""
    for one in (SampledGaussianRound(1.0, 2.0), DistributedRound(1_000, 0.5, 4.0)):
        found = tradeoff([(one, 2)]).false_negatives([0.1, 0.5])
        assert np.all(found.lower < found.upper)
        assert found.upper.tolist() == [0.9, 0.5]


def test_the_whole_sample_with_central_noise_is_the_gaussian_mechanism() -> None:
    curve = tradeoff([(SampledGaussianRound(1.0, 2.0), 4)])
    assert curve.gdp.upper == pytest.approx(1.0, rel=2e-3)
    assert curve.gdp.upper >= 1.0 - 1e-3


def test_nothing_is_lost_without_rounds() -> None:
    curve = tradeoff([(CheckInRound(100, 0.1, any_pure(1.0)), 0)])
    assert curve.gdp.upper == 0.0
    assert curve.false_negatives(0.25)[0].lower == pytest.approx(0.75, abs=1e-12)
    silent = tradeoff([(CheckInRound(100, 0.0, any_pure(1.0)), 5)])
    assert silent.gdp.upper == 0.0


def test_bad_arguments_get_one_line() -> None:
    run = [(LocalRound(gaussian(2.0)), 1)]
    with pytest.raises(InvalidParameter, match=r"false_positives = 1\.5"):
        tradeoff(run).false_negatives(1.5)
    with pytest.raises(InvalidParameter, match="delta = 0"):
        tradeoff(run, delta=0.0)
    with pytest.raises(InvalidParameter, match="mu = -1"):
        gaussian_false_negatives(-1.0, 0.1)


def test_rounds_composed_by_renyi_curves_have_no_whole_profile() -> None:
    one = SkellamRound(100, 1.0, variance=1e4, l1=10.0, l2=5.0)
    with pytest.raises(OutsideTheorem, match="Rényi"):
        tradeoff([(one, 2)])
