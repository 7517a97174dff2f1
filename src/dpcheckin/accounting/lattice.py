"""The theorem's one-round curve for any local profile, one epsilon at a time.

delta(eps) = E[(offset (1 - alpha) + Z_1 + ... + Z_steps)+] / scale, alpha = e^eps, where each Z is
Z* with probability `take`, 1 - alpha (an empty seat) with probability `ones`, else 0, and Z* is
the law whose potentials are those of the local profile h (docs/theory.md):

    E(Z* - t)+ = h(alpha + t),   E(-t - Z*)+ = alpha h((1 + t) / alpha),   t >= 0.

In the coordinate X = Z - (1 - alpha) an empty seat is exactly 0 and the upper half of the law does
not depend on alpha. X is put on a lattice. Keeping the potential at the lattice points is mean
preserving and larger in convex order: an upper bound. The sum is one FFT to the power `steps`.

A report may have to compete for its place: then X is multiplied by an independent share in (0, 1],
the chance that it stands, and the law on the lattice is the mixture over shares.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpcheckin.accounting.lattice_sums import LatticeSums, Tilt
from dpcheckin.accounting.loss import Array

Profile = Callable[[Array], Array]
Shares = tuple[tuple[float, float], ...]
WHOLE: Shares = ((1.0, 1.0),)
# nodes for the largest report (times four), and for twenty deviations of the sum
LARGEST, LARGEST_COARSE = (1 << 17, 1 << 17), (1 << 12, 1 << 14)


@dataclass(frozen=True, slots=True)
class LatticeModel:
    """Seats whose reports follow a local profile; `finite_profile` has h(infinity) taken off."""

    steps: int
    offset: float
    scale: float
    take: float
    ones: float
    finite_profile: Profile
    second_moment: float  # E[(W - 1)+^2], for choosing the lattice only
    largest_ratio: float  # W never exceeds this (may be infinite)
    shares: Shares = WHOLE  # (share, its probability)

    def shared_profile(self, alpha: Array) -> Array:
        """E(1 + share (W - 1) - alpha)+ for alpha >= 1: the profile of what gets through."""
        return np.asarray(
            sum(p * w * self.finite_profile(1 + (alpha - 1) / w) for w, p in self.shares)
        )

    @property
    def rest(self) -> float:
        return max(1.0 - self.take - self.ones, 0.0)


@dataclass(frozen=True, slots=True)
class _Lattice:
    step: float
    top: int  # nodes above zero
    depth: float  # how far below zero reports matter, in units of alpha
    above: Array  # E(X - x)+ at nodes 0 .. top + 1, for x past alpha - 1


class LatticeCurve:
    """Upper bounds of delta(eps) of a model."""

    def __init__(self, model: LatticeModel, *, coarse: bool = False) -> None:
        self._model = model
        self._lattice = _choose(model, *(LARGEST_COARSE if coarse else LARGEST), coarse=coarse)
        self._tilts: dict[bool, Tilt] = {}
        self._bottom = 0
        self._reach_down(0.0)
        self._whole = float(model.finite_profile(np.zeros(1))[0])  # 1 - h(infinity)

    def upper(self, epsilon: float) -> float:
        """An upper bound of the theorem's delta at this epsilon."""
        m = self._model
        rise = math.expm1(epsilon)
        if m.steps == 1:  # a single report among seats: the profile further out, exactly
            return (
                m.take * float(m.shared_profile(np.array([1 + rise * (1 + m.offset)]))[0]) / m.scale
            )
        threshold = rise * (m.steps + m.offset)
        self._reach_down(rise)
        mass = self._masses(rise)
        value = self._excess(mass, threshold, far=False)
        return (value + m.steps * m.take * self._beyond(mass, threshold)) / m.scale

    def _reach_down(self, rise: float) -> None:
        """Have as many nodes below zero as this epsilon asks for: the lower half grows with it.

        Where ratios have no largest, the tails are cut by their weight already, and longer lattices
        would only be given up for their length.
        """
        lat = self._lattice
        growth = 1.0 + rise if math.isfinite(self._model.largest_ratio) else 1.0
        wanted = min(math.ceil(1.05 * growth * lat.depth / lat.step), 4 * lat.top + 4)
        if wanted > self._bottom:
            spare = 1.1 if rise > 0.0 else 1.0  # for the next epsilon
            self._bottom = min(math.ceil(spare * wanted), 4 * lat.top + 4)
            self._indices = np.arange(-self._bottom, lat.top + 1)
            self._nodes = self._indices * lat.step
            self._tilts.clear()

    def _excess(self, mass: Array, threshold: float, *, far: bool) -> float:
        """Upper bound of E[(S - threshold)+] for reports cut off at the last node."""
        m, lat = self._model, self._lattice
        if threshold >= m.steps * lat.top * lat.step:
            return 0.0
        tilt = self._tilts.get(far)
        if tilt is None or not tilt.serves(threshold):
            tilt = self._tilts[far] = Tilt.to(mass, self._nodes, threshold, m.steps)
        sums = LatticeSums(mass, self._indices, m.ones, m.steps, lat.step, tilt)
        value, error = sums.excess(threshold)
        return value + error

    def _beyond(self, mass: Array, threshold: float) -> float:
        """What one report's part above the last node can add to E[(S - threshold)+].

        With a the sum of the cut reports and b the part cut off one of them, a + b exceeds x only
        if a exceeds y or b exceeds x - y: (a+b-x)+ <= (a-x)+ + [b > 0] (a-y)+ + (b-x+y)+. Taking
        y = 0, or y = last node + `apart`, gives two bounds; the smaller holds.
        """
        lat, m = self._lattice, self._model
        last = lat.top * lat.step
        plain = float(lat.above[lat.top])
        if plain == 0.0:
            return 0.0
        apart = 9.0 * self._tilts[False].plain_spread if False in self._tilts else 0.0
        if apart == 0.0 or threshold <= last + apart:
            return plain
        chance = float(lat.above[lat.top - 1] - lat.above[lat.top]) / lat.step
        single = float(m.finite_profile(np.array([1 + threshold - apart]))[0])
        return min(plain, single + chance * self._excess(mass, apart, far=True))

    def _below(self, x: Array, rise: float) -> Array:
        """E(x - X)+ for x up to alpha - 1; a share's halves meet at share * (alpha - 1)."""
        h, alpha, total = self._model.finite_profile, 1.0 + rise, np.zeros_like(x)
        for w, p in self._model.shares:
            right = x > w * rise
            total[~right] += p * w * alpha * h(1 - x[~right] / (w * alpha))
            if right.any():
                mean = w * rise * (1 - self._whole)
                total[right] += p * (w * h(1 + x[right] / w) - mean + x[right])
        return total

    def _masses(self, rise: float) -> Array:
        """Masses of one seat's X at the nodes -bottom .. top.

        Second differences of the potential, each half computed from its own tail so that small
        masses far out keep their digits.
        """
        lat, m = self._lattice, self._model
        last_left = min(math.floor(rise / lat.step), lat.top - 1)
        bottom = self._bottom
        left = np.arange(-bottom, last_left + 1) * lat.step
        below = self._below(left, rise)
        above = lat.above[last_left + 1 : lat.top + 1]
        # E(X - x)+ - E(x - X)+ = E X - x joins the two halves
        mean = rise * (1 - self._whole) * sum(w * p for w, p in m.shares)
        after = above[0] - mean + (last_left + 1) * lat.step
        before = below[-1] + mean - last_left * lat.step
        # whatever lies below the first node is moved up to it, whatever above the last is cut
        lower_half = np.diff(np.concatenate([below, [after]]))
        upper_half = np.diff(np.concatenate([[before], above]))
        mass = np.empty(bottom + lat.top + 1)
        split = left.size
        mass[0], mass[1:split] = lower_half[0], np.diff(lower_half)
        mass[split:-1], mass[-1] = np.diff(upper_half), -upper_half[-1]
        mass = m.take * np.maximum(mass, 0.0) / lat.step
        mass[bottom] += m.ones
        if m.rest > 0.0:
            place = min(rise / lat.step, float(lat.top))
            node = min(int(place), lat.top - 1)
            mass[bottom + node] += m.rest * (1 - (place - node))
            mass[bottom + node + 1] += m.rest * (place - node)
        return mass


@dataclass(frozen=True, slots=True)
class Reach:
    """Where to stop a lattice for W - 1, and the deviation of what is kept (guides only)."""

    top: float
    deviation: float


def useful_reach(model: LatticeModel) -> Reach:
    """Far enough that what lies beyond adds at most about 1e-5 to a typical delta."""
    largest = min(model.largest_ratio - 1, 1e280)
    x = np.concatenate([[0.0], np.geomspace(1e-6 * min(largest, 1.0), largest, 600)])
    h = model.shared_profile(1 + x)
    areas = np.concatenate([[0.0], np.cumsum(0.5 * (h[1:] + h[:-1]) * np.diff(x))])
    deviation = np.sqrt(np.maximum(2 * 2 * (areas - x * h), 0.0))
    reports = model.steps * model.take
    beyond = reports * h <= 1e-5 * 0.4 * math.sqrt(reports) * deviation
    i = int(np.argmax(beyond)) if beyond.any() else x.size - 1
    i = max(i, 1)
    return Reach(float(x[i]), max(float(deviation[i]), 1e-3 * float(x[i])))


def _choose(model: LatticeModel, report_nodes: int, sum_nodes: int, *, coarse: bool) -> _Lattice:
    """A lattice fine enough for the small reports and long enough for the large ones."""
    h, reach = model.shared_profile, useful_reach(model)
    # the error of the lattice is relative to one report; among few reports it must be finer
    fine = 1.0 if model.steps * model.take > 200 else 0.5 if coarse else 0.2
    step = fine * min(0.085 * reach.deviation, reach.top / 24)
    # more than about 10^7 reports do not fit finely: a coarser lattice is looser, never wrong
    scatter = min(math.sqrt(model.steps * model.take) * reach.deviation, model.steps * reach.top)
    step = max(step, 4 * reach.top / report_nodes, 20 * scatter / sum_nodes)
    step = reach.top / max(
        math.ceil(reach.top / step), 2
    )  # an atom at the largest ratio is then a node
    top = round(reach.top / step)
    # below, reports so rare that they never matter may be moved up
    depth = 4 * step
    while depth < reach.top and model.steps * model.take * _tail_mass(h, 1 + depth) > 1e-5:
        depth *= 1.1
    return _Lattice(step, top, depth, h(1 + np.arange(top + 2) * step))


def _tail_mass(h: Profile, ratio: float) -> float:
    """P(W > ratio) from chords of the profile (an upper bound)."""
    below = 0.98 * ratio
    values = h(np.array([below, ratio]))
    return max(float((values[0] - values[1]) / (ratio - below)), 0.0)
