"""Removal of a client (P0): moments and epsilons by integration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from dpcheckin.errors import InvalidParameter
from dpcheckin.papers.p0 import removal


def test_removal_moments_by_integration() -> None:
    """P0 Theorem 5's moment, true and printed (k = 5, order 3, sigma 1.3)."""
    k, order, noise = 5, 3, 1.3
    x = np.linspace(-8, 8, 400_001)
    p = norm.pdf(x, 0, noise / math.sqrt(k))
    q = norm.pdf(x, 1 / (k + 1), noise / math.sqrt(k + 1))
    direct = np.trapezoid(q * (p / q) ** order, x)
    reverse = np.trapezoid(p * (q / p) ** order, x)
    assert removal.moment(k, order, noise) == pytest.approx(direct, rel=1e-6)
    # the printed root is that of the other direction, which is finite for every order
    root = math.sqrt((k + 1) ** order / ((k + order) * k ** (order - 1)))
    other = root * math.exp(order * (order - 1) * k / (2 * noise**2 * (k + 1) * (k + order)))
    assert other == pytest.approx(reverse, rel=1e-6)
    assert removal.printed_moment(k, order, noise) < 0.71 < 1.75 < direct
    assert math.isinf(removal.moment(k, k + 1, noise))


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
    found = removal.epsilon(n, rate, 1.0, 1, delta).upper
    worst = max(_removal_delta(n, rate, 1.0, found, added) for added in (True, False))
    assert worst == pytest.approx(delta, rel=1e-4)


def test_removal_composes_and_refuses() -> None:
    """Ten rounds cost more than one and less than ten times as much."""
    one = removal.epsilon(200, 0.3, 1.0, 1, 1e-4).upper
    ten = removal.epsilon(200, 0.3, 1.0, 10, 1e-3).upper
    assert one < ten < 10 * one
    for bad in ({"noise_multiplier": 0.0}, {"rate": 1.0}, {"population": 1}):
        run = {"population": 200, "rate": 0.3, "noise_multiplier": 1.0, "rounds": 1, "delta": 1e-4} | bad
        with pytest.raises(InvalidParameter):
            removal.epsilon(**run)
