"""Laplace and Gaussian reports at different values, sorted into cells.

Sorting is post-processing, so every loss of the cells is a loss of the original: an attack by
cells is never unfair, and tends to the original as cells get finer. Masses of cells are exact
(differences of distribution functions, products of such in two dimensions).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special

from oracles.seat_types.laws import Array


def _laplace_cdf(z: Array) -> Array:
    tail = 0.5 * np.exp(-np.abs(z))
    return np.where(z < 0, tail, 1.0 - tail)


def laplace_rows(local_epsilon: float, values: Sequence[float], inner: int) -> Array:
    """Values in [0, 1] plus Laplace noise of scale 1/epsilon, in `inner` + 2 cells.

    All reports below 0 look alike, and all above 1; the inside is cut evenly and at the values.
    """
    at = np.asarray(values, float)
    cuts = np.unique(np.concatenate([np.linspace(0.0, 1.0, inner + 1), at]))
    if len(cuts) > inner + 1:  # keep the ends and the values, thin out the rest
        spare = np.setdiff1d(cuts, np.concatenate([at, [0.0, 1.0]]))
        keep = max(inner + 1 - (len(cuts) - len(spare)), 0)
        chosen = spare[np.linspace(0, len(spare) - 1, keep).astype(int)] if keep else spare[:0]
        cuts = np.unique(np.concatenate([chosen, at, [0.0, 1.0]]))
    cdf = _laplace_cdf(local_epsilon * (cuts[None, :] - at[:, None]))
    return np.hstack([cdf[:, :1], np.diff(cdf, axis=1), 1.0 - cdf[:, -1:]])


def _normal_cells(cuts: Array, centres: Array) -> Array:
    edges = np.concatenate([[-np.inf], cuts, [np.inf]])
    z = edges[None, :] - centres[:, None]
    # differences on the nearer tail: a cell far out keeps its relative accuracy
    low = np.diff(special.ndtr(z), axis=1)
    high = -np.diff(special.ndtr(-z), axis=1)
    return np.where(z[:, :-1] > 0, high, low)


def line_rows(points: Array, cuts: Array) -> Array:
    """Points of the line plus normal noise of deviation 1, sorted by these cuts."""
    rows = _normal_cells(np.sort(cuts), np.asarray(points, float))
    return rows / rows.sum(axis=1, keepdims=True)


def plane_rows(points: Array, first: Array, second: Array) -> Array:
    """Points of the plane (n x 2) plus normal noise of deviation 1, sorted into a grid."""
    rows = np.einsum(
        "ni,nj->nij", _normal_cells(np.sort(first), points[:, 0]),
        _normal_cells(np.sort(second), points[:, 1]),
    ).reshape(len(points), -1)  # fmt: skip
    return rows / rows.sum(axis=1, keepdims=True)
