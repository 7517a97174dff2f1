"""The theorem of types by brute force: every count of types, every atom.

    (1/n) E (j_1 seats of type 1 + ... + j_m of type m + one seat of Z*)+  on k < n,
    the largest over all counts with j_1 + ... + j_m = n - 1,  plus  rate^n h(alpha),

each seat empty with probability 1 - rate, an empty seat worth 1 - alpha. For alpha >= 1; the other
side of a curve is its mirror image. Cohorts of fixed size k < n: the same seats, k of them taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from itertools import product
from math import comb, prod

import numpy as np

from oracles.seat_types.laws import Array, Law, copies, plus
from oracles.seat_types.seats import Gauge, positive_part

Counts = tuple[int, ...]


@lru_cache(maxsize=1024)
def compositions(total: int, parts: int) -> tuple[Counts, ...]:
    """All ways to write a number as an ordered sum of so many numbers >= 0."""
    if parts == 1:
        return ((total,),)
    return tuple((first, *rest) for first in range(total + 1) for rest in compositions(total - first, parts - 1))


@dataclass(frozen=True)
class Largest:
    """The largest value and the counts that attain it."""

    value: float
    counts: Counts


@dataclass
class Seating:
    """n seats: n - 1 of the given types and one of the law `extra`, at one alpha >= 1.

    `gauge` is v+ or its smoothed form.
    """

    n: int
    types: Sequence[Law]
    extra: Law
    alpha: float
    gauge: Gauge = positive_part
    _powers: list[list[Law]] = field(init=False)
    _values: dict[tuple[Counts, int], float] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._powers = [[copies(t, i) for i in range(self.n)] for t in self.types]

    def taken(self, present: Counts, extra: int) -> float:
        """E gauge of the sum, so many seats of each type taken and the extra one or not."""
        key = (present, extra)
        if key not in self._values:
            laws = [powers[i] for powers, i in zip(self._powers, present, strict=True) if i]
            total = reduce(plus, [*laws, *([self.extra] if extra else [])], _NOTHING)
            empty = self.n - sum(present) - extra
            shifted = total.values + empty * (1.0 - self.alpha)
            self._values[key] = float(total.masses @ self.gauge(shifted))
        return self._values[key]

    def _subsets(self, counts: Counts) -> Iterator[tuple[int, float]]:
        """(how many are taken, the sum over all such subsets of E gauge), not all n taken."""
        for present in product(*(range(j + 1) for j in counts)):
            ways = prod(comb(j, i) for j, i in zip(counts, present, strict=True))
            for extra in (0, 1):
                if sum(present) + extra < self.n:
                    yield sum(present) + extra, ways * self.taken(present, extra)

    def check_in(self, counts: Counts, rate: float) -> float:
        """(1/n) E (...)+ on k < n with every seat taken by its own coin."""
        n = self.n
        return sum(rate**k * (1 - rate) ** (n - k) * value for k, value in self._subsets(counts)) / n

    def cohort(self, counts: Counts, size: int) -> float:
        """(1/n) E (...)+ with a uniformly random `size` < n of the seats taken."""
        total = sum(value for k, value in self._subsets(counts) if k == size)
        return total / (self.n * comb(self.n, size))

    def largest(self, *, rate: float | None = None, size: int | None = None) -> Largest:
        """The largest over all counts; give either the rate or the cohort's size."""
        best = Largest(-1.0, ())
        for counts in compositions(self.n - 1, len(self.types)):
            value = self.check_in(counts, rate) if rate is not None else self.cohort(counts, size)
            if value > best.value:
                best = Largest(value, counts)
        return best


_NOTHING = Law(np.zeros(1), np.ones(1))


def bound(
    n: int, rate: float, types: Sequence[Law], extra: Law, alpha: float, local: float,
    gauge: Gauge = positive_part,
) -> float:  # fmt: skip
    """The theorem's figure for check-in; `local`: h(alpha), paid when everybody reports."""
    whole = Seating(n, types, extra, alpha, gauge).largest(rate=rate).value
    return whole + rate**n * local


def lower_hull(alphas: Array, values: Array) -> Mapping[float, float]:
    """The lower convex hull of a curve's dots together with (0, 1): its corners."""
    points = sorted({0.0: 1.0, **dict(zip(alphas.tolist(), values.tolist(), strict=True))}.items())
    hull: list[tuple[float, float]] = []
    for x, y in points:
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2:]
            if (y1 - y0) * (x - x0) < (y - y0) * (x1 - x0):
                break
            hull.pop()
        hull.append((x, y))
    return dict(hull)


def mirrored(alphas: Array, values: Array) -> tuple[Array, Array]:
    """A curve given for alpha >= 1 with its mirror image, B(1/alpha) = 1 - 1/alpha + B/alpha."""
    assert (alphas >= 1.0).all()
    inner = alphas > 1.0
    at = np.concatenate([1.0 / alphas[inner], alphas])
    value = np.concatenate([1.0 - 1.0 / alphas[inner] + values[inner] / alphas[inner], values])
    order = np.argsort(at)
    return at[order], value[order]
