"""The capital won against every epsilon of a grid, for events whose degrees are any numbers.

`audit.betting.evidence` says what the bet is and why it is valid; with few degrees it counts pairs
in a table and works out the capital for any epsilon afterwards. Mean degrees over many runs are
too many to count, so the capital is carried along for a grid of epsilons that is fixed beforehand.
It falls as epsilon grows, so the largest epsilon of the grid that is refuted is a lower bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpcheckin.audit.betting.evidence import FloatArray, Stakes
from dpcheckin.errors import InvalidParameter

_BELOW, _ABOVE = 400, 80  # steps up to what is claimed, and from there to twice as much
_FACTORS = 16  # so many factors are multiplied before a logarithm is taken
_WHOLE = 1e-12


def epsilon_grid(claimed: float, promised: float) -> FloatArray:
    """Candidates for the lower bound; what is claimed is one of them if it is finite.

    Args:
        claimed: the epsilon under audit, may be infinite.
        promised: the lower bound that the pilot promises.
    """
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
    def empty(epsilons: FloatArray, stakes: Stakes) -> Capital:
        return Capital(epsilons, np.zeros((epsilons.size, len(stakes.sizes))), 0, (0.0,) * 5)

    @staticmethod
    def won(
        epsilons: FloatArray, stakes: Stakes, delta: float, first: FloatArray, second: FloatArray
    ) -> Capital:
        """The capital won by these pairs of mean degrees, each in [0, 1]."""
        for degrees in (first, second):
            if degrees.size and not (degrees.min() >= -_WHOLE and degrees.max() <= 1.0 + _WHOLE):
                raise InvalidParameter("degrees", degrees, "numbers from 0 to 1")
        columns = [log_growth(epsilons, delta, size, first, second) for size in stakes.sizes]
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
        """Log of the whole capital against an epsilon, or against the next larger of the grid."""
        place = int(np.searchsorted(self.epsilons, epsilon * (1.0 - 1e-12)))
        return float(self._total(stakes)[place]) if place < self.epsilons.size else -math.inf

    def lower_epsilon(self, wanted: float, stakes: Stakes) -> float:
        """The largest epsilon of the grid that is refuted; 0 if none is."""
        refuted = np.flatnonzero(self._total(stakes) >= wanted)
        return float(self.epsilons[refuted[-1]]) if refuted.size else 0.0

    def _total(self, stakes: Stakes) -> FloatArray:
        return np.asarray(
            np.logaddexp.reduce(self.log_capital + np.log(np.array(stakes.shares)), axis=1)
        )

    def mean(self, epsilon: float) -> float:
        """Of first - e^ε second over pairs."""
        return (self.moments[0] - math.exp(epsilon) * self.moments[1]) / self.pairs

    def variance(self, epsilon: float) -> float:
        """Of first - e^ε second over pairs."""
        a, b, aa, ab, bb = (m / self.pairs for m in self.moments)
        e = math.exp(epsilon)
        return max(aa - 2 * e * ab + e * e * bb - (a - e * b) ** 2, 0.0)

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


def log_growth(
    epsilons: FloatArray, delta: float, size: float, first: FloatArray, second: FloatArray
) -> FloatArray:
    """Log capital of one stake for every epsilon; minus infinity where it could become negative.

    Args:
        epsilons: the grid.
        delta: the delta of claim and audit, strictly between 0 and 1.
        size: the stake, between 0 and 1.
        first: mean degrees of the plays on the first neighbour.
        second: on the second.
    """
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
