"""P0's lemmas and equations about shuffled check-in, as printed and as they hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from dpcheckin.accounting.renyi import RenyiCurve, wang_subsampled
from dpcheckin.errors import InvalidParameter, OutsideTheorem
from dpcheckin.papers.others import bounds as check_in_alone
from dpcheckin.papers.p0 import bounds as p0
from dpcheckin.papers.p3 import bounds as p3
from dpcheckin.special import binomial


def _response_moment(n: int, rate: float, e0: float, order: int) -> float:
    """Moment minus 1 of binary response, others alike, summed over k and the number of ones."""
    rho, total = 1 / (math.exp(e0) + 1), 0.0
    for k in range(1, n + 1):
        ones = np.arange(k + 1)
        loss = ones / k * math.exp(e0) + (1 - ones / k) * math.exp(-e0) - 1
        power = np.expm1(order * np.log1p(k / n * loss)) - order * k / n * loss
        total += binom.pmf(k, n, rate) * float(np.dot(binom.pmf(ones, k, rho), power))
    return total


def test_equation_18_as_printed_is_below_the_truth() -> None:
    """One 1, not two; n = 1000, rate 1e-5, eps0 = 1, order 2."""
    printed = math.expm1(p0.equation_18(1000, 1e-5, 1.0, 0, 2).epsilons[0])
    assert printed == pytest.approx(1.969e-9, rel=1e-3)
    truth = _response_moment(1000, 1e-5, 1.0, 2)
    assert truth == pytest.approx(1.08616e-8, rel=1e-4)
    assert printed < truth / 5


def test_equation_18_has_a_single_one() -> None:
    """Term by term, by hand: order 2, the leading term and the rest, at 1 and at kept + 1."""
    n, rate, e0, kept = 1000, 0.05, 1.0, 30
    w, mean = math.e - 1 / math.e, n * rate
    few = math.exp(-((1 - kept / mean) ** 2) * mean / 2)
    many = math.floor(kept / (2 * math.e)) + 1
    by_hand = 4 * rate**2 * (math.e - 1) ** 2 / math.e * (few + 1 / many)
    by_hand += (rate * w) ** 2 * (few + math.exp(-kept / (8 * math.e)))
    curve = p0.equation_18(n, rate, e0, kept, 2)
    assert math.expm1(curve.epsilons[0]) == pytest.approx(by_hand, rel=1e-9)
    assert p0.equation_18_epsilon(60_000, 0.1, 2.0, 6800, 1 / 60_000) == pytest.approx(11.82, abs=0.005)


def test_lemma_7_fails_for_its_own_rate() -> None:
    """With k/n the argument of the logarithm grows; with a frozen rate it falls."""
    own = [p3.printed_log_excess(k / 1000, k, 1.0, 2)[0] for k in (1, 10, 100, 500, 1000)]
    frozen = [p3.printed_log_excess(0.1, k, 1.0, 2)[0] for k in (1, 10, 100, 500, 1000)]
    assert np.all(np.diff(own) > 0) and np.all(np.diff(frozen) < 0)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 40), st.floats(0.02, 0.9), st.floats(0.05, 2.0), st.integers(2, 5))
def test_equation_8_is_a_lower_bound(n: int, rate: float, e0: float, order: int) -> None:
    """And the sharpened one is above it for every split, below the pair, equal at order 2."""
    truth = _response_moment(n, rate, e0, order)
    sharp = p0.equation_8_sharp(n, rate, e0, order)
    assert sharp <= truth * (1 + 1e-9)
    if order == 2:
        assert sharp == pytest.approx(truth, rel=1e-8)
    for split in (0.1, 1.0, 5.0):
        assert p0.equation_8(n, rate, e0, order, split) < sharp


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.floats(0.01, 0.99), st.integers(0, 10**6), st.floats(0.0, 1.0))
def test_lemmas_4_and_5_hold_with_their_weights(n: int, rate: float, seed: int, where: float) -> None:
    """Random decreasing values; without the probabilities of k they fail."""
    values = np.sort(np.random.default_rng(seed).exponential(size=n))[::-1]
    truth = float(np.dot(binom.pmf(np.arange(1, n + 1), n, rate), values))
    kept = math.floor(where * n * rate)
    assert truth <= p0.lemma_4(values, rate, kept) * (1 + 1e-12)
    summed = math.ceil(n * rate + where * n)
    assert truth <= p0.lemma_5(values, rate, summed) * (1 + 1e-12)


def test_the_lemmas_as_printed_are_no_inequalities() -> None:
    """n = 3, rate 1/3, Delta = 0, f = 1: 7 on the left."""
    left = sum(math.comb(3, k) for k in (1, 2, 3))
    assert left == 7 > 4 > p0.lemma_4(np.ones(3), 1 / 3, 1)
    for bad in (np.array([1.0, 2.0]), np.array([1.0, -1.0]), np.array([])):
        with pytest.raises(OutsideTheorem):
            p0.lemma_4(bad, 0.5, 0)
    with pytest.raises(InvalidParameter, match="kept"):
        p0.lemma_4(np.ones(4), 0.5, 3)


def test_the_baseline_covers_check_in_alone() -> None:
    """It gives away the tail and the curve: never below, and a local delta is paid for."""
    for run in ((1_000, 0.1, 1.0, 1, 1e-6), (10_000, 0.01, 2.0, 100, 1e-4)):
        assert p0.baseline(*run) >= check_in_alone.pure_epsilon(*run).upper
    assert p0.baseline(1_000, 0.1, 1.0, 1, 1e-6, 1e-9) > 0.0
    with pytest.raises(OutsideTheorem, match="local_delta"):
        p0.baseline(1_000, 0.1, 1.0, 10, 1e-6, 1e-5)


def test_figure_4s_lemma_5_is_tighter_than_its_lemma_4() -> None:
    """P0's point, at its settings: f(1) makes Lemma 4 loose; neither is below the sum of the same terms."""
    n, rate, noise, rounds, delta = 60_000, 1e-3, 0.65, 10_000, 1 / 60_000
    loose, tight = (f(n, rate, noise).times(rounds).epsilon(delta).epsilon for f in (p0.by_lemma_4, p0.by_lemma_5))
    assert tight < 0.25 * loose
    order = 5.0
    moments = [0.0]
    for k in range(1, 400):
        base = RenyiCurve(np.arange(2.0, 6.0), 2.0 * np.arange(2.0, 6.0) / (k * noise**2))
        moments.append(math.exp((order - 1) * wang_subsampled(base, rate, math.inf).epsilons[-1]))
    moments[0] = 1.0
    exact = float(np.dot(binomial.pmf(np.arange(400), n, rate), moments))
    for curve in (p0.by_lemma_4(n, rate, noise), p0.by_lemma_5(n, rate, noise)):
        assert math.log(exact) / (order - 1) <= curve.epsilons[3]
    assert p0.by_lemma_5(n, rate, noise).epsilons[3] == pytest.approx(math.log(exact) / (order - 1), rel=1e-6)
