"""Random data sets: how the package spells the randomizer, and rows of reports it must cover.

A `Source` belongs to one randomizer; it makes as many data sets of n clients as one likes, all
covered by the same local pair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oracles.seat_types import cells, randomizers
from oracles.seat_types.laws import Array

Random = np.random.Generator


@dataclass(frozen=True)
class Source:
    """A randomizer's data sets.

    `text`: the local pair with the package's public names. `rows(n)`: the laws of the target at a,
    at b, and of n - 1 others at values of their own. `symbols`: the most reports told apart; it
    may depend on n. `local_epsilon`: no loss is larger, or a scale for questions if there is none.
    """

    text: str
    rows: Callable[[int], Array]
    symbols: Callable[[int], int]
    local_epsilon: float
    largest: int = 6  # clients


def local_epsilon(rng: Random) -> float:
    """Mostly between 0.1 and 5; sometimes extreme, or where the worst type changes."""
    if rng.random() < 0.08:
        return float(rng.choice([0.01, 0.03, 6.0, 8.0, 12.0]))
    if rng.random() < 0.1:
        return float(rng.choice([0.68, 0.69, 0.6931, 0.6932, 0.7, 0.72]))
    return round(float(np.exp(rng.uniform(np.log(0.1), np.log(5.0)))), 2)


def _crowd(rng: Random, values: int, n: int) -> list[int]:
    """Values 0 and 1 for the target's ends; most others share one or two values."""
    weights = rng.dirichlet(np.full(values, rng.choice([0.15, 1.0])))
    return [0, 1, *rng.choice(values, n - 1, p=weights).tolist()]


def binary(rng: Random) -> Source:
    """Binary response, any values of the others."""
    e0 = local_epsilon(rng)
    e = float(np.exp(e0))
    return Source(
        f"binary_response({e0})",
        lambda n: randomizers.dary_rows(e, 2, _crowd(rng, 2, n)),
        lambda n: 2,
        e0,
        60,
    )


def dary(rng: Random) -> Source:
    """d-ary response, any values of the others."""
    e0, d = local_epsilon(rng), int(rng.integers(3, 6))
    e = float(np.exp(e0))
    return Source(
        f"dary_response({e0}, {d})",
        lambda n: randomizers.dary_rows(e, d, _crowd(rng, d, n)),
        lambda n: d,
        e0,
        26,
    )


def dary_as_any(rng: Random) -> Source:
    """Three- or four-ary response, accounted for as any pure randomizer."""
    source = dary(rng)
    return Source(f"any_pure({source.local_epsilon})", source.rows, source.symbols,
                  source.local_epsilon, 26)  # fmt: skip


def _directions(rng: Random, of: int, n: int, distinct: int) -> list[int]:
    """The target's two directions, often opposite, and others at few or many directions."""
    a = int(rng.integers(0, of))
    b = a + of // 2 if rng.random() < 0.6 else int(rng.integers(0, of))
    pool = [a, b, a + of // 2, *rng.integers(0, of, distinct).tolist()]
    if rng.random() < 0.5:  # near the target's own
        pool = [p + int(rng.integers(-1, 2)) for p in (a, b)] + pool[:2]
    chosen = rng.choice(pool, n - 1, p=rng.dirichlet(np.full(len(pool), 0.4))).tolist()
    return [p % of for p in (a, b, *chosen)]


def circle(rng: Random) -> Source:
    """LDP-SGD in the plane, directions on a discretised circle."""
    e0, of = local_epsilon(rng), 4 * int(rng.integers(2, 19))
    distinct = int(rng.integers(0, 4))
    e = float(np.exp(e0))
    return Source(
        f"hemisphere({e0})",
        lambda n: randomizers.circle_rows(e, _directions(rng, of, n, distinct), of),
        lambda n: min(2 * (n + 1), 2 * (distinct + 4)),
        e0,
        12,
    )


def sphere(rng: Random) -> Source:
    """LDP-SGD in three or more dimensions: three directions and their opposites."""
    e0 = local_epsilon(rng)
    e = float(np.exp(e0))

    def rows(n: int) -> Array:
        at = rng.normal(size=(3, 3))
        if rng.random() < 0.4:
            at[1] = -at[0] + rng.choice([0.0, 0.1, 0.5]) * at[1]
        at /= np.linalg.norm(at, axis=1, keepdims=True)
        between = np.arccos(np.clip([at[0] @ at[1], at[0] @ at[2], at[1] @ at[2]], -1.0, 1.0))
        return randomizers.sphere_rows(e, between.tolist(), _crowd(rng, 6, n))

    return Source(f"hemisphere({e0})", rows, lambda n: 8, e0, 8)


def designed(rng: Random) -> Source:
    """Pure randomizers made of designs with extreme patterns."""
    e0 = local_epsilon(rng)
    e = float(np.exp(e0))

    def rows(n: int) -> Array:
        inputs = n + 1 if rng.random() < 0.5 else 4
        found = randomizers.designed_pure(rng, e, max(inputs, 3))
        return found[_crowd(rng, len(found), n)]

    return Source(f"any_pure({e0})", rows, lambda n: 9, e0, 8)


def vertex(rng: Random) -> Source:
    """Random vertices of all pure randomizers of as many inputs as there are clients."""
    e0 = local_epsilon(rng)
    e = float(np.exp(e0))
    return Source(
        f"any_pure({e0})",
        lambda n: randomizers.vertex_pure(rng, e, n + 1),
        lambda n: n + 1,
        e0,
        6,
    )


def inner(rng: Random) -> Source:
    """A random randomizer without zeros, accounted for by the epsilon it has."""
    matrix = randomizers.random_rows(rng, int(rng.integers(2, 7)), int(rng.integers(2, 6)))
    e0 = randomizers.pure_epsilon(matrix)
    return Source(
        f"any_pure({e0!r})",
        lambda n: matrix[rng.permutation(len(matrix))][_crowd(rng, len(matrix), n)],
        lambda n: matrix.shape[1],
        e0,
        10,
    )


def leaky(rng: Random) -> Source:
    """A pure randomizer that gives something away with a small probability."""
    e0 = local_epsilon(rng)
    leak = float(rng.choice([1e-6, 1e-3, 0.01, 0.1, round(rng.uniform(0.01, 0.5), 2)]))
    e = float(np.exp(e0))

    def rows(n: int) -> Array:
        few = int(rng.integers(3, 5))
        pure = randomizers.designed_pure(rng, e, few)
        if rng.random() < 0.4:
            pure = randomizers.dary_rows(e, 2, (np.arange(few) % 2).tolist())
        return randomizers.leaky_rows(rng, pure, leak)[_crowd(rng, few, n)]

    return Source(f"approximate({e0}, {leak})", rows, lambda n: 10, e0, 6)


def approximate(rng: Random) -> Source:
    """Any random matrix, zeros allowed, with the delta it has at some epsilon."""
    inputs, symbols = int(rng.integers(2, 6)), int(rng.integers(2, 6))
    matrix = randomizers.random_rows(rng, inputs, symbols, float(rng.choice([0.0, 0.2])))
    e0 = local_epsilon(rng)
    delta = randomizers.local_delta(matrix, e0)
    if not 1e-9 < delta < 0.7:
        return approximate(rng)
    return Source(
        f"approximate({e0}, {delta!r})",
        lambda n: matrix[rng.permutation(inputs)][_crowd(rng, inputs, n)],
        lambda n: symbols,
        e0,
        8,
    )


def laplace(rng: Random) -> Source:
    """Numbers in an interval plus Laplace noise."""
    e0 = round(float(np.exp(rng.uniform(np.log(0.2), np.log(4.0)))), 2)
    inside = int(rng.integers(2, 9))

    def rows(n: int) -> Array:
        at = rng.uniform(0.0, 1.0, n + 1)
        at[rng.random(n + 1) < 0.5] = rng.choice([0.0, 0.5, 1.0])
        at[:2] = rng.permutation([0.0, 1.0]) if rng.random() < 0.8 else at[:2]
        return cells.laplace_rows(e0, at.tolist(), inside)

    return Source(f"laplace({e0})", rows, lambda n: max(inside, n + 2) + 2, e0, 5)


CELLS = {2: 90, 3: 34, 4: 18, 5: 13}  # so many cells for so many clients


def _ball(rng: Random, n: int, dimension: int, diameter: float) -> Array:
    """The target's ends mostly opposite, the others at their ends, on the sphere or inside."""
    points = rng.normal(size=(n + 1, dimension))
    points *= diameter / 2 / np.linalg.norm(points, axis=1, keepdims=True)
    inside = rng.random(n + 1) < 0.2
    points[inside] *= rng.uniform(0.0, 1.0, (int(inside.sum()), 1))
    if rng.random() < 0.7:
        points[:2] = 0.0
        points[0, 0], points[1, 0] = diameter / 2, -diameter / 2
    ends = rng.random(n + 1) < rng.choice([0.3, 0.8])
    ends[:2] = False
    points[ends] = points[rng.integers(0, 2, int(ends.sum()))]
    return points


def gaussian_points(rng: Random) -> tuple[float, int]:
    """(noise multiplier, dimension)."""
    noise = round(float(np.exp(rng.uniform(np.log(0.8), np.log(6.0)))), 2)
    return noise, int(rng.integers(1, 3))


def gaussian(rng: Random) -> Source:
    """Points of the ball of radius 1 plus normal noise, in one and two dimensions."""
    noise, dimension = gaussian_points(rng)

    def rows(n: int) -> Array:
        points = _ball(rng, n, dimension, 2.0 / noise)
        reach, count = float(rng.uniform(1.0, 3.0)), CELLS[n]
        if dimension == 1:
            return cells.line_rows(points[:, 0], cells.even_cuts(points[:, 0], count, reach))
        across = int(rng.integers(2, 4)) if count < 50 else 6
        along = count // across
        return cells.plane_rows(
            points,
            cells.even_cuts(points[:, 0], along, reach),
            cells.even_cuts(points[:, 1], across, 0.3) if across > 2 else np.zeros(1),
        )

    return Source(f"gaussian({noise})", rows, lambda n: CELLS[n], 2.0 / noise, 5)


def inscribed_triangle(rng: Random, diameter: float) -> tuple[Array, Array]:
    """a - x and b - x for a, b, x on a circle, no arc above half of it; often at its corners.

    These triples dominate all others of a ball of any dimension.
    """
    p, q = rng.uniform(0.0, np.pi, 2)
    if p + q < np.pi:
        p, q = np.pi - p, np.pi - q
    corner = int(rng.integers(0, 6))
    if corner < 3:  # (arc x to a, arc a to b): x = a, x = b, a and b opposite with x between
        p, q = [(0.0, np.pi), (np.pi, np.pi), (p, np.pi)][corner]
    at = diameter / 2 * np.array([[np.cos(t), np.sin(t)] for t in (0.0, p, p + q)])
    return at[1] - at[0], at[2] - at[0]


SOURCES: dict[str, Callable[[Random], Source]] = {
    "binary": binary,
    "dary": dary,
    "dary-as-any": dary_as_any,
    "circle": circle,
    "sphere": sphere,
    "designed": designed,
    "vertex": vertex,
    "inner": inner,
    "leaky": leaky,
    "approximate": approximate,
    "laplace": laplace,
    "gaussian": gaussian,
}
CONTINUOUS = ("laplace", "gaussian")
