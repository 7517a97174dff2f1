"""The homogeneous Gaussian pair: one client is the Gaussian mechanism, two by integration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from dpcheckin.accounting import CheckInRound, compose, gaussian, lower_bound
from dpcheckin.errors import InvalidParameter
from dpcheckin.special.normal import gaussian_profile
from oracles.homogeneous_lattice import check_in_epsilon, subsample_epsilon


def _epsilon(delta_of: object, delta: float) -> float:
    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle) > delta else (low, middle)  # type: ignore
    return high


@pytest.mark.parametrize("noise", [2.0, 4.0])
def test_one_client_is_the_gaussian_mechanism(noise: float) -> None:
    """The bracket holds the closed form."""
    delta = 1e-4
    exact = _epsilon(lambda e: gaussian_profile(2 / noise, np.array([math.exp(e)]))[0], delta)
    ours = subsample_epsilon(1, 1, noise, 1, delta)
    assert 0.98 * exact <= ours.lower <= exact * (1 + 1e-6) <= ours.upper * (1 + 2e-6)


def test_two_clients_by_integration() -> None:
    """Both directions of (W1 + W2)/2 on a fine grid."""
    shift, delta = 0.8, 1e-3
    x = np.linspace(-9, 9, 2_001)
    mass = norm.pdf(x)
    mass /= mass.sum()
    one = np.exp(shift * x - shift**2 / 2)
    ratio = (one[:, None] + one[None, :]) / 2
    both = mass[:, None] * mass[None, :]

    def forward(e: float) -> float:
        return float((both * np.maximum(ratio - math.exp(e), 0)).sum())

    def backward(e: float) -> float:
        return float((both * np.maximum(1 - math.exp(e) * ratio, 0)).sum())

    exact = max(_epsilon(forward, delta), _epsilon(backward, delta))
    ours = subsample_epsilon(2, 2, 2.0 / shift, 1, delta)
    assert ours.lower <= exact * 1.001 and exact <= ours.upper * 1.001
    assert ours.lower == pytest.approx(exact, rel=0.02)


def test_agrees_with_the_other_engine_and_stays_below_the_guarantee() -> None:
    """Two independent routes to the lower bound of one run."""
    one = CheckInRound(2_000, 0.1, gaussian(3.0))
    ours = check_in_epsilon(2_000, 0.1, 3.0, 20, 1e-5)
    other = lower_bound([(one, 20)], 1e-5).epsilon.lower
    assert ours.lower == pytest.approx(other, rel=0.03)
    assert other <= ours.upper * 1.001
    assert ours.lower <= compose([(one, 20)]).epsilon(1e-5).upper


def test_bad_input_is_named() -> None:
    """Rates and cohorts out of range."""
    with pytest.raises(InvalidParameter, match="rate"):
        check_in_epsilon(10, 0.0, 1.0, 1, 1e-3)
    with pytest.raises(InvalidParameter, match="cohort"):
        subsample_epsilon(10, 11, 1.0, 1, 1e-3)
