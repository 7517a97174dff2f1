"""What a report of another client does to the sum, seen from that client's own value; and the order of such laws.

The empty-seat theorem takes the worst law for every other client, one with the upper tail of one value and the lower
tail of another. A client holds one value. The law seen from it lies below a mixture of a few *types* in convex order,
and the bound is a maximum over how many clients are of each type (docs/theory.md). Laws are those of X = Z - (1 -
alpha): an empty seat is exactly zero and every mean is zero. Whether Laplace noise puts one law of atoms below a
mixture of others is proved for every place at once: the smoothed difference is a line plus two exponentials.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dpcheckin.accounting.engine.arrays import Array, Complex
from dpcheckin.special import UNIT


class SeatLaw(Protocol):
    """The law of one report's X at one alpha."""

    @property
    def variance(self) -> float:
        """Of X; a guide."""

    @property
    def furthest(self) -> float:
        """No |X| is larger."""

    @property
    def step(self) -> float:
        """Periods of a transform have to be multiples of it; 0 for any."""

    @property
    def finest(self) -> float:
        """Of which all values are multiples; 0 if of none."""

    def decay(self, theta: float, participation: float, start: float) -> float:
        """By how much log |M| falls at least, M(z) being a seat's moment generating function at this `participation`.

        From z = theta to every z = theta + i y, y between `start` and 2 pi / finest - start.
        """

    def growth(self, theta: Array) -> Array:
        """E exp(theta X) - 1 for real theta; a guide."""

    def excess(self, threshold: float) -> float:
        """E(X - threshold)+; a guide."""

    def transform(self, theta: float, period: float, last: int) -> tuple[Complex, Array]:
        """E exp(z X) - 1 at z = theta + 2 pi i m / period, m = 0 .. last, and bounds on its error.

        The period has to be a multiple of the step.
        """


@dataclass(frozen=True, slots=True, eq=False)
class AtomLaw:
    """Finitely many values of X, with their probabilities."""

    values: Array
    masses: Array
    step: float = 0.0
    finest: float = 0.0

    @property
    def variance(self) -> float:
        return float(self.masses @ self.values**2)

    @property
    def furthest(self) -> float:
        return float(np.abs(self.values).max())

    def growth(self, theta: Array) -> Array:
        return np.asarray(np.expm1(np.outer(theta, self.values)) @ self.masses)

    def excess(self, threshold: float) -> float:
        return float(np.maximum(self.values - threshold, 0.0) @ self.masses)

    def decay(self, theta: float, participation: float, start: float) -> float:
        return 0.0  # a few atoms may agree at any frequency

    def transform(self, theta: float, period: float, last: int) -> tuple[Complex, Array]:
        z = theta + (2j * math.pi / period) * np.arange(last + 1)
        moved = np.outer(z, self.values)
        terms = np.expm1(moved)
        size = np.abs(terms) + np.abs(moved) * np.exp(theta * self.values)
        return terms @ self.masses, 8 * UNIT * (size @ self.masses)

    def wider(self, stretch: float) -> AtomLaw:
        """Every value further from zero by this part of it: larger in convex order."""
        return AtomLaw(self.values * (1.0 + stretch), self.masses) if stretch else self

    @staticmethod
    def of(*atoms: tuple[float, float]) -> AtomLaw:
        """From (value, probability) pairs; those without mass are left out."""
        there = [(x, p) for x, p in atoms if p > 0.0]
        return AtomLaw(np.array([x for x, _ in there]), np.array([p for _, p in there]))


@dataclass(frozen=True, slots=True, eq=False)
class Types:
    """The types of a randomizer at one alpha.

    `laws`: one or two types; every client's law lies below a mixture of them. `worst`: a law above all clients' laws,
    for the one seat that the theorem adds. `smoothing`: scale of the Laplace noise with which that order holds, 0 if
    without. `violation`: by how much a smoothed potential may exceed the mixture's; paid for by every report that is
    there.
    """

    laws: tuple[SeatLaw, ...]
    worst: SeatLaw
    smoothing: float = 0.0
    violation: float = 0.0


def smoothing_suffices(below: AtomLaw, above: Sequence[tuple[float, AtomLaw]], scale: float) -> bool:
    """Does Laplace noise of this scale put a law below a mixture, in convex order? Proved if True.

    With D the difference of the two potentials, the smoothed difference f solves f - scale^2 f'' = D: where it is least
    and negative, D is negative. D is linear between neighbouring atoms, so f is there a line plus two exponentials,
    least at an end or at one of the roots of a quadratic. Outside all atoms it decays. Every value has to be positive
    by more than its rounding.

    `below`: the law that shall lie below. `above`: weights and laws of the mixture; all laws have one mean. `scale`: of
    the Laplace noise.
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


def least_smoothing(below: AtomLaw, above: Sequence[tuple[float, AtomLaw]], guess: float) -> float | None:
    """A scale that suffices, at most 3% above the least; None if none up to 2,000 times `guess`.

    `below`: the law that shall lie below. `above`: weights and laws of the mixture. `guess`: where to begin; a good
    one, such as the scale at a neighbouring alpha, is quick.
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
