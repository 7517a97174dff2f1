"""Rounds with labelled seats: above the truth if the others differ, below every bound by seats.

The part in which everybody checks in is left out where it cannot be enumerated, which lowers the
figure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from oracles.attacks import shuffles
from oracles.attacks.arenas import widest
from oracles.attacks.crowds import Crowd, Genes, Random
from oracles.seat_types import seats, views
from oracles.seat_types.laws import Array, seat_of

_ATOMS = 1500  # of a sum of seats; more are merged, which only lowers the figure
_HISTOGRAMS = 4000


@dataclass(frozen=True)
class Seated:
    """Check-in, or with `cohort` a cohort of fixed size."""

    crowd: Crowd
    rate: float
    cohort: int = 0

    @property
    def text(self) -> str:
        n, pair = self.crowd.n, self.crowd.pair
        if self.cohort:
            return f"SubsampleRound({n}, {self.cohort}, {pair})"
        return f"CheckInRound({n}, {self.rate!r}, {pair})"

    @property
    def expected(self) -> float:
        return float(self.cohort or self.crowd.n * self.rate)

    @property
    def scale(self) -> float:
        return widest(self.crowd, self.expected)

    @property
    def error(self) -> float:
        return self.crowd.error

    def near(self, rng: Random) -> Seated:
        odds = self.rate / (1.0 - self.rate) * np.exp(rng.normal(0.0, 0.4))
        return replace(
            self,
            crowd=self.crowd.near(rng) if rng.random() < 0.6 else self.crowd,
            rate=float(np.clip(odds / (1.0 + odds), 1e-3, 0.95)),
        )

    def truths(self, genes: Genes, alphas: Array) -> Array:
        laws = self.crowd.laws(genes.points, genes.extra)
        out = self._everybody(genes, alphas)  # both orders, alphas, data sets
        for j, (own, who) in enumerate(zip(laws, genes.who, strict=True)):
            ends, counts = own[:2], np.bincount(who, minlength=len(own))
            for i, alpha in enumerate(alphas):
                for order, (a, b) in enumerate((ends, ends[::-1])):
                    out[order, i, j] += self.labelled(a, b, own, counts, float(alpha))
        return out.max(axis=0)

    def labelled(self, a: Array, b: Array, laws: Array, counts: Array, alpha: float) -> float:
        """The part k < n, the target at a or b and so many others at each law."""
        raise NotImplementedError

    def _everybody(self, genes: Genes, alphas: Array) -> Array:
        """The part in which all check in, as the analyzer sees it; 0 is below it."""
        return np.zeros((2, len(alphas), len(genes)))


def merged_rows(a: Array, b: Array, x: Array) -> Array:
    """The three laws of reports, those that say the same added up, as far as x sends them."""
    rows = views.essential(np.array([a, b, x]))
    return rows[:, rows[2] > 0]


class Enumerated(Seated):
    """Every atom of every sum of seats."""

    def labelled(self, a: Array, b: Array, laws: Array, counts: Array, alpha: float) -> float:
        each = []
        for law, count in zip(laws, counts, strict=True):
            if count:
                rows = merged_rows(a, b, law)
                each += [seat_of(rows[0], rows[1], rows[2], alpha)] * int(count)
        if self.cohort:
            return seats.cohort(each, self.cohort, alpha, most=_ATOMS)
        return seats.check_in(each, self.rate, alpha, most=_ATOMS)

    def _everybody(self, genes: Genes, alphas: Array) -> Array:
        rows = self.crowd.rows(genes)
        n = rows.shape[1] - 1
        if self.cohort or views.size(n, rows.shape[2]) > _HISTOGRAMS:
            return super()._everybody(genes, alphas)
        pairs = shuffles.cohort(rows, n)
        both = [
            [np.maximum(p - alpha * q, 0.0).sum(axis=0) for alpha in alphas]
            for p, q in ((pairs.p, pairs.q), (pairs.q, pairs.p))
        ]
        return self.rate**n * np.array(both)
