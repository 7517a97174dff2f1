"""Gaussian reports of which no more is seen than in which of a few intervals they lie: for bounds from below."""

from __future__ import annotations

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.special.normal import ndtr


def merged_gaussian(s: float, outputs: int) -> tuple[Array, Array]:
    """Ratios and masses under Q of reports told apart no finer than so many intervals.

    What is seen of a merged report is not more than of the report: bounds from below stay so. The intervals are
    equal but for the two ends, and reach into the tails as far as they can without growing too wide.

    `s`: distance of the two means. `outputs`: how many, at least 3.
    """
    tail = min(5.0, 1.0 + 0.25 * outputs)
    inner = np.linspace(-tail, s + tail, outputs - 1)

    def masses(mean: float) -> Array:
        low = np.concatenate([[-np.inf], inner - mean])
        high = np.concatenate([inner - mean, [np.inf]])
        # from the nearer tail, so that nothing cancels
        left, right = np.where(low > 0, -high, low), np.where(low > 0, -low, high)
        return np.asarray(ndtr(right) - ndtr(left))

    q = masses(0.0)
    return masses(s) / q, q
