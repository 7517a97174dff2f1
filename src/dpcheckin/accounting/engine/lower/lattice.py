"""The pair when all other clients hold one value, made smaller: both directions, on a lattice and far out.

The likelihood ratio is then an average of independent terms. Its law is replaced by one on a lattice that is smaller in
convex order. That is the exact divergence of one pair of datasets: every figure from here is a lower bound on what any
guarantee can claim, and never a guarantee.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.curves import LOWER_SLACK
from dpcheckin.accounting.engine.lattice import contracted, likely_loss
from dpcheckin.accounting.engine.lattice_sums import TOGETHER, LatticeSums, ReportLaw, Tilt, useful_reach
from dpcheckin.accounting.engine.loss import NO_ATOMS, Atoms
from dpcheckin.accounting.engine.lower.merged_law import MergedLaw, Tails, merged_law
from dpcheckin.accounting.engine.seats import WHOLE, RealPair, Seats
from dpcheckin.errors import NumericalFailure
from dpcheckin.special import UNIT
from dpcheckin.special.fourier import Integers

LARGEST_LOWER, LARGEST_MERGED = 1 << 16, 1 << 17
LONGEST_SUM = 1 << 19  # nodes for twenty deviations of the sum
_TILTS = (0.0, 4.0, 8.0, 12.0)  # deviations of the sum
# of a step, for ratios between two bounds: not every step suits the mass at both
_PARTS = (0.6, 0.7, 0.85, 1.0, 1.1, 1.35, 1.7, 2.0, 3.0, 4.0, 16.0)
_NODES = 1 << 14  # sums to a deviation that are worth telling apart
_CROWDED = 5e-4  # contraction of a report that room for chords may cost


class LowerLattice:
    """Both directions of the pair on a lattice: terms are W for a report and 1 for an empty seat."""

    def __init__(self, seats: Seats, pair: RealPair) -> None:
        self._model, self._pair = ReportLaw(seats), pair
        law = self._lattice_law()
        self._laws = {True: law, False: law[::-1].copy()}
        self._indices = {True: np.arange(-self._bottom, self._top + 1), False: np.arange(-self._top, self._bottom + 1)}

    def atoms(self, *, forward: bool) -> Atoms:
        """Losses of the pair, or of the swapped one, with lower bounds of their masses.

        The sum's law is tilted to several places in turn; every tilt bounds every mass from below, and the largest
        bound counts.
        """
        m, step, indices = self._model, self._step, self._indices[forward]
        mass = self._laws[forward]
        found: dict[float, tuple[Integers, Array]] = {}
        spread = math.sqrt(m.count * float(mass @ (indices * step) ** 2))
        # sums that are next to each other are merged, the same ones whatever the tilt
        together = 1
        while together < TOGETHER and spread > 2 * together * _NODES * step:
            together *= 2
        for deviations in _TILTS:
            try:
                tilt = Tilt.to(mass, indices * step, deviations * spread, m.count)
                if tilt.theta not in found:
                    sums = LatticeSums(mass, indices, m.absent, m.count, step, tilt)
                    found[tilt.theta] = sums.masses(together)
            except NumericalFailure:
                if not found:
                    raise
        last = max(int(places.max(initial=0)) for places, _ in found.values())
        masses = np.zeros(last + 1)
        for places, values in found.values():
            right = places > 0
            masses[places[right]] = np.maximum(masses[places[right]], values[right])
        there = np.flatnonzero(masses)
        ratio = there * (step / m.population)  # of P to Q, minus one
        if forward:
            return Atoms(masses[there] * (1 + ratio), np.log1p(ratio), 0.0)
        possible = ratio < 1.0
        return Atoms(masses[there][possible], -np.log1p(-ratio[possible]), 0.0)

    def _choose(self) -> None:
        """Step and reach: reports too rare to matter are dropped (that can only lower)."""
        m = self._model
        reach = useful_reach(m)
        scatter = math.sqrt(m.count * m.participation) * reach.deviation
        step = max(min(0.015 * reach.deviation, 0.1), 10 * scatter / LONGEST_SUM, 1 / LARGEST_LOWER)
        # the smallest ratio of a pure randomizer becomes a node
        lowest = 1 - self._pair.smallest_ratio
        if lowest <= 0.0:
            raise NumericalFailure("reports that say nothing have no lattice")
        if _extremes(self._pair) is not None:
            step = self._exact_step(lowest)
        self._step = step = lowest / max(round(lowest / step), 1)
        self._top = min(max(math.ceil(reach.top / step - 1e-9), 1), LARGEST_LOWER)
        self._bottom = math.ceil(lowest / step - 1e-9) + 1

    def _merge(self, tails: Tails) -> Array:
        """Reports merged into cells, on a lattice that suits them."""
        m = self._model
        deviation = math.sqrt(2 * self._pair.second_moment)
        # one report further out than that is looked at on its own, without a lattice
        top = max(20.0 * math.sqrt(m.count * m.participation) * deviation, 20.0)
        top = min(top, useful_reach(m).top)
        step = min(max(min(0.03 * deviation, 0.5), top / LARGEST_MERGED), 1.0)
        lowest = 1.0 - self._pair.smallest_ratio
        law = merged_law(tails, step, min(math.ceil(top / step), LARGEST_MERGED), lowest)
        if math.isfinite(self._pair.largest_ratio):
            law = self._finer(tails, step, law)
        self._step, self._bottom = law.step, law.bottom
        self._top = law.masses.size - 1 - law.bottom
        return law.masses

    def _finer(self, tails: Tails, step: float, law: MergedLaw) -> MergedLaw:
        """The report on finer lattices as well, and the law that keeps most of its variance.

        Ratios between two bounds have mass at both of them, which not every step suits.
        """
        m, top = self._model, self._pair.largest_ratio - 1
        scatter = math.sqrt(2 * self._pair.second_moment * m.count * m.participation)
        for parts in _PARTS:
            fine = step / parts
            if top / fine > LARGEST_MERGED or 20 * scatter / fine > LONGEST_SUM:
                break
            other = merged_law(tails, fine, math.ceil(top / fine), 1.0 - self._pair.smallest_ratio)
            law = max(law, other, key=lambda one: one.variance)
        return law

    def _exact_step(self, lowest: float) -> float:
        """A step of which the smallest ratio is a multiple and the largest nearly one, from above.

        With one ratio above one and one below it nothing else is lost, so the step may be longer.
        """
        highest = self._pair.largest_ratio - 1
        m = self._model
        scatter = math.sqrt(m.count * m.participation * highest * lowest)  # of the sum
        most = LONGEST_SUM * lowest / (20 * scatter)  # larger crowds have room for fewer parts
        parts = np.arange(1, max(min(int(most), 300), 2))
        places = highest / lowest * parts
        lost = (places - np.floor(places * (1 + 4 * UNIT))) / places
        good = np.flatnonzero(lost <= 2e-4)
        return lowest / float(parts[good[0] if good.size else np.argmin(lost)])

    def _extreme_law(self) -> Array | None:
        """The report's law when it has one ratio above one and one below.

        The upper one is moved down to a node, and as much of the lower one's mass to zero as keeps the mean: smaller in
        convex order.
        """
        masses = _extremes(self._pair)
        if masses is None:
            return None
        lowest = 1 - self._pair.smallest_ratio
        bottom, highest = round(lowest / self._step), self._pair.largest_ratio - 1
        top = math.floor(highest / self._step * (1 + 4 * UNIT))
        if not 1 <= top <= self._top:
            return None
        law = np.zeros(self._bottom + self._top + 1)
        above = masses[1]
        law[self._bottom + top] = above
        law[self._bottom - bottom] = above * top / bottom
        law[self._bottom] = max(1.0 - above - above * top / bottom, 0.0)
        return law

    def _potential(self, nodes: Array, contraction: float) -> Array:
        """E(X - x)+ right of zero and E(x - X)+ left of it, for X = contraction * (W - 1)."""
        c, right = contraction, nodes >= 0
        out = np.empty_like(nodes)
        out[right] = c * self._pair.above(1 + nodes[right] / c)
        out[~right] = c * self._pair.below(1 + nodes[~right] / c)
        return out

    def _lattice_law(self) -> Array:
        """A law on the lattice smaller than W - 1 in convex order, mixed with the empty seats.

        W - 1 is contracted towards its mean, zero, and then moved to the lattice; the contraction is the smallest for
        which the resulting potential stays below that of W - 1 everywhere.
        """
        m, lost = self._model, 1e-6
        if self._pair.tails is not None:
            known: Array | None = self._merge(self._pair.tails)
        else:
            self._choose()
            known = self._extreme_law()
        while known is None:
            if lost >= 0.5:
                raise NumericalFailure("no lattice law below this local pair was found")
            known = self._contracted(1 - lost)
            lost *= 1.6
        known *= m.participation
        known[self._bottom] += m.absent
        return known

    def _merge_lowest(self, potential: Array, nodes: Array) -> None:
        """Merge the smallest ratios into one, where they are too dense for the lattice.

        There the potential falls so fast that no contraction worth having makes room for chords. A line through two of
        its values lies below it further left, and so does zero.
        """
        end = int(np.argmax(nodes >= -0.3 * (1 - self._pair.smallest_ratio)))
        left, here, right = potential[: end - 1], potential[1:end], potential[2 : end + 1]
        rising = np.maximum(right - here, 1e-300)
        bent = (right - 2 * here + left) / (8 * (here - nodes[1:end] * rising / self._step) + 1e-300)
        crowded = np.flatnonzero(bent > _CROWDED)
        if crowded.size:
            start = int(crowded[-1]) + 2
            slope = (potential[start + 1] - potential[start]) / self._step
            line = potential[start] + slope * (nodes[:start] - nodes[start])
            potential[:start] = np.maximum(line, 0.0)

    def _contracted(self, contraction: float) -> Array | None:
        nodes = np.arange(-self._bottom - 2, self._top + 3) * self._step
        halves = np.arange(2 * (-self._bottom - 2), 2 * (self._top + 2) + 1) * (self._step / 2)
        coarse, fine = self._potential(nodes, contraction), self._potential(halves, 1.0)
        self._merge_lowest(coarse, nodes)
        zero = self._bottom + 2
        # left form below zero, right form from zero on; at zero they agree, so cells stay linear
        sampled = np.empty_like(fine)
        sampled[::2] = coarse
        sampled[1::2] = 0.5 * (coarse[:-1] + coarse[1:])
        room = fine - sampled + 1e-17
        # at zero the two forms meet and the slope drops by one, which is not (negative) mass
        bends = np.diff(fine, 2)
        bends[2 * zero - 1] += self._step / 2
        kinks = np.maximum(bends, 0.0)
        left, after = kinks[:-1], kinks[1:]
        total = left + after
        some = total > 0
        gap = np.divide(left * after, total, out=np.zeros_like(total), where=some)
        share = np.divide(after, total, out=np.zeros_like(total), where=some)
        enough = (1 - share) * room[1:-2] + share * room[2:-1] >= gap * (1 - 1e-9) - 1e-17
        if not (np.all(room[2:-2] >= 0) and np.all(enough[2:-2])):
            return None
        mass = np.diff(coarse, 2)[1:-1] / self._step
        mass[self._bottom] += 1.0
        return np.asarray(np.maximum(mass, 0.0))


def _extremes(pair: RealPair) -> tuple[float, float] | None:
    """Masses of the one ratio below one and of the one above; None if there are more."""
    if pair.atoms is None:
        return None
    ratios, masses = pair.atoms
    below, above = ratios < 1.0, ratios > 1.0
    if below.sum() != 1 or above.sum() != 1:
        return None
    return float(masses[below][0]), float(masses[above][0])


class HomogeneousCurve:
    """Both directions of the pair of these seats, of reports with these laws: lower bounds only.

    `smallest` is a delta that is negligible, `weight` the probability of the seats.
    """

    def __init__(self, seats: Seats, pair: RealPair, smallest: float, weight: float = 1.0) -> None:
        self._seats, self._pair = seats, pair
        self._weight, self._negligible = weight, 100 * smallest
        self.spread = likely_loss([(1.0, seats)], seats.law)

    @cached_property
    def _atoms(self) -> tuple[Atoms, Atoms]:
        try:
            lattice = LowerLattice(_mean_shares(self._seats), self._pair)
            return lattice.atoms(forward=True), lattice.atoms(forward=False)
        except NumericalFailure:
            return NO_ATOMS, NO_ATOMS  # what cannot be computed is bounded below by nothing

    def curves(self, step: float, points: int) -> tuple[Array, Array]:
        """Lower bounds at so many `points`, 0, `step`, 2 step, …, forward and backward."""
        scale = self._weight * LOWER_SLACK
        forward, backward = (scale * side.curve(step, points) for side in self._atoms)
        alone = scale * self._one_large(np.arange(points) * step)
        return np.maximum(forward, alone), backward

    @property
    def reach(self) -> float:
        """A loss beyond which nothing is worth computing."""
        reports = self._seats.count * self._seats.participation
        loss = 12 * self.spread if reports > 50 else 30 * self.spread + 1.0
        while loss < 40.0 and self._weight * self._one_large(np.array([loss]))[0] > self._negligible:
            loss *= 1.3
        return loss

    def _one_large(self, epsilons: Array) -> Array:
        """The forward curve's part with one report above a threshold and all others below.

        Given that, the others have a mean slightly below zero, and by Jensen's inequality count as that mean. Where
        tails are heavy this is what is lost far out, and no lattice holds it.
        """
        seats = _mean_shares(self._seats)
        reports, above = seats.count * seats.participation, self._pair.above
        beyond = np.maximum(np.expm1(epsilons) * seats.population, 1e-9)

        def chance(x: Array) -> Array:  # P(X > x), from above
            return (above(1 + 0.9 * x) - above(1 + x)) / (0.1 * x)

        often = np.minimum(chance(beyond), 1.0)
        mean = reports * (above(1 + beyond) + beyond * often)
        mean = mean / np.maximum(1.0 - seats.participation * often, 1e-3)
        nobody = np.maximum(1.0 - reports * chance(beyond + mean), 0.0)
        return np.asarray(reports * above(1 + beyond + mean) * nobody / seats.population)


def _mean_shares(seats: Seats) -> Seats:
    """The same seats when every share is the mean one: no larger, by Jensen's inequality."""
    if seats.shares == WHOLE:
        return seats
    return contracted(seats, sum(w * p for w, p in seats.shares))
