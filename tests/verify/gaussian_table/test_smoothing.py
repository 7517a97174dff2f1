"""The kernel integrates hats exactly, and a minimum between two nodes is never missed."""

from __future__ import annotations

import numpy as np
import pytest

from dpcheckin.accounting.pairs.potentials import kernel, lowest
from dpcheckin.errors import NumericalFailure
from gaussian_types import smoothing
from gaussian_types.rounding import Array


def smoothed_at(u: Array, nodes: Array, values: Array, scale: float) -> Array:
    """The Laplace average of a piecewise linear function, by a fine sum around its kinks."""
    result = np.zeros(len(u))
    for i in range(len(nodes) - 1):
        t = np.linspace(nodes[i], nodes[i + 1], 4001)
        weight = np.exp(-np.abs(u[:, None] - t) / scale) / (2 * scale)
        result += np.trapezoid(np.interp(t, nodes, values) * weight, t, axis=1)
    return result


@pytest.mark.parametrize("scale", [0.05, 0.7, 30.0])
def test_the_kernel_against_a_fine_sum(scale: float) -> None:
    """Uneven nodes, scales far below and above their distances."""
    rng = np.random.default_rng(0)
    nodes = np.cumsum(rng.uniform(0.2, 1.5, 12)) - 6
    values = rng.normal(size=12)
    found = values @ kernel(nodes, scale)
    np.testing.assert_allclose(found, smoothed_at(nodes, nodes, values, scale), atol=2e-5)


def test_the_lowest_value_is_a_bound_between_the_nodes() -> None:
    """Random functions, V evaluated at many points of every interval."""
    rng = np.random.default_rng(1)
    for _ in range(12):
        nodes = np.cumsum(rng.uniform(0.1, 1.0, 9))
        scale = float(rng.uniform(0.2, 3.0))
        values = rng.normal(0.4, 1.0, 9)
        at_nodes = values @ kernel(nodes, scale)
        bound = lowest(at_nodes, at_nodes, values, nodes, scale)
        between = np.linspace(nodes[0], nodes[-1], 301)
        truth = smoothed_at(between, nodes, values, scale).min()
        assert bound <= truth + 1e-5
        assert bound >= min(truth, at_nodes.min()) - 0.6


def test_a_dip_between_two_nodes_is_seen() -> None:
    """Both node values of V are positive, V between them is not."""
    nodes, values, scale = np.array([-3.0, -1.0, 1.0, 3.0]), np.array([9.0, -1.0, -1.0, 9.0]), 0.5
    at_nodes = values @ kernel(nodes, scale)
    assert at_nodes.min() > 0
    assert smoothed_at(np.zeros(1), nodes, values, scale)[0] < 0
    assert lowest(at_nodes, at_nodes, values, nodes, scale) < 0


def test_nodes_reach_where_nothing_is_left() -> None:
    """Symmetric, without 0, and beyond both the kernel's and the log-normal's tail."""
    for diameter, scale in ((0.2, 0.36), (1.0, 2.8), (2.0, 54.0)):
        nodes = smoothing.symmetric_points(diameter, scale, 2.5e-13, 0.1)
        np.testing.assert_array_equal(nodes, -nodes[::-1])
        assert np.all(np.diff(nodes) > 0) and not np.any(nodes == 0)
        assert np.exp(-nodes[-1] / scale) < 1e-12


def test_refined_nodes_interpolate() -> None:
    """A linear function goes through the matrix unchanged."""
    nodes = np.array([-2.0, -0.5, 0.5, 4.0])
    fine, matrix = smoothing.refined(nodes, 3)
    np.testing.assert_allclose((3 * nodes - 1) @ matrix, 3 * fine - 1, rtol=1e-14)
    np.testing.assert_array_equal(fine[::3], nodes)
    np.testing.assert_allclose(matrix.sum(0), 1.0)


def test_nodes_too_close_together_are_refused() -> None:
    """The kernel's differences would lose their digits."""
    with pytest.raises(NumericalFailure):
        kernel(np.array([0.0, 1e-14, 1.0]), 1.0)
