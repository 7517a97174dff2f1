"""Distributed check-in: soundness by integration, agreement with dp-accounting, order."""

from __future__ import annotations

import math
from itertools import combinations

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm, skellam

from dpcheckin.accounting import (
    Bracket,
    DistributedRound,
    IntegerSumRound,
    SkellamRound,
    compose,
    lower_bound,
)
from dpcheckin.accounting.engine import noise as noise_laws
from dpcheckin.accounting.engine.curves import FunctionCurve
from dpcheckin.accounting.engine.noise import gaussian_profile
from dpcheckin.accounting.engine.sampling import refined, sampled, visible_counts
from dpcheckin.accounting.published import p0, p1
from dpcheckin.accounting.renyi.sums import skellam_rdp
from dpcheckin.errors import InvalidParameter


def _composed(n: int, rate: float, noise: float, rounds: int, delta: float) -> Bracket:
    return compose([(DistributedRound(n, rate, noise), rounds)]).epsilon(delta)


def _true_delta(values: list[float], other: float, rate: float, noise: float, e: float) -> float:
    """H of (k, sum of k noisy values), target first, by integration on a grid."""
    n = len(values)
    x = np.linspace(-n - 12 * noise * math.sqrt(n), n + 12 * noise * math.sqrt(n), 8_001)
    total = 0.0
    for k in range(1, n + 1):
        weight = rate**k * (1 - rate) ** (n - k)
        p, q = np.zeros_like(x), np.zeros_like(x)
        for chosen in combinations(range(n), k):
            here = sum(values[i] for i in chosen)
            there = sum(other if i == 0 else values[i] for i in chosen)
            p += norm.pdf(x, here, noise * math.sqrt(k))
            q += norm.pdf(x, there, noise * math.sqrt(k))
        total += weight * np.trapezoid(np.maximum(p - math.exp(e) * q, 0.0), x)
    return total


@pytest.mark.parametrize("values", [[1, -1, -1], [1, 1, 1], [-1, 0.3, -0.7, 1], [0, 1, -1, 1]])
@pytest.mark.parametrize("rate", [0.3, 0.8])
@pytest.mark.parametrize("e", [0.0, 0.2, 0.8])
def test_one_round_curve_is_an_upper_bound(values: list[float], rate: float, e: float) -> None:
    """Any data, both directions."""
    n, noise = len(values), 1.4
    ((curve, _),) = DistributedRound(n, rate, noise).curves(1e-9)
    bound = curve.upper_at(e)
    first = [float(v) for v in values]
    swapped = [-first[0], *first[1:]]
    # 1e-6: the integration's error at the kinks; equal values of the others meet the bound
    assert _true_delta(first, -first[0], rate, noise, e) <= bound + 1e-6
    assert _true_delta(swapped, first[0], rate, noise, e) <= bound + 1e-6


@pytest.mark.parametrize("e", [0.0, 0.2, 0.8])
def test_one_round_curve_is_tight(e: float) -> None:
    """When all others hold one end of the ball it is attained."""
    ((curve, _),) = DistributedRound(3, 0.3, 1.4).curves(1e-9)
    bound = curve.upper_at(e)
    assert _true_delta([1.0, -1.0, -1.0], -1.0, 0.3, 1.4, e) == pytest.approx(bound, rel=1e-5)


@pytest.mark.parametrize("epsilon", [0.01, 0.05, 0.1])
def test_a_fixed_cohort_is_dp_accountings_sampled_gaussian(epsilon: float) -> None:
    """One round, one k: the curve of both is H((1-q)Q + qP || Q)."""
    theirs = privacy_loss_distribution.from_gaussian_mechanism(
        5.0, sampling_prob=0.1, value_discretization_interval=1e-4
    ).get_delta_for_epsilon(epsilon)
    alpha = np.array([math.exp(epsilon)])
    ours = sampled(lambda a: gaussian_profile(0.2, a), 0.1, alpha)[0]
    assert ours == pytest.approx(theirs, rel=1e-6)


def test_large_fleets_approach_dp_accountings_poisson_sampling() -> None:
    """k concentrates at rate n: noise sigma sqrt(rate n) against distance 2, composed.

    Ours composes a pair that dominates both directions: a few percent above, never below.
    """
    n, rate, noise, rounds, delta = 10**6, 0.01, 0.05, 50, 1e-6
    ours = _composed(n, rate, noise, rounds, delta)
    spread = noise * math.sqrt(n * rate) / 2
    one = privacy_loss_distribution.from_gaussian_mechanism(
        spread, sampling_prob=rate, value_discretization_interval=1e-5
    )
    theirs = one.self_compose(rounds).get_epsilon_for_delta(delta)
    assert theirs * 0.999 <= ours.upper <= theirs * 1.10


@settings(max_examples=12, deadline=None)
@given(
    st.integers(20, 5_000),
    st.floats(0.01, 0.6),
    st.floats(0.5, 4.0),
    st.integers(1, 300),
    st.floats(-8.0, -3.0),
)
def test_loss_distribution_never_exceeds_theorem_4(
    n: int, rate: float, noise: float, rounds: int, log_delta: float
) -> None:
    """And its bracket is ordered."""
    delta = 10.0**log_delta
    if delta < 1e-15 * rounds:
        return
    ours = _composed(n, rate, noise, rounds, delta)
    assert ours.lower <= ours.upper <= p1.theorem_4(n, rate, noise, rounds, delta) + 1e-9


@pytest.mark.parametrize(
    ("n", "rate", "noise", "rounds"),
    [(50, 0.3, 1.0, 5), (2_000, 0.05, 1.5, 100), (30, 0.8, 2.0, 1)],
)
def test_lower_bound_is_close_below(n: int, rate: float, noise: float, rounds: int) -> None:
    """One round is tight; many rounds leave a few percent between the pair and its dominator."""
    low = lower_bound([(DistributedRound(n, rate, noise), rounds)], 1e-5).epsilon.lower
    high = _composed(n, rate, noise, rounds, 1e-5).upper
    assert 0.85 * high <= low <= high
    if rounds == 1:
        assert low == pytest.approx(high, rel=5e-3)


def test_theorem_4_needs_its_k_0_term() -> None:
    """Without it the moment falls below one: an impossible Rényi divergence."""
    n, rate = 10, 0.05
    counts = visible_counts(n, rate)
    assert counts.probability[counts.high <= 0].sum() == pytest.approx((1 - rate) ** n)
    assert np.all(p1.theorem_4_rdp(n, rate, 3.0).epsilons >= 0.0)
    without = 1 - (1 - rate) ** n  # every remaining moment is at least one, but not by so much
    assert without * math.exp(p1.fixed_cohort_rdp(n, 1, 3.0).epsilons[0]) < 1.0


@pytest.mark.parametrize("variance", [0.7, 5.0, 90.0])
@pytest.mark.parametrize("shift", [1, 4])
def test_skellam_profile_against_scipy(variance: float, shift: int) -> None:
    """H of shifted Skellam noise, summed directly."""
    j = np.arange(-400, 401)
    q = skellam.pmf(j, variance / 2, variance / 2)
    p = skellam.pmf(j - shift, variance / 2, variance / 2)
    for epsilon in (0.0, 0.3, 1.5):
        direct = np.maximum(p - math.exp(epsilon) * q, 0).sum()
        ours = noise_laws.skellam_profile(variance, shift, np.array([math.exp(epsilon)]))[0]
        assert ours == pytest.approx(direct, rel=1e-8, abs=1e-13)


@pytest.mark.parametrize(("variance", "shift"), [(2.0, 1), (5.0, 3), (50.0, 4), (400.0, 20)])
def test_skellam_renyi_bound_holds(variance: float, shift: int) -> None:
    """Agarwal et al.'s bound is above the exact divergence in one dimension."""
    losses, p, _ = noise_laws._cumulative(variance, shift)
    mass = np.diff(p, prepend=0.0)
    orders = np.array([2.0, 3.0, 8.0, 20.0])
    exact = [math.log(np.sum(mass * np.exp((a - 1) * losses))) / (a - 1) for a in orders]
    bound = skellam_rdp(orders, variance, float(shift), float(shift))
    assert np.all(bound >= np.array(exact))


def test_fine_skellam_noise_is_gaussian_noise() -> None:
    """Bound 10 and variance 200 are sigma = sqrt(2) per clipping norm."""
    discrete = compose([(IntegerSumRound(1_000, 0.1, 10, 200.0), 100)]).epsilon(1e-5)
    smooth = _composed(1_000, 0.1, math.sqrt(2.0), 100, 1e-5)
    assert discrete.upper == pytest.approx(smooth.upper, rel=2e-3)
    vector = SkellamRound(1_000, 0.1, 200.0, l1=20.0, l2=20.0).renyi.curve
    assert discrete.upper <= vector.times(100).epsilon(1e-5).epsilon


def test_removal_moments_by_integration() -> None:
    """P0 Theorem 5's moment, true and printed (k = 5, order 3, sigma 1.3)."""
    k, order, noise = 5, 3, 1.3
    x = np.linspace(-8, 8, 400_001)
    p = norm.pdf(x, 0, noise / math.sqrt(k))
    q = norm.pdf(x, 1 / (k + 1), noise / math.sqrt(k + 1))
    direct = np.trapezoid(q * (p / q) ** order, x)
    reverse = np.trapezoid(p * (q / p) ** order, x)
    assert p0.moment(k, order, noise) == pytest.approx(direct, rel=1e-6)
    assert p0.reverse_moment(k, order, noise) == pytest.approx(reverse, rel=1e-6)
    assert p0.printed_moment(k, order, noise) < 0.71 < 1.75 < direct
    assert math.isinf(p0.moment(k, k + 1, noise))


def _removal_delta(n: int, rate: float, noise: float, e: float, added: bool) -> float:
    """Both views of one round, the number of the others shown, by integration."""
    total = rate * (1 - rate) ** (n - 1)  # alone, the target's presence is visible
    for k in range(1, n):
        wide = noise / math.sqrt(k)
        x = np.linspace(-14 * wide, 14 * wide + 1, 20_001)
        without = norm.pdf(x, 0, wide)
        joined = norm.pdf(x, 1 / (k + 1), noise / math.sqrt(k + 1))
        with_target = (1 - rate) * without + rate * joined
        p, q = (with_target, without) if added else (without, with_target)
        gap = np.trapezoid(np.maximum(p - math.exp(e) * q, 0.0), x)
        total += binom.pmf(k, n - 1, rate) * gap
    return float(total)


@pytest.mark.parametrize(("n", "rate", "delta"), [(20, 0.2, 0.02), (200, 0.3, 1e-4)])
def test_removal_epsilon_is_the_pair_by_integration(n: int, rate: float, delta: float) -> None:
    """The larger direction has exactly the delta asked for at the epsilon found."""
    found = p0.epsilon(n, rate, 1.0, 1, delta).upper
    worst = max(_removal_delta(n, rate, 1.0, found, added) for added in (True, False))
    assert worst == pytest.approx(delta, rel=1e-4)


def test_removal_composes_and_refuses() -> None:
    """Ten rounds cost more than one and less than ten times as much."""
    one = p0.epsilon(200, 0.3, 1.0, 1, 1e-4).upper
    ten = p0.epsilon(200, 0.3, 1.0, 10, 1e-3).upper
    assert one < ten < 10 * one
    for bad in ({"noise": 0.0}, {"rate": 1.0}, {"population": 1}):
        run = {"population": 200, "rate": 0.3, "noise": 1.0, "rounds": 1, "delta": 1e-4} | bad
        with pytest.raises(InvalidParameter):
            p0.epsilon(**run)


@pytest.mark.parametrize("distance", [1e-7, 1e-4, 0.05])
@pytest.mark.parametrize("fraction", [1e-4, 0.3])
def test_tiny_losses_are_certified_in_both_directions(distance: float, fraction: float) -> None:
    """The exact epsilon of one sampled Gaussian sum lies in the bracket, to the last digits."""
    delta = 1e-9 * fraction * distance

    def curve(alpha: np.ndarray) -> np.ndarray:
        return sampled(lambda a: gaussian_profile(distance, a), fraction, alpha)

    one = FunctionCurve(curve, curve, 12 * distance * fraction)
    found = Bracket(*refined([(one, 1)], delta))
    with mpmath.workdps(60):
        s, q = mpmath.mpf(distance), mpmath.mpf(fraction)

        def excess(epsilon: mpmath.mpf) -> mpmath.mpf:
            alpha = 1 + mpmath.expm1(epsilon) / q
            middle = -mpmath.log(alpha) / s
            tails = mpmath.ncdf(middle + s / 2) - alpha * mpmath.ncdf(middle - s / 2)
            return q * tails - mpmath.mpf(delta)

        low, high = mpmath.mpf(0), mpmath.mpf(12 * distance * fraction)
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) > 0 else (low, middle)
        assert found.lower <= low <= found.upper <= float(low) * 1.02
