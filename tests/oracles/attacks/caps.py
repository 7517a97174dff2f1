"""PrivUnit on the circle, exactly, and on the sphere for directions on a great circle."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from oracles.attacks import guarantees
from oracles.attacks.crowds import Crowd, Random
from oracles.attacks.hemispheres import angles, arcs
from oracles.seat_types.laws import Array


def _heights(level: float, measure: float) -> tuple[float, float]:
    """Densities inside and outside a cap of this measure, their quotient being e^level."""
    e = np.exp(level)
    outside = 1.0 / (e * measure + 1.0 - measure)
    return float(e * outside), float(outside)


@lru_cache(maxsize=4096)
def _measure(text: str) -> float:
    """The cap that PrivUnit uses: part of the protocol, which the package chooses."""
    return float(guarantees.pair(text).cap_measure)


@dataclass(frozen=True)
class CapsOnCircle(Crowd):
    """Two dimensions: caps are arcs."""

    dimension = 2
    highest = 6.0

    @property
    def pair(self) -> str:
        return f"privunit({self.level!r}, {self.dimension})"

    def points(self, rng: Random, m: int) -> Array:
        at = angles(rng, m, self.values, 0.4)
        third = rng.random(m) < 0.3  # a, b and everybody else as far apart as they can
        at[third, 1:] = (at[third, :1] + np.arange(1, self.values)[None, :, None] / 3) % 1.0
        return at

    def laws(self, points: Array, extra: Array) -> Array:
        measure = _measure(self.pair)
        inside, outside = _heights(self.level, measure)
        width, covered = arcs(points[:, :, 0], measure)
        return np.where(covered, inside, outside) * width[:, None, :]


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)


def shared(at: Array, measure: float) -> Array:
    """Measures of what exactly these caps of a sphere cover, by bits: data sets x 2^caps.

    Their middles (data sets x caps) lie on one great circle of length 1. At height z above its
    plane a cap with edge at distance t from the centre's plane covers an arc of half width
    arccos(t / sqrt(1 - z^2)); measures are integrals over z.
    """
    codes = 2 ** np.arange(at.shape[1])
    share = np.zeros((len(at), 2 ** at.shape[1]))
    edge = 1.0 - 2.0 * measure
    top = np.sqrt(max(1.0 - edge**2, 0.0))
    data_set = np.arange(len(at))[:, None]
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        turn = np.pi / 4 * (node + 1.0)
        z = top * np.sin(turn)  # from 0 to the top, denser there
        half = np.arccos(np.clip(edge / np.sqrt(1.0 - z * z), -1.0, 1.0))
        width, covered = arcs(at, float(half / np.pi))
        code = (covered * codes[None, :, None]).sum(axis=1)
        np.add.at(share, (data_set, code), width * top * np.cos(turn) * np.pi / 4 * weight)
    share[:, 0] = 1.0 - share[:, 1:].sum(axis=1)
    return share


@dataclass(frozen=True)
class CapsOnSphere(CapsOnCircle):
    """Three dimensions, all directions on one great circle."""

    dimension = 3
    error = 1e-4

    def laws(self, points: Array, extra: Array) -> Array:
        measure = _measure(self.pair)
        inside, outside = _heights(self.level, measure)
        share = shared(points[:, :, 0], measure)
        bits = (np.arange(share.shape[1])[None, :] >> np.arange(self.values)[:, None]) & 1
        rows = np.where(bits == 1, inside, outside)[None] * share[:, None, :]
        return rows / rows.sum(axis=2, keepdims=True)
