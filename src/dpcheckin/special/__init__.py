"""Special functions, laws and transforms on NumPy alone, each with the error it may make.

Nothing here knows of privacy. The rooms above round outward by what is promised here, and the tests compare every
promise with arithmetic of many digits; SciPy would weigh more than all the rest of an installation together.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Complexes = NDArray[np.complexfloating[Any, Any]]
UNIT = 2.0**-53  # unit round-off of a double
CONSTANTS = json.loads(Path(__file__).with_name("constants.json").read_text("utf-8"))
