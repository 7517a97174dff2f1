"""From how often an event happened to a lower bound on epsilon that holds with stated confidence.

A mechanism that is (ε, δ)-private has P(S) - e^ε Q(S) ≤ δ for every event S, also for events that
happen to a degree between 0 and 1. We play it on both neighbours again and again, and bet against
that inequality: a capital of 1 is multiplied by 1 + stake · (S(first) - e^ε S(second) - δ) for
every pair of runs. If the inequality holds the
expected capital never exceeds 1, whatever the mechanism is, so by Ville's inequality it reaches
1/(1 - confidence) at any time, ever, with probability at most 1 - confidence (betting: Waudby-Smith
and Ramdas, arXiv 2010.09686v7). Pairs must be independent of each other; the two runs *within* a
pair need not be, which is why both may use the same coins and the same noise: the difference then
varies far less. The event and the stakes must be chosen before the pairs are seen.

The bound of Clopper and Pearson is here for comparison. How events are chosen is
`audit.betting.choice`'s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.special import binomial

FloatArray = NDArray[np.float64]

LARGEST_EPSILON = 60.0
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Counts:
    """How often pairs of runs showed an event, to what degree.

    Degrees run from 0 (it did not happen) to 1 in equal steps: row = degree in the run on the first
    neighbour, column = on the second. A plain event has two degrees.
    """

    table: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        sizes = {len(row) for row in self.table}
        if sizes != {len(self.table)} or len(self.table) < 2:
            raise InvalidParameter("counts", self.table, "a square table of two or more degrees")
        if min(min(row) for row in self.table) < 0:
            raise InvalidParameter("counts", self.table, "numbers of at least 0")

    @staticmethod
    def plain(both: int = 0, first_only: int = 0, second_only: int = 0, neither: int = 0) -> Counts:
        """Of an event that happens or does not."""
        return Counts(((neither, second_only), (first_only, both)))

    @staticmethod
    def of(first: NDArray[np.int64], second: NDArray[np.int64], steps: int) -> Counts:
        """Count degrees, given as whole numbers from 0 to `steps`."""
        size = steps + 1
        seen = np.bincount(first * size + second, minlength=size * size).reshape(size, size)
        return Counts(tuple(tuple(int(x) for x in row) for row in seen))

    @property
    def pairs(self) -> int:
        return sum(sum(row) for row in self.table)

    @property
    def first(self) -> int:
        """Runs on the first neighbour with a degree of at least a half."""
        half = len(self.table) // 2
        return sum(sum(row) for row in self.table[half:])

    @property
    def second(self) -> int:
        half = len(self.table) // 2
        return sum(sum(row[half:]) for row in self.table)

    @property
    def flat(self) -> FloatArray:
        """The table row by row."""
        return np.array(self.table, dtype=np.float64).ravel()

    def to_json(self) -> dict[str, Any]:
        """A plain object for JSON."""
        return {"table": [list(row) for row in self.table]}

    def mean(self, epsilon: float) -> float:
        """Of first - e^ε second over pairs."""
        one, other = degrees(self.flat.size)
        return float((self.flat * (one - math.exp(epsilon) * other)).sum() / self.pairs)

    def variance(self, epsilon: float) -> float:
        """Of first - e^ε second over pairs."""
        one, other = degrees(self.flat.size)
        gains, shares = one - math.exp(epsilon) * other, self.flat / self.pairs
        return float((shares * (gains - (shares * gains).sum()) ** 2).sum())

    def __add__(self, other: Counts) -> Counts:
        rows = zip(self.table, other.table, strict=True)
        return Counts(
            tuple(tuple(a + b for a, b in zip(one, two, strict=True)) for one, two in rows)
        )


def degrees(cells: int) -> tuple[FloatArray, FloatArray]:
    """Degree on the first and on the second neighbour in each cell of a flat table.

    >>> degrees(4)[0].tolist(), degrees(4)[1].tolist()
    ([0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0])
    """
    size = math.isqrt(cells)
    scale = np.arange(size) / (size - 1)
    return np.repeat(scale, size), np.tile(scale, size)


@dataclass(frozen=True, slots=True)
class Stakes:
    """What part of the capital is put on which stake; fixed before the pairs are seen.

    Args:
        sizes: stakes, strictly between 0 and 1.
        shares: of the capital, which sum to 1.
    """

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
        size = min(max(size, 1e-9), 0.95)
        return Stakes((size, size / 2, min(2 * size, 0.99)), (0.8, 0.1, 0.1))


def log_growth(
    epsilon: FloatArray | float,
    delta: FloatArray | float,
    size: FloatArray | float,
    counts: FloatArray,
) -> FloatArray:
    """Log capital of one stake; the counts' last axis is a flat table of degrees.

    A capital that could become negative is worth nothing: minus infinity.

    Args:
        epsilon: claimed epsilons.
        delta: claimed deltas.
        size: stakes.
        counts: pairs of runs by their degrees.
    """
    power = np.exp(np.asarray(epsilon, dtype=np.float64))
    total = np.zeros(np.broadcast_shapes(power.shape, np.shape(size), counts.shape[:-1]))
    alive = size * (power + delta) <= 1.0 - _TINY
    for cell, (one, other) in enumerate(zip(*degrees(counts.shape[-1]), strict=True)):
        if counts[..., cell].any():
            factor = np.where(alive, size * (one - power * other - delta), 0.0)
            total = total + counts[..., cell] * np.log1p(factor)
    return np.where(alive, total, -np.inf)


def log_evidence(counts: Counts, epsilon: float, delta: float, stakes: Stakes) -> float:
    """Log of the capital won against "the mechanism is (epsilon, delta)-private".

    Args:
        counts: what was seen.
        epsilon: the claim's.
        delta: the claim's.
        stakes: as they were fixed beforehand.
    """
    if math.isinf(epsilon):  # nothing can be won against it
        return -math.inf
    growth = log_growth(epsilon, delta, np.array(stakes.sizes), counts.flat)
    with np.errstate(divide="ignore"):
        return float(np.logaddexp.reduce(growth + np.log(np.array(stakes.shares))))


def lower_epsilon(counts: Counts, delta: float, confidence: float, stakes: Stakes) -> float:
    """The epsilon that is refuted with this confidence; 0 if none is.

    The capital falls as epsilon grows, so one bet refutes all smaller epsilons at once.

    Args:
        counts: what was seen.
        delta: the delta of claim and audit, strictly between 0 and 1.
        confidence: of the lower bound, in [0.5, 1).
        stakes: as they were fixed beforehand.

    >>> lower_epsilon(Counts.plain(0, 900, 0, 100), 1e-3, 0.99, Stakes.around(0.005)) > 4
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

    Args:
        counts: what was seen.
        delta: the delta of claim and audit, strictly between 0 and 1.
        confidence: of the lower bound, in [0.5, 1).

    >>> clopper_pearson_epsilon(Counts.plain(0, 900, 0, 100), 1e-3, 0.99) > 4
    True
    """
    needed_capital(confidence)
    miss, n = (1.0 - confidence) / 2, counts.pairs
    if n == 0 or counts.first == 0:
        return 0.0
    least = binomial.least_probability(counts.first, n, miss)
    most = binomial.largest_probability(counts.second, n, miss)
    return max(0.0, math.log((least - delta) / most)) if least > delta else 0.0
