"""Sums over the seats of a round at one alpha: how large E(S)+ is at most.

Values of seats are taken from their mean, so that sums of many small terms keep their digits; the mean of the whole sum
is a shift. Up to two types may share the other seats in any proportion.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from dpcheckin.accounting.engine.typed.laws import AtomLaw
from dpcheckin.accounting.proof.trapezoid import Numbers, Numeric, Saddle
from dpcheckin.special import UNIT

# of the variance: what the normal noise may add, half of that to an epsilon; where each term has
# to be computed for many numbers of two types it may be more
_NOISE, _PAIR_NOISES, _MANY_NOISE, _MANY = 1.2e-4, (1.5e-4, 6e-4, 1.2e-3), 5e-4, 60
_MISSED = 5e-5  # of the answer, by which the maximum over numbers of types may be missed
_CELLS, _MOST_CELLS = 40, 450
_MARGIN = 2e-10  # of a bound: far above what doubles lose


@dataclass(frozen=True, slots=True, eq=False)
class Crowd:
    """Independent seats with mean zero, and what is added to their sum.

    `seats` are laws and how many seats have each, `mean` is that of the whole sum, and a `pair` of laws shares the
    `others`, so many seats, in any proportion.
    """

    seats: tuple[tuple[AtomLaw, int], ...]
    mean: float
    pair: tuple[AtomLaw, ...] = ()
    others: int = 0

    @property
    def variance(self) -> float:
        shared = max((law.variance for law in self.pair), default=0.0)
        return math.fsum(law.variance * n for law, n in self.seats) + self.others * shared

    @property
    def furthest(self) -> float:
        return max(law.furthest for law in (*self.pair, *(law for law, _ in self.seats)))

    def _fixed(self, z: Numeric) -> Numeric:
        """log E e^(zS) of the seats whose laws are fixed, and the shift."""
        total = z * self.mean
        for law, count in self.seats:
            total = total + count * _log(law, z)
        return total

    def _logs(self, z: Numeric) -> Numeric:
        """The same with the others, at real z all of the larger type; a guide."""
        shared = [self.others * _log(law, z) for law in self.pair]
        return self._fixed(z) + (np.maximum(*shared) if shared else 0.0)

    def bound(self, laplace: str) -> tuple[float, Numbers, list[int] | None]:
        """An upper bound of E(S)+ with Laplace noise of this scale, with its numbers and the cells of two types."""
        tried = _PAIR_NOISES if self.pair else (_NOISE,)
        if any(law.values.size > _MANY for law, _ in self._all()):
            tried = (_MANY_NOISE,)
        found: list[tuple[float, Numbers, list[int] | None]] = []
        for noise in tried:
            numbers = self._numbers(noise, laplace)
            value, missed, cells = self.at(numbers)
            found.append((value, numbers, cells))
            if missed <= 2 * _MISSED:
                break
        else:  # sums on a lattice, whose chords between numbers of types are poor: nearly all numbers
            numbers = self._numbers(tried[0], laplace)
            value, _, cells = self.at(numbers, _MOST_CELLS)
            found.append((value, numbers, cells))
        return min(found, key=lambda bound: bound[0])

    def _numbers(self, noise: float, laplace: str) -> Numbers:
        """Good numbers with normal noise of this part of the variance."""
        deviation = math.sqrt(self.variance + 2 * float(laplace) ** 2)
        saddle = Saddle(self._logs, deviation, self.furthest)
        return saddle.numbers(math.sqrt(noise) * deviation, laplace)

    def at(
        self, numbers: Numbers, most: int = _CELLS, given: list[int] | None = None
    ) -> tuple[float, float, list[int] | None]:
        """The bound with these `numbers`, by what part it may be missed, and its cells: `most` of them, or `given`."""
        z = numbers.line()
        logs = self._fixed(z) + numbers.noise(z)
        kernel = numbers.weights() / (z * z)
        grown = math.fsum(n * _size(law, z[0].real) for law, n in self._all())
        slack = 1 + _MARGIN + 64 * UNIT * (grown + abs(z[-1]) * abs(self.mean))
        if not self.pair:
            return _scaled(logs, kernel, numbers.beyond) * slack, 0.0, None
        cut = [0, *(j for j in given or [] if 0 < j < self.others), self.others]
        value, missed, cells = self._largest(z, logs, kernel, numbers.beyond, 0 if given else most, cut)
        return value * slack, missed, cells

    def _all(self) -> list[tuple[AtomLaw, int]]:
        return [*self.seats, *((law, self.others) for law in self.pair)]

    def _largest(
        self, z: Numeric, logs: Numeric, kernel: Numeric, beyond: float, most: int, cells: list[int]
    ) -> tuple[float, float, list[int]]:
        """The largest over numbers j of the first type: chords of `cells`, halved to be `most`, and how far above.

        Second differences in j have the factor (M1 - M2)^2/(M1 M2), whose modulus is geometric in j and so largest at
        an end of a cell.
        """
        first, second = (_log(law, z) for law in self.pair)
        apart = np.log(np.maximum(np.abs(_change(self.pair[0], z) - _change(self.pair[1], z)), 1e-300))
        sizes = np.abs(kernel)
        top = float(np.max(logs.real + self.others * np.maximum(first.real, second.real)))

        def at(j: int) -> tuple[float, float]:
            terms = np.exp(logs + j * first + (self.others - j) * second - top)
            return float(np.sum((terms * kernel).real)), float(terms[0].real) * beyond

        def bend(j: int, m: int) -> float:
            if m - j < 2:
                return 0.0
            ends = [a * first.real + (self.others - a - 2) * second.real for a in (j, m - 2)]
            size = np.exp(logs.real - top + 2 * apart + np.maximum(*ends))
            return float(np.sum(size * sizes)) * (m - j) ** 2 / 8

        found = {j: at(j) for j in cells}
        bends = {cell: bend(*cell) for cell in itertools.pairwise(cells)}

        def high(cell: tuple[int, int]) -> float:
            (a, tail), (b, other) = found[cell[0]], found[cell[1]]
            return max(a, b) + bends[cell] + max(tail, other)

        while True:
            best = max(value + tail for value, tail in found.values())
            worst = max(bends, key=high)
            if high(worst) <= best * (1 + _MISSED) or len(cells) >= most:
                break
            j, m = worst
            middle = (j + m) // 2
            if middle in (j, m):
                break
            found[middle] = at(middle)
            del bends[worst]
            bends[j, middle], bends[middle, m] = bend(j, middle), bend(middle, m)
            cells = sorted(found)
        return max(high(worst), best) * math.exp(top), high(worst) / best - 1, cells


def _scaled(logs: Numeric, kernel: Numeric, beyond: float) -> float:
    """The sum of exp(logs) * kernel and what lies beyond, scaled by the largest term."""
    top = float(logs[0].real)
    terms = np.exp(logs - top)
    return (float(np.sum((terms * kernel).real)) + beyond) * math.exp(max(top, -700.0))


def _change(law: AtomLaw, z: Numeric) -> Numeric:
    """E e^(zX) - 1."""
    return np.asarray(np.expm1(np.multiply.outer(z, law.values)) @ law.masses)


def _log(law: AtomLaw, z: Numeric) -> Numeric:
    """log E e^(zX), with all digits where it is small."""
    change = _change(law, z)
    if not np.iscomplexobj(change):
        return np.asarray(np.log1p(change))
    real, imaginary = change.real, change.imag
    squared = np.maximum(2 * real + real * real + imaginary * imaginary, -1 + 1e-300)
    return np.asarray(0.5 * np.log1p(squared) + 1j * np.arctan2(imaginary, 1.0 + real))


def _size(law: AtomLaw, theta: float) -> float:
    """Of the terms whose sum log E e^(theta X) is made of."""
    return float(np.abs(np.expm1(theta * law.values)) @ law.masses)
