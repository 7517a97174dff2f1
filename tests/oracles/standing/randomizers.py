"""Random local pairs: how the package spells them, and the matrices they are answerable for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oracles.exact import randomizers as exact
from oracles.exact.families import Array

Random = np.random.Generator


@dataclass(frozen=True)
class Drawn:
    """A local pair.

    `text`: its spelling with the package's public names. `covered`: randomizers that a guarantee
    for this pair must cover. `attained`: randomizers the largest of whose losses a lower bound may
    reach. `continuous`: some answers about it take seconds.
    """

    text: str
    covered: tuple[Array, ...]
    attained: tuple[Array, ...]
    continuous: bool = False


def _local_epsilon(rng: Random) -> float:
    if rng.random() < 0.1:
        return float(rng.choice([0.01, 0.1, 6.0, 8.0, 12.0]))
    return round(float(np.exp(rng.uniform(np.log(0.2), np.log(4.0)))), 2)


def _response(rng: Random, small: bool) -> Drawn:
    e0 = _local_epsilon(rng)
    matrix = exact.dary(e0, 2)
    return Drawn(f"binary_response({e0})", (matrix,), (matrix,))


def _dary(rng: Random, small: bool) -> Drawn:
    e0, k = _local_epsilon(rng), 3 if small else int(rng.integers(2, 5))
    matrix = exact.dary(e0, k)
    return Drawn(f"dary_response({e0}, {k})", (matrix,), (matrix,))


def _worst_pure(e0: float) -> tuple[Array, Array]:
    return exact.dary(e0, 2), exact.dary(e0, 3)


def _any_pure(rng: Random, small: bool) -> Drawn:
    e0, inputs = _local_epsilon(rng), 3
    if rng.random() < 0.5:
        covered = exact.extreme_pure(rng, e0, inputs)
    else:
        covered, e0 = exact.inner_pure(rng, inputs, int(rng.integers(2, 4 if small else 5)))
        e0 = float(np.nextafter(e0, 99.0))
    return Drawn(f"any_pure({e0})", (covered, *_worst_pure(e0)), _worst_pure(e0))


def _hemisphere(rng: Random, small: bool) -> Drawn:
    e0 = _local_epsilon(rng)
    angles = np.array([0.0, rng.choice([180.0, rng.integers(1, 180)]), rng.integers(1, 360)])
    arcs = exact.hemisphere_on_circle(e0, angles)
    poles = exact.dary(e0, 2)
    return Drawn(f"hemisphere({e0})", (arcs, poles), (poles,))


def _approximate(rng: Random, small: bool) -> Drawn:
    e0 = _local_epsilon(rng)
    leak = float(rng.choice([1e-6, 1e-3, 0.01, 0.1, 0.3, round(rng.uniform(0.01, 0.6), 2)]))
    attained = tuple(exact.leaky(m, leak, np.eye(len(m))) for m in _worst_pure(e0))
    if small:  # without a leak, which adds outputs, k-ary response is one of them too
        attained = attained[0], exact.dary(e0, 3)
    base = exact.dary(e0, 2) if small else exact.extreme_pure(rng, e0, 3)
    blurt = np.zeros((len(base), 2))
    blurt[np.arange(len(base)), rng.integers(0, 2, len(base))] = 1.0
    echo = np.eye(base.shape[1])[rng.integers(0, base.shape[1], len(base))]
    mute = (1 - leak) * base + leak * echo  # the leak may also look like a report
    covered = (exact.leaky(base, leak, blurt), mute, *attained)
    return Drawn(f"approximate({e0}, {leak})", covered, attained)


def _shares(rng: Random, symbols: int, zeros: float) -> Array:
    """A law in hundredths, some entries zero."""
    while True:
        raw = rng.dirichlet(np.full(symbols, rng.choice([0.5, 1.0, 3.0])))
        cents = np.maximum(np.round(100 * raw), 1) * (rng.random(symbols) >= zeros)
        cents[np.argmax(cents)] += 100 - cents.sum()
        if (cents >= 0).all() and cents.max() < 100:
            return cents / 100


def spelled(p: Array, q: Array) -> str:
    """from_atoms(...) of the pair with these two laws."""
    seen = q > 0
    ratios, masses = (p[seen] / q[seen]).tolist(), q[seen].tolist()
    return f"from_atoms({ratios}, {masses})"


def _from(matrix: Array, *covered: Array) -> Drawn:
    return Drawn(spelled(matrix[0], matrix[1]), (matrix, *covered), (matrix,))


def _atoms(rng: Random, small: bool) -> Drawn:
    k = int(rng.integers(2, 4 if small else 5))
    return _from(np.array([_shares(rng, k, 0.0), _shares(rng, k, 0.0)]))


def _symmetric(rng: Random, small: bool) -> Drawn:
    p = _shares(rng, int(rng.integers(2, 4 if small else 5)), 0.0)
    return _from(np.array([p, p[::-1]]))


def _singular(rng: Random, small: bool) -> Drawn:
    """Outputs that only one of the two inputs can produce."""
    k = int(rng.integers(2, 4 if small else 5))
    return _from(np.array([_shares(rng, k, 0.3), _shares(rng, k, 0.3)]))


def _sliver(rng: Random, small: bool) -> Drawn:
    """Hardly any mass that only one of the two inputs can produce."""
    p = _shares(rng, 2, 0.0)
    q = _shares(rng, 2, 0.0)
    lacking = float(rng.choice([1e-13, 9e-13, 1e-11, 1e-9]))
    w = p / q
    i = int(np.argmin(q))
    w[i] -= lacking / q[i]
    p = np.append(w * q, max(1.0 - float((w * q).sum()), 0.0))
    matrix = np.array([p, np.append(q, 0.0)])
    return Drawn(f"from_atoms({w.tolist()}, {q.tolist()})", (matrix,), (matrix,))


def _envelope(rng: Random, small: bool) -> Drawn:
    """Three inputs, described to the package by the largest of their profiles alone."""
    k = int(rng.integers(2, 4))
    zeros = float(rng.choice([0.0, 0.0, 0.25]))
    rows = np.array([_shares(rng, k, zeros) for _ in range(3)])
    if (rows == rows[0]).all():
        return _envelope(rng, small)
    pair = exact.envelope_pair(rows)
    return _from(pair, rows)


def _laplace(rng: Random, small: bool) -> Drawn:
    e0 = round(float(rng.uniform(0.2, 4.0)), 2)
    cells, revealing = exact.laplace_cells(e0, 2 if small else 3)
    return Drawn(f"laplace({e0})", (cells,), (revealing,), continuous=True)


def _gaussian(rng: Random, small: bool) -> Drawn:
    noise = round(float(rng.uniform(0.8, 4.0)), 2)
    cells, revealing = exact.gaussian_cells(noise, 4 if small else 6)
    return Drawn(f"gaussian({noise})", (cells,), (revealing,), continuous=True)


RANDOMIZERS: dict[str, Callable[[Random, bool], Drawn]] = {
    "binary": _response,
    "dary": _dary,
    "any": _any_pure,
    "hemisphere": _hemisphere,
    "approximate": _approximate,
    "atoms": _atoms,
    "symmetric": _symmetric,
    "singular": _singular,
    "sliver": _sliver,
    "envelope": _envelope,
    "laplace": _laplace,
    "gaussian": _gaussian,
}
