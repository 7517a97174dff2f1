"""Binary response and LDP-SGD: other clients anywhere between the poles, on circle or sphere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oracles.attacks.crowds import Crowd, Random
from oracles.seat_types.laws import Array


@dataclass(frozen=True)
class Binary(Crowd):
    """Binary response; a point is the probability of the pole 1 (values are often drawn)."""

    @property
    def pair(self) -> str:
        return f"binary_response({self.level!r})"

    def points(self, rng: Random, m: int) -> Array:
        at = rng.random((m, self.values, 1))
        at = np.where(rng.random(at.shape) < 0.7, np.round(at), at)
        at[:, 0], at[:, 1] = 1.0, 0.0
        swapped = rng.random(m) < 0.1
        at[swapped, 0] = rng.random((int(swapped.sum()), 1))
        return at

    def laws(self, points: Array, extra: Array) -> Array:
        e = np.exp(self.level)
        first = (points * e + (1.0 - points)) / (e + 1.0)
        return np.concatenate([first, 1.0 - first], axis=2)


def arcs(at: Array, measure: float) -> tuple[Array, Array]:
    """Arcs of a circle of length 1 between the ends of all caps: widths, and who covers them.

    at: data sets x caps, the middles of caps of this measure. Returns data sets x arcs, and
    data sets x caps x arcs of zeros and ones.
    """
    ends = np.concatenate([(at - measure / 2) % 1.0, (at + measure / 2) % 1.0], axis=1)
    ends.sort(axis=1)
    width = np.diff(np.concatenate([ends, ends[:, :1] + 1.0], axis=1), axis=1)
    middle = ends + width / 2
    apart = np.abs((middle[:, None, :] - at[:, :, None]) % 1.0)
    inside = np.minimum(apart, 1.0 - apart) < measure / 2
    return width, inside


def angles(rng: Random, m: int, values: int, opposite: float) -> Array:
    """Positions on a circle of length 1, many on common places and close to the target's two."""
    at = rng.random((m, values, 1))
    parts = rng.choice([4, 6, 8, 12, 48, 360], size=(m, 1, 1))
    at = np.where(rng.random((m, 1, 1)) < 0.7, np.round(at * parts) / parts, at)
    across = rng.random(m) < opposite
    at[across, 1] = (at[across, 0] + 0.5) % 1.0
    near = rng.random(at.shape) < 0.3
    near[:, :2] = False
    beside = at[np.arange(m)[:, None], rng.integers(0, 2, (m, values))]
    at = np.where(near, (beside + rng.normal(0.0, 0.03, at.shape)) % 1.0, at)
    return at % 1.0


@dataclass(frozen=True)
class Circle(Crowd):
    """LDP-SGD in the plane."""

    @property
    def pair(self) -> str:
        return f"hemisphere({self.level!r})"

    def points(self, rng: Random, m: int) -> Array:
        return angles(rng, m, self.values, 0.6)

    def laws(self, points: Array, extra: Array) -> Array:
        e = np.exp(self.level)
        width, inside = arcs(points[:, :, 0], 0.5)
        return np.where(inside, e, 1.0) / (e + 1.0) * 2.0 * width[:, None, :]


@dataclass(frozen=True)
class Sphere(Crowd):
    """LDP-SGD in three or more dimensions: three directions and their opposites.

    The part of the sphere inside three half spheres is 1/2 - (sum of the angles) / 4 pi.
    """

    @property
    def pair(self) -> str:
        return f"hemisphere({self.level!r})"

    @property
    def choices(self) -> int:
        return 6

    def points(self, rng: Random, m: int) -> Array:
        at = rng.normal(size=(m, 3, 3))
        across = rng.random((m, 1)) < 0.5
        at[:, 1] = np.where(across, -at[:, 0] + rng.choice([0.0, 0.1, 0.5], (m, 1)) * at[:, 1],
                            at[:, 1])  # fmt: skip
        return at / np.linalg.norm(at, axis=2, keepdims=True)

    def laws(self, points: Array, extra: Array) -> Array:
        e, pi = np.exp(self.level), np.pi
        inner = np.einsum("mic,mjc->mij", points, points)
        t01, t02, t12 = (np.arccos(np.clip(inner[:, i, j], -1.0, 1.0)) for i, j in ((0, 1), (0, 2), (1, 2)))
        shares = [
            0.5 - (t01 + t02 + t12) / (4 * pi),
            0.5 - (t01 + (pi - t02) + (pi - t12)) / (4 * pi),
            0.5 - ((pi - t01) + t02 + (pi - t12)) / (4 * pi),
            0.5 - ((pi - t01) + (pi - t02) + t12) / (4 * pi),
        ]
        patterns = np.array([(1, 1, 1), (1, 1, 0), (1, 0, 1), (0, 1, 1)])
        high = np.concatenate([patterns, 1 - patterns]).T
        high = np.concatenate([high, 1 - high])
        share = np.maximum(np.array(shares + shares).T, 0.0)
        share /= share.sum(axis=1, keepdims=True)
        return np.where(high[None] == 1, e, 1.0) / (e + 1.0) * 2.0 * share[:, None, :]
