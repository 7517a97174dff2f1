"""Types of Gaussian reports: log-normal ratios at a slightly larger distance, and certified noise.

Type A is 1 - alpha W and type B is W - alpha, W log-normal. Which distance and how much noise make
a mixture of them lie above every report of the ball is proved by `certificates`.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from dpcheckin.accounting.certificates import CertifiedTypes, certified_scale
from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.noise import gaussian_profile
from dpcheckin.accounting.engine.typed.lattice_laws import (
    MOST_NODES,
    STEP,
    Grid,
    LatticeLaw,
    on_lattice,
)
from dpcheckin.accounting.engine.typed.laws import Types

_FURTHEST = 6.0  # deviations of log W that the lattice holds, if it is not too long


class GaussianTypes:
    """Types at every alpha that the certificate covers.

    Args:
        certified: Distance, noise and paid violation.
    """

    def __init__(self, certified: CertifiedTypes) -> None:
        self._certified = certified
        s = certified.scale
        step = STEP * math.sqrt(math.expm1(s * s))
        top = min(math.ceil(math.exp(s * s / 2 + _FURTHEST * s) / step), MOST_NODES)
        self._grid = Grid(step, top, top)

    def __call__(self, rise: float) -> Types | None:
        alpha, known = 1.0 + rise, self._certified
        if alpha > known.largest_alpha:
            return None
        first = on_lattice(
            lambda x: alpha * self._below(-x / alpha),
            lambda x: alpha * self._above(-x / alpha),
            0.0,
            self._grid,
        )
        worst = on_lattice(
            self._above, lambda x: alpha * self._profile(1.0 - x / alpha), rise, self._grid
        )
        # beyond the last node the reports are cut off, and paid for like a violation
        beyond = float(self._above(np.array([self._grid.top * self._grid.step]))[0])
        middle = (1.0 + alpha) / 2
        return Types(
            (first, self._second),
            worst,
            known.smoothing * middle,
            known.violation * middle + beyond,
        )

    @cached_property
    def _second(self) -> LatticeLaw:
        return on_lattice(self._above, self._below, 0.0, self._grid)

    def _profile(self, alpha: Array) -> Array:
        return gaussian_profile(self._certified.scale, np.asarray(alpha, np.float64))

    def _above(self, x: Array) -> Array:
        """E(W - 1 - x)+ for x >= 0."""
        return self._profile(1.0 + x)

    def _below(self, x: Array) -> Array:
        """E(1 + x - W)+ for x <= 0."""
        ratio = np.maximum(1.0 + x, 1e-300)
        return np.where(x > -1.0, ratio * self._profile(1.0 / ratio), 0.0)


def gaussian_types(distance: float) -> GaussianTypes | None:
    """The types for inputs at most this many deviations of the noise apart; None if uncertified."""
    certified = certified_scale(distance)
    return None if certified is None else GaussianTypes(certified)
