"""Sampled curves against dp-accounting and against 60 digits."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution

from dpcheckin.accounting import Bracket
from dpcheckin.accounting.engine.sampling import FunctionCurve, refined, sampled
from dpcheckin.special.normal import gaussian_profile


@pytest.mark.parametrize("epsilon", [0.01, 0.05, 0.1])
def test_a_fixed_cohort_is_dp_accountings_sampled_gaussian(epsilon: float) -> None:
    """One round, one k: the curve of both is H((1-q)Q + qP || Q)."""
    theirs = privacy_loss_distribution.from_gaussian_mechanism(
        5.0, sampling_prob=0.1, value_discretization_interval=1e-4
    ).get_delta_for_epsilon(epsilon)
    alpha = np.array([math.exp(epsilon)])
    ours = sampled(lambda a: gaussian_profile(0.2, a), 0.1, alpha)[0]
    assert ours == pytest.approx(theirs, rel=1e-6)


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
