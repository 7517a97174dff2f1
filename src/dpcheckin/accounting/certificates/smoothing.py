"""Laplace smoothing of piecewise linear functions, and where a smoothed difference is negative.

A convex function smoothed by Laplace noise of scale τ becomes V with V - τ²V″ = U. Between nodes
the functions compared here are linear, so V at the nodes is an exact sum of exponentials, and a
minimum of V between two nodes is bounded from the values at the nodes.
"""

from __future__ import annotations

import numpy as np

from dpcheckin.accounting.certificates.rounding import Array
from dpcheckin.errors import NumericalFailure

KERNEL = 1e-11  # relative error of the entries of the kernel and of sums with them


def symmetric_points(diameter: float, smoothing: float, violation: float, step: float) -> Array:
    """Nodes t, symmetric about 0 and without it: even steps near 0, geometric ones in the tails.

    They reach to where neither the Laplace kernel nor the log-normal tail can weigh more than a
    fraction of `violation`.
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


def kernel(points: Array, smoothing: float) -> Array:
    """Entry (j, i): the Laplace-weighted integral, seen from node i, of the hat at node j.

    All entries are positive; with steps of at least 3e-4 of τ the differences below keep eleven
    digits, and a product of decays loses one unit in the last place per factor.
    """
    ratio = np.diff(points) / smoothing
    if not ratio.min() >= 3e-4:
        raise NumericalFailure("nodes are too close together for the smoothing scale")
    decay = np.exp(-ratio)
    mean = -np.expm1(-ratio) / ratio
    near, far = (1 - mean) / 2, (mean - decay) / 2
    size = len(points)
    before, after = np.zeros((size, size)), np.zeros((size, size))
    for i in range(size - 1):
        before[:, i + 1] = before[:, i] * decay[i]
        before[i + 1, i + 1] += near[i]
        before[i, i + 1] += far[i]
    for i in range(size - 1, 0, -1):
        after[:, i - 1] = after[:, i] * decay[i - 1]
        after[i - 1, i - 1] += near[i - 1]
        after[i, i - 1] += far[i - 1]
    return before + after


def lowest(below: Array, above: Array, plain: Array, points: Array, smoothing: float) -> Array:
    """Lower bound over all u of V, from V and D = V - τ²V″ at the nodes, D linear in between.

    On an interval V is at least the smallest of its two values and the two values of D, because a
    minimum inside has V″ ≥ 0, so V ≥ D there. It is also at least the smaller end value minus
    (h²/8)·max V″, and V″ = (V - D)/τ² is largest at an end, being a solution of f = τ²f″.

    Args:
        below: V at the nodes (…, nodes), from below.
        above: the same from above.
        plain: D at the nodes (…, nodes).
        points: the nodes.
        smoothing: τ.
    """
    ends = np.minimum(below[..., 1:], below[..., :-1])
    floor = np.minimum(plain[..., 1:], plain[..., :-1])
    bend = np.maximum(above - plain, 0.0)
    bend = np.maximum(bend[..., 1:], bend[..., :-1])
    bend *= np.diff(points) ** 2 / (8 * smoothing**2) * (1 + KERNEL)
    inside = np.maximum(np.minimum(ends, floor), ends - bend)
    return np.asarray(inside.min(-1))
