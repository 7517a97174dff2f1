"""From how often an event happened to a lower bound on epsilon that holds with stated confidence.

A mechanism that is (ε, δ)-private has P(S) - e^ε Q(S) ≤ δ for every event S, also for events that happen to a degree
between 0 and 1. We play it on both neighbours again and again, and bet against that inequality: a capital of 1 is
multiplied by 1 + stake · (S(first) - e^ε S(second) - δ) for every pair of runs (docs/audit.md says why it ever reaches
1/(1 - confidence) with probability at most 1 - confidence; betting: Waudby-Smith and Ramdas, arXiv 2010.09686v7). Pairs
must be independent; the two runs within a pair need not be, so both may have the same noise. Event and stakes must be
chosen before the pairs are seen.

Few degrees are counted in a table (`Counts`), and the capital is worked out for any epsilon afterwards. Mean degrees
over many runs are too many to count, so their capital is carried along for a grid of epsilons (`Capital`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.special import intervals
from dpcheckin.special.roots import switch

FloatArray = NDArray[np.float64]

LARGEST_EPSILON = 60.0
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Counts:
    """How often pairs of runs showed an event, to what degree.

    Degrees run from 0 (it did not happen) to 1 in equal steps: row = degree in the run on the first neighbour, column =
    on the second. A plain event has two degrees.
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
        """Of an event that happens or does not: on `both`, on one (`first_only`, `second_only`), or on `neither`."""
        return Counts(((neither, second_only), (first_only, both)))

    @staticmethod
    def of(first: NDArray[np.int64], second: NDArray[np.int64], steps: int) -> Counts:
        """Count degrees on the first and second neighbour, given as whole numbers from 0 to `steps`."""
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
        return Counts(tuple(tuple(a + b for a, b in zip(one, two, strict=True)) for one, two in rows))


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
    """What part of the capital (`shares`) is put on which stake (`sizes`, from 0 to 1), before pairs are seen."""

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
    epsilon: FloatArray | float, delta: FloatArray | float, size: FloatArray | float, counts: FloatArray
) -> FloatArray:
    """Log capital of one stake; the last axis of `counts` is a flat table of degrees.

    A capital that could become negative is worth nothing: minus infinity. The claimed `epsilon` and `delta` and the
    stake's `size` may be arrays.
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
    """Log of the capital that `counts` won against "the mechanism is (epsilon, delta)-private" with these stakes."""
    if math.isinf(epsilon):  # nothing can be won against it
        return -math.inf
    growth = log_growth(epsilon, delta, np.array(stakes.sizes), counts.flat)
    with np.errstate(divide="ignore"):
        return float(np.logaddexp.reduce(growth + np.log(np.array(stakes.shares))))


def lower_epsilon(counts: Counts, delta: float, confidence: float, stakes: Stakes) -> float:
    """The epsilon that `counts` refute with this confidence, in [0.5, 1), at this delta and with these stakes.

    0 if none is. The capital falls as epsilon grows, so one bet refutes all smaller epsilons at once.

    >>> lower_epsilon(Counts.plain(0, 900, 0, 100), 1e-3, 0.99, Stakes.around(0.005)) > 4
    True
    """
    wanted = needed_capital(confidence)

    def refuted(epsilon: float) -> bool:
        return log_evidence(counts, epsilon, delta, stakes) >= wanted

    return switch(refuted, 0.0, LARGEST_EPSILON)[0] if refuted(0.0) else 0.0


def needed_capital(confidence: float) -> float:
    """Log of the capital at which a claim is refuted."""
    if not 0.5 <= confidence < 1.0:
        raise InvalidParameter("confidence", confidence, "in [0.5, 1)")
    return -math.log1p(-confidence)


def clopper_pearson_epsilon(counts: Counts, delta: float, confidence: float) -> float:
    """The classical bound from `counts` of pairs fixed in number, at this delta and confidence; ignores the pairing.

    >>> clopper_pearson_epsilon(Counts.plain(0, 900, 0, 100), 1e-3, 0.99) > 4
    True
    """
    needed_capital(confidence)
    miss, n = (1.0 - confidence) / 2, counts.pairs
    if n == 0 or counts.first == 0:
        return 0.0
    least = intervals.least_probability(counts.first, n, miss)
    most = intervals.largest_probability(counts.second, n, miss)
    return max(0.0, math.log((least - delta) / most)) if least > delta else 0.0


_BELOW, _ABOVE = 400, 80  # steps up to what is claimed, and from there to twice as much
_FACTORS = 16  # so many factors are multiplied before a logarithm is taken
_WHOLE = 1e-12


def epsilon_grid(claimed: float, promised: float) -> FloatArray:
    """Candidates for the lower bound: up to twice what is `claimed`, which is one of them, or was `promised`."""
    top = claimed if 0.0 < claimed < math.inf else max(2.0 * promised, 0.1)
    below, above = np.linspace(0.0, top, _BELOW + 1), np.linspace(top, 2 * top, _ABOVE + 1)
    return np.concatenate([below, above[1:]])


@dataclass(frozen=True, slots=True)
class Capital:
    """Log capital for every epsilon (row) and stake (column), and moments of the mean degrees."""

    epsilons: FloatArray
    log_capital: FloatArray
    pairs: int
    moments: tuple[float, ...]
    """Sums of first, second, first², first · second and second²."""

    @staticmethod
    def won(epsilons: FloatArray, stakes: Stakes, delta: float, first: FloatArray, second: FloatArray) -> Capital:
        """The capital that stakes won at `epsilons` and `delta` by mean degrees (`first`, `second`) in [0, 1]."""
        for degrees in (first, second):
            if degrees.size and not (degrees.min() >= -_WHOLE and degrees.max() <= 1.0 + _WHOLE):
                raise InvalidParameter("degrees", degrees, "numbers from 0 to 1")
        columns = [log_growth_by_play(epsilons, delta, size, first, second) for size in stakes.sizes]
        products = (first, second, first * first, first * second, second * second)
        moments = tuple(float(np.sum(p)) for p in products)
        return Capital(epsilons, np.stack(columns, axis=1), first.size, moments)

    def __add__(self, other: Capital) -> Capital:
        return replace(
            self,
            log_capital=self.log_capital + other.log_capital,
            pairs=self.pairs + other.pairs,
            moments=tuple(a + b for a, b in zip(self.moments, other.moments, strict=True)),
        )

    def log_evidence(self, epsilon: float, stakes: Stakes) -> float:
        """Log of the whole capital on all stakes against an epsilon, or against the next larger of the grid."""
        place = int(np.searchsorted(self.epsilons, epsilon * (1.0 - 1e-12)))
        return float(self._total(stakes)[place]) if place < self.epsilons.size else -math.inf

    def lower_epsilon(self, wanted: float, stakes: Stakes) -> float:
        """The largest epsilon of the grid against which all stakes won the capital `wanted` (its log); 0 if none is."""
        refuted = np.flatnonzero(self._total(stakes) >= wanted)
        return float(self.epsilons[refuted[-1]]) if refuted.size else 0.0

    def _total(self, stakes: Stakes) -> FloatArray:
        return np.asarray(np.logaddexp.reduce(self.log_capital + np.log(np.array(stakes.shares)), axis=1))

    def mean(self, epsilon: float) -> float:
        """Of first - e^ε second over pairs."""
        return (self.moments[0] - math.exp(epsilon) * self.moments[1]) / self.pairs

    def variance(self, epsilon: float) -> float:
        """Of first - e^ε second over pairs."""
        return float(gain_variance(math.exp(epsilon), np.array(self.moments) / self.pairs))

    def to_json(self) -> dict[str, Any]:
        """A plain object for JSON; infinite losses are null."""
        rows = [[x if math.isfinite(x) else None for x in row] for row in self.log_capital.tolist()]
        return {
            "epsilons": self.epsilons.tolist(),
            "log_capital": rows,
            "pairs": self.pairs,
            "moments": list(self.moments),
        }

    @staticmethod
    def from_json(read: dict[str, Any]) -> Capital:
        rows = [[-math.inf if x is None else x for x in row] for row in read["log_capital"]]
        moments = tuple(float(m) for m in read["moments"])
        if len(moments) != 5:
            raise ValueError("five moments")
        return Capital(np.array(read["epsilons"]), np.array(rows), int(read["pairs"]), moments)


def gain_variance(power: FloatArray | float, moments: FloatArray) -> FloatArray:
    """Variance of first - `power` second (power is e^ε), from `moments`: means of products, as `Capital` has them."""
    a, b, aa, ab, bb = moments.T[:5]
    return np.asarray(np.maximum(aa - 2 * power * ab + power**2 * bb - (a - power * b) ** 2, 0.0))


def log_growth_by_play(
    epsilons: FloatArray, delta: float, size: float, first: FloatArray, second: FloatArray
) -> FloatArray:
    """Log capital of one stake of this size for all `epsilons`, at delta, by mean degrees of plays (first, second)."""
    grown = np.full(epsilons.size, -np.inf)
    alive = size * (np.exp(epsilons) + delta) <= 1.0 - _WHOLE
    powers = np.exp(epsilons[alive])
    if not powers.size:
        return grown
    total = np.zeros(powers.size)
    chunk = max(_FACTORS, (1 << 16) // powers.size // _FACTORS * _FACTORS)
    for start in range(0, first.size, chunk):
        one, other = first[start : start + chunk], second[start : start + chunk]
        factors = 1.0 + size * (one - delta) - size * powers[:, None] * other
        whole = one.size // _FACTORS * _FACTORS
        together = factors[:, :whole].reshape(powers.size, _FACTORS, -1).prod(axis=1)
        total += np.log(together).sum(axis=1) + np.log(factors[:, whole:]).sum(axis=1)
    grown[alive] = total
    return grown
