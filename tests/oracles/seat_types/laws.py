"""Laws of finitely many atoms, and the laws that one seat of a round can have.

With the target at a or b, a client at x fills its seat with Z = (R(a) - alpha R(b)) / R(x) at
y ~ R(x). Under pure local privacy the columns (R(a), R(b), R(x)) are mixtures of vectors of ones
and e's, and the five ways to make stochastic rows of these with the fewest columns are the types
A (x = a), B (x = b), C (three symbols, each high for one input), D (each low for one) and N (a and
b alike, x opposed).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import factorial

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Law:
    """Real values and their masses, which need not be sorted and sum to one."""

    values: Array
    masses: Array

    @property
    def mean(self) -> float:
        """The expectation."""
        return float(self.values @ self.masses)

    @property
    def variance(self) -> float:
        """The expected squared distance from the mean."""
        return float(self.masses @ (self.values - self.mean) ** 2)

    def potential(self, at: Array) -> Array:
        """E (Z - t)+ at each t."""
        excess = np.maximum(self.values[None, :] - np.asarray(at, float)[:, None], 0.0)
        return excess @ self.masses


def law(atoms: Sequence[tuple[float, float]]) -> Law:
    """The law with these (value, mass) pairs."""
    return Law(np.array([v for v, _ in atoms]), np.array([m for _, m in atoms]))


def mixture(parts: Sequence[tuple[float, Law]]) -> Law:
    """The mixture with these weights."""
    return Law(
        np.concatenate([part.values for _, part in parts]),
        np.concatenate([weight * part.masses for weight, part in parts]),
    )


def copies(one: Law, count: int) -> Law:
    """The sum of so many independent copies: one atom for every histogram of outcomes."""
    values, masses = [], []
    for draw in combinations_with_replacement(range(len(one.values)), count):
        times = np.bincount(np.array(draw, dtype=np.int64), minlength=len(one.values))
        ways = factorial(count)
        for t in times:
            ways //= factorial(int(t))
        values.append(float(times @ one.values))
        masses.append(ways * float(np.prod(one.masses**times)))
    return Law(np.array(values), np.array(masses))


def plus(left: Law, right: Law) -> Law:
    """The sum of two independent variables, every pair of atoms kept."""
    return Law(np.add.outer(left.values, right.values).ravel(), np.multiply.outer(left.masses, right.masses).ravel())


def seat_of(a: Array, b: Array, x: Array, alpha: float) -> Law:
    """Z of a client whose reports have the law `x`; every report possible for it."""
    assert (x > 0).all()
    return Law((a - alpha * b) / x, x)


def _of_rows(e: float, rows: Sequence[Sequence[int]], alpha: float) -> Law:
    """The seat of three inputs (a, b, x), each column of which is high (1) or low (0) for each."""
    weights = np.where(np.array(rows) == 1, e, 1.0)
    a, b, x = weights / weights.sum(axis=1, keepdims=True)
    return seat_of(a, b, x, alpha)


def type_a(e: float, alpha: float) -> Law:
    """x = a: two symbols."""
    return _of_rows(e, ((1, 0), (0, 1), (1, 0)), alpha)


def type_b(e: float, alpha: float) -> Law:
    """x = b: two symbols."""
    return _of_rows(e, ((1, 0), (0, 1), (0, 1)), alpha)


def type_c(e: float, alpha: float) -> Law:
    """x a third value, three symbols, each likelier for one of a, b, x."""
    return _of_rows(e, ((1, 0, 0), (0, 1, 0), (0, 0, 1)), alpha)


def type_d(e: float, alpha: float) -> Law:
    """x a third value, three symbols, each rarer for one of a, b, x."""
    return _of_rows(e, ((0, 1, 1), (1, 0, 1), (1, 1, 0)), alpha)


def type_n(e: float, alpha: float) -> Law:
    """a and b send alike, x the opposite."""
    return _of_rows(e, ((1, 0), (1, 0), (0, 1)), alpha)


PURE_TYPES = {"A": type_a, "B": type_b, "C": type_c, "D": type_d, "N": type_n}


def ratio_law(p: Array, q: Array) -> Law:
    """W = dP/dQ under Q; Q > 0 wherever P is."""
    seen = q > 0
    assert (p[~seen] == 0).all()
    return Law(p[seen] / q[seen], q[seen])


def pure_ratio(e: float) -> Law:
    """W of binary response, the worst of all pure randomizers."""
    return law([(e, 1.0 / (e + 1.0)), (1.0 / e, e / (e + 1.0))])


def local_profile(ratio: Law, alpha: float) -> float:
    """h(alpha) = E (W - alpha)+."""
    return float(ratio.potential(np.array([alpha]))[0])


def star(ratio: Law, alpha: float) -> Law:
    """The least law above every seat of a randomizer whose pair has this W (a symmetric pair)."""
    w, q = ratio.values, ratio.masses
    up, down = w > alpha, alpha * w > 1.0
    rest = 1.0 - q[up].sum() - q[down].sum()
    assert rest > -1e-12
    return Law(
        np.concatenate([w[up] - alpha, 1.0 - alpha * w[down], [0.0]]),
        np.concatenate([q[up], q[down], [max(float(rest), 0.0)]]),
    )
