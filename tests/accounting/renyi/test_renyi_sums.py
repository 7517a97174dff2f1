"""The Rényi bound of Skellam noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpcheckin.accounting.renyi import skellam_rdp
from dpcheckin.special import gamma as noise_laws


@pytest.mark.parametrize(("variance", "shift"), [(2.0, 1), (5.0, 3), (50.0, 4), (400.0, 20)])
def test_skellam_renyi_bound_holds(variance: float, shift: int) -> None:
    """Agarwal et al.'s bound is above the exact divergence in one dimension."""
    losses, p, _ = noise_laws._cumulative(variance, shift)
    mass = np.diff(p, prepend=0.0)
    orders = np.array([2.0, 3.0, 8.0, 20.0])
    exact = [math.log(np.sum(mass * np.exp((a - 1) * losses))) / (a - 1) for a in orders]
    bound = skellam_rdp(orders, variance, float(shift), float(shift))
    assert np.all(bound >= np.array(exact))
