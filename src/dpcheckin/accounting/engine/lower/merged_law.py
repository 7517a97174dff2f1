"""A continuous report merged into a law on a lattice: what is seen of it is less, exactly.

Reports are told apart no finer than cells of their likelihood ratio, and the cells are chosen so that the mean ratio of
each lies on a node. Merging lowers a law in convex order whatever the cells are, so tails of any weight fit on a
lattice of few nodes: cells far out are wide.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.errors import NumericalFailure
from dpcheckin.special.roots import switch

Tails = Callable[[float], tuple[float, float]]
"""From a ratio to the probabilities, under Q and under P, that a report's ratio exceeds it."""
_CLOSE = 1e-14  # parts of a ratio: how well the start of a cell is known
_WIDER = 0.03  # how much farther from zero the next cell is, in parts of its distance


@dataclass(frozen=True, slots=True, eq=False)
class MergedLaw:
    """Masses of W - 1 at the nodes -bottom .. top, in units of the step; their mean is zero."""

    step: float
    bottom: int
    masses: Array

    @property
    def variance(self) -> float:
        """Of the merged W."""
        nodes = np.arange(self.masses.size) - self.bottom
        return self.step**2 * float(self.masses @ nodes**2)


def merged_law(tails: Tails, step: float, top: int, lowest: float = 1.0) -> MergedLaw:
    """The report merged into cells: of two ways to cut it the one that keeps more of its variance.

    `tails`: of the report. `step`: what the step of the lattice should be; it may be a little smaller. `top`: nodes
    above zero. `lowest`: how far below one the smallest ratio lies.
    """
    ways = [_small_cells(tails, step, top, lowest)]
    with suppress(NumericalFailure):
        ways.append(_one_low_cell(tails, step, top))
    best = max(ways, key=lambda law: law.variance)
    if abs(float(best.masses.sum()) - 1.0) > 1e-12 or best.masses.min() < 0.0:
        raise NumericalFailure("merging reports left no law")
    return best


def _small_cells(tails: Tails, step: float, top: int, lowest: float) -> MergedLaw:
    """Cells on both sides of one; the smallest ratio is a node."""
    bottom = max(math.ceil(lowest / step - 1e-9), 1)
    step = lowest / bottom
    masses = np.zeros(bottom + top + 1)
    upper = _from_above(tails, step, top, masses[bottom:])
    lower = _from_below(tails, step, upper, masses[: bottom + 1])
    # What is left lies round one and is merged with as much of its neighbours as brings its mean
    # there; the sum of all means is zero.
    left = tails(lower)[0] - tails(upper)[0]
    nodes = np.arange(-bottom, top + 1)
    excess = float(nodes @ masses)
    # nodes that hold something, from one outwards: of millions only thousands do
    side = np.flatnonzero((nodes * excess > 0) & (masses > 0.0))
    for at in side if excess > 0 else side[::-1]:
        share = min(masses[at], excess / nodes[at])
        masses[at] -= share
        left += share
        excess -= share * float(nodes[at])
        if abs(excess) < 1e-17:
            break
    masses[bottom] = left
    return MergedLaw(step, bottom, masses)


def _one_low_cell(tails: Tails, step: float, top: int) -> MergedLaw:
    """All that does not lie above one in a cell of its own, at whose mean the step ends.

    Where tails are heavy nearly all ratios are close to zero, and a coarse lattice cannot tell them apart anyway.
    """
    nodes = np.arange(top + 1)

    def filled(step: float) -> tuple[Array, float]:
        """The cells above, and minus the mean of what is left, in steps."""
        above = np.zeros(top + 1)
        _from_above(tails, step, top, above)
        return above, float(nodes @ above) / max(1.0 - float(above.sum()), 1e-300)

    above, mean = filled(step)
    bottom = max(math.ceil(mean - 1e-9), 1)
    for _ in range(12):
        if 0.0 <= mean - bottom <= 0.02:
            break
        step *= 0.995 * mean / bottom
        above, mean = filled(step)
    if not 0.0 <= mean - bottom <= 0.02:
        step, above, mean = _halved(filled, step, bottom)
    masses = np.zeros(bottom + top + 1)
    masses[bottom:] = above
    # the smallest of those above go to the low cell until its mean is on its node
    low = 1.0 - float(above.sum())
    excess = float(nodes @ above) - bottom * low
    for node in np.flatnonzero(above):
        share = min(above[node], excess / float(node + bottom))
        masses[bottom + node] -= share
        low += share
        excess -= share * float(node + bottom)
        if excess < 1e-17:
            break
    masses[0] += low
    return MergedLaw(step, bottom, masses)


def _halved(filled: Callable[[float], tuple[Array, float]], step: float, bottom: int) -> tuple[float, Array, float]:
    """A step whose low cell has a mean of at least `bottom` steps and hardly more.

    For steps that jump to and fro about it. The smaller the step, the larger that mean in steps.
    """
    large = small = step
    above, mean = filled(small)
    for _ in range(8):
        if mean >= bottom:
            break
        large, small = small, 0.8 * small
        above, mean = filled(small)
    if mean < bottom:
        raise NumericalFailure("no step of a lattice suits these reports")
    for _ in range(12):
        if mean - bottom <= 0.02:
            break
        middle = 0.5 * (small + max(large, 1.05 * small))
        tried = filled(middle)
        if tried[1] >= bottom:
            small, (above, mean) = middle, tried
        else:
            large = middle
    return small, above, mean


def _from_above(tails: Tails, step: float, top: int, masses: Array) -> float:
    """Fill the nodes above zero from the last one down; the ratio down to which they reach."""
    node, end = top, np.inf
    whole = (0.0, 0.0)
    while node >= 1:
        target = 1 + node * step
        start = _start(tails, whole, target, end)
        here = tails(start)
        masses[node] = here[0] - whole[0]
        whole, end = here, start
        width = max(1.0, _WIDER * node)
        node = min(int((start - 1) / step - 0.5 * width), node - 1)
    return end


def _start(tails: Tails, beyond: tuple[float, float], target: float, end: float) -> float:
    """Where a cell begins that ends at `end`, beyond which these tails are, with this mean ratio.

    This is asked for thousands of times. Ratios thin out further up, so the cell is shorter below its mean than above;
    and what it exceeds its mean by is nearly a line in the square of the distance: false position in that, where the
    weight of an end that stays is halved (Illinois).
    """
    q0, p0 = beyond
    q, p = tails(target)
    low, high, above = 0.0, target, p - p0 - target * (q - q0)
    if 2 * target - end > 0.0 and above > 0.0:
        low = 2 * target - end
        q, p = tails(low)
        below = p - p0 - target * (q - q0)
        if below > 0.0:
            low, high = 0.0, low
        else:
            low, high = _by_squares(tails, beyond, target, (low, below), above)

    def exceeds(start: float) -> bool:
        q, p = tails(start)
        return p - p0 > target * (q - q0)

    return switch(exceeds, high, low, absolute=4 * _CLOSE * target)[0]


def _by_squares(
    tails: Tails, beyond: tuple[float, float], target: float, start: tuple[float, float], above: float
) -> tuple[float, float]:
    """A narrow bracket of the same, from a start with what it lacks and what the mean exceeds."""
    (q0, p0), (low, below) = beyond, start
    high, side, last = target, 0, math.inf
    most, least = (target - low) ** 2, 0.0  # squares of the distances from the mean
    for _ in range(20):
        square = least + above * (most - least) / (above - below)
        middle = target - math.sqrt(square)
        if not low < middle < high:
            break
        q, p = tails(middle)
        value = p - p0 - target * (q - q0)
        if value > 0.0:
            high, least, above = middle, square, value
            below, side = (0.5 * below if side == 1 else below), 1
        else:
            low, most, below = middle, square, value
            above, side = (0.5 * above if side == -1 else above), -1
        last, before = middle, last
        if abs(last - before) < 100 * _CLOSE * target:
            break
    for away in (_CLOSE * target, -_CLOSE * target):  # the root is next to the last place
        place = last + away
        if low < place < high:
            q, p = tails(place)
            low, high = (low, place) if p - p0 > target * (q - q0) else (place, high)
    return low, high


def _from_below(tails: Tails, step: float, limit: float, masses: Array) -> float:
    """Fill the nodes below zero from the first one up; the ratio up to which they reach."""
    end, whole, bottom = 0.0, tails(0.0), masses.size - 1
    for node in range(-bottom, 0):
        target = 1 + node * step
        if target <= end:
            continue

        def short(until: float, whole: tuple[float, float] = whole, target: float = target) -> bool:
            q, p = tails(until)
            return not whole[1] - p > target * (whole[0] - q)  # the mean ratio of the cell rises with its end

        last, beyond = switch(short, target, limit, absolute=(limit - target) * 2.0**-60)
        if beyond >= limit:  # what is left is too little to have this mean
            break
        here = tails(last)
        masses[bottom + node] = whole[0] - here[0]
        whole, end = here, last
    return end
