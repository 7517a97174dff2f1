"""Types of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
Complex = NDArray[np.complexfloating[Any, Any]]
FloatArray = NDArray[np.float64]
