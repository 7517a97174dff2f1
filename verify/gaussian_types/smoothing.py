"""Nodes on which potentials are smoothed, coarse and fine; the kernel itself is the package's (`types.potentials`)."""

from __future__ import annotations

import numpy as np

from gaussian_types.rounding import Array


def symmetric_points(diameter: float, smoothing: float, violation: float, step: float) -> Array:
    """Nodes t, symmetric about 0 and without it: even steps near 0, geometric ones in the tails.

    They reach to where neither the Laplace kernel nor the log-normal tail can weigh more than a fraction of
    `violation`.
    """
    depth = np.log(1 / violation)
    tail = float(np.sqrt(2 * depth)) - 0.2
    reach = max(1.05 * depth * smoothing, float(np.exp(diameter**2 / 2 + tail * diameter)))
    points = [step * diameter / 2]
    while points[-1] < reach:
        points.append(points[-1] + max(step * diameter, 1.2 * step * points[-1]))
    right = np.array(points)
    return np.concatenate([-right[::-1], right])


def refined(nodes: Array, parts: int) -> tuple[Array, Array]:
    """Each interval cut into equal parts, and the matrix of linear interpolation onto them."""
    share = np.arange(parts) / parts
    fine = (nodes[:-1, None] + np.diff(nodes)[:, None] * share).ravel()
    fine = np.append(fine, nodes[-1])
    matrix = np.zeros((len(nodes), len(fine)))
    position = np.arange(len(fine))
    cell = np.minimum(position // parts, len(nodes) - 2)
    weight = (position - cell * parts) / parts
    matrix[cell, position] = 1 - weight
    matrix[cell + 1, position] += weight
    return fine, matrix


def interpolated(values: Array, parts: int) -> Array:
    """Values at nodes (…, nodes) on the intervals cut into parts: products with that matrix."""
    weight = np.arange(parts) / parts
    fine = values[..., :-1, None] * (1 - weight) + values[..., 1:, None] * weight
    return np.concatenate([fine.reshape(*values.shape[:-1], -1), values[..., -1:]], -1)
