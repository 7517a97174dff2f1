"""Composition against the exact Gaussian mechanism, down to delta = 1e-15 and a million rounds."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy.stats import norm

from dpcheckin.accounting import (
    CheckInRound,
    LocalRound,
    ShuffleRound,
    any_pure,
    compose,
    gaussian,
)
from dpcheckin.accounting.engine import loss
from dpcheckin.accounting.renyi.theorem import epsilon_by_renyi
from dpcheckin.errors import InvalidParameter, NumericalFailure, OutsideTheorem
from oracles import gaussian_mechanism


def exact_delta(mu: float, epsilon: float) -> float:
    value = norm.logcdf(mu / 2 - epsilon / mu)
    other = epsilon + norm.logcdf(-mu / 2 - epsilon / mu)
    return float(math.exp(value) * -math.expm1(other - value))


@pytest.mark.parametrize("rounds", [1, 2, 30, 10**4, 10**6])
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-10, 1e-13, 1e-15])
def test_gaussian_mechanism(rounds: int, delta: float) -> None:
    """The bracket holds the exact epsilon and is narrow; the upper end is never too small."""
    mu = 1.0 / math.sqrt(rounds)
    run = compose([(LocalRound(gaussian(2.0 / mu)), rounds)])
    got = run.epsilon(delta)
    assert exact_delta(1.0, got.upper) <= delta * (1 + 1e-9)
    assert exact_delta(1.0, max(got.lower, 0.0)) >= delta * (1 - 1e-9) or got.lower == 0.0
    assert got.relative_width < 2e-3


@pytest.mark.parametrize(("noise", "rounds", "delta"), [(0.2, 1_000, 0.3), (0.5, 10_000, 0.1)])
def test_losses_by_the_thousand_are_not_cut_off(noise: float, rounds: int, delta: float) -> None:
    """Far from the mean numbers overflow; the mass there counts all the same."""
    got = compose([(LocalRound(gaussian(noise)), rounds)]).epsilon(delta)
    truth = float(gaussian_mechanism.epsilon(2.0 / noise, rounds, delta))
    assert truth > 5e4 and got.lower <= truth <= got.upper <= 1.0001 * truth


@pytest.mark.parametrize("noise", [200.0, 1e4, 1e6])
@pytest.mark.parametrize("rounds", [1, 100])
def test_losses_of_a_millionth_are_certified_to_the_last_digit(noise: float, rounds: int) -> None:
    """Where exp(epsilon) is nearly one, rounding it must not make epsilon too small."""
    for share in (1e-2, 1e-7):
        delta = share * 2.0 / noise * math.sqrt(rounds)
        got = compose([(LocalRound(gaussian(noise)), rounds)]).epsilon(delta)
        truth = gaussian_mechanism.epsilon(2.0 / noise, rounds, delta)
        assert got.lower <= truth <= got.upper <= 1.003 * float(truth)


def test_dp_accounting_under_reports_where_we_do_not() -> None:
    """Its composed Gaussian claims too small a delta at sigma = 100, 10^4 rounds; ours never."""
    rounds, sigma, epsilon = 10_000, 100.0, 8.5
    truth = exact_delta(math.sqrt(rounds) / sigma, epsilon)
    assert truth < 1e-14
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = privacy_loss_distribution.from_gaussian_mechanism(
            sigma, value_discretization_interval=1e-4, use_connect_dots=True
        ).self_compose(rounds)
    assert theirs.get_delta_for_epsilon(epsilon) < truth
    ours = compose([(LocalRound(gaussian(2 * sigma)), rounds)]).delta(epsilon)
    assert ours.lower <= truth <= ours.upper


def test_mixed_rounds_equal_their_parts() -> None:
    """Two kinds of Gaussian rounds compose to one Gaussian mechanism."""
    parts = [(LocalRound(gaussian(40.0)), 300), (LocalRound(gaussian(25.0)), 100)]
    mu = math.sqrt(300 * (2 / 40.0) ** 2 + 100 * (2 / 25.0) ** 2)
    for delta in (1e-5, 1e-12):
        got = compose(parts).epsilon(delta)
        assert exact_delta(mu, got.upper) <= delta * (1 + 1e-9)
        assert got.relative_width < 5e-3


def test_order_of_rounds_does_not_matter() -> None:
    a, b = CheckInRound(500, 0.1, any_pure(1.0)), ShuffleRound(900, any_pure(0.5))
    one = compose([(a, 3), (b, 2), (a, 1)]).epsilon(1e-6)
    other = compose([(b, 2), (a, 4)]).epsilon(1e-6)
    assert one.upper == pytest.approx(other.upper, rel=1e-9)


def test_renyi_is_looser_but_near() -> None:
    run = [(CheckInRound(60_000, 0.1, any_pure(2.0)), 6800)]
    exact = compose(run).epsilon(1e-5)
    renyi = epsilon_by_renyi(run, 1e-5)
    assert exact.lower <= renyi <= 1.2 * exact.upper


def test_renyi_needs_a_pure_randomizer() -> None:
    with pytest.raises(OutsideTheorem, match="Renyi"):
        epsilon_by_renyi([(CheckInRound(100, 0.1, gaussian(2.0)), 1)], 1e-5)


def test_nothing_composed_is_nothing_lost() -> None:
    assert compose([(CheckInRound(10, 0.0, any_pure(1.0)), 5)]).epsilon(1e-9).upper == 0.0
    assert compose([(ShuffleRound(10, any_pure(1.0)), 0)]).epsilon(1e-9).upper == 0.0
    assert compose([(ShuffleRound(10, any_pure(1.0)), 2)]).delta(2.0).upper == 0.0


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, math.nan, "x"])
def test_bad_delta(delta: float) -> None:
    with pytest.raises(InvalidParameter, match=r"^delta = "):
        compose([(ShuffleRound(10, any_pure(1.0)), 1)]).epsilon(delta)


def test_bad_rounds() -> None:
    with pytest.raises(InvalidParameter, match="at least one round"):
        compose([])
    with pytest.raises(InvalidParameter, match="count"):
        compose([(ShuffleRound(10, any_pure(1.0)), 2.5)])  # type: ignore[list-item]
    with pytest.raises(InvalidParameter, match="pairs of a round"):
        compose([("round", 1)])  # type: ignore[list-item]


def test_convex_minorant() -> None:
    x = np.array([0.0, 1.0, 2.0, 3.0])
    y = np.array([3.0, 2.5, 1.0, 0.5])
    assert loss.convex_minorant(x, y) == pytest.approx([3.0, 2.0, 1.0, 0.5])
    assert loss.convex_minorant(x, x**2) == pytest.approx(x**2)


def test_too_much_mass_is_noticed() -> None:
    broken = loss.LossDistribution(0.1, np.array([0.9]), np.array([0.9]), 0.0)
    with pytest.raises(NumericalFailure, match="mass at zero"):
        broken.masses()
