"""Removal of a client, sum and number of reports seen: held against integration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binom, norm

from dpcheckin.errors import InvalidParameter, NumericalFailure
from dpcheckin.papers.p0 import removal_sum

Point = Sequence[float]


def _grid(dimension: int, noise: float, n: int) -> tuple[np.ndarray, float]:
    """Places (rows) and the volume of a cell."""
    wide = n + 7.0 * noise * math.sqrt(n)
    line = np.linspace(-wide, wide, 6001 if dimension == 1 else 261)
    if dimension == 1:
        return line[:, None], float(line[1] - line[0])
    across, along = np.meshgrid(line, line, indexing="ij")
    return np.stack([across.ravel(), along.ravel()], axis=1), float(line[1] - line[0]) ** 2


def _laws(
    others: Sequence[Point], target: Point, rate: float, noise: float
) -> tuple[list[np.ndarray], list[np.ndarray], float]:
    """Densities of (number, sum) without and with the target, number by number."""
    n, dimension = len(others) + 1, len(target)
    x, cell = _grid(dimension, noise, n)

    def normal(mean: np.ndarray, k: int) -> np.ndarray:
        return np.prod(norm.pdf(x, mean, noise * math.sqrt(k)), axis=1)

    without = [np.zeros(len(x)) for _ in range(n + 1)]
    joined = [np.zeros(len(x)) for _ in range(n + 1)]
    for k in range(n):
        weight = rate**k * (1 - rate) ** (n - 1 - k)
        for chosen in combinations(others, k):
            total = np.sum(np.array(chosen), axis=0) if k else np.zeros(dimension)
            if k:
                without[k] += weight * normal(total, k)
            joined[k + 1] += weight * normal(total + np.array(target), k + 1)
    present = [(1 - rate) * a + rate * b for a, b in zip(without, joined, strict=True)]
    return without, present, cell


def _divergence(p: list[np.ndarray], q: list[np.ndarray], alpha: float, cell: float) -> float:
    return sum(float(np.maximum(a - alpha * b, 0.0).sum()) * cell for a, b in zip(p, q, strict=True))


DATA = {
    "line, all others alike": ([[-1.0], [-1.0], [-1.0]], [1.0]),
    "line, mixed": ([[0.2], [-0.7], [1.0]], [-0.4]),
    "plane, all others alike": ([[0.6, 0.8], [0.6, 0.8]], [-0.6, -0.8]),
    "plane, mixed": ([[1.0, 0.0], [0.0, -1.0], [-0.5, 0.5]], [0.0, 1.0]),
}


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.6])
def test_both_curves_cover_integration_in_one_and_two_dimensions(data: str, epsilon: float) -> None:
    """Any data of norm at most 1; equal others at distance 2 meet the bound."""
    others, target = DATA[data]
    rate, noise, alpha = 0.4, 1.3, math.exp(epsilon)
    without, present, cell = _laws(others, target, rate, noise)
    alone = (1 - rate) ** len(others)  # nobody came: an atom, the same place for both
    added, removed, _ = removal_sum.curves(len(others) + 1, rate, noise, distance=2.0)
    there = _divergence(present, without, alpha, cell)
    back = _divergence(without, present, alpha, cell)
    back += max(alone - alpha * (1 - rate) * alone, 0.0)
    bounds = [float(curve(np.array([alpha]))[0]) for curve in (added, removed)]
    assert there <= bounds[0] + 2e-6 and back <= bounds[1] + 2e-6
    if "alike" in data:
        assert [there, back] == pytest.approx(bounds, abs=2e-5)
    else:
        assert there < 0.95 * bounds[0]


@pytest.mark.parametrize("dimension", [1, 2])
def test_a_hidden_number_costs_no_more(dimension: int) -> None:
    """The average alone, with noise of its own if nobody came, as P0 has it."""
    rate, noise, n = 0.4, 1.0, 4
    value = np.zeros(dimension)
    value[0] = 2.0  # the others at 0, in a ball around 1
    x, cell = _grid(dimension, noise, 3)

    def normal(mean: np.ndarray, k: int) -> np.ndarray:
        return np.prod(norm.pdf(x, mean, noise / math.sqrt(k)), axis=1)

    without, joined = np.zeros(len(x)), np.zeros(len(x))
    for k in range(n):
        weight = float(binom.pmf(k, n - 1, rate))
        without += weight * normal(0 * value, max(k, 1))
        joined += weight * normal(value / (k + 1), k + 1)
    present = (1 - rate) * without + rate * joined
    added, removed, _ = removal_sum.curves(n, rate, noise, distance=2.0)
    for epsilon in (0.0, 0.3, 0.7):
        alpha = np.array([math.exp(epsilon)])
        assert _divergence([present], [without], alpha[0], cell) < added(alpha)[0]
        assert _divergence([without], [present], alpha[0], cell) < removed(alpha)[0] + 1e-9


def test_epsilon_is_where_the_larger_curve_passes_delta() -> None:
    """One round; the bracket is narrow, more rounds cost more, fewer than in proportion."""
    delta = 1e-4
    found = removal_sum.epsilon(200, 0.3, 1.0, 1, delta, distance=1.0)
    added, removed, _ = removal_sum.curves(200, 0.3, 1.0, distance=1.0)
    alpha = np.array([math.exp(found.upper)])
    assert max(added(alpha)[0], removed(alpha)[0]) == pytest.approx(delta, rel=1e-3)
    assert found.relative_width < 1e-3
    ten = removal_sum.epsilon(200, 0.3, 1.0, 10, delta, distance=1.0).upper
    assert found.upper < ten < 10 * found.upper


def test_more_noise_more_clients_and_less_distance_cost_less() -> None:
    base = removal_sum.epsilon(300, 0.2, 1.0, 1, 1e-5).upper
    assert removal_sum.epsilon(300, 0.2, 2.0, 1, 1e-5).upper < base
    assert removal_sum.epsilon(600, 0.2, 1.0, 1, 1e-5).upper < base
    assert removal_sum.epsilon(300, 0.2, 1.0, 1, 1e-5, distance=1.0).upper < base


def test_bad_input_is_named() -> None:
    for rate in (0.0, 1.0):
        with pytest.raises(InvalidParameter, match="rate"):
            removal_sum.epsilon(200, rate, 1.0, 1, 1e-4)
    with pytest.raises(InvalidParameter, match="noise_multiplier"):
        removal_sum.epsilon(200, 0.3, 0.0, 1, 1e-4)
    with pytest.raises(NumericalFailure, match="numbers of reports"):
        removal_sum.epsilon(10**8, 0.5, 1.0, 1, 1e-4)
