"""Gaussian reports rounded to cells: a randomizer that enumeration can handle.

Rounding a report is post-processing, so whatever two data sets lose after it they lose before it:
exact figures of the rounded randomizer are lower bounds for Gaussian reports, and with many cells
close ones. For one client alone there is a closed form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy import special

from .gaussian_mechanism import delta as gaussian_delta

Floats = NDArray[np.float64]


def rounded_gaussian(noise: float, inputs: Sequence[float], cells: int, reach: float) -> Floats:
    """One row for each input in [-1, 1]: its report's chances of falling into the cells.

    Borders are equidistant out to `reach` standard deviations beyond the largest input.
    """
    borders = np.linspace(-1.0 - reach * noise, 1.0 + reach * noise, cells - 1)
    rows = []
    for value in inputs:
        x = np.concatenate([[-math.inf], (borders - value) / noise, [math.inf]])
        # differences of whichever tail is the smaller, so that far cells keep their digits
        left, right = np.diff(special.ndtr(x)), -np.diff(special.ndtr(-x))
        rows.append(np.where(x[1:] <= 0.0, left, right))
    return np.array(rows)


def lonely_delta(noise: float, rate: float, rounds: int, epsilon: float) -> mpmath.mpf:
    """Exact delta of one client who reports by its own coin with nobody to hide among.

    The number j of its reports is seen and says nothing; given j they are one Gaussian report of
    distance sqrt(j) times as large.
    """
    return mpmath.fsum(
        mpmath.binomial(rounds, j)
        * mpmath.mpf(rate) ** j
        * (1 - mpmath.mpf(rate)) ** (rounds - j)
        * gaussian_delta(2.0 / noise, j, epsilon)
        for j in range(1, rounds + 1)
    )
