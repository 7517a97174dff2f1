"""Local randomizers as stochastic matrices: rows are inputs, columns are outputs.

Also what stands in for a continuous randomizer: outputs sorted into cells, which loses something
(a true loss of the cells is a loss of the original), and cells whose likelihood ratio is spread to
their ends, which reveals more (a loss of the original is at most that of the spread one).
"""

from __future__ import annotations

import numpy as np
from scipy import optimize, stats

from oracles.exact.families import Array, Family, hockey_stick


def dary(local_epsilon: float, symbols: int) -> Array:
    """k-ary response; two symbols are Warner's binary response."""
    weights = np.ones((symbols, symbols)) + np.expm1(local_epsilon) * np.eye(symbols)
    return weights / weights.sum(axis=1, keepdims=True)


def extreme_pure(rng: np.random.Generator, local_epsilon: float, inputs: int) -> Array:
    """A random vertex of the polytope of all pure randomizers: every column is of 1s and es."""
    bits = (np.arange(2**inputs)[:, None] >> np.arange(inputs)) & 1
    columns = np.exp(local_epsilon * bits.T)
    found = optimize.linprog(rng.normal(size=2**inputs), A_eq=columns, b_eq=np.ones(inputs), method="highs-ds")
    used = np.maximum(found.x, 0.0)
    matrix = columns[:, used > 1e-12] * used[used > 1e-12]
    return matrix / matrix.sum(axis=1, keepdims=True)


def inner_pure(rng: np.random.Generator, inputs: int, symbols: int) -> tuple[Array, float]:
    """A random matrix without zeros, and the smallest epsilon it is pure for."""
    matrix = np.exp(rng.uniform(0.0, rng.choice([0.5, 1.0, 2.0]), size=(inputs, symbols)))
    matrix /= matrix.sum(axis=1, keepdims=True)
    return matrix, float(np.log(matrix.max(axis=0) / matrix.min(axis=0)).max())


def hemisphere_on_circle(local_epsilon: float, angles: Array) -> Array:
    """Uniform on the half circle round the input's direction, or on the other half."""
    cuts = np.unique(np.round(np.mod(np.concatenate([angles - 90.0, angles + 90.0]), 360.0), 9))
    middle = cuts + np.diff(np.append(cuts, cuts[0] + 360.0)) / 2
    share = np.diff(np.append(cuts, cuts[0] + 360.0)) / 180.0
    inside = np.cos(np.radians(middle[None, :] - np.asarray(angles)[:, None])) > 0
    e = np.exp(local_epsilon)
    return np.where(inside, e, 1.0) / (e + 1.0) * share


def leaky(matrix: Array, leak: float, blurt: Array) -> Array:
    """With probability `leak` send a symbol of another alphabet by the laws `blurt` instead.

    Of a pure randomizer this makes an (epsilon, leak)-LDP one, whatever `blurt` is.
    """
    return np.hstack([(1.0 - leak) * matrix, leak * blurt])


def spread(p: Array, q: Array, ends: Array) -> Array:
    """Cells with masses p and q, ratio between ends[i] and ends[i+1], split onto these ends.

    The ratio keeps its mean in every cell, so the two rows returned reveal more than the cells'
    inside did (convex order of the ratio is Blackwell's order of experiments with two laws).
    """
    at_p, at_q = np.zeros(len(ends)), np.zeros(len(ends))
    for i, (a, b) in enumerate(zip(p, q, strict=True)):
        low, high = ends[i], ends[i + 1]
        if np.isinf(high):
            at_p[i], at_q[i] = at_p[i] + low * b, at_q[i] + b
            at_p[i + 1] += a - low * b
            continue
        up = (a - low * b) / (high - low)
        at_p[i], at_q[i] = at_p[i] + low * (b - up), at_q[i] + b - up
        at_p[i + 1], at_q[i + 1] = at_p[i + 1] + high * up, at_q[i + 1] + up
    both = np.maximum(np.array([at_p, at_q]), 0.0)
    return both / both.sum(axis=1, keepdims=True)


def laplace_cells(local_epsilon: float, cells: int) -> tuple[Array, Array]:
    """Laplace noise on [0, 1]: inputs 0, 1/2, 1 sorted into cells; and the spread pair of 1, 0."""
    edges = np.linspace(0.0, 1.0, cells + 1)
    law = stats.laplace(scale=1.0 / local_epsilon)
    cdf = np.array([law.cdf(edges - x) for x in (1.0, 0.0, 0.5)])
    inner = np.diff(cdf, axis=1)
    tails = cdf[:, :1], 1.0 - cdf[:, -1:]
    e = np.exp(local_epsilon)
    middle = spread(inner[0], inner[1], np.exp(local_epsilon * (2 * edges - 1)))
    middle *= inner[:2].sum(axis=1, keepdims=True)
    middle[:, :1] += tails[0][:2]
    middle[:, -1:] += tails[1][:2]
    assert np.isclose(middle[0, -1] / middle[1, -1], e)
    return np.hstack([tails[0], inner, tails[1]]), middle


def gaussian_cells(noise: float, cells: int) -> tuple[Array, Array]:
    """Noise times a normal on [-1, 1]: inputs 1, -1, 0 in cells; the spread pair of 1 and -1."""
    reach = 1.0 + 4.5 * noise
    edges = np.concatenate([[-np.inf], np.linspace(-reach, reach, cells - 1), [np.inf]])
    masses = np.diff([stats.norm.cdf((edges - x) / noise) for x in (1.0, -1.0, 0.0)], axis=1)
    with np.errstate(over="ignore"):
        ends = np.exp(2.0 * edges / noise**2)
    return masses / masses.sum(axis=1, keepdims=True), spread(masses[0], masses[1], ends)


def envelope_pair(matrix: Array) -> Array:
    """Two rows P, Q whose profile is the largest over all ordered pairs of the matrix's rows.

    A maximum of profiles is a profile: convex, between (1 - alpha)+ and 1. Its kinks are those of
    the pairs and the points where two of them cross; the mass of Q at a kink is the change of
    slope there, the ratio is the kink itself.
    """
    inputs = range(len(matrix))
    pairs = [(matrix[a], matrix[b]) for a in inputs for b in inputs if a != b]
    family = Family(np.array([p for p, _ in pairs]), np.array([q for _, q in pairs]))
    at = np.unique(np.concatenate([k for k, _ in family.kinks]))
    lines = hockey_stick(family.p, family.q, at)
    extra = []
    for i in range(len(at) - 1):
        rise = lines[:, i + 1] - lines[:, i]
        for c in range(len(lines)):
            for d in range(c):
                gap, slope = lines[c, i] - lines[d, i], rise[d] - rise[c]
                if slope != 0 and 0 < gap / slope < 1:
                    extra.append(at[i] + gap / slope * (at[i + 1] - at[i]))
    at = np.unique(np.concatenate([at, extra]))
    at = at[np.concatenate([[True], np.diff(at) > 1e-9])]
    value = family.profile(at)
    slopes = np.concatenate([[-1.0], np.diff(value) / np.diff(at), [0.0]])
    q = np.maximum(np.diff(slopes), 0.0)
    q[q < 1e-12] = 0.0
    q /= q.sum()
    lacking = max(1.0 - float(at @ q), 0.0)
    keep = q > 0
    p, q = (at * q)[keep], q[keep]
    if lacking > 1e-9:
        p, q = np.append(p, lacking), np.append(q, 0.0)
    return np.array([p / p.sum(), q])
