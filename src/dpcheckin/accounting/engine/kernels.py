"""Weights round positions of a lattice, and their transforms: how a spectrum becomes masses.

Triangles move mass to coarse nodes and keep the mean; boxes and their first moments collect a cell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.accounting.engine.arrays import Array, Complex

# the transform of some weights at t, or at t + pi
Shape = Callable[[Array, bool], Complex]


class Kernel:
    """Weights round each position: sum over s of weight(s) * law(position + s).

    `fine` and `mixing` move the mass on from evenly spaced positions to chosen ones. Transforms are
    kept: the frequencies of the hits are the same for every tilt.
    """

    def __init__(
        self,
        positions: Array,
        shape: Shape,
        fine: Array | None = None,
        mixing: Array | None = None,
    ) -> None:
        self.positions, self._shape = positions, shape
        self._fine, self._mixing = positions if fine is None else fine, mixing
        self.total = float(np.abs(shape(np.zeros(1), False)[0]))  # weights are not negative
        self.furthest = float(np.abs(self._fine).max(initial=0.0))
        self.rows = np.ones(positions.size) if mixing is None else mixing.sum(axis=1)
        self._kept: dict[tuple[bytes, bool], tuple[Complex, Complex]] = {}

    def transforms(self, t: Array, turned: bool) -> tuple[Complex, Complex]:
        """Transform of the weights, and waves that carry it to the positions."""
        key = (t.tobytes(), turned)
        if key not in self._kept:
            waves: Any = np.exp(-1j * np.outer(self._fine, t))
            if turned:
                waves *= _signs(self._fine)[:, None]
            if self._mixing is not None:
                waves = np.asarray(self._mixing @ waves, dtype=np.complex128)
            self._kept[key] = self._shape(t, turned), waves
        return self._kept[key]


def _signs(integers: Array | NDArray[np.int64]) -> Array:
    """exp(i pi s), exactly."""
    return np.where(integers % 2 == 0, 1.0, -1.0)


def summed(offsets: NDArray[np.int64], weights: Array) -> Shape:
    """The transform of any weights, term by term."""

    def shape(t: Array, turned: bool) -> Complex:
        given = weights * _signs(offsets) if turned else weights
        return np.asarray(np.exp(-1j * np.outer(t, offsets)) @ given, dtype=np.complex128)

    return shape


def triangle(cell: int, theta: float = 0.0) -> Shape:
    """The transform of (1 - |s| / cell) exp(-theta s), |s| < cell: Fejer's kernel, tilted.

    The sum over s of (1 - |s| / m) e^(-z s) is (sinh(m z / 2) / sinh(z / 2))^2 / m. At z + i pi the
    second sinh turns into a cosh, and the first as well if m is odd.
    """

    def shape(t: Array, turned: bool) -> Complex:
        z = (theta + 1j * t) / 2
        if turned:
            top = np.cosh(cell * z) if cell % 2 else 1j * np.sinh(cell * z)
            return np.asarray((top / np.cosh(z)) ** 2 / cell)
        whole = np.full(z.shape, complex(cell))
        np.divide(np.sinh(cell * z), np.sinh(z), out=whole, where=z != 0)
        return np.asarray(whole**2 / cell)

    return shape
