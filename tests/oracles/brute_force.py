"""What the analyzer really sees, by complete enumeration.

A randomizer is any stochastic matrix (one row per input, one column per report). For at most a
handful of users this file computes the exact law of the analyzer's view (how often each report
occurs; the number k of reports is its total) under full shuffling, a fixed-size subsample and
shuffled check-in, and exact hockey-stick divergences between two such laws, also after up to
three rounds. It also holds the labelled view of the empty-seat lemma. No theorem is used here:
bounds live in ``theorem_oracle``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Histogram = tuple[int, ...]
Law = dict[Histogram, float]


def _views(users: Sequence[tuple[float, Floats]], reports: int) -> Law:
    """Product of the users' generating polynomials (weight of absence, weights of reports)."""
    law: Law = {(0,) * reports: 1.0}
    for absent, present in users:
        longer: Law = {}
        for view, mass in law.items():
            if absent > 0:
                longer[view] = longer.get(view, 0.0) + mass * absent
            for report in range(reports):
                if present[report] > 0:
                    seen = (*view[:report], view[report] + 1, *view[report + 1 :])
                    longer[seen] = longer.get(seen, 0.0) + mass * float(present[report])
        law = longer
    return law


def shuffle_law(matrix: Floats, inputs: Sequence[int]) -> Law:
    """Everybody reports."""
    return _views([(0.0, matrix[x]) for x in inputs], matrix.shape[1])


def check_in_law(matrix: Floats, inputs: Sequence[int], rates: float | Sequence[float]) -> Law:
    """Every user reports with its own probability (one rate for all, or one per user)."""
    each = [rates] * len(inputs) if isinstance(rates, int | float) else list(rates)
    users = [(1.0 - g, g * matrix[x]) for x, g in zip(inputs, each, strict=True)]
    return _views(users, matrix.shape[1])


def subsample_law(matrix: Floats, inputs: Sequence[int], cohort: int, colluders: int = 0) -> Law:
    """A uniform cohort of all users, of whom ``inputs`` are the honest ones.

    Colluders (extra users) tell the analyzer their reports, so it sees the honest ones alone.
    """
    population = len(inputs) + colluders
    subsets = _views([(1.0, matrix[x]) for x in inputs], matrix.shape[1])
    total = math.comb(population, cohort)
    return {
        view: mass * math.comb(colluders, cohort - sum(view)) / total
        for view, mass in subsets.items()
        if 0 <= cohort - sum(view) <= colluders
    }


def as_pair(first: Law, second: Law) -> tuple[Floats, Floats]:
    """Two laws as probability vectors over the union of their supports."""
    views = sorted(first.keys() | second.keys())
    return (np.array([first.get(v, 0.0) for v in views]), np.array([second.get(v, 0.0) for v in views]))


def hockey_stick(p: Floats, q: Floats, epsilon: float) -> float:
    """The sum of (p - e^epsilon q)+."""
    return math.fsum(np.maximum(p - math.exp(epsilon) * q, 0.0))


def both_directions(p: Floats, q: Floats, epsilon: float) -> tuple[float, float]:
    return hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon)


def composed(p: Floats, q: Floats, rounds: int) -> tuple[Floats, Floats]:
    """The pair of ``rounds`` independent copies; multisets of outcomes, with their counts."""
    if not 1 <= rounds <= 3:
        raise ValueError(f"rounds = {rounds}: products are enumerated for 1, 2 or 3 rounds")
    if rounds == 1:
        return p, q
    i, j = np.triu_indices(len(p))
    twice = np.where(i == j, 1.0, 2.0)
    if rounds == 2:
        return p[i] * p[j] * twice, q[i] * q[j] * twice
    many_p, many_q = [], []
    for k in range(len(p)):  # i <= j <= k, so every multiset is met once
        keep = j <= k
        a, b = i[keep], j[keep]
        count = np.where(b == k, np.where(a == b, 1.0, 3.0), np.where(a == b, 3.0, 6.0))
        many_p.append(p[a] * p[b] * p[k] * count)
        many_q.append(q[a] * q[b] * q[k] * count)
    return np.concatenate(many_p), np.concatenate(many_q)


def composed_delta(p: Floats, q: Floats, rounds: int, epsilon: float) -> float:
    """delta(epsilon) of ``rounds`` copies, the worse of the two directions."""
    return max(both_directions(*composed(p, q, rounds), epsilon))


def composed_epsilon(p: Floats, q: Floats, rounds: int, delta: float) -> float:
    """Smallest epsilon >= 0 at which the composed pair has at most ``delta``; inf if none."""
    many_p, many_q = composed(p, q, rounds)
    return max(_epsilon(many_p, many_q, delta), _epsilon(many_q, many_p, delta))


def _epsilon(p: Floats, q: Floats, delta: float) -> float:
    """Exact inverse: delta(e^eps) is linear between neighbouring likelihood ratios."""
    free = math.fsum(p[q == 0.0])
    if free > delta:
        return math.inf
    p, q = p[q > 0.0], q[q > 0.0]
    order = np.argsort(-(p / q), kind="stable")
    above_p = free + np.cumsum(p[order])
    above_q = np.cumsum(q[order])
    ratio = p[order] / q[order]
    # With exactly the first j+1 outcomes counted, delta = above_p - alpha above_q.
    at_next = above_p - np.append(ratio[1:], 0.0) * above_q
    j = int(np.searchsorted(at_next, delta, side="right"))
    if j >= len(ratio):
        return 0.0
    return max(0.0, math.log((above_p[j] - delta) / above_q[j]))


def adaptive_two_round_delta(
    first: tuple[Floats, Floats], seconds: Sequence[tuple[Floats, Floats]], epsilon: float
) -> float:
    """Two rounds whose second one an adversary picks after seeing the first.

    sum over views y of sup over second rounds of sum_z (p(y)p'(z) - e^epsilon q(y)q'(z))+.
    """
    alpha, (p, q) = math.exp(epsilon), first
    worst = np.zeros(len(p))
    for p2, q2 in seconds:
        worst = np.maximum(worst, np.maximum(np.outer(p, p2) - alpha * np.outer(q, q2), 0.0).sum(axis=1))
    return math.fsum(worst)


def empty_seat_pair(matrix: Floats, a: int, b: int, others: Sequence[int], cohort: int) -> tuple[Floats, Floats]:
    """The labelled view of the empty-seat lemma, k = ``cohort`` < n, as two measures.

    Written as measures and not as densities, so reports that an input never makes need no care:
    for seats S taken with reports y, n C(n-1, k) times the mass under "user 1 holds a" is
    (n - k) prod_S R(x_i)(y_i) + sum_{i in S} R(a)(y_i) prod_{j in S, j != i} R(x_j)(y_j).
    """
    n = len(others) + 1
    if not 0 <= cohort < n:
        raise ValueError(f"cohort = {cohort}: the lemma needs an empty seat, 0 <= cohort < {n}")
    scale = 1.0 / (n * math.comb(n - 1, cohort))
    masses: dict[int, list[Floats]] = {a: [], b: []}
    for seats in itertools.combinations(others, cohort):
        for held, collected in masses.items():
            total = (n - cohort) * _product([matrix[x] for x in seats])
            for i in range(cohort):
                rows = [matrix[held if j == i else x] for j, x in enumerate(seats)]
                total = total + _product(rows)
            collected.append(scale * total)
    return np.concatenate(masses[a]), np.concatenate(masses[b])


def _product(rows: Sequence[Floats]) -> Floats:
    out = np.ones(1)
    for row in rows:
        out = np.outer(out, row).ravel()
    return out
