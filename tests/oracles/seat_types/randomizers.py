"""Rows of reports: the target at a, at b, then each other client at a value of its own.

A randomizer is only ever met through the laws of the values that occur, so a data set *is* such a
matrix. The columns of the pure ones are vectors of ones and e's, scaled: the extreme rays of all
that local privacy allows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import optimize

from oracles.seat_types.laws import Array

Random = np.random.Generator


def dary_rows(e: float, symbols: int, values: Sequence[int]) -> Array:
    """d-ary response (two symbols: binary) of clients with these values."""
    rows = np.where(np.arange(symbols)[None, :] == np.asarray(values)[:, None], e, 1.0)
    return rows / (e + symbols - 1.0)


def circle_rows(e: float, positions: Sequence[int], of: int) -> Array:
    """A random direction, in the half circle round the client's own with probability e/(e+1).

    Directions are `positions` of `of` even steps round the circle; arcs between the ends of all
    half circles are the reports, all their points being alike for everybody.
    """
    at = np.asarray(positions) * 4  # quarter steps: the ends of half circles then are integers
    turn = 4 * of
    assert turn % 4 == 0
    ends = np.unique(np.concatenate([(at - of) % turn, (at + of) % turn]))
    width = np.diff(np.append(ends, ends[0] + turn))
    middle = 2 * ends + width  # in eighths
    apart = np.abs((middle[None, :] - 2 * at[:, None]) % (2 * turn))
    inside = np.minimum(apart, 2 * turn - apart) < turn / 2
    return np.where(inside, e, 1.0) / (e + 1.0) * width / (turn / 2)


def sphere_rows(e: float, angles: Sequence[float], values: Sequence[int]) -> Array:
    """The same on a sphere of any dimension >= 3, for three directions and their opposites.

    `angles`: between directions 0 and 1, 0 and 2, 1 and 2, in radians. `values`: 0, 1, 2 for the
    directions, 3, 4, 5 for their opposites. The part of the sphere inside three half spheres is
    1/2 - (sum of the angles) / 4 pi.
    """
    t01, t02, t12 = angles
    pi = np.pi
    shares = {
        (1, 1, 1): 0.5 - (t01 + t02 + t12) / (4 * pi),
        (1, 1, 0): 0.5 - (t01 + (pi - t02) + (pi - t12)) / (4 * pi),
        (1, 0, 1): 0.5 - ((pi - t01) + t02 + (pi - t12)) / (4 * pi),
        (0, 1, 1): 0.5 - ((pi - t01) + (pi - t02) + t12) / (4 * pi),
    }
    inside, share = [], []
    for pattern, part in shares.items():
        assert part > -1e-12, "no three directions have these angles"
        inside += [pattern, tuple(1 - i for i in pattern)]
        share += [max(part, 0.0)] * 2
    membership = np.array(inside).T
    membership = np.vstack([membership, 1 - membership])[list(values)]
    return np.where(membership == 1, e, 1.0) / (e + 1.0) * 2.0 * np.array(share)


def normalised(patterns: Array, weights: Array, e: float) -> Array:
    """Rows from patterns of high (1) and low (0), each pattern scaled by its weight."""
    rows = np.where(patterns == 1, e, 1.0) * weights
    assert np.ptp(rows.sum(axis=1)) < 1e-9
    return rows / rows.sum(axis=1, keepdims=True)


def designed_pure(rng: Random, e: float, inputs: int) -> Array:
    """A mixture of designs in which every input is high equally often.

    One design sorts the inputs into blocks and is high, or low, for one block at a time: two
    blocks are binary response, as many blocks as inputs d-ary response.
    """
    parts, weights = [], []
    for _ in range(int(rng.integers(1, 4))):
        blocks = int(rng.integers(2, min(inputs, 4) + 1))
        label = rng.integers(0, blocks, inputs)
        if rng.random() < 0.7:  # the target's two inputs should differ
            label[:2] = rng.permutation(blocks)[:2]
        pattern = (label[:, None] == np.arange(blocks)[None, :]).astype(float)
        if rng.random() < 0.25:
            pattern = 1.0 - pattern
        total = np.where(pattern[0] == 1, e, 1.0).sum()
        parts.append(pattern)
        weights.append(np.full(blocks, rng.exponential() / total))
    return normalised(np.hstack(parts), np.concatenate(weights), e)


def vertex_pure(rng: Random, e: float, inputs: int) -> Array:
    """A random vertex of all pure randomizers of so many inputs."""
    bits = (np.arange(1, 2**inputs - 1)[:, None] >> np.arange(inputs)) & 1
    columns = np.where(bits.T == 1, e, 1.0)
    found = optimize.linprog(rng.normal(size=columns.shape[1]), A_eq=columns, b_eq=np.ones(inputs), method="highs-ds")
    used = found.x > 1e-12
    rows = columns[:, used] * found.x[used]
    return rows / rows.sum(axis=1, keepdims=True)


def random_rows(rng: Random, inputs: int, symbols: int, zeros: float = 0.0) -> Array:
    """Any matrix; `zeros`: the share of reports a value cannot produce."""
    while True:
        rows = np.exp(rng.uniform(0.0, rng.choice([0.5, 1.0, 2.0, 3.0]), size=(inputs, symbols)))
        rows *= rng.random(rows.shape) >= zeros
        if (rows.sum(axis=1) > 0).all():
            return rows / rows.sum(axis=1, keepdims=True)


def pure_epsilon(rows: Array) -> float:
    """The smallest epsilon for which these rows are pure, rounded up."""
    return float(np.nextafter(np.log(rows.max(axis=0) / rows.min(axis=0)).max(), np.inf))


def leaky_rows(rng: Random, rows: Array, leak: float) -> Array:
    """With probability `leak` each client sends one of few special symbols, or a usual one."""
    few = int(rng.integers(1, 4))
    own = np.eye(few)[rng.integers(0, few, len(rows))]
    if rng.random() < 0.4:  # the leak looks like a report
        usual = np.eye(rows.shape[1])[rng.integers(0, rows.shape[1], len(rows))]
        return (1.0 - leak) * rows + leak * usual
    return np.hstack([(1.0 - leak) * rows, leak * own])


def local_delta(rows: Array, epsilon: float) -> float:
    """The smallest delta for which these rows are (epsilon, delta)-LDP, rounded up."""
    above = np.maximum(rows[:, None, :] - np.exp(epsilon) * rows[None, :, :], 0.0).sum(axis=2)
    return float(above.max() * (1.0 + 1e-12))
