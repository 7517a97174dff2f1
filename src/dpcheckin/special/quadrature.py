"""Integrals of functions of one number, by Gauss and Legendre's rule on halves of halves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from dpcheckin.special.arrays import Floats

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_MOST = 40  # halvings, enough for a jump
_ROWS = 4096  # intervals that are halved further at once


def integral(
    function: Callable[[Floats], ArrayLike], low: float, high: float, *, relative: float = 1e-10
) -> float:
    """The integral of a function that is smooth but for a few places; a guide, not a certificate.

    An interval is halved until its two halves agree with it to `relative` of the whole.

    Args:
        function: Of an array of points.
        low: Where to begin.
        high: Where to end, not below.
        relative: Tolerance in parts of the integral of the absolute value.

    >>> round(integral(np.sqrt, 0.0, 1.0), 9)
    0.666666667
    """
    left, half = np.array([float(low)]), np.array([0.5 * (high - low)])
    rough, size = _sums(function, left, half)
    total, scale = 0.0, float(size.sum())
    for _ in range(_MOST):
        half = np.repeat(0.5 * half, 2)
        left = np.repeat(left, 2)
        left[1::2] += 2 * half[1::2]
        fine, size = _sums(function, left, half)
        pairs = fine.reshape(-1, 2).sum(axis=1)
        scale = max(scale, float(size.sum()))
        unsure = np.abs(pairs - rough) > relative * scale / len(half)
        total += float(pairs[~unsure].sum())
        if not unsure.any() or len(half) > _ROWS:
            return total + float(pairs[unsure].sum())
        again = np.repeat(unsure, 2)
        left, half, rough = left[again], half[again], fine[again]
    return total + float(rough.sum())


def _sums(
    function: Callable[[Floats], ArrayLike], left: Floats, half: Floats
) -> tuple[Floats, Floats]:
    points = left[:, None] + half[:, None] * (1.0 + _NODES)
    values = np.asarray(function(points.ravel()), np.float64).reshape(points.shape)
    return half * (values @ _WEIGHTS), half * (np.abs(values) @ _WEIGHTS)
