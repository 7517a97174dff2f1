"""The blanket of an interval against integrals, and its limit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from dpcheckin.accounting import ShuffleRound, compose, gaussian, lower_bound
from dpcheckin.errors import OutsideTheorem
from dpcheckin.papers.others.blanket import index_epsilon, interval_delta, interval_epsilon

Array = np.ndarray
GRID = np.linspace(-14.0, 14.0, 40_001)


def parts(noise: float, a: float = 1.0, b: float = -1.0) -> tuple[Array, Array, Array]:
    """Densities of both values, and the least over the interval."""
    at, other, low, high = (stats.norm.pdf(GRID, x, noise) for x in (a, b, -1.0, 1.0))
    return at, other, np.minimum(low, high)


@pytest.mark.parametrize("noise", [1.5, 2.5])
@pytest.mark.parametrize("epsilon", [0.0, 0.4])
@pytest.mark.parametrize("population", [1, 2])
def test_few_clients_by_quadrature(noise: float, epsilon: float, population: int) -> None:
    first, second, least = parts(noise)
    values, step = (first - np.exp(epsilon) * second) / least, GRID[1] - GRID[0]
    blank = 1.0 - integrate.trapezoid(least, GRID)
    one = integrate.trapezoid(np.maximum(values, 0.0) * least, GRID)
    truth = one
    if population == 2:
        thin = slice(None, None, 20)
        v, w = values[thin], least[thin] * 20 * step
        truth = (blank * one * 2 + w @ np.maximum(v[:, None] + v[None, :], 0.0) @ w) / 2
    found = interval_delta(population, noise, epsilon)
    assert truth * (1 - 1e-5) <= found <= truth * 1.01


@pytest.mark.parametrize("noise", [0.7, 2.0])
def test_no_two_values_are_worse_than_the_ends(noise: float) -> None:
    """Calls and puts of X: its law for the two ends is the largest in convex order, on a grid."""
    for alpha in (1.0, 1.2, 2.0):
        for t in (-1.5, -0.3, 0.0, 0.2, 1.0, 4.0):

            def call(a: float, b: float, alpha: float = alpha, t: float = t) -> float:
                first, second, least = parts(noise, a, b)
                total = integrate.trapezoid(np.maximum(first - alpha * second - t * least, 0.0), GRID)
                return float(total) + max(-t, 0.0) * (1.0 - float(integrate.trapezoid(least, GRID)))

            ends = max(call(1.0, -1.0), call(-1.0, 1.0))
            for a in np.linspace(-1.0, 1.0, 6):
                for b in np.linspace(-1.0, 1.0, 6):
                    assert call(a, b) <= ends + 1e-9


@pytest.mark.parametrize(("population", "noise", "delta"), [(60_000, 9.48, 1 / 60_000), (1_000, 2.0, 1e-6)])
def test_ours_is_smaller_and_both_are_above_the_lower_bound(population: int, noise: float, delta: float) -> None:
    run = [(ShuffleRound(population, gaussian(noise)), 1)]
    theirs, ours = interval_epsilon(population, noise, delta), compose(run).epsilon(delta).upper
    assert lower_bound(run, delta).epsilon.lower < ours < theirs


def test_the_index_is_the_limit() -> None:
    found = [interval_epsilon(n, 2.0, 1e-5) / index_epsilon(n, 2.0, 1, 1e-5) for n in (2_000, 50_000, 1_000_000)]
    assert found[0] > found[1] > found[2] > 1.0
    assert found[2] < 1.0005


def test_little_noise_and_tiny_deltas_are_refused() -> None:
    with pytest.raises(OutsideTheorem, match="delta of at least"):
        interval_epsilon(1_000, 2.0, 1e-12)
    with pytest.raises(OutsideTheorem, match=r"more noise|seen by itself"):
        interval_epsilon(1_000_000, 0.5, 1e-6)
