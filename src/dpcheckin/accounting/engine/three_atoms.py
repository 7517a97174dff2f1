"""The empty-seat pair of reports with three likelihood ratios, whatever the population.

Every one of `count` seats independently is a hit for one side or the other (probability `hits` in all), a blank of
weight `rest_weight` (probability `rest`), or else a blank of weight one; further seats are blank with weight one. With
c hits, d of them more for P than for Q, and total weight M,

    P = base * (M + kappa d) / population,   Q = base * (M - kappa d) / population,

kappa = (e0 - 1) / 2. Two moves keep the direction of every approximation: *splitting* a vector
(p, q) into a sum can only raise every hockey-stick divergence, *merging* can only lower it. M is a
second-order matter, so it is split onto a coarse grid (upper) or merged into its mean (lower); d is
kept exact while that is cheap, and is obtained by Fourier inversion on a coarse grid when it is
not. The cost depends neither on the population nor on the number of check-ins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.curves import LOWER_SLACK, UPPER_SLACK, Curve, Unshuffled, fewer
from dpcheckin.accounting.engine.loss import NO_ATOMS, Atoms
from dpcheckin.accounting.engine.seats import Hits, Mixture, Seats
from dpcheckin.accounting.engine.three_atoms_fourier import Densities, Inverted, Resolution, inverted
from dpcheckin.special.binomial import CORNER, pmf, window

FINE = Resolution(nodes_per_deviation=100, count_cell=0.25)


@dataclass(frozen=True, slots=True)
class Effort:
    """How finely to approximate. Less effort gives a looser bound, never a wrong one."""

    enumerated_cells: int = 450_000
    cell_budget: int = 1_000_000
    resolution: Resolution = FINE
    scattered_cells: int = 400_000
    widest_scatter: int = 200_000  # counts; a wider scatter is next to nothing beside the scale
    both: bool = True  # also merge, for the lower bound


FULL = Effort()
# inversion needs hundreds of hits to be tight: enumerate as long as it is quick
QUICK = Effort(450_000, 60_000, Resolution(24, 0.5), 30_000, 20_000, both=False)


@dataclass(frozen=True, slots=True)
class Scatter:
    """A centred binomial: one row for every number of trials if `exact`, else one for all."""

    shifts: Array
    weights: Array
    exact: bool


def exact_scatter(fewest: int, most: int, probability: float) -> Scatter:
    """Bin(k, probability) minus its mean, one row each for k = most, most - 1, …, fewest."""
    trials = np.arange(most, fewest - 1, -1)
    ones = np.arange(most + 1)
    weights = pmf(ones[None, :], trials[:, None], probability)
    return Scatter(ones[None, :] - trials[:, None] * probability, weights, True)


def coarse_scatter(trials: int, probability: float, points: int, widest: int, harmless: int) -> Scatter:
    """One law larger in convex order than Bin(k, probability) minus its mean for every k <= trials.

    More trials spread a centred binomial, and moving mass to the neighbouring nodes in proportion spreads it further.

    `trials`: the largest number of trials. `probability`: of one success. `points`: nodes to use, about. `widest`:
    counts up to which the binomial is summed; a wider one becomes its two ends. `harmless`: a distance of nodes that
    does no harm.
    """
    first, last = window(trials, probability)
    finest = max(1, math.ceil((last - first) / max(points - 2, 1)))
    cell = max(finest, min(harmless, last - first + 1), 1)
    shifts, weights = _on_nodes(trials, probability, first, last, cell, widest)
    return Scatter(shifts, weights, False)


def _on_nodes(trials: int, probability: float, first: int, last: int, cell: int, widest: int) -> tuple[Array, Array]:
    """A centred binomial moved, mean preserving, onto nodes `cell` apart."""
    centre = trials * probability
    if last - first <= cell or last - first > widest:
        # the two ends of the window
        left, right = first - centre, last - centre
        return np.array([left, right]), np.array([right, -left]) / (right - left)
    ones = np.arange(first, last + 1)
    mass = pmf(ones, trials, probability)
    below = (ones - first) // cell
    nodes = first + cell * np.arange(int(below[-1]) + 2)
    share = (ones - nodes[below]) / cell
    weights = np.bincount(below, mass * (1 - share), nodes.size)
    weights = weights + np.bincount(below + 1, mass * share, nodes.size)
    weights = weights / weights.sum()
    return np.asarray(nodes - float(weights @ nodes)), np.asarray(weights)


class _Model:
    """The numbers of the pair; see the module's first paragraph."""

    def __init__(self, seats: Seats, law: Hits) -> None:
        self.count, self.empty, self.population = seats.count, seats.empty, seats.population
        self.log_ratio, self.rest_weight = law.local_epsilon, law.rest_weight
        self.hits = min(2 * seats.participation * law.hit, 1.0)
        # given as such: one minus the others would lose its digits at small rates
        rest = seats.participation * law.rest + seats.revealed
        blank = 1.0 - self.hits
        self.rest_given_blank = min(rest / blank, 1.0) if blank > 0 else 0.0
        self.kappa = math.expm1(self.log_ratio) / 2

    @property
    def largest_density(self) -> float:
        """An upper bound of dP/dbase, for charging what is left out."""
        return (self.empty + self.count * math.exp(self.log_ratio)) / self.population

    def mean_weight(self, hits: Array) -> Array:
        """E[M | number of hits]."""
        missing = self.rest_given_blank * (1 - self.rest_weight)
        return self.empty + (self.count - hits) * (1 - missing) + hits * (self.kappa + 1)

    def vectors(self, base: Array, weight: Array, excess: Array, corner: float) -> Atoms:
        return Atoms.of(base, weight, self.kappa * excess, self.population, self.log_ratio, corner)

    def scatter(self, low: int, high: int, points: int, widest: int, *, exact: bool) -> Scatter | None:
        """How M scatters round its mean given between low and high hits; None if it does not.

        On about `points` nodes: exact for every number of hits if asked for and affordable, otherwise one law for all.
        """
        r, gain = self.rest_given_blank, 1.0 - self.rest_weight
        if r <= 0.0 or r >= 1.0 or gain == 0.0:
            return None
        trials = self.count - low
        if exact and trials + 1 <= points:
            law = exact_scatter(self.count - high, trials, r)
            return Scatter(-gain * law.shifts, law.weights, True)
        # a grid this coarse adds at most 5e-6 to the relative variance of the loss
        harmless = int(math.sqrt(3e-5) * self.population / gain)
        law = coarse_scatter(trials, r, points, widest, harmless)
        return Scatter(-gain * law.shifts, law.weights, False)


def atoms(seats: Seats, law: Hits, effort: Effort = FULL) -> tuple[Atoms, Atoms]:
    """The pair, split (an upper bound of every divergence) and merged (a lower bound).

    `seats` are taken by reports of `law`, whatever their own is; `effort` says how finely to approximate.
    """
    model = _Model(seats, law)
    if model.hits <= 0.0 or model.log_ratio == 0.0:
        return NO_ATOMS, NO_ATOMS
    low, high = window(model.count, model.hits)
    width = 15.0 * math.sqrt(max(high, 1))
    if (high - low + 1) * min(width, high + 1) / 2 <= effort.enumerated_cells:
        return _enumerated(model, low, high, effort)
    return _inverted(model, low, high, effort)


def _enumerated(model: _Model, low: int, high: int, effort: Effort) -> tuple[Atoms, Atoms]:
    counts, excesses, base = _joint(model, low, high)
    corner = 5.0 * math.exp(-CORNER) * model.largest_density
    mean = model.mean_weight(counts.astype(np.float64))
    merged = model.vectors(base, mean, excesses, corner)
    points = max(effort.cell_budget // max(base.size, 1), 3)
    law = model.scatter(low, high, points, effort.widest_scatter, exact=True)
    if law is None:
        return merged, merged
    if law.exact:  # a row for every number of hits
        weights, shifts = law.weights[counts - low], law.shifts[counts - low]
    else:
        weights, shifts = law.weights[None, :], law.shifts[None, :]
        corner += 2.0 * math.exp(-CORNER) * model.largest_density
    split = model.vectors(
        (base[:, None] * weights).ravel(),
        (mean[:, None] + shifts).ravel(),
        np.repeat(excesses, weights.shape[1]),
        corner,
    )
    return split, split if law.exact else merged


def _inverted(model: _Model, low: int, high: int, effort: Effort) -> tuple[Atoms, Atoms]:
    none = float(model.mean_weight(np.zeros(1))[0])
    per_hit = float(model.mean_weight(np.ones(1))[0]) - none
    found = inverted(
        model.count,
        model.hits,
        (low, high),
        effort.resolution,
        Densities(none, per_hit, model.kappa, model.population) if effort.both else None,
    )
    corner = (6 * math.exp(-CORNER) + found.beyond) * model.largest_density
    above = _scattered(model, found, corner, low, high, effort)
    if not effort.both:
        return above, NO_ATOMS
    p, q = found.p, found.q
    keep = (p > q) & (q > 0)
    return above, Atoms(p[keep], np.log1p((p - q)[keep] / q[keep]), 0.0)


def _scattered(model: _Model, found: Inverted, corner: float, low: int, high: int, effort: Effort) -> Atoms:
    """Attach the scatter of blanks to the split masses."""
    keep = found.base > math.exp(-CORNER) / found.base.size
    base, hits, excess = found.base[keep], found.hits[keep], found.excess[keep]
    mean = model.mean_weight(hits)
    nodes = max(effort.scattered_cells // base.size, 3)
    law = model.scatter(low, high, nodes, effort.widest_scatter, exact=False)
    if law is None:
        return model.vectors(base, mean, excess, corner)
    return model.vectors(
        np.outer(base, law.weights).ravel(),
        np.add.outer(mean, law.shifts).ravel(),
        np.repeat(excess, law.weights.size),
        corner + 2.0 * math.exp(-CORNER) * model.largest_density,
    )


def _joint(model: _Model, low: int, high: int) -> tuple[NDArray[np.int64], Array, Array]:
    """Probabilities of (hits, excess > 0); rows follow from one another by one more coin."""
    counts = np.arange(low, high + 1)
    weight = pmf(counts, model.count, model.hits)
    reach = min(high, math.ceil(math.sqrt(2 * (CORNER + 2) * high)) + 1)
    columns = np.arange(-reach - 1, reach + 2)
    start = pmf((low + columns) / 2, low, 0.5)
    row = np.where((low + columns) % 2 == 0, start, 0.0)
    rows = np.empty((counts.size, reach + 1))
    middle = reach + 1
    for at in range(counts.size):
        rows[at] = row[middle + 1 :]
        following = np.zeros_like(row)
        following[1:-1] = 0.5 * (row[:-2] + row[2:])
        # keep the edge: whatever would leave the table stays in it, which is only ever more mass
        following[1] += 0.5 * row[0]
        following[-2] += 0.5 * row[-1]
        row = following
    base = rows * weight[:, None]
    keep = base > math.exp(-CORNER) / base.size  # the rest adds up to one more corner
    i, j = np.nonzero(keep)
    return counts[i], (j + 1).astype(np.float64), base[keep]


class ThreeAtomCurve(Curve):
    """A mixture of rounds of such reports, each an explicit pair."""

    def __init__(self, parts: Mixture, law: Hits, local: Unshuffled, effort: Effort = FULL) -> None:
        self._parts, self._law, self._local, self._effort = parts, law, local, effort

    def coarser(self) -> ThreeAtomCurve:
        return ThreeAtomCurve(fewer(self._parts), self._law, self._local, QUICK)

    @cached_property
    def _atoms(self) -> list[tuple[float, Atoms, Atoms]]:
        return [(weight, *atoms(seats, self._law, self._effort)) for weight, seats in self._parts]

    @property
    def unprotected(self) -> float:
        """Probability of a round about which nothing better than the local profile is proved."""
        return self._local.unprotected

    @property
    def upper_atoms(self) -> list[tuple[float, Atoms]]:
        """The split atoms with their weights (for Renyi moments)."""
        return [(weight, above) for weight, above, _ in self._atoms]

    @cached_property
    def spread(self) -> float:  # type: ignore[override]
        chosen = [(w, below if self._effort.both else above) for w, above, below in self._atoms]
        return math.sqrt(sum(w * side.spread**2 for w, side in chosen))

    @cached_property
    def quantum(self) -> float:  # type: ignore[override]
        model = _Model(self._parts[0][1], self._law)
        hits = max(model.count * model.hits, 1.0)
        weight = float(model.mean_weight(np.array([hits]))[0])
        # once a single hit is felt in the total weight the losses are no longer equidistant
        return 2 * math.atanh(model.kappa / weight) if model.kappa < 0.05 * weight else 0.0

    def reach(self, tolerance: float) -> float:
        return max(above.largest_loss(tolerance) for _, above, _ in self._atoms)

    def upper_at(self, epsilon: float) -> float:
        upper = sum(w * (a.excess(epsilon) * UPPER_SLACK + a.corner) for w, a, _ in self._atoms)
        whole = self._local.complete(np.array([upper]), np.array([math.exp(epsilon)]))
        return float(whole[0])

    def lower_at(self, epsilon: float) -> float:
        lower = sum(min(w, 1.0) * below.excess(epsilon) * LOWER_SLACK for w, _, below in self._atoms)
        return float(self._local.capped(np.array([lower]), np.array([math.exp(epsilon)]))[0])

    def upper(self, step: float, points: int) -> Array:
        total = np.zeros(points)
        for weight, above, _ in self._atoms:
            values = above.curve(step, points)
            total += weight * (values * UPPER_SLACK + above.corner)
        return self._local.complete(total, np.exp(np.arange(points) * step))

    def lower(self, step: float, points: int) -> tuple[Array, Array | None]:
        total = np.zeros(points)
        for weight, _, below in self._atoms:
            total += min(weight, 1.0) * LOWER_SLACK * below.curve(step, points)
        return self._local.capped(total, np.exp(np.arange(points) * step)), None
