"""Discretised privacy loss distributions: from a curve to a grid, and the tail of either.

A curve is the hockey-stick divergence C(alpha) of a pair, known at the points alpha_i = exp(i * step), i >= 0. Values
that are upper bounds become a pair that dominates (chords of a convex function lie above it); values that are lower
bounds, lowered by the largest gap a chord can have, become a pair that is dominated. `compose` joins many.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.errors import NumericalFailure
from dpcheckin.special import UNIT
from dpcheckin.special.roots import switch

_SIEVES = 12  # times that points which are above their neighbours are left out all at once
VANISHED = 700.0  # of a loss so much larger nothing is left


@dataclass(frozen=True, slots=True)
class LossDistribution:
    """Masses of P at losses i * step, i = -reach..reach, and at infinity.

    `positive` and `negative` are the masses at +i and -i steps, i = 1..reach; the mass at zero is what these and
    `infinite` leave of one.
    """

    step: float
    positive: Array
    negative: Array
    infinite: float

    @property
    def reach(self) -> int:
        return self.positive.size

    def masses(self) -> Array:
        """All finite masses in order of loss.

        Mass without bound is part of one as well, so the mass at zero makes room for it. The other law then has one
        minus its own such mass, as it should: its curve below zero loss is that of the swapped pair. An upper bound
        that is steep at zero may hold a little more than one in all. That is as sound as any other excess (composition
        never uses that masses add up to one) but beyond rounding and slack it is a sign of a broken curve.
        """
        zero = 1.0 - math.fsum(self.positive) - math.fsum(self.negative)
        if zero < -0.02:
            raise NumericalFailure(f"mass at zero loss came out as {zero:.3g}")
        zero = max(zero - self.infinite, 0.0)
        return np.concatenate([self.negative[::-1], [zero], self.positive])

    def alone(self, place: int, share: float) -> LossDistribution:
        """A `share` of the masses at losses `place` steps from zero, and nothing else."""
        kept = share * (np.arange(1, self.reach + 1) == place)
        return LossDistribution(self.step, self.positive * kept, self.negative * kept, 0.0)


def convex_minorant(x: Array, y: Array) -> Array:
    """The largest convex function below the points (`x`, `y`), x increasing, at the same x."""
    kept_x, kept_y = x, y
    for _ in range(_SIEVES):
        # a point above the line between two others is not one of those that are left
        above = np.diff(np.diff(kept_y) / np.diff(kept_x)) < 0.0
        if not above.any():
            return y if kept_x.size == x.size else np.asarray(np.interp(x, kept_x, kept_y))
        below = np.concatenate([[True], ~above, [True]])
        kept_x, kept_y = kept_x[below], kept_y[below]
    hull: list[int] = []
    xs, ys = kept_x.tolist(), kept_y.tolist()  # plain numbers: this loop is what takes the time
    for i, (here, value) in enumerate(zip(xs, ys, strict=True)):
        while len(hull) >= 2:
            a, b = hull[-2], hull[-1]
            if (ys[b] - ys[a]) * (here - xs[a]) < (value - ys[a]) * (xs[b] - xs[a]):
                break
            hull.pop()
        hull.append(i)
    return np.asarray(np.interp(x, kept_x[hull], kept_y[hull]))


def _halves(step: float, curve: Array) -> tuple[Array, Array, float]:
    """Masses of P at +i and of Q at +i (i >= 1) whose curve passes through the given points."""
    points = np.arange(curve.size)
    alphas = np.exp(points * step)
    # alpha_{i} - alpha_{i-1} without cancellation
    widths = alphas[:-1] * math.expm1(step)
    slopes = np.append(np.diff(curve) / widths, 0.0)
    q = np.maximum(np.diff(slopes), 0.0)
    return alphas[1:] * q, q, float(curve[-1])


def dominating(step: float, forward: Array, backward: Array | None = None) -> LossDistribution:
    """A pair whose profile lies above these upper bounds, `forward` and `backward`, at alpha = exp(i * `step`).

    `backward` is the curve of the swapped pair; left out, the pair is symmetric.
    """
    # alpha - 1 and not alpha: the steps may be far smaller than one's own rounding
    rises = np.expm1(np.arange(forward.size) * step)
    if backward is None:
        # No symmetric pair falls faster at zero loss than with half of what is left on each side:
        # where rounding says otherwise the bound is raised, so that masses add up to one.
        finite = min(float(forward[0] - forward[-1]), 1.0)
        forward = np.maximum(forward, forward[0] - rises * (1 - finite) / 2)
    if backward is None:
        fp, fq, infinite = _halves(step, convex_minorant(rises, forward))
        return LossDistribution(step, fp, fq, infinite)
    # Both curves begin at the total variation. Below it the forward one would leave mass to the
    # other law that it does not have, and the pair would not dominate at losses below zero.
    forward = forward + max(float(backward[0] - forward[0]), 0.0)
    fp, fq, infinite = _halves(step, convex_minorant(rises, forward))
    _, bq, _ = _halves(step, convex_minorant(rises, backward))
    return LossDistribution(step, fp, bq, infinite)


def _lowered(step: float, fine: Array) -> Array:
    """Values on the coarse grid whose chords stay below the convex curve given on the fine grid.

    `fine` holds the curve at every half step. The gap between a chord and a convex function is concave along the chord,
    so twice the gap in the middle bounds it everywhere.
    """
    rises = np.expm1(np.arange(fine.size) * (step / 2))
    left, middle, right = fine[:-2:2], fine[1:-1:2], fine[2::2]
    a, m, b = rises[:-2:2], rises[1:-1:2], rises[2::2]
    weight = (m - a) / (b - a)
    # the fraction of the cell left or right of the middle decides how far concavity can reach
    stretch = np.maximum(1.0 / weight, 1.0 / (1.0 - weight))
    gap = np.maximum((left * (1 - weight) + right * weight) - middle, 0.0) * stretch
    lowered = fine[::2] - np.maximum(np.append(gap, 0.0), np.insert(gap, 0, 0.0))
    # a chord that ends below zero would have to be cut off inside its cell: end it one node earlier
    following = np.append(lowered[1:], -1.0)
    return convex_minorant(rises[::2], np.where(following >= 0.0, np.maximum(lowered, 0.0), 0.0))


def dominated(step: float, forward: Array, backward: Array | None = None) -> LossDistribution:
    """A pair of laws whose profile lies below that of any pair with at least these curves, `forward` and `backward`.

    The curves are known at every *half* step; the part past the last point is dropped. What comes out are two
    probability laws, so by Blackwell's theorem a profile below another's, at every alpha, makes them a coarsening of
    it, and their compositions stay below (docs/theory.md).
    """
    below = [_lowered(step, fine) for fine in ((forward,) if backward is None else (forward, backward))]
    # bring the curves down to zero at the last point, keeping them convex and below
    ahead, behind = (np.maximum(v - v[-1], 0.0) for v in (below[0], below[-1]))
    # Two laws have curves that begin at one value, their total variation: otherwise one of them
    # would not have mass one. The higher curve begins where the other does, on the line from there
    # that touches it; further out it stays as it is, however small it is there.
    rises = np.expm1(np.arange(ahead.size) * step)
    ahead[0] = behind[0] = min(float(ahead[0]), float(behind[0]))
    ahead, behind = convex_minorant(rises, ahead), convex_minorant(rises, behind)
    positive, negative = _halves(step, ahead)[0], _halves(step, behind)[1]
    # shrinking all masses alike lowers the profile: make room if lowering overdrew the middle
    total = max(math.fsum(positive) + math.fsum(negative), 1.0)
    return LossDistribution(step, positive / total, negative / total, 0.0)


class Tail:
    """delta as a function of epsilon for a composed loss distribution, between certified bounds.

    `deltas` are the values at grid points `epsilons`, each known up to its entry of `errors`; `infinite` comes on top
    in the upper bound.
    """

    def __init__(self, epsilons: Array, deltas: Array, errors: Array, infinite: float) -> None:
        bounds = deltas + errors
        if not (epsilons.size >= 2 and np.all(np.diff(epsilons) > 0.0) and math.isfinite(infinite)):
            raise NumericalFailure("a composition left no losses to read a figure off")
        if not (np.all(np.isfinite(bounds)) and np.all(bounds >= 0.0)):
            raise NumericalFailure("a composition came out as NaN, infinite or below zero")
        self._epsilons, self._infinite = epsilons, infinite
        # delta never rises: every point bounds those to its right from above and those to its left from below
        self._upper = np.minimum.accumulate(bounds)
        self._lower = np.maximum.accumulate(np.maximum(deltas - errors, 0.0)[::-1])[::-1]

    @staticmethod
    def without_loss(infinite: float) -> Tail:
        """The tail of a composition in which nothing is ever lost, but for `infinite`."""
        return Tail(np.array([0.0, 1.0]), np.zeros(2), np.zeros(2), infinite)

    @property
    def infinite(self) -> float:
        """Mass without bound, part of every upper bound."""
        return self._infinite

    @property
    def furthest(self) -> float:
        """The largest epsilon of which anything is known."""
        return float(self._epsilons[-1])

    def delta(self, epsilon: float, *, upper: bool) -> float:
        """Bound on delta(`epsilon`), from above if `upper`."""
        return float(self.deltas(np.array([epsilon]), upper=upper)[0])

    def deltas(self, epsilons: Array, *, upper: bool) -> Array:
        """The same for many `epsilons`, from above if `upper`; between grid points linear in exp(epsilon)."""
        points, values = self._epsilons, self._upper if upper else self._lower
        extra = self._infinite if upper else 0.0
        i = np.clip(np.searchsorted(points, epsilons, side="right") - 1, 0, points.size - 2)
        inside = np.clip(epsilons, points[i], points[i + 1])
        w = np.expm1(inside - points[i]) / np.expm1(points[i + 1] - points[i])
        found = (1 - w) * values[i] + w * values[i + 1] + extra
        found = np.where(epsilons < points[0], 1.0 if upper else values[0], found)
        last = values[-1] + extra if upper else 0.0
        return np.asarray(np.minimum(np.where(epsilons >= points[-1], last, found), 1.0))

    def epsilon(self, delta: float, *, upper: bool) -> float:
        """Smallest epsilon >= 0 with the `upper` or lower bound <= `delta`, rounded to the safe side."""
        if self.delta(0.0, upper=upper) <= delta:
            return 0.0
        last = float(self._epsilons[-1])
        if self.delta(last, upper=upper) > delta:
            return math.inf if upper else last
        return switch(lambda epsilon: self.delta(epsilon, upper=upper) <= delta, last, 0.0)[0 if upper else 1]


def curve_of_masses(masses: Array, step: float) -> Array:
    """delta at i * step, i = 0.., of masses at losses step, 2 step, ...: positive terms only.

    With A_i the mass above i, delta_i = (1 - e^-step) * sum over k >= i of A_k e^-(k-i)step, in parts that are so short
    that exponentials of i and k by themselves stay in bounds.
    """
    sums = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
    size = max(min(sums.size, int(0.5 * VANISHED / step)), 1)
    rises, carried = np.exp(np.arange(size) * step), 0.0
    for end in range(sums.size, 0, -size):
        part = sums[max(end - size, 0) : end]
        rise = rises[: part.size]
        part /= rise
        part[-1] += carried * math.exp(-step) / rise[-1]
        part[:] = np.cumsum(part[::-1])[::-1] * rise
        carried = float(part[0])
    return sums * -math.expm1(-step)


def single(distribution: LossDistribution) -> Tail:
    """The tail of one round alone, with nothing to bound but the rounding of sums."""
    deltas = np.append(curve_of_masses(distribution.positive, distribution.step), 0.0)
    losses = np.arange(deltas.size) * distribution.step
    # terms of a sum, and exponents, whose rounding grows with them
    rounding = 4 * UNIT * (deltas.size + losses[-1])
    return Tail(losses, deltas, rounding * deltas, distribution.infinite)


@dataclass(frozen=True, slots=True)
class Atoms:
    """Masses of P at positive losses log(p / q); `corner` bounds the P-mass that was left out."""

    p: Array
    losses: Array
    corner: float

    @staticmethod
    def of(base: Array, weight: Array, lean: Array, population: float, log_ratio: float, corner: float) -> Atoms:
        """The vectors (p, q) = base (weight ± lean) / population.

        `base`: probabilities of the vectors. `weight`: half the sum of both densities, times the population. `lean`:
        half their difference, likewise. `population`: what both are divided by. `log_ratio`: a loss that none of the
        vectors may exceed. `corner`: P-mass that is not among the vectors.
        """
        p = base * (weight + lean) / population
        q = base * (weight - lean) / population
        keep = base > 0.0
        impossible = q < 0.0
        if impossible.any():
            # Splitting the weight reached below what the hits alone weigh. No loss exceeds the largest, so what such a
            # part can add to any divergence is its p + e0 |q|: charge that and drop it.
            corner += float(np.sum(p[impossible] - math.exp(log_ratio) * q[impossible]))
            keep &= ~impossible
        with np.errstate(divide="ignore"):  # log1p keeps the digits of small losses
            losses = np.log1p(2 * lean[keep] / (weight - lean)[keep])
        return Atoms(p[keep], losses, corner)

    def excess(self, epsilon: float) -> float:
        """sum of p (1 - e^(epsilon - loss))+, without the corner."""
        above = self.losses > epsilon
        return float(np.sum(self.p[above] * -np.expm1(epsilon - self.losses[above])))

    def curve(self, step: float, count: int) -> Array:
        """The same at epsilon = i * step, i = 0..count-1.

        Every atom is split onto the two neighbouring grid losses, which keeps the sum at every grid point.
        """
        p, losses = self.p, self.losses
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

    def largest_loss(self, tolerance: float) -> float:
        """A loss above which the atoms hold P-mass at most `tolerance`."""
        finite = np.isfinite(self.losses)
        if not finite.any():
            return 1.0 if self.p.size else 0.0
        losses = self.losses[finite]
        width = float(losses.max()) / 4096 * (1 + 1e-9) + 1e-300
        # bincount keeps the digits of small masses; histogram would take them as differences
        mass = np.bincount((losses / width).astype(np.int64), self.p[finite])
        above = np.cumsum(mass[::-1])[::-1]
        keep = np.nonzero(above > tolerance)[0]
        return width * (int(keep[-1]) + 1 if keep.size else 1)

    @property
    def spread(self) -> float:
        """Standard deviation of the loss, both signs together (a guide for the grid)."""
        finite = np.isfinite(self.losses)
        losses, p = self.losses[finite], self.p[finite]
        return math.sqrt(float(np.sum(losses**2 * p * (1 + np.exp(-losses)))))


NO_ATOMS = Atoms(np.zeros(0), np.zeros(0), 0.0)
