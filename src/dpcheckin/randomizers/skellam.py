"""Integers with Skellam noise, sent modulo a public number: made for secure sums.

Secure aggregation adds reports modulo M, so reports must be integers and their noise discrete. The
difference of two Poisson variables (Skellam) is closed under addition: the sum of k reports carries
exactly Skellam noise of k times the variance, whatever k is (Agarwal, Kairouz, Liu,
arXiv 2110.04995v1). This module randomizes one integer in [-bound, bound] per client; its local
pair is exact. Real vectors are rounded to integers with `stochastic_round` first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import written
from dpcheckin.randomizers.base import Randomizer, at_least, positive
from dpcheckin.randomizers.source import RandomSource
from dpcheckin.special.bessel import ive

if TYPE_CHECKING:
    from dpcheckin.accounting import LocalPair

_TAIL = 1e-18  # mass left out of the tables on each side; it is given to the outermost entry


def stochastic_round(values: NDArray[np.float64], source: RandomSource) -> NDArray[np.int64]:
    """Round up or down at random so that the mean is kept.

    Args:
        values: real numbers.
        source: where chance comes from.
    """
    low = np.floor(values)
    return (low + (source.uniform(values.shape) < values - low)).astype(np.int64)


def skellam_masses(variance: float, reach: int) -> NDArray[np.float64]:
    """P(noise = j), j = -reach, …, reach: e^{-v} I_j(v) for Poisson means v/2 each."""
    return ive(np.abs(np.arange(-reach, reach + 1)), variance)


@lru_cache(maxsize=64)
def _reach(variance: float) -> int:
    """How far the noise goes before its tail falls below `_TAIL` (Bernstein, a little more)."""
    log = math.log(2 / _TAIL)
    return math.ceil(math.sqrt(2 * variance * log) + log) + 1


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

    def __post_init__(self) -> None:
        at_least("bound", self.bound, 1)
        positive("variance", self.variance)
        at_least("modulus", self.modulus, 2 * self.bound + 2)
        if self.variance > 1e10:
            raise InvalidParameter("variance", self.variance, "at most 1e10")

    def describe(self) -> str:
        return f"Skellam, variance {written(self.variance)} for integers within ±{self.bound:,}"

    @property
    def pair(self) -> LocalPair:
        """Noise round -bound against noise round +bound: the farthest two inputs.

        The noise is log-concave, so a larger shift is easier to tell and this pair dominates all
        others; taking the modulus only merges outcomes. Where the table ends, the rest of the
        mass is taken to reveal everything.
        """
        from dpcheckin.accounting import from_atoms

        shift = 2 * self.bound
        reach = _reach(self.variance) + shift
        masses = skellam_masses(self.variance, reach)
        here, there = masses[:-shift], masses[shift:]  # Q(j) and P(j) = Q(j + shift)
        ratios = np.exp(np.log(there) - np.log(here))
        ratios = np.append(ratios, 0.0)
        weights = np.append(here, max(0.0, 1.0 - float(here.sum())))
        return from_atoms(ratios, weights)

    def noise(self, size: int, source: RandomSource) -> NDArray[np.int64]:
        """Skellam noise by inversion of its table."""
        reach = _reach(self.variance)
        cumulative = np.cumsum(skellam_masses(self.variance, reach))
        drawn = np.searchsorted(cumulative, source.uniform(size) * cumulative[-1])
        return np.asarray(drawn.astype(np.int64) - reach)

    def randomize(self, values: NDArray[np.int64], source: RandomSource) -> NDArray[np.int64]:
        """One report per integer."""
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
