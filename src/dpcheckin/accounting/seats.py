"""The empty-seat pair of a three-atom law, exactly enough and whatever the population.

Every one of `steps` seats independently is a hit for one side or the other (probability `hits` in
all), a blank of weight `rest_weight` (probability `rest`), or else a blank of weight one; `offset`
further seats are blank with weight one. With c hits, d of them more for P than for Q, and total
weight M,

    P = base * (M + kappa d) / scale,   Q = base * (M - kappa d) / scale,   kappa = (e0 - 1) / 2.

Two moves keep the direction of every approximation: *splitting* a vector (p, q) into a sum can
only raise every hockey-stick divergence, *merging* can only lower it. M is a second-order matter,
so it is split onto a coarse grid (upper) or merged into its mean (lower); d is kept exact while
that is cheap, and is obtained by Fourier inversion on a coarse grid when it is not. The cost
depends neither on the population nor on the number of check-ins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcheckin.accounting import binomial
from dpcheckin.accounting.loss import Array, curve_of_masses

# Probability below which a corner of the distribution is not enumerated but charged as loss
# without bound, in natural logarithms; exp(-85) = 1e-37 is nothing even after 10^6 rounds.
CORNER = 85.0


@dataclass(frozen=True, slots=True)
class Effort:
    """How finely to approximate. Less effort gives a looser bound, never a wrong one."""

    enumerated_cells: int = 450_000
    cell_budget: int = 1_000_000
    nodes_per_deviation: int = 100
    count_cell: float = 0.25  # of a standard deviation of the hits
    scattered_cells: int = 400_000
    widest_scatter: int = 200_000  # counts; a wider scatter is next to nothing beside the scale
    both: bool = True  # also merge, for the lower bound


FULL = Effort()
# inversion needs hundreds of hits to be tight: enumerate as long as it is quick
QUICK = Effort(450_000, 60_000, 24, 0.5, 30_000, 20_000, both=False)


@dataclass(frozen=True, slots=True)
class SeatModel:
    """Parameters of the pair; see the module's first paragraph."""

    steps: int
    offset: float
    scale: float
    log_ratio: float
    hits: float
    rest: float  # given as such: one minus the others would lose its digits at small rates
    rest_weight: float = 0.0

    @property
    def kappa(self) -> float:
        return math.expm1(self.log_ratio) / 2

    @property
    def rest_given_blank(self) -> float:
        blank = 1.0 - self.hits
        return min(self.rest / blank, 1.0) if blank > 0 else 0.0

    @property
    def largest_density(self) -> float:
        """An upper bound of dP/dbase, for charging what is left out."""
        return (self.offset + self.steps * math.exp(self.log_ratio)) / self.scale

    def mean_weight(self, hits: Array) -> Array:
        """E[M | number of hits]."""
        missing = self.rest_given_blank * (1 - self.rest_weight)
        return self.offset + (self.steps - hits) * (1 - missing) + hits * (self.kappa + 1)


@dataclass(frozen=True, slots=True)
class Atoms:
    """Masses of P at positive losses log(p / q); `corner` bounds the P-mass that was left out."""

    p: Array
    losses: Array
    corner: float


def binomial_window(trials: int, probability: float) -> tuple[int, int]:
    """Counts outside which a binomial has mass at most 2 exp(-CORNER), by Chernoff's bound."""
    if probability <= 0.0:
        return 0, 0
    if probability >= 1.0:
        return trials, trials
    ends = []
    for outward in (0, trials):
        inner, outer = int(trials * probability), outward
        if _relative_entropy(outward, trials, probability) <= CORNER:
            ends.append(outward)
            continue
        while abs(outer - inner) > 1:
            middle = (inner + outer) // 2
            if _relative_entropy(middle, trials, probability) <= CORNER:
                inner = middle
            else:
                outer = middle
        ends.append(outer)
    return ends[0], ends[1]


def _relative_entropy(count: int, trials: int, probability: float) -> float:
    x, total = count / trials, 0.0
    if count > 0:
        total += count * math.log(x / probability)
    if count < trials:
        total += (trials - count) * (math.log1p(-x) - math.log1p(-probability))
    return total


NOTHING = Atoms(np.zeros(0), np.zeros(0), 0.0)


def atoms(model: SeatModel, effort: Effort = FULL) -> tuple[Atoms, Atoms]:
    """The pair, split (an upper bound of every divergence) and merged (a lower bound)."""
    if model.hits <= 0.0 or model.log_ratio == 0.0:
        return NOTHING, NOTHING
    low, high = binomial_window(model.steps, model.hits)
    width = 15.0 * math.sqrt(max(high, 1))
    if (high - low + 1) * min(width, high + 1) / 2 <= effort.enumerated_cells:
        return _enumerated(model, low, high, effort)
    from dpcheckin.accounting.seats_fourier import inverted  # only large populations pay for it

    return inverted(model, low, high, effort)


def _enumerated(model: SeatModel, low: int, high: int, effort: Effort) -> tuple[Atoms, Atoms]:
    counts, excesses, base = _joint(model, low, high)
    corner = 5.0 * math.exp(-CORNER) * model.largest_density
    mean = model.mean_weight(counts.astype(np.float64))
    merged = vectors(model, base, mean, excesses, corner)
    law = blank_law(
        model, low, high, max(effort.cell_budget // max(base.size, 1), 3), effort.widest_scatter
    )
    if law is None:
        return merged, merged
    # one row of the law for every hit count when it is exact, one row for all when it is not
    rows = counts - low if law.exact else np.zeros_like(counts)
    weights, shifts = law.weights[rows], law.shifts[rows]
    split = vectors(
        model,
        (base[:, None] * weights).ravel(),
        (mean[:, None] + shifts).ravel(),
        np.repeat(excesses, weights.shape[1]),
        corner + law.corner,
    )
    return split, split if law.exact else merged


def _joint(model: SeatModel, low: int, high: int) -> tuple[NDArray[np.int64], Array, Array]:
    """Probabilities of (hits, excess > 0); rows follow from one another by one more coin."""
    counts = np.arange(low, high + 1)
    weight = binomial.pmf(counts, model.steps, model.hits)
    reach = min(high, math.ceil(math.sqrt(2 * (CORNER + 2) * high)) + 1)
    columns = np.arange(-reach - 1, reach + 2)
    start = binomial.pmf((low + columns) / 2, low, 0.5)
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


def vectors(model: SeatModel, base: Array, weight: Array, excess: Array, corner: float) -> Atoms:
    lean = model.kappa * excess
    p = base * (weight + lean) / model.scale
    q = base * (weight - lean) / model.scale
    keep = base > 0.0
    impossible = q < 0.0
    if impossible.any():
        # Splitting M reached below what the hits alone weigh. No loss exceeds log e0, so what such
        # a part can add to any divergence is its p + e0 |q|: charge that and drop it.
        corner += float(np.sum(p[impossible] - math.exp(model.log_ratio) * q[impossible]))
        keep &= ~impossible
    # log1p keeps the digits of small losses, which log p - log q would not
    with np.errstate(divide="ignore"):
        losses = np.log1p(2 * lean[keep] / (weight - lean)[keep])
    return Atoms(p[keep], losses, corner)


@dataclass(frozen=True, slots=True)
class BlankLaw:
    """How M scatters round its mean given the hits: one row for all counts, or one for each."""

    shifts: Array
    weights: Array
    exact: bool
    corner: float


def blank_law(
    model: SeatModel, low: int, high: int, points: int, widest: int, *, exact: bool = True
) -> BlankLaw | None:
    """The law, with about `points` nodes; None when M does not scatter.

    Exact per hit count if allowed and affordable; otherwise one coarse law that is larger in
    convex order for every count (more trials spread a centred binomial, and moving mass to the
    neighbouring nodes in proportion spreads it further).
    """
    r, gain = model.rest_given_blank, 1.0 - model.rest_weight
    if r <= 0.0 or r >= 1.0 or gain == 0.0:
        return None
    trials = model.steps - low
    if exact and trials + 1 <= points:
        blanks = model.steps - np.arange(low, high + 1)
        light = np.arange(trials + 1)  # how many blanks have the small weight
        weights = binomial.pmf(light[None, :], blanks[:, None], r)
        return BlankLaw(-gain * (light[None, :] - blanks[:, None] * r), weights, True, 0.0)
    first, last = binomial_window(trials, r)
    finest = max(1, math.ceil((last - first) / max(points - 2, 1)))
    # a grid this coarse adds at most 5e-6 to the relative variance of the loss
    harmless = int(math.sqrt(3e-5) * model.scale / gain)
    cell = max(finest, min(harmless, last - first + 1), 1)
    shifts, weights = spread_binomial(trials, r, first, last, cell, widest)
    corner = 2.0 * math.exp(-CORNER) * model.largest_density
    if exact:
        return BlankLaw((-gain * shifts)[None, :], weights[None, :], False, corner)
    return BlankLaw(-gain * shifts, weights, False, corner)


def spread_binomial(
    trials: int, probability: float, first: int, last: int, cell: int, widest: int
) -> tuple[Array, Array]:
    """A centred binomial moved, mean preserving, onto nodes `cell` apart."""
    centre = trials * probability
    if last - first <= cell or last - first > widest:
        # the two ends of the window
        left, right = first - centre, last - centre
        return np.array([left, right]), np.array([right, -left]) / (right - left)
    ones = np.arange(first, last + 1)
    mass = binomial.pmf(ones, trials, probability)
    below = (ones - first) // cell
    nodes = first + cell * np.arange(int(below[-1]) + 2)
    share = (ones - nodes[below]) / cell
    weights = np.bincount(below, mass * (1 - share), nodes.size)
    weights = weights + np.bincount(below + 1, mass * share, nodes.size)
    weights = weights / weights.sum()
    return np.asarray(nodes - float(weights @ nodes)), np.asarray(weights)


def curve_on_grid(parts: Atoms, step: float, count: int) -> Array:
    """sum of p (1 - e^(eps - loss))+ at eps = i * step, i = 0..count-1, without the corner.

    Every atom is split onto the two neighbouring grid losses, which keeps the sum at every grid
    point.
    """
    p, losses = parts.p, parts.losses
    index = np.minimum(losses / step, count).astype(np.int64)
    far = index >= count
    far_p, far_losses = p[far], losses[far]
    p, losses, index = p[~far], losses[~far], index[~far]
    part = np.clip(losses - index * step, 0.0, step)
    up = p * (np.expm1(-part) / math.expm1(-step))
    mass = np.bincount(index, p - up, count + 1) + np.bincount(index + 1, up, count + 1)
    curve = curve_of_masses(mass[1:].astype(np.float64), step)[:count]
    if far_p.size:
        first = float((far_p * -np.expm1(-far_losses)).sum())
        other = float((far_p * np.exp(-far_losses)).sum())
        curve += np.maximum(first - np.expm1(np.arange(count) * step) * other, 0.0)
    return curve


def largest_loss(parts: Atoms, tolerance: float) -> float:
    """A loss above which the atoms hold P-mass at most `tolerance`."""
    finite = np.isfinite(parts.losses)
    if not finite.any():
        return 1.0 if parts.p.size else 0.0
    losses = parts.losses[finite]
    width = float(losses.max()) / 4096 * (1 + 1e-9) + 1e-300
    # bincount keeps the digits of small masses; histogram would take them as differences
    mass = np.bincount((losses / width).astype(np.int64), parts.p[finite])
    above = np.cumsum(mass[::-1])[::-1]
    keep = np.nonzero(above > tolerance)[0]
    return width * (int(keep[-1]) + 1 if keep.size else 1)


def spread(parts: Atoms) -> float:
    """Standard deviation of the loss, both signs together (a guide for the grid)."""
    finite = np.isfinite(parts.losses)
    losses, p = parts.losses[finite], parts.p[finite]
    return math.sqrt(float(np.sum(losses**2 * p * (1 + np.exp(-losses)))))
