"""Rounds with labelled seats: above the truth if the others differ, below every bound by seats.

`Enumerated` keeps every atom, for few clients; `Alike` too, for many that agree. `OnLattice` is for
continuous reports of up to hundreds of clients: laws below the seats' on a fine lattice, sums by
Fourier transform. The part in which everybody checks in is left out where it cannot be enumerated,
which lowers the figure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from oracles.attacks import shuffles
from oracles.attacks.arenas import widest
from oracles.attacks.crowds import Crowd, Genes, Random
from oracles.seat_types import seats, views
from oracles.seat_types.laws import Array, Law, seat_of

Transform = NDArray[np.complex128]

_ATOMS = 1500  # of a sum of seats; more are merged, which only lowers the figure
_HISTOGRAMS = 4000
_MOST = 400_000  # histograms of many clients
_POINTS = 2**15  # of a lattice
_DRAWN = 2.0 ** -np.array([18, 14, 11, 9, 8, 7, 6, 5, 4, 3, 2, 1])  # together, from little to much


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
        return widest(self.crowd, self.expected)

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
    """Multiples of a step, round about zero, that all sums of seats are put on."""

    step: float
    points: int = _POINTS

    def _spread(self, values: Array, masses: Array) -> Array:
        """Atoms spread to the two lattice points beside them, the mean kept."""
        at = values / self.step
        low = np.floor(at)
        up, cell = at - low, low.astype(np.int64) + self.points // 2
        on = np.bincount(cell, masses * (1.0 - up), minlength=self.points)
        return on + np.bincount(cell + 1, masses * up, minlength=self.points)

    def _potential(self, on: Array, at: Array) -> Array:
        """E (lattice law - t)+ at each t."""
        position = (np.arange(self.points) - self.points // 2) * self.step
        mass = np.append(np.cumsum(on[::-1])[::-1], 0.0)
        moment = np.append(np.cumsum((on * position)[::-1])[::-1], 0.0)
        first = np.searchsorted(position, at)
        return moment[first] - at * mass[first]

    def below(self, one: Law) -> Transform:
        """A law on the lattice that is below this one for increasing convex functions.

        Large values are cut down and far negative ones left out. Then the law is drawn together
        round its mean until, spread to the lattice, its potential is nowhere above; between two
        atoms the one is straight and the other convex, so that only atoms need looking at.
        """
        most = self.points / 4 * self.step
        order = np.argsort(one.values)
        values, masses = one.values[order], one.masses[order]
        kept = (values > -most) & (masses > 0)
        values, masses = np.minimum(values[kept], most), masses[kept]
        mean = values @ masses / masses.sum()
        above = np.cumsum(masses[::-1])[::-1]
        whole = np.cumsum((masses * values)[::-1])[::-1] - values * above
        slack = 1e-14 * np.abs(masses * values).sum()
        for share in _DRAWN:
            on = self._spread(mean + (1.0 - share) * (values - mean), masses)
            if (self._potential(on, values) <= whole + slack).all():
                return np.fft.rfft(np.roll(on, -(self.points // 2)))
        return np.fft.rfft(np.zeros(self.points))

    def excess(self, total: Transform, shift: float) -> float:
        """E (sum + shift)+; what a transform gets wrong by rounding is far below 1e-12."""
        mass = np.roll(np.fft.irfft(total, self.points), self.points // 2)
        position = (np.arange(self.points) - self.points // 2) * self.step + shift
        return float(mass @ np.maximum(position, 0.0))


def _power(base: Transform, exponent: int) -> Transform:
    """By squaring, which is much quicker than a general complex power."""
    out = np.ones_like(base)
    while exponent:
        if exponent & 1:
            out = out * base
        base = base * base
        exponent >>= 1
    return out


class OnLattice(_Seated):
    """Seats of continuous reports, in excess of what an empty seat is worth."""

    @property
    def error(self) -> float:
        return 1e-6  # so that figures of 1e-12 and less are left alone

    def labelled(self, a: Array, b: Array, laws: Array, counts: Array, alpha: float) -> float:
        held, n = np.flatnonzero(counts), self.crowd.n
        each = []
        for x in laws[held]:
            seen = x > 1e-280
            each.append(Law((a[seen] - alpha * b[seen]) / x[seen] - (1.0 - alpha), x[seen]))
        shift = n * (1.0 - alpha)
        spread = np.sqrt(self.expected * max(one.variance for one in each)) + 1e-9
        lattice = _Lattice(4.0 * max(9.0 * spread, -1.2 * shift) / _POINTS)
        seat = [lattice.below(one) for one in each]
        if len(held) == 1:  # all others alike: n seats, and it is the truth
            if self.cohort:
                return lattice.excess(_power(seat[0], self.cohort), shift) / n
            lazy = self.rate * seat[0] + (1.0 - self.rate)
            return lattice.excess(_power(lazy, n), shift) / n
        if self.cohort:
            return 0.0  # different values in a cohort: left to enumeration
        # 1/(n - k) is the integral of s^(n-k-1): a polynomial, so that few nodes are exact
        nodes, weights = np.polynomial.legendre.leggauss(n // 2 + 1)
        total = np.zeros_like(seat[0])
        for s, weight in zip((nodes + 1.0) / 2, weights / 2, strict=True):
            product = np.ones_like(total)
            for one, count in zip(seat, counts[held], strict=True):
                product *= _power(self.rate * one + (1.0 - self.rate) * s, int(count))
            total += weight * product
        return lattice.excess((1.0 - self.rate) * total, shift)


class Alike(_Seated):
    """Many clients with few possible reports, all others at one value: the truth, every atom.

    Histograms that are very unlikely are left out.
    """

    def labelled(self, a: Array, b: Array, laws: Array, counts: Array, alpha: float) -> float:
        merged = _essential(a, b, laws[int(np.argmax(counts))])
        values = (merged[0] - alpha * merged[1]) / merged[2] - (1.0 - alpha)
        n, shift = self.crowd.n, self.crowd.n * (1.0 - alpha)
        if self.cohort:
            total = likely_sum(values, merged[2], self.cohort)
        else:
            chances = np.append(self.rate * merged[2], 1.0 - self.rate)
            total = likely_sum(np.append(values, 0.0), chances, n)
        return float(total.masses @ np.maximum(total.values + shift, 0.0)) / n


def likely_sum(values: Array, chances: Array, count: int, deviations: float = 9.0) -> Law:
    """The sum of so many draws of these values; histograms far from the usual ones left out.

    Of mass 0, which is below everything, if there are too many.
    """
    sums, logs, left = np.zeros(1), np.zeros(1), np.array([count])
    order, rest = np.argsort(chances), 1.0
    for j in order[:-1]:
        share = min(chances[j] / rest, 1.0)
        usual, width = left * share, deviations * np.sqrt(left * share * (1 - share)) + 12.0
        low = np.maximum(np.floor(usual - width), 0).astype(np.int64)
        repeat = np.minimum(np.ceil(usual + width), left).astype(np.int64) - low + 1
        if repeat.sum() > _MOST:
            return Law(np.zeros(1), np.zeros(1))
        row = np.repeat(np.arange(len(left)), repeat)
        drawn = np.arange(len(row)) - np.repeat(np.cumsum(repeat) - repeat, repeat) + low[row]
        sums = sums[row] + drawn * values[j]
        logs = logs[row] + drawn * np.log(chances[j]) - special.gammaln(drawn + 1.0)
        left, rest = left[row] - drawn, rest - chances[j]
        likely = logs - special.gammaln(left + 1.0) + left * np.log(rest) > (
            -special.gammaln(count + 1.0) - 50.0
        )
        sums, logs, left = sums[likely], logs[likely], left[likely]
    last = order[-1]
    logs = logs + left * np.log(chances[last]) - special.gammaln(left + 1.0)
    return Law(sums + left * values[last], np.exp(logs + special.gammaln(count + 1.0)))
