"""Central DP-SGD: exact one-round curves, and a bracket that holds what dp-accounting finds."""

from __future__ import annotations

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy import integrate, stats

from dpcheckin.accounting import SampledGaussianRound, compose
from dpcheckin.accounting.engine.compose import compose as composed
from dpcheckin.accounting.engine.loss import dominated
from dpcheckin.errors import InvalidParameter


@pytest.mark.parametrize(("rate", "noise"), [(0.01, 0.5), (0.3, 1.0), (1.0, 3.0)])
@pytest.mark.parametrize("alpha", [1.0, 1.005, 1.3, 4.0])
def test_one_round_by_integration(rate: float, noise: float, alpha: float) -> None:
    """Both directions of the curve are integrals over the real line."""

    x = np.linspace(-12 * noise, 1 + 12 * noise, 60_001)
    without = stats.norm.pdf(x, 0.0, noise)
    with_it = (1 - rate) * without + rate * stats.norm.pdf(x, 1.0, noise)
    at = np.array([alpha])
    step = SampledGaussianRound(rate, noise)
    for one, other, curve in (
        (with_it, without, step.present),
        (without, with_it, step.absent),
    ):
        want = integrate.simpson(np.maximum(one - alpha * other, 0.0), x=x)
        assert curve(at)[0] == pytest.approx(want, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize(
    ("rate", "noise", "rounds", "delta"),
    [(0.1, 1.0, 5, 1e-5), (0.01, 1.0, 2000, 1e-5), (0.5, 10.0, 300, 1e-7), (1.0, 5.0, 50, 1e-3)],
)
def test_another_library_lands_within_the_bracket(
    rate: float, noise: float, rounds: int, delta: float
) -> None:
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


def test_nothing_sampled_is_nothing_lost_and_nonsense_is_refused() -> None:
    assert compose([(SampledGaussianRound(0.0, 1.0), 10)]).epsilon(1e-5).upper == 0.0
    for wrong in (0.0, float("nan"), float("inf"), -1.0):
        with pytest.raises(InvalidParameter, match="noise_multiplier"):
            SampledGaussianRound(0.1, wrong)
