"""The array types of this room."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Complexes = NDArray[np.complexfloating[Any, Any]]


def floats(values: ArrayLike) -> Floats:
    """As an array of doubles."""
    return np.asarray(values, dtype=np.float64)
