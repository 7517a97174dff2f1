"""Gaussian and Laplace reports sorted into cells, and randomizers with a local delta.

Sorting is post-processing: an attack by cells is never unfair. Where the cuts lie is searched for
along with the data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from oracles.attacks.crowds import Crowd, Random
from oracles.attacks.pure import BLOCKS, Designs, Inner, design_laws, drawn_together
from oracles.seat_types.laws import Array


def _normal_cells(centres: Array, cuts: Array) -> Array:
    """Normal reports with these centres (data sets x values) between the data set's cuts."""
    ends = np.full((len(cuts), 1), np.inf)
    edges = np.concatenate([-ends, np.sort(cuts, axis=1), ends], axis=1)
    z = edges[:, None, :] - centres[:, :, None]
    low, high = np.diff(special.ndtr(z), axis=2), -np.diff(special.ndtr(-z), axis=2)
    return np.where(z[:, :, :-1] > 0, high, low)  # the nearer tail keeps its digits


@dataclass(frozen=True)
class Cells(Crowd):
    """Reports on a line or in a plane in a grid of cells."""

    along: int = 10
    across: int = 1
    reach: tuple[float, float] = (0.3, 2.5)  # how far cuts go beyond half the range of values

    def extras(self, rng: Random, m: int) -> Array:
        half = self.level / 2 * np.ones((m, 1)) + rng.uniform(*self.reach, (m, 1))
        even = np.linspace(-1.0, 1.0, self.along + 1)[1:-1] * half
        even = even + rng.normal(0, 0.05, even.shape)
        if self.across == 1:
            return even
        side = np.linspace(-1.0, 1.0, self.across + 1)[1:-1] * half * rng.uniform(0.2, 1, (m, 1))
        return np.hstack([even, side])

    def shaken(self, rng: Random, extra: Array) -> Array:
        one = rng.random(extra.shape) < 1.5 / extra.shape[1]
        wider = np.where(rng.random((len(extra), 1)) < 0.4, np.exp(rng.normal(0, 0.1)), 1.0)
        return extra * wider + one * rng.normal(0, 0.3, extra.shape)


@dataclass(frozen=True)
class Gaussian(Cells):
    """Points of a ball of this diameter plus normal noise of deviation 1, in one or two dimensions.

    `level`: the diameter, 2 / noise multiplier.
    """

    lowest = 0.1
    highest = 3.0

    @property
    def pair(self) -> str:
        return f"gaussian({2.0 / self.level!r})"

    @property
    def scale(self) -> float:
        return 1.6 * self.level + 0.4 * self.level**2

    @property
    def deviation(self) -> float:
        return float(np.sqrt(np.expm1(self.level**2)))

    def points(self, rng: Random, m: int) -> Array:
        """Relative to the radius."""
        dimension = 1 if self.across == 1 else 2
        at = rng.normal(size=(m, self.values, dimension))
        at /= np.linalg.norm(at, axis=2, keepdims=True)
        inside = rng.random((m, self.values, 1)) < 0.3
        at = np.where(inside, at * rng.random(inside.shape), at)
        across = rng.random(m) < 0.8
        at[across, :2] = 0.0
        at[across, 0, 0], at[across, 1, 0] = 1.0, -1.0
        ends = rng.random((m, self.values)) < 0.3
        ends[:, :2] = False
        target = at[np.arange(m)[:, None], rng.integers(0, 2, (m, self.values))]
        return np.where(ends[:, :, None], target, at)

    def laws(self, points: Array, extra: Array) -> Array:
        at = points * self.level / 2
        first = _normal_cells(at[:, :, 0], extra[:, : self.along - 1])
        if self.across == 1:
            return first / first.sum(axis=2, keepdims=True)
        second = _normal_cells(at[:, :, 1], extra[:, self.along - 1 :])
        rows = (first[:, :, :, None] * second[:, :, None, :]).reshape(*at.shape[:2], -1)
        return rows / rows.sum(axis=2, keepdims=True)


def _laplace_cdf(z: Array) -> Array:
    tail = 0.5 * np.exp(-np.abs(z))
    return np.where(z < 0, tail, 1.0 - tail)


@dataclass(frozen=True)
class Laplace(Cells):
    """Numbers in an interval plus Laplace noise; points from -1 to 1, epsilon = range / scale."""

    lowest = 0.1
    highest = 6.0

    @property
    def pair(self) -> str:
        return f"laplace({self.level!r})"

    def points(self, rng: Random, m: int) -> Array:
        at = rng.uniform(-1.0, 1.0, (m, self.values, 1))
        at = np.where(rng.random(at.shape) < 0.5, np.round(at), at)
        across = rng.random(m) < 0.85
        at[across, 0], at[across, 1] = 1.0, -1.0
        return at

    def extras(self, rng: Random, m: int) -> Array:
        """Cuts relative to half the range: beyond its ends all reports look alike."""
        even = np.linspace(-1.0, 1.0, self.along - 1) + rng.normal(0, 0.03, (m, self.along - 1))
        return np.clip(even, -1.0, 1.0)

    def shaken(self, rng: Random, extra: Array) -> Array:
        one = rng.random(extra.shape) < 1.5 / extra.shape[1]
        return np.clip(extra + one * rng.normal(0, 0.2, extra.shape), -1.0, 1.0)

    def laws(self, points: Array, extra: Array) -> Array:
        cuts = np.sort(extra, axis=1)[:, None, :] * self.level / 2
        z = cuts - points * self.level / 2
        left, right = _laplace_cdf(z), _laplace_cdf(-z)
        inner = np.where(z[:, :, :-1] > 0, -np.diff(right, axis=2), np.diff(left, axis=2))
        return np.concatenate([left[:, :, :1], inner, right[:, :, -1:]], axis=2)


LEAKS = 3


@dataclass(frozen=True)
class Leaky(Designs):
    """A pure randomizer that now and then tells something: covered by (epsilon, delta).

    The last coordinate of a point is what it tells: one of three special reports or, above
    those, one of the usual ones.
    """

    delta: float = 0.01

    @property
    def pair(self) -> str:
        return f"approximate({self.level!r}, {self.delta!r})"

    def points(self, rng: Random, m: int) -> Array:
        usual = LEAKS + BLOCKS * self.designs
        most = rng.choice([2, LEAKS, usual], size=(m, 1, 1), p=[0.6, 0.2, 0.2])
        told = np.floor(rng.random((m, self.values, 1)) * most)
        told[:, :2, 0] = np.where(rng.random((m, 1)) < 0.7, [0.0, 1.0], told[:, :2, 0])
        return np.concatenate([super().points(rng, m), told], axis=2)

    def laws(self, points: Array, extra: Array) -> Array:
        pure = design_laws(points[:, :, :-1], extra, float(np.exp(self.level)))
        rows = np.concatenate([np.zeros((*pure.shape[:2], LEAKS)), pure], axis=2)
        told = points[:, :, -1:] == np.arange(rows.shape[2])
        return (1.0 - self.delta) * rows + self.delta * told


@dataclass(frozen=True)
class Rough(Inner):
    """Random matrices with many zeros, drawn together until they are (epsilon, delta)-LDP."""

    delta: float = 0.01

    @property
    def pair(self) -> str:
        return f"approximate({self.level!r}, {self.delta!r})"

    def laws(self, points: Array, extra: Array) -> Array:
        top = points.max(axis=2, keepdims=True)
        rows = np.where(points > top - 2.0 * self.level - 1.0, np.exp(points - top), 0.0)
        rows, e = rows / rows.sum(axis=2, keepdims=True), np.exp(self.level)

        def allowed(mixed: Array) -> NDArray[np.bool_]:
            above = np.maximum(mixed[:, :, None] - e * mixed[:, None], 0.0).sum(axis=3)
            return above.max(axis=(1, 2)) <= self.delta

        return drawn_together(rows, allowed)
