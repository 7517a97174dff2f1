"""What the analyzer sees of a window of random check-ins, by complete enumeration.

Everybody's choice of a slot and the server's picks are summed over; the view is the tuple of the
reports that stand in the slots seen so far. A randomizer is a stochastic matrix, one row per input.
No theorem is used here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def window_law(
    matrix: Floats,
    target: int,
    others: Sequence[int],
    dummies: Sequence[int],
    probability: float,
    seen: int | None = None,
) -> Floats:
    """Law of the reports in the first `seen` slots, one entry for each tuple of reports.

    `dummies[i]` is what stands in slot i when nobody chose it (randomized like a report). Each
    client picks one of the slots with this probability in all; a slot takes one of those who chose
    it, evenly.
    """
    slots = len(dummies)
    law = np.zeros(matrix.shape[1] ** (seen or slots))
    for choices in product(range(slots + 1), repeat=1 + len(others)):  # `slots`: stays away
        chance = math.prod(1 - probability if c == slots else probability / slots for c in choices)
        if chance > 0.0:
            run = np.ones(1)
            for slot in range(seen or slots):
                held = zip((target, *others), choices, strict=True)
                present = [matrix[value] for value, choice in held if choice == slot]
                run = np.outer(run, np.mean(present or [matrix[dummies[slot]]], axis=0)).ravel()
            law += chance * run
    return law
