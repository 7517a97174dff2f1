"""Integers with noise, made for secure sums: the noise itself, and one integer a client.

Secure aggregation adds reports modulo M, so reports must be integers and their noise discrete. The difference of two
Poisson variables (Skellam) is closed under addition: the sum of k reports carries exactly Skellam noise of k times the
variance, whatever k is (Agarwal, Kairouz, Liu, arXiv 2110.04995v1). `SkellamInteger` randomizes one integer in [-bound,
bound] per client; its local pair is exact. Real vectors are rounded to integers with `stochastic_round` first.

The discrete Gaussian N_Z(0, v) has mass proportional to exp(-j²/(2v)) at the integer j. It is not closed under
addition, but nearly so. If X ~ N_Z(0, a) and Y ~ N_Z(0, b), then P(X + Y = z) is proportional to exp(-z²/(2(a + b)))
Σ_x exp(-(x - t)²/(2s)) with s = ab/(a + b) and t depending on z; by Poisson summation that sum lies within a factor 1 ±
η of √(2πs), η = 2 Σ_j exp(-2π² s j²) at most 2.01 exp(-2π² s). Adding the reports one by one, s is at least v/2, so the
sum of n of them has masses within ((1 + η)/(1 - η))^n of N_Z(0, nv): at most 5 exp(-π² v) per report and coordinate in
total variation. From v = 10 on that is below 1e-42, and it is charged all the same. (Kairouz, Liu and Steinke, arXiv
2102.06387v4, section 4.3, bound the same distance.)

`skellam_noise` and `discrete_gaussian_noise` draw exactly, up to an error that is stated and can be charged: the
cumulative distribution is tabulated with 124 binary digits in integer arithmetic and compared with 124 random bits.
Floating point enters nowhere, so what differs from the law that accounting speaks of is the cut tail and the last digit
of the table: together at most `TABLE_ERROR` in total variation for each number drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpcheckin import accounting
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import at_least, positive, written
from dpcheckin.randomizers.base import Randomizer
from dpcheckin.randomizers.source import RandomSource
from dpcheckin.special.gamma import ive

_RARE = 2.0**-70  # an integer of which a table of 124 digits knows as much as a float


def stochastic_round(values: NDArray[np.float64], source: RandomSource) -> NDArray[np.int64]:
    """Round real `values` up or down at random, with chance from `source`, so that the mean is kept."""
    low = np.floor(values)
    return (low + (source.uniform(values.shape) < values - low)).astype(np.int64)


def _masses(variance: float, reach: int) -> NDArray[np.float64]:
    """P(noise = j), j = -reach, …, reach: e^{-v} I_j(v) for Poisson means v/2 each."""
    return ive(np.abs(np.arange(-reach, reach + 1)), variance)


@dataclass(frozen=True)
class SkellamInteger(Randomizer):
    """x + Skellam(variance) modulo `modulus`, for one integer x in [-bound, bound].

    Args:
        bound: largest absolute value of an integer.
        variance: of the noise.
        modulus: what reports are taken modulo, above 2 · bound + 1.

    >>> SkellamInteger(bound=1, variance=4.0, modulus=1024).describe()
    'Skellam, variance 4 for integers within ±1'
    """

    bound: int
    variance: float
    modulus: int

    smallest = _RARE

    def __post_init__(self) -> None:
        at_least("bound", self.bound, 1)
        positive("variance", self.variance, LARGEST_VARIANCE)
        at_least("modulus", self.modulus, 2 * self.bound + 2)

    def describe(self) -> str:
        return f"Skellam, variance {written(self.variance)} for integers within ±{self.bound:,}"

    @property
    def pair(self) -> accounting.LocalPair:
        """Noise round -bound against noise round +bound: the farthest two inputs.

        The noise is log-concave, so a larger shift is easier to tell and this pair dominates all others; taking the
        modulus only merges outcomes. Noise that is rarer than `smallest` is taken to reveal everything: it is drawn
        from a table of 124 digits.
        """
        shift = 2 * self.bound
        masses = _masses(self.variance, skellam_reach(self.variance))
        kept = masses[masses >= _RARE]
        here, there = kept[:-shift], kept[shift:]  # Q(j) and P(j) = Q(j + shift)
        rest = TABLE_ERROR + math.fsum(masses[masses < _RARE].tolist()) + float(kept[-shift:].sum())
        from dpcheckin.accounting.pairs.matrix import revealing

        return revealing(np.exp(np.log(there) - np.log(here)), here, rest)

    def noise(self, size: int, source: RandomSource) -> NDArray[np.int64]:
        """Skellam noise of this `size`, within `TABLE_ERROR` of its law, with chance from `source`."""
        return skellam_noise(self.variance, size, source)

    def randomize(self, values: NDArray[np.int64], source: RandomSource) -> NDArray[np.int64]:
        values = np.asarray(values)
        if values.dtype.kind not in "iu":
            raise InvalidParameter("values", values.dtype, "integers (see stochastic_round)")
        if values.size and int(np.abs(values).max()) > self.bound:
            raise InvalidParameter("values", int(np.abs(values).max()), f"within ±{self.bound:,}")
        return np.asarray((values + self.noise(values.size, source)) % self.modulus)

    def estimate_sum(self, reports: NDArray[np.int64]) -> float:
        """The sum of the clients' integers, unbiased as long as it does not wrap around."""
        total = int(np.sum(reports, dtype=object)) % self.modulus
        return float(total - self.modulus if total > self.modulus // 2 else total)

    def sum_variance(self, clients: int) -> float:
        """Exact variance of `estimate_sum` (no wrap-around)."""
        return clients * self.variance


TABLE_ERROR = 2.0**-98
LARGEST_VARIANCE = 2.0**30
SMALLEST_GAUSSIAN_VARIANCE = 10.0

Table = tuple[NDArray[np.int64], NDArray[np.int64], int]

_HALF = 62  # random bits are taken in halves: what every source can give at once
_BITS = 2 * _HALF
_GUARD = 64  # further digits of the recurrence; its terms are positive, so errors do not grow
_TAIL_LOG = 101 * math.log(2.0)  # noise beyond a table's reach has probability below 2^-100
_DIGITS = 90  # decimal digits of the discrete Gaussian's recurrence: its errors stay far below 2^-124


def skellam_reach(variance: float) -> int:
    """Noise beyond this has probability below 2^-100 (Bernstein: cosh t - 1 ≤ t²/(2 - 2t/3))."""
    log = _TAIL_LOG
    return math.ceil(log / 3.0 + math.sqrt(log * log / 9.0 + 2.0 * variance * log)) + 1


def gaussian_reach(variance: float) -> int:
    """Noise beyond this has probability below 2^-100: P(X >= t) <= exp(-t²/(2v))."""
    return math.ceil(math.sqrt(2.0 * variance * _TAIL_LOG)) + 1


@lru_cache(maxsize=8)
def skellam_table(variance: float) -> Table:
    """High and low halves of 2^124 · P(noise ≤ j), j = -reach, …, reach - 1, and the reach.

    The masses obey P(j-1) = P(j+1) + (2j/variance) P(j): run downwards from far out, all terms are positive, and the
    masses add up to one whatever the start (Miller's algorithm).
    """
    if not 0.0 < variance <= LARGEST_VARIANCE:
        raise InvalidParameter("variance", variance, f"above 0 and at most {LARGEST_VARIANCE:g}")
    last = skellam_reach(variance)
    start = last + 64 + math.isqrt(math.ceil(32.0 * variance))  # the start's error has died by then
    top, bottom = variance.as_integer_ratio()
    above, here = 0, 1 << (_BITS + _GUARD)
    masses = [0] * (start + 1)
    for j in range(start, 0, -1):
        masses[j] = here
        above, here = here, above + (2 * j * bottom * here) // top
        if here.bit_length() > 16 * (_BITS + _GUARD):  # keep the integers short
            cut = here.bit_length() - 2 * (_BITS + _GUARD)
            above, here = above >> cut, here >> cut
            masses = [mass >> cut for mass in masses]
    masses[0] = here
    return _table_of(masses, last)


@lru_cache(maxsize=8)
def gaussian_table(variance: float) -> Table:
    """The same of the discrete Gaussian, whose masses follow one from another by multiplication."""
    last = gaussian_reach(variance)
    masses = []
    with localcontext() as context:
        context.prec = _DIGITS
        v = Decimal(variance)
        mass, ratio, fall = Decimal(1 << 200), (-1 / (2 * v)).exp(), (-1 / v).exp()
        for _ in range(last + 1):  # mass(j + 1) = mass(j) exp(-(2j + 1)/(2v))
            masses.append(int(mass))
            mass, ratio = mass * ratio, ratio * fall
    return _table_of(masses, last)


def _table_of(masses: list[int], last: int) -> Table:
    """The table of a symmetric law, given by its masses of 0, 1, 2, … in any common unit, and where the table ends.

    Masses beyond that go to the outermost entries.
    """
    total = masses[0] + 2 * sum(masses[1:])
    cumulative = []
    running = (total - masses[0] - 2 * sum(masses[1 : last + 1])) // 2
    for j in range(-last, last):
        running += masses[abs(j)]
        cumulative.append((running << _BITS) // total)
    high = np.array([c >> _HALF for c in cumulative], dtype=np.int64)
    low = np.array([c & ((1 << _HALF) - 1) for c in cumulative], dtype=np.int64)
    return high, low, last


def skellam_noise(variance: float, size: int, source: RandomSource) -> NDArray[np.int64]:
    """So many (`size`) Skellam integers of a `variance` up to 2^30, within `TABLE_ERROR` of the law.

    They are independent, with chance from `source`.

    >>> from dpcheckin.randomizers import SecureSource
    >>> len(skellam_noise(100.0, 5, SecureSource()))
    5
    """
    return _drawn_from(skellam_table(float(variance)), size, source)


def discrete_gaussian_noise(variance: float, size: int, source: RandomSource) -> NDArray[np.int64]:
    """So many (`size`) integers from N_Z(0, `variance`) with chance from `source`, within `TABLE_ERROR` of the law."""
    return _drawn_from(gaussian_table(float(variance)), size, source)


def _drawn_from(table: Table, size: int, source: RandomSource) -> NDArray[np.int64]:
    high, low, last = table
    drawn = source.integers(1 << _HALF, size)
    index = np.searchsorted(high, drawn, side="right")
    # equal high halves leave it to the low ones: one draw in 2^62 per entry of the table
    for i in np.flatnonzero((index > 0) & (high[np.maximum(index, 1) - 1] == drawn)):
        ties = np.flatnonzero(high == drawn[i])
        rest = source.integers(1 << _HALF, 1)[0]
        index[i] = ties[0] + int(np.sum(low[ties] <= rest))
    return np.asarray(index - last, dtype=np.int64)
