"""Reading a falling curve on the safe side of what rounding made of alpha = exp(epsilon).

A hair to the left a falling curve is an upper bound, a hair to the right a lower one. It matters
where losses are tiny. The hair also covers what sampling turns alpha into, 1 + (alpha - 1)/q.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_HAIR = 1e-15


def left_of(alpha: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Numbers surely not above the true ones; all are at least 1."""
    return np.asarray(np.maximum(alpha * (1.0 - _HAIR), 1.0), np.float64)


def right_of(alpha: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Numbers surely not below the true ones."""
    return np.asarray(alpha * (1.0 + _HAIR), np.float64)
