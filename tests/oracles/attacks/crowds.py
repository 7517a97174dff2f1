"""Batches of data sets that a search can change a little: few distinct values, and who holds which.

A data set is a handful of points (the target's a and b first), the other clients' choices among
them, and numbers that belong to the randomizer or to how reports are sorted into cells.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from oracles.seat_types.laws import Array

Random = np.random.Generator
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Genes:
    """A batch of data sets.

    points: data sets x values x coordinates. who: data sets x others, an index among the laws.
    extra: data sets x numbers of the randomizer or of the cells.
    """

    points: Array
    who: Indices
    extra: Array

    def __len__(self) -> int:
        return len(self.points)

    def take(self, index: Indices) -> Genes:
        """Some of the data sets, possibly repeated."""
        return Genes(self.points[index], self.who[index], self.extra[index])

    def text(self, index: int) -> str:
        """One data set as Python that makes it again."""
        parts = (f"np.array({part[index : index + 1].tolist()})" for part in
                 (self.points, self.who, self.extra))  # fmt: skip
        return f"Genes({', '.join(parts)})"


def joined(parts: list[Genes]) -> Genes:
    """All data sets of some batches."""
    return Genes(
        np.concatenate([part.points for part in parts]),
        np.concatenate([part.who for part in parts]),
        np.concatenate([part.extra for part in parts]),
    )


@dataclass(frozen=True)
class Crowd(ABC):
    """A randomizer and the data sets of n clients that are tried on it.

    `level`: the local epsilon, or the ball's diameter over the noise. `values`: distinct points.
    """

    n: int
    level: float
    values: int

    lowest = 0.05  # of the level
    highest = 8.0
    error = 0.0  # relative, of what is computed from the rows

    @property
    @abstractmethod
    def pair(self) -> str:
        """The local pair that covers it, with the package's public names."""

    @property
    def scale(self) -> float:
        """The largest epsilon worth asking about."""
        return self.level

    @property
    def deviation(self) -> float:
        """About the standard deviation of a seat."""
        e = np.exp(self.level)
        return float((e - 1.0) * np.sqrt(2.0 / (e + 1.0)))

    @property
    def choices(self) -> int:
        """How many laws the other clients can choose from."""
        return self.values

    @abstractmethod
    def points(self, rng: Random, m: int) -> Array:
        """Points of m data sets."""

    def extras(self, rng: Random, m: int) -> Array:
        """Further numbers of m data sets."""
        return np.zeros((m, 0))

    def shaken(self, rng: Random, extra: Array) -> Array:
        """Further numbers, changed a little."""
        return extra + rng.normal(0.0, 0.5, extra.shape) * (rng.random(extra.shape) < 0.4)

    def moved(self, rng: Random, points: Array) -> Array:
        """The same points with one of each data set elsewhere."""
        fresh = self.points(rng, len(points))
        which = rng.integers(0, self.values, len(points))
        out = points.copy()
        at = np.arange(len(points))
        out[at, which] = fresh[at, which]
        return out

    @abstractmethod
    def laws(self, points: Array, extra: Array) -> Array:
        """data sets x choices x reports."""

    def rows(self, genes: Genes) -> Array:
        """data sets x (a, b, others) x reports."""
        laws = self.laws(genes.points, genes.extra)
        others = np.take_along_axis(laws, genes.who[:, :, None], axis=1)
        return np.concatenate([laws[:, :2], others], axis=1)

    def draw(self, rng: Random, m: int) -> Genes:
        """Random data sets; in half of them the others agree but for a few."""
        weights = rng.exponential(size=(m, self.choices)) ** rng.choice([1.0, 4.0], size=(m, 1))
        share = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
        pick = (rng.random((m, self.n - 1, 1)) > share[:, None, :]).sum(axis=2)
        who = np.minimum(pick, self.choices - 1)
        alike = rng.random(m) < 0.5
        stray = rng.random(who.shape) < rng.choice([0.0, 0.2], size=(m, 1))
        who = np.where(alike[:, None] & ~stray, who[:, :1], who)
        return Genes(self.points(rng, m), who.astype(np.int64), self.extras(rng, m))

    def change(self, rng: Random, genes: Genes) -> Genes:
        """Each data set changed a little: a point, one or all other clients, or the numbers."""
        m, what = len(genes), rng.random(len(genes))
        points = np.where((what < 0.4)[:, None, None], self.moved(rng, genes.points), genes.points)
        who = genes.who.copy()
        if self.n > 1:
            several = 1 + rng.binomial(max(self.n // 4, 1), 0.3, m)
            chosen = rng.random(who.shape).argsort(axis=1) < several[:, None]
            chosen &= ((what >= 0.35) & (what < 0.65))[:, None]
            chosen |= ((what >= 0.65) & (what < 0.72))[:, None]
            fresh = np.broadcast_to(rng.integers(0, self.choices, (m, 1)), who.shape)
            who = np.where(chosen, fresh, who)
        extra = genes.extra
        if extra.shape[1]:
            extra = np.where((what >= 0.6)[:, None], self.shaken(rng, extra), extra)
        return Genes(points, who, extra)

    def near(self, rng: Random) -> Crowd:
        """The same with another level not far away."""
        level = self.level * float(np.exp(rng.normal(0.0, 0.25)))
        return replace(self, level=float(np.clip(level, self.lowest, self.highest)))


def any_level(rng: Random, lowest: float = 0.05, highest: float = 8.0) -> float:
    """Evenly on a logarithmic scale; sometimes close to log 2, where the worst type changes."""
    if rng.random() < 0.1:
        return float(np.log(2.0) + rng.choice([0.0, 1e-4, 1e-2]) * rng.normal())
    return float(np.exp(rng.uniform(np.log(lowest), np.log(highest))))
