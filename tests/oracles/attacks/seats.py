"""Rounds with labelled seats: above the truth if the others differ, below every bound by seats.

`Enumerated` keeps every atom, for few clients; `OnLattice` is for continuous reports of up to
hundreds of clients: seats' laws on a fine lattice, sums by Fourier transform. The part in which
everybody checks in is left out where it cannot be enumerated, which lowers the figure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from oracles.attacks import shuffles
from oracles.attacks.arenas import _spread
from oracles.attacks.crowds import Crowd, Genes, Random
from oracles.seat_types import seats, views
from oracles.seat_types.laws import Array, Law, seat_of

Transform = NDArray[np.complex128]

_ATOMS = 1500  # of a sum of seats; more are merged, which only lowers the figure
_HISTOGRAMS = 4000


@dataclass(frozen=True)
class _Seated:
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
        return _spread(self.crowd.scale, self.expected)

    @property
    def error(self) -> float:
        return self.crowd.error

    def near(self, rng: Random) -> _Seated:
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


def _essential(*rows: Array) -> Array:
    return views.essential(np.array(rows))


class Enumerated(_Seated):
    """Every atom of every sum of seats."""

    def labelled(self, a: Array, b: Array, laws: Array, counts: Array, alpha: float) -> float:
        each = []
        for law, count in zip(laws, counts, strict=True):
            if count:
                merged = _essential(a, b, law)
                merged = merged[:, merged[2] > 0]
                each += [seat_of(merged[0], merged[1], merged[2], alpha)] * int(count)
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


@dataclass(frozen=True)
class _Lattice:
    """Multiples of a step, round about zero."""

    step: float
    points: int = 2**16

    def transform(self, one: Law) -> Transform:
        """Atoms are spread to the two lattice points beside them, the mean kept."""
        most = self.points / 4 * self.step  # larger ones are cut down, far smaller ones left out
        kept = one.values > -most / 2
        at = np.minimum(one.values[kept], most) / self.step
        low = np.floor(at)
        up, masses, cell = at - low, one.masses[kept], low.astype(np.int64)
        on = np.bincount(cell % self.points, masses * (1.0 - up), minlength=self.points)
        on += np.bincount((cell + 1) % self.points, masses * up, minlength=self.points)
        return np.fft.rfft(on)

    def excess(self, total: Transform) -> float:
        """E (sum)+."""
        mass = np.fft.irfft(total, self.points)[: self.points // 2]
        return float(mass @ np.arange(self.points // 2)) * self.step


class OnLattice(_Seated):
    """Seats of continuous reports."""

    @property
    def error(self) -> float:
        return 5e-5

    def labelled(self, a: Array, b: Array, laws: Array, counts: Array, alpha: float) -> float:
        held = np.flatnonzero(counts)
        each = []
        for x in laws[held]:
            seen = x > 1e-280
            each.append(Law((a[seen] - alpha * b[seen]) / x[seen], x[seen]))
        n = self.crowd.n
        taken = float(self.cohort or n * self.rate)
        widest = max(one.variance for one in each)
        reach = 9.0 * np.sqrt(taken * widest + 1e-12) + n * (alpha - 1.0)
        lattice = _Lattice(4.0 * reach / 2**16)
        empty = lattice.transform(Law(np.array([1.0 - alpha]), np.ones(1)))
        seat = [lattice.transform(one) for one in each]
        if len(held) == 1:  # all others alike: n seats, and it is the truth
            if self.cohort:
                return lattice.excess(seat[0] ** self.cohort * empty ** (n - self.cohort)) / n
            return lattice.excess((self.rate * seat[0] + (1.0 - self.rate) * empty) ** n) / n
        if self.cohort:
            return 0.0  # different values in a cohort: left to enumeration
        # 1/(n - k) is the integral of s^(n-k-1): a polynomial, so that few nodes are exact
        nodes, weights = np.polynomial.legendre.leggauss(n // 2 + 1)
        total = np.zeros_like(empty)
        for s, weight in zip((nodes + 1.0) / 2, weights / 2, strict=True):
            product = np.ones_like(empty)
            for one, count in zip(seat, counts[held], strict=True):
                product *= (self.rate * one + (1.0 - self.rate) * s * empty) ** int(count)
            total += weight * product
        return lattice.excess((1.0 - self.rate) * empty * total)
