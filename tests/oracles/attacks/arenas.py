"""Rounds to fight over: a crowd under a protocol, its name for the package, its true deltas."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb
from typing import Protocol

import numpy as np

from oracles.attacks import shuffles
from oracles.attacks.crowds import Crowd, Genes, Random
from oracles.seat_types.laws import Array


class Arena(Protocol):
    """A round, data sets for it, and the delta that each of them really has."""

    @property
    def text(self) -> str:
        """The round with the package's public names."""

    @property
    def expected(self) -> float:
        """Check-ins of honest clients a round."""

    @property
    def scale(self) -> float:
        """The largest epsilon worth asking about."""

    @property
    def error(self) -> float:
        """Relative, of what `truths` returns."""

    @property
    def crowd(self) -> Crowd:
        """Its data sets."""

    def truths(self, genes: Genes, alphas: Array) -> Array:
        """alphas x data sets: deltas, or lower bounds on them, the larger of both orders."""

    def near(self, rng: Random) -> Arena:
        """The same with slightly different parameters; data sets fit both."""


def widest(crowd: Crowd, expected: float) -> float:
    """The epsilon at which delta becomes negligible: of one report, or some deviations of many."""
    many = 4.5 * crowd.deviation * float(np.sqrt(max(expected, 1.0))) / crowd.n
    return min(0.97 * crowd.scale, many)


@dataclass(frozen=True)
class Shuffled:
    """What the analyzer sees, enumerated.

    `cohort`: of fixed size, 0 if everybody flips a coin. `colluders`: clients besides the crowd.
    `slow`: which of the others have only the share `lowest` of the rate (bits; uneven rates).
    """

    crowd: Crowd
    rate: float
    cohort: int = 0
    colluders: int = 0
    lowest: float = 1.0
    slow: int = 0

    @property
    def text(self) -> str:
        n, more, pair = self.crowd.n, self.colluders, self.crowd.pair
        aside = f", colluding={more / (n + more)!r}" if more else ""
        if self.cohort:
            return f"SubsampleRound({n + more}, {self.cohort}, {pair}{aside})"
        if self.lowest < 1.0:
            aside += f", lowest_rate={self.lowest * self.rate!r}"
        return f"CheckInRound({n + more}, {self.rate!r}, {pair}{aside})"

    @property
    def expected(self) -> float:
        if self.cohort:
            return self.cohort * self.crowd.n / (self.crowd.n + self.colluders)
        return float(self._rates().sum())

    @property
    def scale(self) -> float:
        return widest(self.crowd, self.expected)

    @property
    def error(self) -> float:
        return self.crowd.error

    def _rates(self) -> Array:
        slow = (self.slow >> np.arange(self.crowd.n)) & 1
        slow[0] = 0  # the target checks in as often as anybody may
        return self.rate * np.where(slow == 1, self.lowest, 1.0)

    def pairs(self, genes: Genes) -> shuffles.Pairs:
        """The laws of the view under both data sets, for each of a batch."""
        rows = self.crowd.rows(genes)
        if self.cohort:
            return shuffles.cohort(rows, self.cohort, self.colluders)
        return shuffles.check_in(rows, self._rates())

    def truths(self, genes: Genes, alphas: Array) -> Array:
        return self.pairs(genes).deltas(alphas)

    def near(self, rng: Random) -> Shuffled:
        rate = self.rate
        if rate < 1.0:
            odds = rate / (1.0 - rate) * np.exp(rng.normal(0.0, 0.4))
            rate = float(np.clip(odds / (1.0 + odds), 1e-3, 0.9999))
        return replace(self, crowd=self.crowd.near(rng) if rng.random() < 0.6 else self.crowd, rate=rate)

    @property
    def size(self) -> int:
        """How many histograms there are, if it is a crowd with few reports."""
        genes = self.crowd.draw(np.random.default_rng(0), 1)
        return comb(self.crowd.n + self.crowd.rows(genes).shape[2], self.crowd.n)


def shuffled(rng: Random, crowd: Crowd) -> Shuffled:
    """The crowd under a protocol: check-in, a cohort of fixed size, or a full shuffle."""
    n, protocol = crowd.n, rng.random()
    rate = float(rng.choice([rng.uniform(0.02, 0.95), rng.beta(2.0, 2.0)]))
    rate = float(np.clip(rate, 0.01, 0.98))
    more = int(rng.integers(1, 4)) if rng.random() < 0.15 else 0
    if protocol < 0.25 and n + more > 1:
        return Shuffled(crowd, rate, cohort=int(rng.integers(1, n + more)), colluders=more)
    if protocol < 0.35 and n > 1:
        slow = int(rng.integers(0, 2 ** min(n, 60)))
        return Shuffled(crowd, rate, lowest=float(rng.uniform(0.1, 0.95)), slow=slow)
    if protocol < 0.55:  # nobody absent, or hardly ever anybody
        rate = 1.0 if rng.random() < 0.7 else float(1.0 - np.exp(rng.uniform(-9.0, -4.0)))
        if n > 2 and rng.random() < 0.2:
            return Shuffled(
                crowd, rate, lowest=float(rng.uniform(0.3, 0.95)), slow=int(rng.integers(0, 2 ** min(n, 60)))
            )
    return Shuffled(crowd, rate, colluders=more)
