"""Convex order with noise: does Laplace noise put one law of atoms below a mixture of others?

Proved for every place at once, without sampling: between neighbouring atoms the smoothed difference
of two potentials is a line plus two exponentials.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpcheckin.accounting.engine.arrays import UNIT
from dpcheckin.accounting.engine.typed.laws import AtomLaw


def smoothing_suffices(
    below: AtomLaw, above: Sequence[tuple[float, AtomLaw]], scale: float
) -> bool:
    """Does Laplace noise of this scale put a law below a mixture, in convex order? Proved if True.

    With D the difference of the two potentials, the smoothed difference f solves f - scale^2 f'' =
    D: where it is least and negative, D is negative. D is linear between neighbouring atoms, so f
    is there a line plus two exponentials, least at an end or at one of the roots of a quadratic.
    Outside all atoms it decays. Every value has to be positive by more than its rounding.

    Args:
        below: The law that shall lie below.
        above: Weights and laws of the mixture; all laws have one mean.
        scale: Of the Laplace noise.
    """
    x = np.concatenate([below.values, *(law.values for _, law in above)])
    p = np.concatenate([-below.masses, *(weight * law.masses for weight, law in above)])
    order = np.argsort(x, kind="stable")
    x, p = x[order], p[order]
    doubt = 64 * UNIT * float(np.abs(p) @ (np.abs(x) + abs(x[0]) + abs(x[-1]) + scale))
    nodes = np.unique(x)
    difference = np.maximum(x[None, :] - nodes[:, None], 0.0) @ p
    difference[0] = difference[-1] = 0.0  # means are equal, and nothing lies beyond
    left, right = nodes[:-1], nodes[1:]
    slope = np.diff(difference) / (right - left) * scale
    lengths = (right - left) / scale
    if lengths.max() > 600.0:  # noise too fine to be told from none
        return False
    decay = np.exp(-np.abs(x[None, :] - left[:, None]) / scale) * p
    ahead = 0.5 * scale * np.sum(np.where(x[None, :] > left[:, None], decay, 0.0), axis=1)
    behind = 0.5 * scale * np.sum(np.where(x[None, :] <= left[:, None], decay, 0.0), axis=1)
    start = difference[:-1]
    for a, b, s, d, length, end in zip(
        ahead.tolist(), behind.tolist(), slope.tolist(), start.tolist(), lengths.tolist(),
        difference[1:].tolist(), strict=True,
    ):  # fmt: skip
        if min(d, end) >= 0.0:
            continue  # no negative minimum can lie here
        for t in (0.0, length, *_critical(a, b, s, length)):
            grown, fallen = a * math.exp(t), b * math.exp(-t)
            if d + s * t + grown + fallen <= doubt + 64 * UNIT * (abs(grown) + abs(fallen)):
                return False
    first = ahead[0] + behind[0]
    last = 0.5 * scale * float(np.exp((x - x[-1]) / scale) @ p)
    return bool(first > doubt and last > doubt)


def _critical(a: float, b: float, slope: float, length: float) -> list[float]:
    """Where a e^t + b e^-t + slope t is stationary inside (0, length): a w^2 + slope w - b = 0."""
    if a == 0.0:
        roots = [b / slope] if slope != 0.0 else []
    else:
        inside = slope * slope + 4 * a * b
        if inside < 0.0:
            return []
        # the root without cancellation, and the other one from their product
        q = -0.5 * (slope + math.copysign(math.sqrt(inside), slope))
        roots = [q / a] + ([-b / q] if q != 0.0 else [])
    return [t for t in (math.log(w) for w in roots if w > 0.0) if 0.0 < t < length]


def least_smoothing(
    below: AtomLaw, above: Sequence[tuple[float, AtomLaw]], guess: float
) -> float | None:
    """A scale that suffices, at most 3% above the least; None if none up to 2,000 times `guess`.

    Args:
        below: The law that shall lie below.
        above: Weights and laws of the mixture.
        guess: Where to begin; a good one, such as the scale at a neighbouring alpha, is quick.
    """
    low = high = guess
    factor = 1.02
    if smoothing_suffices(below, above, guess):
        while smoothing_suffices(below, above, low / factor):
            low, factor = low / factor, min(2 * factor, 2.0)
            if low < 1e-6 * guess:
                return low
        high, low = low, low / factor
    else:
        high = guess * factor
        while not smoothing_suffices(below, above, high):
            if high > 2_000 * guess:
                return None
            low, factor = high, min(factor**2, 2.0)
            high *= factor
    while high > 1.03 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if smoothing_suffices(below, above, middle) else (middle, high)
    return high
