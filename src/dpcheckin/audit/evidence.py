"""From how often an event happened to a lower bound on epsilon that holds with stated confidence.

A mechanism that is (ε, δ)-private has P(S) - e^ε Q(S) ≤ δ for every event S. We play it on both
neighbours again and again, and bet against that inequality: a capital of 1 is multiplied by
1 + stake · (1_S(first) - e^ε 1_S(second) - δ) for every pair of runs. If the inequality holds the
expected capital never exceeds 1, whatever the mechanism is, so by Ville's inequality it reaches
1/(1 - confidence) at any time, ever, with probability at most 1 - confidence (betting: Waudby-Smith
and Ramdas, arXiv 2010.09686v7). Pairs must be independent of each other; the two runs *within* a
pair need not be, which is why both may use the same coins and the same noise: the difference then
varies far less. The event and the stakes must be chosen before the pairs are seen.

The bound of Clopper and Pearson is here for comparison. How events are chosen is `audit.choice`'s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter

FloatArray = NDArray[np.float64]

LARGEST_EPSILON = 60.0
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Counts:
    """How often an event happened in pairs of runs: in both, in one of them, in neither."""

    both: int = 0
    first_only: int = 0
    second_only: int = 0
    neither: int = 0

    def __post_init__(self) -> None:
        if min(self.as_tuple()) < 0:
            raise InvalidParameter("counts", self.as_tuple(), "numbers of at least 0")

    def as_tuple(self) -> tuple[int, int, int, int]:
        """Both, first only, second only, neither."""
        return self.both, self.first_only, self.second_only, self.neither

    @property
    def pairs(self) -> int:
        return sum(self.as_tuple())

    @property
    def first(self) -> int:
        return self.both + self.first_only

    @property
    def second(self) -> int:
        return self.both + self.second_only

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(a + b for a, b in zip(self.as_tuple(), other.as_tuple(), strict=True)))

    @staticmethod
    def of(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> Counts:
        """Count an event that happened in these runs."""
        both = int(np.count_nonzero(first & second))
        one, other = int(np.count_nonzero(first)), int(np.count_nonzero(second))
        return Counts(both, one - both, other - both, first.size - one - other + both)


@dataclass(frozen=True, slots=True)
class Stakes:
    """What part of the capital is put on which stake; fixed before the pairs are seen."""

    sizes: tuple[float, ...]
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.sizes or len(self.sizes) != len(self.shares):
            raise InvalidParameter("shares", self.shares, "one for each stake")
        if not all(0.0 < size < 1.0 for size in self.sizes):
            raise InvalidParameter("stakes", self.sizes, "numbers strictly between 0 and 1")
        if min(self.shares) < 0 or abs(sum(self.shares) - 1.0) > 1e-9:
            raise InvalidParameter("shares", self.shares, "shares of at least 0 that sum to 1")

    @staticmethod
    def around(size: float) -> Stakes:
        """Most on one stake, a little on its half and double in case the forecast was off."""
        size = min(max(size, 1e-9), 0.499)
        return Stakes((size, size / 2, 2 * size), (0.8, 0.1, 0.1))


def log_growth(
    epsilon: FloatArray | float, delta: float, size: FloatArray | float, counts: FloatArray
) -> FloatArray:
    """Log capital of one stake; the counts' last axis is (both, first, second, neither).

    A capital that could become negative is worth nothing: minus infinity.
    """
    power = np.exp(np.asarray(epsilon, dtype=np.float64))
    gains = (1.0 - power, np.ones_like(power), -power, np.zeros_like(power))
    total = np.zeros(np.broadcast_shapes(power.shape, np.shape(size), counts.shape[:-1]))
    alive = size * (power + delta) <= 1.0 - _TINY
    for place, gain in enumerate(gains):
        factor = np.where(alive, size * (gain - delta), 0.0)
        total = total + counts[..., place] * np.log1p(factor)
    return np.where(alive, total, -np.inf)


def log_evidence(counts: Counts, epsilon: float, delta: float, stakes: Stakes) -> float:
    """Log of the capital won against "the mechanism is (epsilon, delta)-private"."""
    growth = log_growth(
        epsilon, delta, np.array(stakes.sizes), np.array(counts.as_tuple(), dtype=np.float64)
    )
    with np.errstate(divide="ignore"):
        return float(np.logaddexp.reduce(growth + np.log(np.array(stakes.shares))))


def lower_epsilon(counts: Counts, delta: float, confidence: float, stakes: Stakes) -> float:
    """The epsilon that is refuted with this confidence; 0 if none is.

    The capital falls as epsilon grows, so one bet refutes all smaller epsilons at once.

    >>> lower_epsilon(Counts(0, 900, 0, 100), 1e-3, 0.99, Stakes.around(0.005)) > 4
    True
    """
    wanted = needed_capital(confidence)

    def refuted(epsilon: float) -> bool:
        return log_evidence(counts, epsilon, delta, stakes) >= wanted

    if not refuted(0.0):
        return 0.0
    low, high = 0.0, LARGEST_EPSILON
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def needed_capital(confidence: float) -> float:
    """Log of the capital at which a claim is refuted."""
    if not 0.5 <= confidence < 1.0:
        raise InvalidParameter("confidence", confidence, "in [0.5, 1)")
    return -math.log1p(-confidence)


def clopper_pearson_epsilon(counts: Counts, delta: float, confidence: float) -> float:
    """The classical bound, for a number of pairs fixed in advance; ignores the pairing.

    >>> clopper_pearson_epsilon(Counts(0, 900, 0, 100), 1e-3, 0.99) > 4
    True
    """
    from scipy import stats

    needed_capital(confidence)
    miss, n = (1.0 - confidence) / 2, counts.pairs
    if n == 0 or counts.first == 0:
        return 0.0
    least = float(stats.beta.ppf(miss, counts.first, n - counts.first + 1))
    most = 1.0
    if counts.second < n:
        most = float(stats.beta.ppf(1.0 - miss, counts.second + 1, n - counts.second))
    return max(0.0, math.log((least - delta) / most)) if least > delta else 0.0
