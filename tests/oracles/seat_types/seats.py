"""The round with labelled seats: everybody but the target has one, the target borrows an empty one.

Given that k < n clients report, its delta is E ((n - k)(1 - alpha) + sum over S of Z_i)+ / n, S a
uniform k-subset of the n - 1 seats. That is the truth if the others hold one value, and above the
truth otherwise; every bound built on seats must lie above it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb

import numpy as np

from oracles.seat_types.laws import Array, Law

Gauge = Callable[[Array], Array]


def positive_part(v: Array) -> Array:
    """v+."""
    return np.maximum(v, 0.0)


def smoothed_part(scale: float) -> Gauge:
    """E (v + N)+ with N Laplace of this scale and mean zero; scale 0 is v+."""
    if scale == 0.0:
        return positive_part
    return lambda v: np.maximum(v, 0.0) + scale / 2 * np.exp(-np.abs(v) / scale)


def merged(one: Law, most: int) -> Law:
    """At most so many atoms, runs of neighbours replaced by their mean: below in convex order.

    So an expectation of a convex function only falls, and what is computed stays a lower bound.
    """
    if len(one.values) <= most:
        return one
    order = np.argsort(one.values)
    values, masses = one.values[order], one.masses[order]
    # Runs of equal share of the spread |value| * mass, so that rare large values keep their own.
    share = masses * (np.abs(values) + np.abs(values).mean()) + masses
    group = np.minimum((np.cumsum(share) / share.sum() * most).astype(np.int64), most - 1)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    weight = np.add.reduceat(masses, starts)
    moment = np.add.reduceat(masses * values, starts)
    kept = weight > 0
    return Law(moment[kept] / weight[kept], weight[kept])


def subset_sums(seats: Sequence[Law], most: int = 20_000) -> list[Law]:
    """For each k the sum over all k-subsets of the seats of the law of their sum (mass C(s, k))."""
    sums = [Law(np.zeros(1), np.ones(1))]
    for seat in seats:
        grown = []
        for k in range(len(sums) + 1):
            parts = []
            if k < len(sums):
                parts.append(sums[k])
            if k > 0:
                before = sums[k - 1]
                parts.append(
                    Law(
                        np.add.outer(before.values, seat.values).ravel(),
                        np.multiply.outer(before.masses, seat.masses).ravel(),
                    )
                )
            both = Law(np.concatenate([p.values for p in parts]), np.concatenate([p.masses for p in parts]))
            grown.append(merged(both, most))
        sums = grown
    return sums


def _part(sums: Sequence[Law], n: int, k: int, alpha: float, gauge: Gauge) -> float:
    one = sums[k]
    return float(one.masses @ gauge(one.values + (n - k) * (1.0 - alpha)))


def check_in(
    seats: Sequence[Law], rate: float, alpha: float, gauge: Gauge = positive_part, most: int = 20_000
) -> float:
    """The part k < n of labelled check-in of len(seats) + 1 clients; the part k = n is left out."""
    n = len(seats) + 1
    sums = subset_sums(seats, most)
    return sum(rate**k * (1.0 - rate) ** (n - k) / (n - k) * _part(sums, n, k, alpha, gauge) for k in range(n))


def cohort(seats: Sequence[Law], present: int, alpha: float, gauge: Gauge = positive_part, most: int = 20_000) -> float:
    """Labelled cohorts of `present` < n of the n = len(seats) + 1 clients."""
    n = len(seats) + 1
    sums = subset_sums(seats, most)[: present + 1]
    return _part(sums, n, present, alpha, gauge) / (n * comb(n - 1, present))
