"""Seats of continuous reports of up to hundreds of clients: laws below theirs on a fine lattice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oracles.attacks.seats import Seated
from oracles.seat_types.laws import Array, Law

Transform = NDArray[np.complex128]

_POINTS = 2**15  # of a lattice
_DRAWN = 2.0 ** -np.array([18, 14, 11, 9, 8, 7, 6, 5, 4, 3, 2, 1])  # together, from little to much


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

    def excess(self, total: Transform, shift: float, seats: int) -> float:
        """E (sum + shift)+ of so many seats, less what rounding can add to it.

        A transform of masses is wrong by at most log2(points) units of rounding of its norm, a
        product of factors within the unit circle by the sum of their errors; masses are wrong by
        as much in the Euclidean norm, and the expectation by that times the positions' norm.
        """
        mass = np.roll(np.fft.irfft(total, self.points), self.points // 2)
        position = (np.arange(self.points) - self.points // 2) * self.step + shift
        position = np.maximum(position, 0.0)
        wrong = 2.0**-52 * (seats + 1) * np.log2(self.points)
        return max(float(mass @ position) - wrong * float(np.linalg.norm(position)), 0.0)


def _power(base: Transform, exponent: int) -> Transform:
    """By squaring, which is much quicker than a general complex power."""
    out = np.ones_like(base)
    while exponent:
        if exponent & 1:
            out = out * base
        base = base * base
        exponent >>= 1
    return out


class OnLattice(Seated):
    """Seats of continuous reports, in excess of what an empty seat is worth."""

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
                return lattice.excess(_power(seat[0], self.cohort), shift, n) / n
            lazy = self.rate * seat[0] + (1.0 - self.rate)
            return lattice.excess(_power(lazy, n), shift, n) / n
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
        return lattice.excess((1.0 - self.rate) * total, shift, n)
