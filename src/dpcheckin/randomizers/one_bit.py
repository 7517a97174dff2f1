"""The l1 and l-infinity mechanisms R_1 and R_∞ of P3: one random coordinate, one private bit.

P3 (arXiv 2107.08763, supplement) refers to Girgis, Data, Diggavi, Kairouz, Suresh (AISTATS 2021, arXiv 2008.07180) for
these; they are rebuilt here from that description. A client draws a public coordinate j (of its vector for l-infinity,
of the vector's Hadamard transform for l1), rounds that coordinate at random to one bit that is right on average, and
sends j with the bit under binary response. The coordinate is independent of the data, so the local pair is binary
response's. R_2 is PrivUnit (`randomizers.caps`); `lp_randomizer` picks by p.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin import accounting
from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers.base import PureVectorRandomizer, Value, check_finite, check_rows, squared_rows
from dpcheckin.randomizers.caps import PrivUnit
from dpcheckin.randomizers.source import Array, RandomSource


class _OneBit(PureVectorRandomizer):
    """Reports are rows (place, ±1)."""

    @property
    def pair(self) -> accounting.LocalPair:
        return accounting.binary_response(self.local_epsilon)

    @property
    def amplification(self) -> float:
        """What undoes the shrinking by binary response: (e^ε₀ + 1)/(e^ε₀ - 1)."""
        return 1.0 / math.tanh(self.local_epsilon / 2)

    @abstractmethod
    def _picked(self, values: NDArray[np.float64], where: NDArray[np.int64]) -> NDArray[np.float64]:
        """What the coordinates `where` of the values are, one a row."""

    def log_ratio(self, reports: NDArray[Any], value: Value, others: Value) -> NDArray[np.float64]:
        shrunk = 1.0 / (self.amplification * self.clip)
        rows = (np.array([x], float) for x in (value, others))
        both = [1 + reports[:, 1] * shrunk * self._picked(row, reports[:, 0]) for row in rows]
        return np.asarray(np.log(both[0]) - np.log(both[1]))

    @property
    @abstractmethod
    def places(self) -> int:
        """How many coordinates there are to draw from."""

    @abstractmethod
    def _clipped(self, values: Array) -> NDArray[np.float64]:
        """The values within the clip."""

    def randomize(self, values: Array, source: RandomSource) -> Array:
        check_rows(values, self.dimension)
        rows = self._clipped(values)
        where = source.integers(self.places, rows.shape[0])
        picked = self._picked(rows, where)
        bits = source.sign(0.5 * (1 + np.clip(picked / self.clip, -1.0, 1.0)))  # right on average
        lie = 1.0 / (1.0 + math.exp(self.local_epsilon))
        answers = bits * -source.sign(np.full(bits.shape, lie))
        return np.stack([where, answers.astype(np.int64)], axis=1)


@dataclass(frozen=True)
class LInfinityBit(_OneBit):
    """R_∞: entries within [-clip, clip] (clipped one by one); reports are rows (coordinate, ±1).

    Args:
        clip: largest absolute value of an entry.
    """

    name, label, norm = "linf-bit", "one coordinate, one bit (R_∞)", math.inf
    description = "R_∞ (one coordinate, one bit), local epsilon {0.local_epsilon:g}"

    @property
    def places(self) -> int:
        return self.dimension

    def _clipped(self, values: Array) -> NDArray[np.float64]:
        check_finite(values)
        return np.clip(np.asarray(values, dtype=np.float64), -self.clip, self.clip)

    def _picked(self, values: NDArray[np.float64], where: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(values[np.arange(len(where)) if len(values) > 1 else 0, where])

    @property
    def neighbours(self) -> tuple[Value, Value, Value]:
        """Opposite corners of the cube: every coordinate tells."""
        there, here = (-self.clip,) * self.dimension, (self.clip,) * self.dimension
        return there, here, there

    def estimate(self, reports: Array) -> Array:
        size = self.dimension * self.clip * self.amplification
        estimates = np.zeros((reports.shape[0], self.dimension))
        estimates[np.arange(reports.shape[0]), reports[:, 0]] = size * reports[:, 1]
        return estimates

    def total_variance(self, values: Array) -> NDArray[np.float64]:
        size = self.dimension * self.clip * self.amplification
        return np.asarray(size**2 - squared_rows(self._clipped(values)))


@dataclass(frozen=True)
class L1Bit(_OneBit):
    """R_1: vectors of l1 norm at most clip; reports are rows (Hadamard row, ±1).

    Args:
        clip: largest l1 norm of a vector.
    """

    name, label, norm = "l1-bit", "one Hadamard coordinate, one bit (R_1)", 1
    description = "R_1 (one Hadamard coordinate, one bit), local epsilon {0.local_epsilon:g}"

    @property
    def places(self) -> int:
        """Size of the Hadamard matrix: the power of two that holds the dimension."""
        return 1 << max(0, self.dimension - 1).bit_length()

    def _clipped(self, values: Array) -> NDArray[np.float64]:
        rows = np.asarray(values, dtype=np.float64)
        check_finite(rows)
        lengths = np.abs(rows).sum(axis=1, keepdims=True)
        return np.asarray(rows * (self.clip / np.maximum(lengths, self.clip)))

    def _hadamard_rows(self, where: NDArray[np.int64]) -> NDArray[np.float64]:
        """Rows of the ±1 Hadamard matrix: the sign is the parity of the common one-bits."""
        common = where[:, None] & np.arange(self.dimension)[None, :]
        return np.asarray(1.0 - 2.0 * (np.bitwise_count(common) & 1))

    def _picked(self, values: NDArray[np.float64], where: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray((self._hadamard_rows(where) * values).sum(axis=1))

    def estimate(self, reports: Array) -> Array:
        size = self.clip * self.amplification
        return size * reports[:, 1:2] * self._hadamard_rows(reports[:, 0])

    def total_variance(self, values: Array) -> NDArray[np.float64]:
        size = self.clip * self.amplification
        return np.asarray(self.dimension * size**2 - squared_rows(self._clipped(values)))


def lp_randomizer(p: float, local_epsilon: float, dimension: int, clip: float = 1.0) -> PureVectorRandomizer:
    """R_p for vectors of lp norm at most `clip`, every p from 1 to infinity.

    For p other than 1 and infinity it is R_2 on the smallest l2 ball that holds the lp ball, of radius
    clip max(d^(1/2 - 1/p), 1), d the dimension.

    Args:
        p: 1 or more, or infinity.
        local_epsilon: epsilon of one report, in nats.
        dimension: entries of a vector.
        clip: largest lp norm of a vector.

    >>> lp_randomizer(2, 2.0, 100).describe(), lp_randomizer(4, 2.0, 16).clip
    ('PrivUnit, local epsilon 2', 2.0)
    """
    if not p >= 1:
        raise InvalidParameter("p", p, "a number from 1 on, or infinity")
    if p in (1, math.inf):
        return (L1Bit if p == 1 else LInfinityBit)(local_epsilon, dimension, clip)
    return PrivUnit(local_epsilon, dimension, clip * max(dimension ** (0.5 - 1 / p), 1.0))
