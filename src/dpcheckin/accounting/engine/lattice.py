"""The theorem's one-round curve for any local profile, one epsilon at a time.

delta(eps) = E[(empty (1 - alpha) + Z_1 + ... + Z_count)+] / population, alpha = e^eps, where each Z is Z* with
probability `participation`, 1 - alpha with probability `absent`, else 0, and Z* is the law whose potentials are those
of the local profile h (docs/theory.md):

    E(Z* - t)+ = h(alpha + t),   E(-t - Z*)+ = alpha h((1 + t) / alpha),   t >= 0.

In the coordinate X = Z - (1 - alpha) an empty seat is exactly 0 and the upper half of the law does not depend on alpha.
X is put on a lattice. Keeping the potential at the lattice points is mean preserving and larger in convex order: an
upper bound. The sum is one FFT to the power `count`.

A report may have to compete for its place: then X is multiplied by an independent share in (0, 1], the chance that it
stands, and the law on the lattice is the mixture over shares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.lattice_sums import LatticeSums, ReportLaw, Tilt, useful_reach
from dpcheckin.accounting.engine.seats import WHOLE, Law, Mixture, Profile, Seats

# nodes for the largest report (times four), and for twenty deviations of the sum
LARGEST, LARGEST_COARSE = (1 << 17, 1 << 17), (1 << 12, 1 << 14)
VERY_FEW = 2.0  # reports, of which each is worth more nodes
HEAVY = 1e-3  # of delta, about, that may lie beyond a lattice that would be too coarse otherwise


@dataclass(frozen=True, slots=True)
class _Lattice:
    step: float
    top: int  # nodes above zero
    depth: float  # how far below zero reports matter, in units of alpha
    above: Array  # E(X - x)+ at nodes 0 .. top + 1, for x past alpha - 1
    fine: bool  # as fine as it should be, not as coarse as it must


class UpperLattice:
    """Upper bounds of the theorem's delta(eps) for the seats."""

    def __init__(self, seats: Seats, *, coarse: bool = False) -> None:
        self._model = model = ReportLaw(seats)
        self._lattice = _choose(model, *(LARGEST_COARSE if coarse else LARGEST), coarse=coarse)
        self._tilts: dict[bool, Tilt] = {}
        self._bottom = 0
        self._reach_down(0.0)
        self._whole = float(model.finite_profile(np.zeros(1))[0])  # 1 - h(infinity)

    @property
    def fine(self) -> bool:
        """Does the lattice hold the whole law, at the resolution it should have?"""
        return self._lattice.fine

    def upper(self, epsilon: float) -> float:
        """An upper bound of the theorem's delta at this epsilon."""
        m = self._model
        rise = math.expm1(epsilon)
        if m.count == 1:  # a single report among seats: the profile further out, exactly
            return m.participation * float(m.shared_profile(np.array([1 + rise * (1 + m.empty)]))[0]) / m.population
        threshold = rise * (m.count + m.empty)
        self._reach_down(rise)
        mass = self._masses(rise)
        value = self._excess(mass, threshold, far=False)
        return (value + m.count * m.participation * self._beyond(mass, threshold)) / m.population

    def _reach_down(self, rise: float) -> None:
        """Have as many nodes below zero as this epsilon asks for: the lower half grows with it.

        Where ratios have no largest, the tails are cut by their weight already, and longer lattices would only be given
        up for their length.
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
        if threshold >= m.count * lat.top * lat.step:
            return 0.0
        tilt = self._tilts.get(far)
        if tilt is None or not tilt.serves(threshold):
            tilt = self._tilts[far] = Tilt.to(mass, self._nodes, threshold, m.count)
        sums = LatticeSums(mass, self._indices, m.absent, m.count, lat.step, tilt)
        value, error = sums.excess(threshold)
        return value + error

    def _beyond(self, mass: Array, threshold: float) -> float:
        """What one report's part above the last node can add to E[(S - threshold)+].

        The reports are made whole one by one. With b the part cut off one of them and a the sum of
        the rest, a + b exceeds x only if a exceeds y or b exceeds x - y:
        (a+b-x)+ <= (a-x)+ + [b > 0] (a-y)+ + (b-x+y)+. Taking y = 0, or y = last node + `apart`,
        gives two bounds; the smaller holds. In a, reports may be whole already, each of which adds
        at most `plain` to E(a - y)+.
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
        others = self._excess(mass, apart, far=True) + m.count * m.participation * plain
        return min(plain, single + chance * others)

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

        Second differences of the potential, each half computed from its own tail so that small masses far out keep
        their digits.
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
        mass = m.participation * np.maximum(mass, 0.0) / lat.step
        mass[bottom] += m.absent
        if m.rest > 0.0:
            place = min(rise / lat.step, float(lat.top))
            node = min(int(place), lat.top - 1)
            mass[bottom + node] += m.rest * (1 - (place - node))
            mass[bottom + node + 1] += m.rest * (place - node)
        return mass


def _choose(model: ReportLaw, report_nodes: int, sum_nodes: int, *, coarse: bool) -> _Lattice:
    """A lattice fine enough for the small reports and long enough for the large ones."""
    h, reach = model.shared_profile, useful_reach(model)
    # the error of the lattice is relative to one report; among few reports it must be finer
    reports = model.count * model.participation
    fine = 1.0 if reports > 200.0 else 0.5
    if reports <= VERY_FEW and not coarse:
        fine = 0.2
    elif reports <= 200.0 and not coarse:  # where they are neither few nor many, more nodes gain next to nothing
        report_nodes //= 4
    step = fine * min(0.085 * reach.deviation, reach.top / 24)
    if math.isinf(model.largest_ratio) and 4 * reach.top / report_nodes > 1.7 * reach.bare:
        # Tails so heavy that a lattice which holds them tells nothing else apart. A single report
        # further out is charged on its own, and rather well.
        reach, report_nodes = useful_reach(model, HEAVY), max(report_nodes // 4, LARGEST_COARSE[0])
        step = fine * min(0.085 * reach.bare, reach.top / 24)
    # more than about 10^7 reports do not fit finely: a coarser lattice is looser, never wrong
    scatter = min(math.sqrt(model.count * model.participation) * reach.deviation, model.count * reach.top)
    wanted, step = step, max(step, 4 * reach.top / report_nodes, 20 * scatter / sum_nodes)
    step = reach.top / max(math.ceil(reach.top / step), 2)  # an atom at the largest ratio is then a node
    top = round(reach.top / step)
    # below, reports so rare that they never matter may be moved up
    depth = 4 * step
    while depth < reach.top and model.count * model.participation * _tail_mass(h, 1 + depth) > 1e-5:
        depth *= 1.1
    above = h(1 + np.arange(top + 2) * step)
    return _Lattice(step, top, depth, above, fine=step <= wanted and above[top] == 0.0)


def _tail_mass(h: Profile, ratio: float) -> float:
    """P(W > ratio) from chords of the profile (an upper bound)."""
    below = 0.98 * ratio
    values = h(np.array([below, ratio]))
    return max(float((values[0] - values[1]) / (ratio - below)), 0.0)


def contracted(seats: Seats, share: float) -> Seats:
    """The same seats with this share for every report: that contracts them all, as 1/share times the clients would."""
    population = seats.population / share
    return replace(seats, population=population, empty=population - seats.count, shares=WHOLE)


def spread_of(parts: Mixture, law: Law) -> float:
    """Standard deviation of the loss of a round of these `parts` among many reports of this `law` (a guide)."""
    variance, moment = 0.0, law.second_moment
    for weight, s in parts:
        shared = moment * sum(p * w * w for w, p in s.shares)
        part = weight * s.count * s.participation * 2 * min(shared, s.population**2)
        variance += part / s.population**2
    return math.sqrt(variance)


def likely_loss(parts: Mixture, law: Law) -> float:
    """The same of `parts` and `law`, but no more than one report can lose; 1 where that has no end."""
    return min(spread_of(parts, law), law.local_epsilon if math.isfinite(law.local_epsilon) else 1.0)
