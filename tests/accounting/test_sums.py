"""Sums: soundness by integration, agreement with dp-accounting, order; central DP-SGD likewise."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy import integrate, stats
from scipy.stats import norm

from dpcheckin.accounting import (
    Bracket,
    DistributedRound,
    IntegerSumRound,
    SampledGaussianRound,
    SkellamRound,
    compose,
    lower_bound,
)
from dpcheckin.accounting.engine.compose import compose as composed
from dpcheckin.accounting.engine.loss import dominated
from dpcheckin.errors import InvalidParameter, OutsideTheorem


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


@pytest.mark.parametrize(
    ("n", "rate", "noise", "rounds"), [(50, 0.3, 1.0, 5), (2_000, 0.05, 1.5, 100), (30, 0.8, 2.0, 1)]
)
def test_lower_bound_is_close_below(n: int, rate: float, noise: float, rounds: int) -> None:
    """One round is tight; many rounds leave a few percent between the pair and its dominator."""
    low = lower_bound([(DistributedRound(n, rate, noise), rounds)], 1e-5).epsilon.lower
    high = _composed(n, rate, noise, rounds, 1e-5).upper
    assert 0.85 * high <= low <= high
    if rounds == 1:
        assert low == pytest.approx(high, rel=5e-3)


def test_fine_skellam_noise_is_gaussian_noise() -> None:
    """Bound 10 and variance 200 are sigma = sqrt(2) per clipping norm."""
    discrete = compose([(IntegerSumRound(1_000, 0.1, 10, 200.0), 100)]).epsilon(1e-5)
    smooth = _composed(1_000, 0.1, math.sqrt(2.0), 100, 1e-5)
    assert discrete.upper == pytest.approx(smooth.upper, rel=2e-3)
    vector = SkellamRound(1_000, 0.1, 200.0, l1=20.0, l2=20.0).renyi_curve
    assert discrete.upper <= vector.times(100).epsilon(1e-5).epsilon


@pytest.mark.parametrize(("rate", "noise"), [(0.01, 0.5), (0.3, 1.0), (1.0, 3.0)])
@pytest.mark.parametrize("alpha", [1.0, 1.005, 1.3, 4.0])
def test_one_round_by_integration(rate: float, noise: float, alpha: float) -> None:
    """Both directions of the curve are integrals over the real line."""

    x = np.linspace(-12 * noise, 1 + 12 * noise, 60_001)
    without = stats.norm.pdf(x, 0.0, noise)
    with_it = (1 - rate) * without + rate * stats.norm.pdf(x, 1.0, noise)
    at = np.array([alpha])
    step = SampledGaussianRound(rate, noise)
    for one, other, curve in ((with_it, without, step.present), (without, with_it, step.absent)):
        want = integrate.simpson(np.maximum(one - alpha * other, 0.0), x=x)
        assert curve(at)[0] == pytest.approx(want, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize(
    ("rate", "noise", "rounds", "delta"),
    [(0.1, 1.0, 5, 1e-5), (0.01, 1.0, 2000, 1e-5), (0.5, 10.0, 300, 1e-7), (1.0, 5.0, 50, 1e-3)],
)
def test_another_library_lands_within_the_bracket(rate: float, noise: float, rounds: int, delta: float) -> None:
    """Its optimistic figure is below our upper end, its pessimistic one above our lower end."""
    got = compose([(SampledGaussianRound(rate, noise), rounds)]).epsilon(delta)
    optimistic, pessimistic = (
        privacy_loss_distribution.from_gaussian_mechanism(
            noise,
            sampling_prob=rate,
            pessimistic_estimate=side,
            use_connect_dots=side,
            value_discretization_interval=1e-3,
        )
        .self_compose(rounds)
        .get_epsilon_for_delta(delta)
        for side in (False, True)
    )
    assert optimistic <= got.upper * (1 + 1e-9) and got.lower <= pessimistic * (1 + 1e-9)
    assert got.upper <= pessimistic * 1.002


def test_a_curve_lowered_on_one_side_only_stays_a_lower_bound() -> None:
    """A coarse grid sees nothing of the short backward curve; the profile may not rise for it."""
    one, step = SampledGaussianRound(0.01, 1.0), 0.02
    fine = np.exp(np.arange(1201) * step / 2)
    forward = one.present(fine)
    backward = one.absent(fine)
    lower = composed([(dominated(step, forward, backward), 10_000)], delta=1e-5)
    assert lower.epsilon(1e-5, upper=False) <= 6.188  # the run's epsilon, from above


@pytest.mark.parametrize("rounds", [1, 2])
def test_nothing_sampled_has_no_delta(rounds: int) -> None:
    assert compose([(SampledGaussianRound(0.0, 1.0), rounds)]).delta(0.1).upper == 0.0


def test_nothing_sampled_is_nothing_lost_and_nonsense_is_refused() -> None:
    assert compose([(SampledGaussianRound(0.0, 1.0), 10)]).epsilon(1e-5).upper == 0.0
    for wrong in (0.0, float("nan"), float("inf"), -1.0):
        with pytest.raises(InvalidParameter, match="noise_multiplier"):
            SampledGaussianRound(0.1, wrong)


@pytest.mark.parametrize("delta", [1e-18, 1e-31, 1e-60])
def test_sums_are_answered_at_any_delta(delta: float) -> None:
    """What is left out of the visible numbers of reports and of tables of noise shrinks with delta."""
    sums = DistributedRound(500, 0.1, 1.0), IntegerSumRound(500, 0.1, 1, 8.0)
    for one in sums:
        found = compose([(one, 20)]).epsilon(delta)
        assert 0.0 < found.lower <= found.upper < 1.01 * found.lower
    # the same noise, on integers or not
    assert compose([(sums[1], 20)]).epsilon(delta).upper < compose([(sums[0], 20)]).epsilon(delta).upper


def test_a_table_of_noise_that_would_not_end_is_refused() -> None:
    with pytest.raises(OutsideTheorem, match="too much for a table"):
        compose([(IntegerSumRound(10**12, 0.1, 1, 0.1), 10**6)]).epsilon(1e-300)
