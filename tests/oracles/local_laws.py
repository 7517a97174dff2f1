"""The law of W behind a randomizer, and the law Z* that the one-round theorem makes of it.

From any set of pairs of discrete distributions: the largest of their hockey-stick profiles in
both directions (a convex, piecewise linear, symmetric function h), and the atoms of W read back
from it, P(W > alpha) = -h'(alpha+). Exact up to rounding: slopes are sums of masses, never
difference quotients. What n users make of Z* is in ``theorem_oracle``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SAME = 1e-12  # ratios closer than this are one ratio that was rounded in two ways


@dataclass(frozen=True)
class RatioLaw:
    """Atoms (ratio, mass) of W under Q, ratios > 0, and the mass of P where Q has none."""

    ratios: Floats
    masses: Floats
    singular: float = 0.0

    def profile(self, alpha: float) -> float:
        """h(alpha) = E(W - alpha)+ + singular."""
        return math.fsum(self.masses * np.maximum(self.ratios - alpha, 0.0)) + self.singular

    def z_star(self, epsilon: float) -> tuple[Floats, Floats]:
        """Values and masses of Z*, epsilon >= 0: two tails of W, the rest at zero."""
        alpha = math.exp(epsilon)
        up = self.ratios > alpha * (1.0 + SAME)
        down = self.ratios * alpha > 1.0 + SAME
        rest = 1.0 - math.fsum(self.masses[up]) - math.fsum(self.masses[down])
        if rest < -1e-9:
            raise ValueError(f"not the law of a symmetric pair: {rest} is left for Z* = 0")
        return (
            np.concatenate([self.ratios[up] - alpha, 1.0 - alpha * self.ratios[down], [0.0]]),
            np.concatenate([self.masses[up], self.masses[down], [max(rest, 0.0)]]),
        )


def three_atoms(local_epsilon: float, hit: float, neutral: float) -> RatioLaw:
    e0 = math.exp(local_epsilon)
    return RatioLaw(np.array([e0, 1.0, 1.0 / e0]), np.array([hit, neutral, e0 * hit]))


def worst_pure(local_epsilon: float) -> tuple[float, float]:
    """(hit, neutral) of an arbitrary pure randomizer, which is also binary response."""
    return 1.0 / (math.exp(local_epsilon) + 1.0), 0.0


def dary(local_epsilon: float, symbols: int) -> tuple[float, float]:
    """(hit, neutral) of d-ary response."""
    total = math.exp(local_epsilon) + symbols - 1.0
    return 1.0 / total, (symbols - 2.0) / total


def dary_matrix(local_epsilon: float, symbols: int) -> Floats:
    """d-ary response as a stochastic matrix (d = 2: binary response)."""
    off, _ = dary(local_epsilon, symbols)
    return off * (np.ones((symbols, symbols)) + (math.exp(local_epsilon) - 1.0) * np.eye(symbols))


def distinct(values: Iterable[float]) -> list[float]:
    """Sorted, one of each bunch of values that differ by rounding alone."""
    kept: list[float] = []
    for value in sorted(values):
        if not kept or value > kept[-1] * (1.0 + 10.0 * SAME):
            kept.append(value)
    return kept


def symmetric_law(pairs: Iterable[tuple[Floats, Floats]]) -> RatioLaw:
    """W of the largest profile among all given pairs (p, q) and their swaps."""
    oriented = [o for p, q in pairs for o in ((p, q), (q, p))]
    borders = {float(r) for p, q in oriented for r in p[(p > 0) & (q > 0)] / q[(p > 0) & (q > 0)]}
    knots = [0.0, *distinct(borders)]
    survival: list[tuple[float, float]] = []  # (left end of a piece, -h' on it)
    for i, left in enumerate(knots):
        right = knots[i + 1] if i + 1 < len(knots) else math.inf
        middle = (left + right) / 2 if right < math.inf else left + 1.0
        lines = []  # each profile is a - b alpha on this piece
        for p, q in oriented:
            counted = p > middle * q
            lines.append((math.fsum(p[counted]), math.fsum(q[counted])))
        survival += _upper_envelope(lines, left, right)
    singular = max(math.fsum(p[q == 0.0]) for p, q in oriented)
    ratios, masses = [], []
    for (_, before), (at, after) in itertools.pairwise(survival):
        if before < after - 1e-9:
            raise ArithmeticError(f"the profile is not convex at {at}: {before} < {after}")
        if before - after > 1e-16:
            ratios.append(at)
            masses.append(before - after)
    return RatioLaw(np.array(ratios), np.array(masses), singular)


def _upper_envelope(lines: list[tuple[float, float]], left: float, right: float) -> list[tuple[float, float]]:
    """Pieces (start, slope b) of the largest of the lines a - b alpha on [left, right)."""
    different = list(set(lines))
    cuts = {left}
    for (a, b), (c, d) in itertools.combinations(different, 2):
        if abs(b - d) > SAME:
            crossing = (a - c) / (b - d)
            # All profiles start from h(0) = 1, so crossings near 0 are rounding; no epsilon
            # below 20 looks there.
            if max(left * (1.0 + 10.0 * SAME), 1e-9) < crossing < right * (1.0 - 10.0 * SAME):
                cuts.add(crossing)
    starts = distinct(cuts)
    pieces: list[tuple[float, float]] = []
    for i, start in enumerate(starts):
        end = starts[i + 1] if i + 1 < len(starts) else right
        middle = (start + end) / 2 if end < math.inf else start + 1.0
        slope = max((a - b * middle, b) for a, b in different)[1]
        if not pieces or pieces[-1][1] != slope:
            pieces.append((start, slope))
    return pieces


def law_of_matrix(matrix: Floats) -> RatioLaw:
    """W of a randomizer given as a stochastic matrix: all pairs of inputs at once."""
    return symmetric_law(itertools.combinations(list(matrix), 2))
