"""What a report of another client does to the sum: its law seen from that client's own value.

The empty-seat theorem takes the worst law for every other client, one with the upper tail of one
value and the lower tail of another. A client holds one value. The law seen from it lies below a
mixture of a few *types* in convex order, and the bound is a maximum over how many clients are of
each type (docs/theory.md). Laws are those of X = Z - (1 - alpha): an empty seat is exactly zero and
every mean is zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dpcheckin.accounting.engine.arrays import UNIT, Array, Complex


class SeatLaw(Protocol):
    """The law of one report's X at one alpha."""

    @property
    def variance(self) -> float:
        """Of X; a guide."""

    @property
    def furthest(self) -> float:
        """No |X| is larger."""

    @property
    def step(self) -> float:
        """Periods of a transform have to be multiples of it; 0 for any."""

    @property
    def finest(self) -> float:
        """Of which all values are multiples; 0 if of none."""

    def decay(self, theta: float, participation: float, start: float) -> float:
        """By how much log |M| falls at least, M(z) being a seat's moment generating function.

        From z = theta to every z = theta + i y, y between `start` and 2 pi / finest - start.
        """

    def growth(self, theta: Array) -> Array:
        """E exp(theta X) - 1 for real theta; a guide."""

    def excess(self, threshold: float) -> float:
        """E(X - threshold)+; a guide."""

    def transform(self, theta: float, period: float, last: int) -> tuple[Complex, Array]:
        """E exp(z X) - 1 at z = theta + 2 pi i m / period, m = 0 .. last, and bounds on its error.

        The period has to be a multiple of the step.
        """


@dataclass(frozen=True, slots=True, eq=False)
class AtomLaw:
    """Finitely many values of X, with their probabilities."""

    values: Array
    masses: Array
    step: float = 0.0
    finest: float = 0.0

    @property
    def variance(self) -> float:
        return float(self.masses @ self.values**2)

    @property
    def furthest(self) -> float:
        return float(np.abs(self.values).max())

    def growth(self, theta: Array) -> Array:
        return np.asarray(np.expm1(np.outer(theta, self.values)) @ self.masses)

    def excess(self, threshold: float) -> float:
        return float(np.maximum(self.values - threshold, 0.0) @ self.masses)

    def decay(self, theta: float, participation: float, start: float) -> float:
        return 0.0  # a few atoms may agree at any frequency

    def transform(self, theta: float, period: float, last: int) -> tuple[Complex, Array]:
        z = theta + (2j * math.pi / period) * np.arange(last + 1)
        moved = np.outer(z, self.values)
        terms = np.expm1(moved)
        size = np.abs(terms) + np.abs(moved) * np.exp(theta * self.values)
        return terms @ self.masses, 8 * UNIT * (size @ self.masses)

    def wider(self, stretch: float) -> AtomLaw:
        """Every value further from zero by this part of it: larger in convex order."""
        return AtomLaw(self.values * (1.0 + stretch), self.masses) if stretch else self

    @staticmethod
    def of(*atoms: tuple[float, float]) -> AtomLaw:
        """From (value, probability) pairs; those without mass are left out."""
        there = [(x, p) for x, p in atoms if p > 0.0]
        return AtomLaw(np.array([x for x, _ in there]), np.array([p for _, p in there]))


@dataclass(frozen=True, slots=True, eq=False)
class Types:
    """The types of a randomizer at one alpha.

    Args:
        laws: One or two types; every client's law lies below a mixture of them.
        worst: A law above all clients' laws, for the one seat that the theorem adds.
        smoothing: Scale of the Laplace noise with which that order holds, 0 if without.
        violation: By how much a smoothed potential may exceed the mixture's; paid for by every
            report that is there.
    """

    laws: tuple[SeatLaw, ...]
    worst: SeatLaw
    smoothing: float = 0.0
    violation: float = 0.0
