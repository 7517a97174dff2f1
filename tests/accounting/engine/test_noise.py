"""Skellam noise against scipy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import skellam

from dpcheckin.special import gamma as noise_laws


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
