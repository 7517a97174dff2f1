"""Any epsilon-LDP randomizer: extreme patterns, mixtures of them, and what lies between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from oracles.attacks.crowds import Crowd, Random
from oracles.seat_types.laws import Array

BLOCKS = 4


@dataclass(frozen=True)
class AnyPure(Crowd):
    """Covered by the worst of all epsilon-LDP randomizers."""

    @property
    def pair(self) -> str:
        return f"any_pure({self.level!r})"


def design_laws(labels: Array, extra: Array, e: float) -> Array:
    """A mixture of designs; in each the values fall into blocks, and every block has its report.

    labels: data sets x values x designs. extra: for each design the logarithm of its weight and a
    number whose sign says whether a report is likelier (e times) or rarer for its own block, then
    the number of blocks.
    """
    designs = labels.shape[2]
    weight = np.exp(extra[:, :designs] - extra[:, :designs].max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    parts = []
    for c in range(designs):
        blocks = np.clip(np.round(extra[:, 2 * designs + c]), 2, BLOCKS)[:, None, None]
        own = (labels[:, :, c, None] % blocks) == np.arange(BLOCKS)
        high = own ^ (extra[:, designs + c] < 0)[:, None, None]
        part = np.where(high, e, 1.0) * (np.arange(BLOCKS) < blocks)
        parts.append(weight[:, c, None, None] * part / part.sum(axis=2, keepdims=True))
    return np.concatenate(parts, axis=2)


@dataclass(frozen=True)
class Designs(AnyPure):
    """Mixtures of designs: two blocks are binary response, one for each value d-ary response."""

    designs: int = 2

    def points(self, rng: Random, m: int) -> Array:
        labels = rng.integers(0, 12, (m, self.values, self.designs))
        apart = rng.random((m, self.designs)) < 0.7
        labels[:, 0] = np.where(apart, 0, labels[:, 0])
        labels[:, 1] = np.where(apart, 1, labels[:, 1])
        return labels.astype(float)

    def extras(self, rng: Random, m: int) -> Array:
        shape = (m, self.designs)
        sign = np.where(rng.random(shape) < 0.25, -1.0, 1.0)
        return np.hstack([rng.normal(0, 2, shape), sign, rng.integers(2, BLOCKS + 1, shape)])

    def shaken(self, rng: Random, extra: Array) -> Array:
        fresh = self.extras(rng, len(extra))
        return np.where(rng.random(extra.shape) < 1.0 / extra.shape[1], fresh, extra)

    def laws(self, points: Array, extra: Array) -> Array:
        return design_laws(points, extra, float(np.exp(self.level)))


@dataclass(frozen=True)
class Vertices(AnyPure):
    """Vertices of all pure randomizers of so many values: the cheapest for prices on patterns."""

    def points(self, rng: Random, m: int) -> Array:
        return rng.normal(size=(m, self.values, 1))  # not used: the prices are what matters

    def extras(self, rng: Random, m: int) -> Array:
        prices = rng.normal(size=(m, 2**self.values - 2))
        return prices

    def laws(self, points: Array, extra: Array) -> Array:
        e, v = float(np.exp(self.level)), self.values
        bits = (np.arange(1, 2**v - 1)[:, None] >> np.arange(v)) & 1
        columns = np.where(bits.T == 1, e, 1.0)
        out = np.zeros((len(extra), v, v))
        for i, prices in enumerate(extra):
            found = optimize.linprog(prices, A_eq=columns, b_eq=np.ones(v), method="highs-ds").x
            used = np.argsort(-found)[:v]  # a vertex has no more columns than there are rows
            rows = columns[:, used] * np.maximum(found[used], 0.0)
            out[i] = rows / rows.sum(axis=1, keepdims=True)
        return out


def drawn_together(rows: Array, allowed: Callable[[Array], NDArray[np.bool_]]) -> Array:
    """Rows mixed with their mean, just enough to be allowed; the mean alone always is."""
    mean = rows.mean(axis=1, keepdims=True)
    low, high = np.zeros((len(rows), 1, 1)), np.ones((len(rows), 1, 1))
    for _ in range(50):
        middle = (low + high) / 2
        good = allowed(middle * rows + (1.0 - middle) * mean)[:, None, None]
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    return low * rows + (1.0 - low) * mean


@dataclass(frozen=True)
class Inner(AnyPure):
    """Random matrices, drawn together until they are epsilon-LDP."""

    symbols: int = 4

    def points(self, rng: Random, m: int) -> Array:
        sharp = rng.choice([0.5, 2.0, 8.0], size=(m, 1, 1))
        return sharp * rng.normal(size=(m, self.values, self.symbols))

    def laws(self, points: Array, extra: Array) -> Array:
        rows = np.exp(points - points.max(axis=2, keepdims=True))
        e = np.exp(self.level)
        return drawn_together(
            rows / rows.sum(axis=2, keepdims=True),
            lambda mixed: (mixed.max(axis=1) <= e * mixed.min(axis=1)).all(axis=1),
        )


@dataclass(frozen=True)
class Response(Crowd):
    """d-ary response; `values` symbols, points say which symbol each of the values is."""

    as_any: bool = False

    @property
    def pair(self) -> str:
        if self.as_any:
            return f"any_pure({self.level!r})"
        return f"dary_response({self.level!r}, {self.values})"

    def points(self, rng: Random, m: int) -> Array:
        return rng.random((m, self.values, 1)).argsort(axis=1).astype(float)

    def moved(self, rng: Random, points: Array) -> Array:
        return points  # names of symbols do not matter; who holds which does

    def laws(self, points: Array, extra: Array) -> Array:
        e, d = np.exp(self.level), self.values
        return np.where(points == np.arange(d), e, 1.0) / (e + d - 1.0)


@dataclass(frozen=True)
class Sets(Response):
    """Reports that support symbols: so many of them (`chosen`), each by its own bit (0), or half of all (-1)."""

    chosen: int = 2

    @property
    def pair(self) -> str:
        name = {0: "unary_encoding", -1: "hadamard_response"}.get(self.chosen, "subset_selection")
        more = f", {self.chosen}" if self.chosen > 0 else ""
        return f"{name}({self.level!r}, {self.values}{more})"

    def laws(self, points: Array, extra: Array) -> Array:
        e, d, supported = np.exp(self.level), self.values, _supported(self.values, self.chosen)
        weights = np.where(supported, e, 1.0)
        if self.chosen == 0:  # foreign bits are set with 1 / (e + 1), a bit of one's own with 1/2
            weights = weights / (e + 1.0) ** (supported.sum(axis=0) - 1.0)
            weights = weights * (e / (e + 1.0)) ** (d - supported.sum(axis=0))
        rows = weights / weights.sum(axis=1, keepdims=True)
        return np.asarray(rows[points[:, :, 0].astype(int)])


def _supported(symbols: int, chosen: int) -> NDArray[np.bool_]:
    """Which symbol, a row, is supported by which report."""
    numbers = np.arange(1 << (symbols if chosen >= 0 else symbols.bit_length()))
    if chosen < 0:
        return np.array([np.bitwise_count(numbers & (row + 1)) % 2 == 0 for row in range(symbols)])
    supported = (numbers >> np.arange(symbols)[:, None]) & 1 == 1
    return np.asarray(supported[:, supported.sum(axis=0) == chosen] if chosen else supported)
