"""Array types, and the constants of floating-point arithmetic that certificates rest on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
Complex = NDArray[np.complexfloating[Any, Any]]
FloatArray = NDArray[np.float64]

# Unit round-off of float64, and a bound on the relative l2 error of an FFT per level of its
# recursion. The textbook constant for radix-2 is below 3 (Higham, Accuracy and Stability, 24.1).
UNIT = 2.0**-53
FFT_LEVEL = 6.0 * UNIT
