"""A crowd whose reports lean to either of two inputs, strongly or weakly: its pair, from below.

All other clients hold one value. Against a report of that value, one of the two inputs weighs
(e0, 1) or (1, e0) (strong, either way with probability `strong`), (1, 1/e0) or (1/e0, 1) (weak,
likewise), or as much as the other; an empty seat weighs (1, 1). The pair is a mean over seats.

What is computed is the pair of a statistic of the view: how many reports lean strongly (in cells), and the sum of what
they lean, with integers in place of 1 and 1/e0. A statistic never tells more than the view, whatever the integers are:
a lower bound, and a sharp one, since what it leaves out is of second order. Its law is one Fourier inversion, and every
mass has a bound on its error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcheckin.accounting.engine.arrays import Array, Complex
from dpcheckin.accounting.engine.loss import NO_ATOMS, Atoms
from dpcheckin.accounting.engine.seats import Seats
from dpcheckin.special import UNIT, binomial, fourier
from dpcheckin.special.fourier import FFT_LEVEL

FEW_SEATS = 100  # among so few, the others may do more harm at one of the two inputs
MOST_COUNTED = 10_000  # strong reports; of more than these the number tells nothing more
LONGEST = 1 << 23
_CELLS_PER_DEVIATION = 4
_BOX = 46.0  # frequencies below exp(-_BOX) are left out, sums beyond exp(-_BOX) wrap around
_PMF = 4e-11  # relative error of binomial probabilities, twelve deviations out


@dataclass(frozen=True, slots=True)
class PreferenceLaw:
    """Probabilities under one input that a report leans to one of two others, for either of them."""

    local_epsilon: float  # log e0
    strong: float  # of weights (e0, 1), and of (1, e0)
    weak: float  # of weights (1, 1/e0), and of (1/e0, 1)

    @property
    def blank(self) -> float:
        """Mean weight of the other reports, times their probability."""
        e0 = math.exp(self.local_epsilon)
        return max(1.0 - self.strong * (e0 + 1) - self.weak * (1 + 1 / e0), 0.0)

    def integers(self, largest: int = 60) -> tuple[int, int]:
        """The first integers for what reports lean that keep all but 1e-4 of the variance."""
        e0, candidates = math.exp(self.local_epsilon), []
        whole = self.strong + self.weak / e0**2
        for high in range(1, largest + 1):
            for low in (math.floor(high / e0), math.ceil(high / e0)):
                square = self.strong * high**2 + self.weak * low**2
                kept = (self.strong * high + self.weak * low / e0) ** 2 / (square * whole)
                if kept >= 1 - 1e-4:
                    return high, low
                candidates.append((kept, high, low))
        return max(candidates)[1:]


def preference_atoms(seats: Seats, law: PreferenceLaw) -> Atoms:
    """Losses of the statistic's pair, which is symmetric; no atoms where they are too many.

    `seats`: how many, how often taken, and how many more are empty; their law is not looked at. `law`: how reports
    lean.
    """
    if law.strong <= 0.0 or law.local_epsilon == 0.0:
        return NO_ATOMS
    sums = _Sums(seats, law)
    if sums.size > LONGEST:
        return NO_ATOMS
    rows = [sums.masses(*row) for row in sums.rows()]
    p, q = (np.concatenate(side) for side in zip(*rows, strict=True))
    keep = (p > q) & (q > 0.0)
    return Atoms(p[keep], np.log1p((p - q)[keep] / q[keep]), 0.0)


class _Sums:
    """The characteristic function of the statistic under P, one row for a cell of counts."""

    def __init__(self, seats: Seats, law: PreferenceLaw) -> None:
        self._count, self._empty, self._population = seats.count, seats.empty, seats.population
        self._e0 = math.exp(law.local_epsilon)
        self._high, self._low = law.integers()
        self._strong = min(2 * seats.participation * law.strong, 1.0)
        weak = 2 * seats.participation * law.weak
        rest = max(1.0 - self._strong, UNIT)
        self._weak = min(weak / rest, 1.0)  # of a report that does not lean strongly
        self._blank = (seats.participation * law.blank + seats.absent) / rest
        self._spread = math.sqrt(self._count * (self._strong * self._high**2 + weak * self._low**2))
        reach = self._reach(weak)
        self._wrapped = 0.0 if reach >= self._count * self._high else 2 * math.exp(-_BOX)
        self.size = fourier.next_fast_len(int(2 * reach) + 2, True) if reach < LONGEST else 2**62

    def _reach(self, weak: float) -> float:
        """A sum that is exceeded with probability at most exp(-_BOX), by Chernoff's bound."""
        reach = float(self._count * self._high)
        for factor in (2.0, 4.0, 6.0, 8.0, 10.0, 14.0):
            tilt = factor / self._spread
            if tilt * self._high < 300.0:
                rise = self._strong * 2 * math.sinh(tilt * self._high / 2) ** 2
                rise += weak * 2 * math.sinh(tilt * self._low / 2) ** 2
                reach = min(reach, (self._count * math.log1p(rise) + _BOX) / tilt)
        return math.ceil(reach) + 1.0

    def rows(self) -> list[tuple[Array, Array | None]]:
        """Cells of numbers of strong reports with their probabilities; one for all if many."""
        mean = self._count * self._strong
        if mean > MOST_COUNTED:
            return [(np.zeros(0), None)]
        low, high = binomial.window(self._count, self._strong)
        counts = np.arange(low, high + 1)
        chances = binomial.pmf(counts, self._count, self._strong)
        keep = chances > math.exp(-_BOX)
        kept, chances = counts[keep].astype(np.float64), chances[keep]
        width = max(int(math.sqrt(mean * (1 - self._strong)) / _CELLS_PER_DEVIATION), 1)
        starts = range(0, kept.size, width)
        return [(kept[i : i + width], chances[i : i + width]) for i in starts]

    def masses(self, counts: Array, chances: Array | None) -> tuple[Array, Array]:
        """Lower bounds of P and upper bounds of Q where the sum is positive."""
        places, high, low = self._spectrum
        value = np.zeros(places.size, complex)
        if chances is None:
            share = self._strong * high.gap + (1 - self._strong) * self._weak * low.gap
            one = _Power.of_one_minus(share)
            alive = (self._count - 1) * one.log > -_BOX
            value[alive], error = self._all(places[alive], one[alive])
        else:
            other = _Power.of_one_minus(self._weak * low.gap)
            left = max(self._count - counts[-1] - 1, 0)
            alive = max(counts[0] - 1, 0) * high.log + left * other.log > -_BOX
            value[alive], error = self._cell(places[alive], high[alive], other[alive], counts, chances)
        found = fourier.irfft(np.conj(value), self.size)
        norm = float(np.linalg.norm(found))
        left_out = (self._wrapped + math.exp(-_BOX)) * 2 * self._e0
        error = 2 * error / self.size + 2 * FFT_LEVEL * math.log2(self.size) * norm + left_out
        half = (self.size - 1) // 2
        relative = 0.0 if chances is None else _PMF
        p, q = found[1 : half + 1], found[: -half - 1 : -1]
        return p * (1 - relative) - error, q * (1 + relative) + error

    @cached_property
    def _spectrum(self) -> tuple[NDArray[np.int64], _Power, _Power]:
        """Frequencies, and the cosines of what a strong and a weak report turn by."""
        places = np.arange(self.size // 2 + 1)
        return places, self._cosines(self._high * places), self._cosines(self._low * places)

    def _cosines(self, places: NDArray[np.int64]) -> _Power:
        """Cosines of 2 pi place / size.

        Each comes from the sine of a small angle, reduced as an integer: no digits are lost near 1, 0 or -1.
        """
        size = self.size
        place = places % size
        place = np.minimum(place, size - place)  # 0 .. size/2: angles up to pi
        one, minus = (2 * np.sin(math.pi / (2 * size) * x) ** 2 for x in (2 * place, size - 2 * place))
        middle = np.abs(np.sin(math.pi / (2 * size) * (size - 4 * place)))
        small = np.minimum(one, minus)
        near_zero = np.log(np.maximum(middle, 1e-300))
        log = np.where(small > 0.3, near_zero, np.log1p(-np.minimum(small, 0.3)))
        return _Power(one, log, np.where(one > 1.0, -1.0, 1.0), np.zeros(place.size))

    def _all(self, places: NDArray[np.int64], one: _Power) -> tuple[Complex, float]:
        """E[e^(i angle sum)] under P over all counts, and the sum of all its errors."""
        n = self._count
        seat = self._strong * self._leans_strongly(places)
        seat = seat + (1 - self._strong) * self._leans_weakly(places)
        value = np.exp((n - 1) * one.log) * (one.sign if n % 2 == 0 else 1.0)
        both = self._empty * one.value + n * seat
        doubt = value * (self._empty + n * self._e0) * UNIT * (40 + n * one.doubtful)
        error = float(np.abs(doubt).sum()) / self._population
        return np.asarray(value * both / self._population, complex), error

    def _cell(
        self, places: NDArray[np.int64], cos: _Power, rest: _Power, counts: Array, chances: Array
    ) -> tuple[Complex, float]:
        """The same for a cell of counts.

        With one seat taken out, its report is strong in a share count/n of all cases: the seat contributes to P what
        its own report does, the others their characteristic function.
        """
        n, total, error = self._count, np.zeros(places.size, complex), np.zeros(places.size)
        strong, other = self._leans_strongly(places), self._leans_weakly(places)
        heaviest = self._weak + self._blank
        for count, chance in zip(counts.tolist(), chances.tolist(), strict=True):
            size = np.exp((count - 1) * cos.log + (n - count - 1) * rest.log)
            size *= chance / self._population
            sign = cos.sign if count % 2 == 0 else 1.0
            sign = sign * (rest.sign if (n - count) % 2 == 0 else 1.0)
            without, within = (n - count) * cos.value, count * rest.value
            empty = self._empty * cos.value * rest.value
            total += sign * size * (empty + within * strong + without * other)
            largest = np.abs(empty) + np.abs(within) * self._e0 + np.abs(without) * heaviest
            doubt = 40 + count * cos.doubtful + (n - count) * rest.doubtful
            error += size * largest * UNIT * doubt
        return total, float(error.sum())

    def _leans_strongly(self, places: NDArray[np.int64]) -> Complex:
        """Mean over strong reports of P's weight and the report's term."""
        turn = self._turns(self._high * places)
        return np.asarray((self._e0 * turn + np.conj(turn)) / 2)

    def _leans_weakly(self, places: NDArray[np.int64]) -> Complex:
        """The same over all other seats, weak, blank or empty."""
        turn = self._turns(self._low * places)
        return np.asarray(self._weak * (turn + np.conj(turn) / self._e0) / 2 + self._blank)

    def _turns(self, places: NDArray[np.int64]) -> Complex:
        return np.asarray(np.exp(2j * math.pi / self.size * (places % self.size)))


@dataclass(frozen=True, slots=True)
class _Power:
    """A number between -1 and 1 that will be raised to a power."""

    gap: Array  # one minus the number
    log: Array  # of its absolute value, kept from infinity
    sign: Array  # its sign
    excess: Array  # what one factor of it may err by, in units of round-off, beyond its logarithm's own

    @staticmethod
    def of_one_minus(share: Array) -> _Power:
        """1 - share, 0 <= share <= 2, given the share with all its digits."""
        size = np.maximum(np.abs(1.0 - share), 1e-16)
        log = np.where(share < 0.5, np.log1p(-np.minimum(share, 0.5)), np.log(size))
        excess = np.where(share < 0.5, 0.0, 16.0 / size)
        return _Power(share, log, np.where(share > 1.0, -1.0, 1.0), excess)

    def __getitem__(self, chosen: NDArray[np.bool_]) -> _Power:
        return _Power(self.gap[chosen], self.log[chosen], self.sign[chosen], self.excess[chosen])

    @property
    def value(self) -> Array:
        return self.sign * np.exp(self.log)

    @property
    def doubtful(self) -> Array:
        """Relative error of one factor, in units of round-off."""
        return 16 * np.abs(self.log) + self.excess
