"""A claim about one diameter, and its examination cell by cell.

The claim: for every triple (a, b, x) in a ball of diameter s (noise standard deviations) and every α in [1, α_max]
there is a weight w with, for every real u and τ = τ₀(1 + α)/2,

    E G_τ(Z_x - u) ≤ (1 - w) E G_τ(A - u) + w E G_τ(B - u) + κ(1 + α)/2,

A and B being the types at the scale s' ≥ s. It is examined in balanced units (see `potential`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpcheckin.accounting.pairs.potentials import KERNEL, kernel, lowest
from gaussian_types.gram import triples_above
from gaussian_types.potential import report_potential, type_potentials
from gaussian_types.rounding import SUMS, Array
from gaussian_types.smoothing import interpolated, refined, symmetric_points

NDArrayBool = NDArray[np.bool_]

_WEIGHTS = 2.0**20  # weights are whole multiples of its inverse, so that 1 - w is exact


@dataclass(frozen=True)
class Claim:
    """What is claimed for one diameter, and how finely it is examined.

    Attributes:
        diameter: s, the largest distance of two inputs in noise standard deviations.
        scale: s' ≥ s, the spread of the types.
        smoothing: τ₀, the Laplace scale at α = 1.
        violation: κ, what each replaced report may cost, in units of (1 + α)/2.
        tilts: β = (α - 1)/(α + 1) at which reports are evaluated, ascending from 0.
        step: distance of neighbouring points t near 0, in units of the diameter.
        slicing: width of the slices of a report, see `report_potential`.
        point_parts, tilt_parts: how much finer the types are evaluated than the reports.
    """

    diameter: float
    scale: float
    smoothing: float
    violation: float
    tilts: tuple[float, ...]
    step: float = 0.1
    slicing: float = 0.2
    point_parts: int = 4
    tilt_parts: int = 3

    @property
    def largest_alpha(self) -> float:
        """The α up to which the claim reaches, rounded down."""
        last = self.tilts[-1]
        return float(np.nextafter((1 + last) / (1 - last), 0.0))


@dataclass
class Examination:
    """The part of a claim that does not depend on the cell, computed once."""

    claim: Claim
    points: Array = field(init=False)
    tilts: Array = field(init=False)
    operator: Array = field(init=False)
    interpolation: Array = field(init=False)

    def __post_init__(self) -> None:
        claim = self.claim
        self.nodes = symmetric_points(claim.diameter, claim.smoothing, claim.violation / 4, claim.step)
        self.points, self.interpolation = refined(self.nodes, claim.point_parts)
        self.tilts, self._tilt_matrix = refined(np.array(claim.tilts), claim.tilt_parts)
        weights = kernel(self.points, claim.smoothing)
        self.operator = self.interpolation @ weights
        first, second = type_potentials(claim.scale, self.tilts, self.points)
        self.plain = first, second
        self.below = tuple(one @ weights - KERNEL * (np.abs(one) @ weights) for one in self.plain)
        self.error = 4 * KERNEL * ((np.abs(first) + np.abs(second)) @ weights)

    def examine(self, cells: Array) -> tuple[Array, Array]:
        """Violations (cells, tilt intervals), certified, and the weights that were tried."""
        claim = self.claim
        tilts = np.array(claim.tilts)
        reports = np.stack(
            [
                report_potential(triple, tilts, self.nodes, claim.slicing)
                for triple in triples_above(cells, claim.diameter)
            ]
        )
        # one product for all cells: the operator is large
        smooth = (reports.reshape(-1, reports.shape[-1]) @ self.operator) * (1 + KERNEL)
        smooth = smooth.reshape(*reports.shape[:-1], -1)
        found = [self._one(*pair) for pair in zip(reports, smooth, strict=True)]
        return np.stack([one for one, _ in found]), np.stack([one for _, one in found])

    def holds(self, cells: Array) -> NDArrayBool:
        """Which cells (k, 3, 2) the claim is proved for."""
        violations, _ = self.examine(cells)
        return np.asarray(violations.max(1) <= self.claim.violation)

    def _one(self, report: Array, smooth: Array) -> tuple[Array, Array]:
        claim = self.claim
        tails = float(report[:, 0].max() + report[:, -1].max())
        # Linear in β between the tilts of the reports: an upper bound, potentials being convex.
        plain = self._tilt_matrix.T @ interpolated(report, claim.point_parts) * (1 + SUMS)
        smooth = self._tilt_matrix.T @ smooth * (1 + SUMS)
        violations, weights = [], []
        for k in range(len(claim.tilts) - 1):
            part = slice(k * claim.tilt_parts, (k + 1) * claim.tilt_parts + 1)
            weight = self._weight(smooth[part], part)
            violations.append(self._violation(plain[part], smooth[part], weight, part) + tails)
            weights.append(weight)
        return np.array(violations), np.array(weights)

    def _weight(self, smooth: Array, part: slice) -> float:
        """A weight in the middle of those that no node rules out; any weight would be sound."""
        allowed = self.claim.violation / 2
        first, second = self.below[0][part], self.below[1][part]
        gap, slope = first - smooth + allowed, second - first
        bound = -gap / np.where(slope == 0, np.inf, slope)
        low = max(0.0, float(np.max(np.where(slope > 0, bound, 0.0))))
        high = min(1.0, float(np.min(np.where(slope < 0, bound, 1.0))))
        return float(np.clip(np.round((low + high) / 2 * _WEIGHTS) / _WEIGHTS, 0.0, 1.0))

    def _violation(self, plain: Array, smooth: Array, weight: float, part: slice) -> float:
        """By how much the smoothed potential of the report exceeds the mixture's, at most."""
        claim = self.claim
        first, second = ((1 - weight) * one[part] for one in (self.plain[0], self.below[0]))
        difference = first + weight * self.plain[1][part] - plain
        below = second + weight * self.below[1][part] - smooth
        error = self.error[part] + 4 * KERNEL * smooth
        least = lowest(below, below + error, difference, self.points, claim.smoothing)
        return max(0.0, -float(least.min()))
