"""The cells cover every triple of the ball, and one Gram matrix lies above each cell."""

from __future__ import annotations

import numpy as np
import pytest

from dpcheckin.errors import InvalidParameter
from gaussian_types import gram
from gaussian_types.rounding import Array

TREE = "1" + "1100100" + "1" + "0" + "100"


def inner_products(a: Array, b: Array, x: Array) -> Array:
    """Gram entries of points (…, dimension)."""
    first, second = a - x, b - x
    return np.stack([(first**2).sum(-1), (second**2).sum(-1), (first * second).sum(-1)], -1)


def test_leaves_tile_the_triangle() -> None:
    """Their areas add up exactly and a random point lies in exactly one of them."""
    cells = gram.leaves(TREE)
    one, two = cells[:, 1] - cells[:, 0], cells[:, 2] - cells[:, 0]
    areas = np.abs(one[:, 0] * two[:, 1] - one[:, 1] * two[:, 0]) / 2
    assert areas.sum() == 0.5
    assert len(cells) == TREE.count("0") == TREE.count("1") + 1
    rng = np.random.default_rng(0)
    points = 1 - np.sort(rng.random((500, 2)), 1)[:, ::-1] * [1, 1]
    points = np.stack([points.max(1), 1 - points.min(1)], 1)
    assert np.all(points.sum(1) >= 1)
    inverse = np.linalg.inv(np.stack([one, two], -1))
    parts = np.einsum("cij,pcj->pci", inverse, points[:, None] - cells[:, 0])
    inside = (parts >= 0).all(-1) & (parts.sum(-1) <= 1)
    assert np.all(inside.sum(1) == 1)


@pytest.mark.parametrize("tree", ["", "1", "10", "00", "1000", "2", "1a0"])
def test_a_damaged_tree_is_refused(tree: str) -> None:
    """Every mark counts: a tree that passes covers the triangle."""
    with pytest.raises(InvalidParameter):
        gram.leaves(tree)


def fine_cells(cuts: int) -> Array:
    cells = gram.WHOLE[None]
    for _ in range(cuts):
        cells = gram.halves(cells)
    return cells


@pytest.mark.parametrize("cuts", [0, 3, 6, 9])
def test_one_matrix_lies_above_its_cell(cuts: int) -> None:
    """Loewner order at random triples inside each cell, corners and sides included."""
    cells = fine_cells(cuts)
    above = np.stack([one.gram() for one in gram.triples_above(cells, 1.3)])
    rng = np.random.default_rng(cuts)
    shares = np.concatenate([np.eye(3), rng.dirichlet(np.full(3, 0.5), 60)])
    arcs = np.einsum("kc,ncd->knd", shares, cells)
    gaps = above - gram.gram(arcs, 1.3)
    assert gram.smallest_eigenvalue(gaps).min() > 0


def test_fine_cells_cost_little() -> None:
    """The excess over the corners shrinks with the square of the size of a cell."""
    excess = []
    for cuts in (8, 10, 12):
        cells = fine_cells(cuts)
        above = np.stack([one.gram() for one in gram.triples_above(cells, 1.0)])
        centre = gram.gram(cells.mean(1), 1.0)
        excess.append(gram.inside_cells(cells, 1.0)[:, :2].sum(1).max())
        assert np.all((above - centre)[:, :2].sum(1) < 1.0)
    assert excess[0] < 0.05
    assert np.all(np.diff(np.log(excess)) < -0.6)  # two cuts halve the sides: a quarter, about


@pytest.mark.parametrize("dimension", [1, 2, 3, 7])
def test_every_triple_of_the_ball_lies_below_some_cell(dimension: int) -> None:
    """Random triples in a ball of any dimension, many of them on its surface or antipodal."""
    diameter = 0.8
    rng = np.random.default_rng(dimension)
    points = rng.normal(size=(3, 400, dimension))
    points /= np.linalg.norm(points, axis=-1, keepdims=True)
    points *= rng.choice([1.0, 1.0, 0.9, 0.3], (3, 400, 1)) * diameter / 2
    points[1, :100] = -points[0, :100]
    points[2, 100:150] = -points[0, 100:150]
    triples = inner_products(*points)
    above = np.stack([one.gram() for one in gram.triples_above(fine_cells(9), diameter)])
    gaps = gram.smallest_eigenvalue(above[None] - triples[:, None])
    assert np.all(gaps.max(1) >= 0)


def test_a_triple_knows_its_gram_matrix() -> None:
    """Seen from the foot of the altitude, the distances are those of the matrix."""
    cells = fine_cells(6)
    for wanted, triple in zip(gram.dominating(cells, 0.9), gram.triples_above(cells, 0.9), strict=True):
        np.testing.assert_allclose(triple.gram(), wanted, atol=1e-13)
        assert triple.apex_is_a == (wanted[0] >= wanted[1])
