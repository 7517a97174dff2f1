"""One-round curves delta(epsilon), whatever engine computes them, bounded above and below; and on grids.

A curve adds to what an engine finds what happens when no seat is empty (a multiple of the local profile) and mass
without counterpart (the local delta), and is capped by what holds without any shuffling. Curves are read on the safe
side of what rounding makes of alpha = exp(epsilon).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.accounting.engine.arrays import Array, FloatArray
from dpcheckin.accounting.engine.compose import Parts, WindowTooLong, compose
from dpcheckin.accounting.engine.loss import Tail, dominated, dominating
from dpcheckin.accounting.engine.seats import Mixture, Profile, Seats
from dpcheckin.errors import NumericalFailure
from dpcheckin.special.roots import root

# Curves are widened by this relative amount, far more than the rounding of sums and differences.
UPPER_SLACK, LOWER_SLACK = 1 + 1e-11, 1 - 1e-9
# Rounding of exp(epsilon), and of what sampling turns it into, 1 + (alpha - 1)/q.
_ALPHA_SLACK = 1e-15

_MERGED = (0.2, 0.45, 0.7, 0.9, 0.9995, 2.0)  # shares of a mixture; the last part may be far out
FURTHEST = 600.0  # losses beyond are not told apart: their exponentials overflow

CurveFunction = Callable[[FloatArray], FloatArray]


def left_of(alpha: NDArray[np.floating[Any]]) -> FloatArray:
    """Numbers surely not above the true alphas, all at least 1: a falling curve is larger there."""
    return np.asarray(np.maximum(alpha * (1.0 - _ALPHA_SLACK), 1.0), np.float64)


def right_of(alpha: NDArray[np.floating[Any]]) -> FloatArray:
    """Numbers surely not below the true alphas: a falling curve is smaller there."""
    return np.asarray(alpha * (1.0 + _ALPHA_SLACK), np.float64)


@dataclass(frozen=True, slots=True)
class Unshuffled:
    """What holds without shuffling: a report costs no more than its local profile."""

    profile: Profile
    unprotected: float  # probability that no seat is empty, when nothing better is proved then
    rate: float  # a bound on the probability that the client's report is there at all
    local_delta: float  # mass of a report without counterpart

    def complete(self, upper: Array, alphas: Array) -> Array:
        """The theorem's finite part, `upper` at `alphas`, completed to a full upper bound."""
        local = self.profile(left_of(alphas))
        whole = upper + self.unprotected * local + self.rate * self.local_delta
        return np.asarray(np.minimum(whole, self.rate * local * UPPER_SLACK))

    def capped(self, lower: Array, alphas: Array) -> Array:
        """The bound `lower` of the finite part at `alphas`, capped as the upper one is."""
        local = self.profile(right_of(alphas)) - self.local_delta
        return np.asarray(np.minimum(lower, self.rate * np.maximum(local, 0.0) * LOWER_SLACK))


class Curve(ABC):
    """delta(epsilon) of one round for epsilon >= 0."""

    spread: float  # standard deviation of the loss, a guide for the grid
    quantum: float = 0.0  # spacing of the losses if they are nearly equidistant
    lattice: bool = False  # are all losses multiples of that?
    resolution: int = 160  # grid points per standard deviation that are worth computing
    finest: int = 640  # as many if there are few rounds
    most_lower: int = 100_000  # points of the lower bound that are worth computing
    symmetric: bool = True  # is the pair closed under swapping?

    def coarser(self) -> Curve:
        """A curve nowhere below this one's upper bound that is much quicker to compute.

        Its lower bounds say nothing.
        """
        return self

    def swapped(self) -> Curve:
        """The curve of the swapped pair."""
        return self

    @abstractmethod
    def reach(self, tolerance: float) -> float:
        """A loss beyond which the curve's changeable part is at most `tolerance`."""

    def upper_at(self, epsilon: float) -> float:
        """Upper bound at one place, with no grid in between."""
        step, at = place(epsilon)
        return float(self.upper(step, 2)[at])

    def lower_at(self, epsilon: float) -> float:
        """Lower bound at one place."""
        step, at = place(epsilon)
        return float(self.lower(step, 2)[0][at])

    @abstractmethod
    def upper(self, step: float, points: int) -> Array:
        """Upper bounds at so many `points`: epsilon = 0, `step`, 2 step, ..."""

    @abstractmethod
    def lower(self, step: float, points: int) -> tuple[Array, Array | None]:
        """Lower bounds of the finite part at `points` of this `step`, and of the swapped pair's; None if the same."""


def place(epsilon: float) -> tuple[float, int]:
    """A step of which this epsilon is a multiple, and which: 0 or 1."""
    return (epsilon, 1) if epsilon > 0.0 else (1.0, 0)


def crossing(curve: Callable[[float], float], delta: float, most: float, *, up: bool) -> float:
    """Where a falling curve passes delta, rounded up or down; `most` if it is the end of it."""
    curve = cache(curve)  # asked again, a bound may come out as another, and as good a one
    if curve(0.0) <= delta:
        return 0.0
    high = min(1.0, most)
    while curve(high) > delta:
        if high >= most or high >= FURTHEST:
            return most if up else min(high, most)
        high = min(2 * high, most, FURTHEST)
    place = root(lambda e: curve(e) - delta, 0.0, high, relative=1e-9)
    step = 1e-9 * max(place, 1e-300)
    # step to the safe side of the root until it is one
    while (curve(place) > delta) if up else (place > 0.0 and curve(place) < delta):
        place = min(place + step, high) if up else max(place - step, 0.0)
        step *= 2
    return place


def fewer(parts: Mixture) -> Mixture:
    """Neighbouring parts of a mixture counted as the one with the most reports, so that few are left.

    The curve grows with the number of reports: one more replaces an empty seat by a report of the same mean.
    """
    if len(parts) <= len(_MERGED):
        return parts
    ordered = sorted(parts, key=lambda part: part[1].count)
    merged: list[tuple[float, Seats]] = []
    total, weight, seen = sum(w for w, _ in ordered), 0.0, 0.0
    for here, seats in ordered:
        weight += here
        seen += here
        if seen >= total * _MERGED[len(merged)] or seats is ordered[-1][1]:
            merged.append((weight, seats))
            weight = 0.0
    return merged


Curves = Sequence[tuple[Curve, int]]


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How much a composition may cost."""

    longest_grid: int  # most grid points of one round
    longest_window: int  # most grid points of all rounds together
    deviations: int  # that a window takes
    resolution: int | None = None  # grid points per deviation of one round's loss; None for what the curve is worth

    def affordable(self, total: int) -> float:
        """Grid points per deviation of one round at which a window holds `total` rounds."""
        return self.longest_window / (self.deviations * math.sqrt(total))

    def of(self, curve: Curve, total: int) -> float:
        """Grid points per deviation that a `curve` of one round is worth among `total` rounds."""
        if self.resolution is not None:
            return self.resolution
        # few rounds leave room for a finer grid in an FFT of about 2^17 points
        return min(max(curve.resolution, 2**17 / (17 * math.sqrt(total))), curve.finest)


# `FINE` is what statements are made of: a window takes some 17 deviations, and beyond two million rounds no grid that
# holds them all resolves one of them as finely as it is worth. `COARSE` is for figures that are wanted at once: without
# the lower end every approximation is pessimistic, so they are guarantees too, only a little larger (typically 0.1%).
FINE = Accuracy(24_000, 2**22, 17)
COARSE = Accuracy(4_000, 2**17, 20, 12)


class Sides:
    """Loss distributions of `curves` on grids of so many points, from above and from below, each made when asked for.

    Lower bounds may be on a grid that is coarser by a `factor`, where each point is dear.
    """

    def __init__(self, curves: Curves, step: float, sizes: Sequence[int], factor: int) -> None:
        self._curves, self._step, self._sizes, self._factor = curves, step, sizes, factor

    @cached_property
    def above(self) -> Parts:
        found = []
        for (curve, n), points in zip(self._curves, self._sizes, strict=True):
            backward = None if curve.symmetric else curve.swapped().upper(self._step, points)
            found.append((dominating(self._step, curve.upper(self._step, points), backward), n))
        return found

    @cached_property
    def below(self) -> Parts:
        found, step = [], self._factor * self._step
        for i, ((curve, n), points) in enumerate(zip(self._curves, self._sizes, strict=True)):
            if curve.lattice and step == curve.quantum / 2:
                found.append((self.above[i][0].alone(2, LOWER_SLACK), n))  # no other loss is there
                continue
            fine = 2 * math.ceil((points / self._factor + 1) / 2) + 1
            found.append((dominated(2 * step, *curve.lower(step, fine)), n))
        return found


class Grids:
    """One-round curves on a grid for each number of rounds; grids that are alike are made once.

    What is cut off of each of the `curves` and charged in a round is at most `tolerance`; `accuracy` says how fine and
    how long grids may be.
    """

    def __init__(self, curves: Curves, tolerance: float, accuracy: Accuracy = FINE) -> None:
        self.curves, self._accuracy = curves, accuracy
        self._reaches = [curve.reach(tolerance) for curve, _ in curves]
        self._made: dict[float, Sides] = {}

    def sides(self, total: int, wider: float = 1.0) -> Sides:
        """From above and below, for a composition of `total` rounds; steps `wider` than they should be, if need be."""
        return self._with(wider * self._step(total))

    def upper_tail(self, total: int, delta: float) -> Tail:
        """The `total` rounds with one curve near this `delta`, from above; wider steps where they spread too far."""
        step, longest = self._step(total), self._accuracy.longest_window
        while True:
            ((one, _),) = self._with(step).above
            try:
                return compose([(one, total)], delta=delta, longest=2 * longest)
            except WindowTooLong as wide:  # the spread is a guess, and tails are heavy here
                step *= max(2.0, wide.points / longest)

    def _with(self, step: float) -> Sides:
        if step not in self._made:
            reaches = zip(self.curves, self._reaches, strict=True)
            factor = max(1, *(round(reach / step / curve.most_lower) for (curve, _), reach in reaches))
            sizes = [math.ceil(reach / step) + 3 for reach in self._reaches]
            self._made[step] = Sides(self.curves, step, sizes, factor)
        return self._made[step]

    def _step(self, total: int) -> float:
        """A step small against the loss of a typical round, with a grid of bounded length."""
        curves = self.curves
        rounds = sum(n for _, n in curves)
        variance = sum(n * curve.spread**2 for curve, n in curves) / rounds
        accuracy = self._accuracy
        worth = min(accuracy.of(curve, total) for curve, _ in curves)
        resolution = min(worth, accuracy.affordable(total))
        step = max(math.sqrt(variance) / resolution, max(self._reaches) / accuracy.longest_grid)
        if not (math.isfinite(step)):
            raise NumericalFailure("the loss of one round could not be bounded")
        if step == 0.0:
            return 1.0
        if len(curves) == 1 and curves[0][0].quantum > step:
            quantum = curves[0][0].quantum
            if curves[0][0].lattice:
                return quantum / 2  # at which `below` knows them
            step = quantum / math.ceil(quantum / step)  # losses then lie near grid points
        return step
