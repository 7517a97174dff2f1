"""Discretised privacy loss distributions: from a curve to a grid, and T-fold composition.

A curve is the hockey-stick divergence C(alpha) of a pair closed under swapping, known at the
points alpha_i = exp(i * step), i >= 0. Values that are upper bounds become a pair that dominates
(chords of a convex function lie above it); values that are lower bounds, lowered by the largest
gap a chord can have, become a pair that is dominated. Either composes by FFT. What the FFT can
get wrong (wrapped-around mass, round-off) is bounded and charged in the safe direction, and the
distribution is tilted towards the tail in question first, so that the bound stays meaningful at
delta = 1e-15.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft as sfft

from dpcheckin.errors import NumericalFailure

Array = NDArray[np.floating[Any]]
Complex = NDArray[np.complexfloating[Any, Any]]

# Unit round-off of float64, and a bound on the relative l2 error of an FFT per level of its
# recursion. The textbook constant for radix-2 is below 3 (Higham, Accuracy and Stability, 24.1).
UNIT = 2.0**-53
FFT_LEVEL = 6.0 * UNIT
# Mass of the tilted distribution that may fall outside the FFT window, in natural logarithms.
WINDOW_EXPONENT = 38.0


@dataclass(frozen=True, slots=True)
class LossDistribution:
    """Masses of P at losses i * step, i = -reach..reach, and at infinity.

    `forward[i]` and `backward[i]` (i = 1..reach) are the masses at +i and -i steps; the mass at
    zero is what is left of one. `infinite` comes on top of it.
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

        An upper bound that is steep at zero may hold a little more than one in all. That is as
        sound as any other excess (composition never uses that masses add up to one) but beyond
        rounding and slack it is a sign of a broken curve.
        """
        zero = 1.0 - math.fsum(self.positive) - math.fsum(self.negative)
        if zero < -0.02:
            raise NumericalFailure(f"mass at zero loss came out as {zero:.3g}")
        return np.concatenate([self.negative[::-1], [max(zero, 0.0)], self.positive])

    def variance(self) -> float:
        squares = (np.arange(1, self.reach + 1) * self.step) ** 2
        return float(squares @ self.positive + squares @ self.negative)


def convex_minorant(x: Array, y: Array) -> Array:
    """The largest convex function below the points (x increasing), at the same x."""
    if np.all(np.diff(np.diff(y) / np.diff(x)) >= 0.0):
        return y
    hull: list[int] = []
    xs, ys = x.tolist(), y.tolist()  # plain numbers: this loop is what takes the time
    for i, (here, value) in enumerate(zip(xs, ys, strict=True)):
        while len(hull) >= 2:
            a, b = hull[-2], hull[-1]
            if (ys[b] - ys[a]) * (here - xs[a]) < (value - ys[a]) * (xs[b] - xs[a]):
                break
            hull.pop()
        hull.append(i)
    return np.asarray(np.interp(x, x[hull], y[hull]))


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
    """A pair whose profile lies above the given upper bounds at alpha = exp(i * step).

    `backward` is the curve of the swapped pair; left out, the pair is symmetric.
    """
    # alpha - 1 and not alpha: the steps may be far smaller than one's own rounding
    rises = np.expm1(np.arange(forward.size) * step)
    if backward is None:
        # No symmetric pair falls faster at zero loss than with half of what is left on each side:
        # where rounding says otherwise the bound is raised, so that masses add up to one.
        finite = float(forward[0] - forward[-1])
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

    `fine` holds the curve at every half step. The gap between a chord and a convex function is
    concave along the chord, so twice the gap in the middle bounds it everywhere.
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
    """A pair whose profile lies below the given lower bounds at every *half* step.

    The part of the curve past the last point is dropped: nothing goes to infinite loss.
    """
    below = [
        _lowered(step, fine) for fine in ((forward,) if backward is None else (forward, backward))
    ]
    # bring the curves down to zero at the last point, keeping them convex and below
    ahead, behind = (np.maximum(v - v[-1], 0.0) for v in (below[0], below[-1]))
    # A pair's two curves begin at one value. Where the backward one was lowered further the forward
    # one follows: the other law would be short of mass, the profile too high below zero loss.
    ahead = np.maximum(ahead - max(float(ahead[0] - behind[0]), 0.0), 0.0)
    positive, negative = _halves(step, ahead)[0], _halves(step, behind)[1]
    # shrinking all masses alike lowers the profile: make room if lowering overdrew the middle
    total = max(math.fsum(positive) + math.fsum(negative), 1.0)
    return LossDistribution(step, positive / total, negative / total, 0.0)


class Tail:
    """delta as a function of epsilon for a composed loss distribution, between certified bounds.

    `deltas` are the values at grid points `epsilons`, each known up to its entry of `errors`;
    `infinite` comes on top in the upper bound.
    """

    def __init__(self, epsilons: Array, deltas: Array, errors: Array, infinite: float) -> None:
        self._epsilons, self._infinite = epsilons, infinite
        # delta never rises with epsilon: every point bounds those to its right from above and
        # those to its left from below
        self._upper = np.minimum.accumulate(deltas + errors)
        self._lower = np.maximum.accumulate(np.maximum(deltas - errors, 0.0)[::-1])[::-1]

    @staticmethod
    def without_loss(infinite: float) -> Tail:
        """The tail of a composition in which nothing is ever lost, but for `infinite`."""
        return Tail(np.array([0.0, 1.0]), np.zeros(2), np.zeros(2), infinite)

    @property
    def size(self) -> int:
        return self._epsilons.size

    def delta(self, epsilon: float, *, upper: bool) -> float:
        """Bound on delta(epsilon). Between grid points the curve is linear in exp(epsilon)."""
        points, values = self._epsilons, self._upper if upper else self._lower
        extra = self._infinite if upper else 0.0
        i = int(np.searchsorted(points, epsilon, side="right")) - 1
        if i < 0:  # left of the window nothing is known but that delta does not rise
            return 1.0 if upper else float(values[0])
        if i >= points.size - 1:
            return min(float(values[-1]) + extra, 1.0) if upper else 0.0
        w = math.expm1(epsilon - points[i]) / math.expm1(points[i + 1] - points[i])
        return min(float((1 - w) * values[i] + w * values[i + 1]) + extra, 1.0)

    def epsilon(self, delta: float, *, upper: bool) -> float:
        """Smallest epsilon >= 0 with delta(epsilon) <= delta, rounded to the safe side."""
        if self.delta(0.0, upper=upper) <= delta:
            return 0.0
        low, high = 0.0, float(self._epsilons[-1])
        if self.delta(high, upper=upper) > delta:
            return math.inf if upper else high
        for _ in range(200):
            middle = 0.5 * (low + high)
            if middle in (low, high):
                break
            if self.delta(middle, upper=upper) <= delta:
                high = middle
            else:
                low = middle
        return high if upper else low


Parts = Sequence[tuple[LossDistribution, int]]


class _Cumulant:
    """log E exp(theta * loss) of a composition, and its first two derivatives."""

    def __init__(self, parts: Parts) -> None:
        self._parts = []
        for distribution, count in parts:
            masses = distribution.masses()
            keep = masses > 0.0
            losses = np.arange(-distribution.reach, distribution.reach + 1) * distribution.step
            self._parts.append((np.log(masses[keep]), losses[keep], count))

    def __call__(self, theta: float) -> tuple[float, float, float]:
        value = mean = variance = 0.0
        for logs, losses, count in self._parts:
            exponent = logs + theta * losses
            top = float(exponent.max())
            weights = np.exp(exponent - top)
            total = float(weights.sum())
            weights /= total
            first = float(weights @ losses)
            value += count * (top + math.log(total))
            mean += count * first
            variance += count * float(weights @ (losses - first) ** 2)
        return value, mean, variance

    def largest_loss(self) -> float:
        return sum(count * float(losses[-1]) for _, losses, count in self._parts)


def _log_delta_guess(cumulant: _Cumulant, theta: float) -> float:
    """Saddle-point estimate of log delta at the epsilon whose tilt is theta (a guide only)."""
    value, mean, variance = cumulant(theta)
    spread = math.sqrt(2 * math.pi * variance) * theta * (theta + 1)
    return value - theta * mean - math.log(max(spread, 1.0))


def _tilt(cumulant: _Cumulant, *, delta: float | None, epsilon: float | None) -> float:
    """The tilt that moves the composed distribution to where the question is asked."""
    low, high = 0.0, 1.0

    def beyond(theta: float) -> bool:
        if delta is not None:
            return _log_delta_guess(cumulant, theta) < math.log(delta)
        assert epsilon is not None
        return cumulant(theta)[1] > epsilon

    if cumulant(0.0)[2] == 0.0 or beyond(0.0):
        return 0.0
    while not beyond(high):
        low, high = high, 2 * high
        _, mean, variance = cumulant(high)
        largest = cumulant.largest_loss()
        # a small variance alone may be that of rare losses, far from the largest
        if high > 1e9 or (mean > largest / 2 and variance <= 1e-12 * largest**2):
            return low
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if beyond(middle) else (middle, high)
    return low


def _window(cumulant: _Cumulant, theta: float) -> tuple[float, float]:
    """Ends outside which the tilted composition has mass at most 2 exp(-WINDOW_EXPONENT)."""
    value, mean, variance = cumulant(theta)
    ends = []
    for sign in (-1.0, 1.0):
        guess = math.sqrt(2 * WINDOW_EXPONENT / variance) if variance > 0 else 1.0
        best = math.inf
        for factor in np.geomspace(0.02, 8.0, 25):
            s = guess * factor
            shifted = cumulant(theta + sign * s)[0]
            best = min(best, (shifted - value - sign * s * mean + WINDOW_EXPONENT) / s)
        ends.append(mean + sign * best)
    return ends[0], ends[1]


class WindowTooLong(NumericalFailure):
    """A composition spreads over more grid points than were allowed."""

    def __init__(self, points: int) -> None:
        super().__init__(f"the composition spreads over {points:,} grid points")
        self.points = points


def compose(
    parts: Parts,
    *,
    delta: float | None = None,
    epsilon: float | None = None,
    longest: float = math.inf,
) -> Tail:
    """The tail of the composition, most accurate near the given delta or epsilon.

    All parts share one step. The curve is returned on grid points from just below the question to
    the end of the window; if that is longer than `longest`, `WindowTooLong` is raised.
    """
    if len(parts) == 1 and parts[0][1] == 1:
        return _alone(parts[0][0])
    step = parts[0][0].step
    cumulant = _Cumulant(parts)
    # (finite + infinite)^n - finite^n, the finite part being one or slightly more
    wholes = [(max(math.fsum(d.masses()), 1.0), d.infinite, n) for d, n in parts]
    log_all = math.fsum(n * math.log1p(lost / whole) for whole, lost, n in wholes)
    infinite = math.expm1(min(log_all, 700.0))  # far above one already: nothing is left
    infinite *= math.exp(min(math.fsum(n * math.log(whole) for whole, _, n in wholes), 700.0))
    theta = _tilt(cumulant, delta=delta, epsilon=epsilon)
    value, mean, variance = cumulant(theta)
    if variance == 0.0:
        return Tail.without_loss(infinite)
    low, high = _window(cumulant, theta)
    first, last = math.floor(low / step) - 1, math.ceil(high / step) + 1
    if last - first > longest:
        raise WindowTooLong(last - first)
    size = sfft.next_fast_len(max(last - first + 1, 2 * max(d.reach for d, _ in parts) + 2), True)
    first -= (size - (last - first + 1)) // 2

    log_spectrum = np.zeros(size // 2 + 1, dtype=np.complex128)
    log_bound = np.zeros(size // 2 + 1)
    offset = 0
    for distribution, count in parts:
        indices = np.arange(-distribution.reach, distribution.reach + 1)
        with np.errstate(divide="ignore"):
            exponent = np.log(distribution.masses()) + theta * step * indices
        tilted = np.exp(exponent - exponent.max())
        tilted /= tilted.sum()
        # centre the factor, so that its spectrum has almost no phase to multiply by the count
        centre = round(float(tilted @ indices))
        offset += count * centre
        # the mass at zero loss may dwarf the rest: its transform is exact without the FFT
        zero = float(tilted[distribution.reach])
        tilted[distribution.reach] = 0.0
        signal = np.zeros(size)
        signal[(indices - centre) % size] = tilted
        turns = 2j * math.pi / size * ((centre * np.arange(size // 2 + 1)) % size)
        spectrum = sfft.rfft(signal) + zero * np.exp(turns)
        modulus = np.abs(spectrum)
        logs = np.log(np.where(modulus > 1e-300, spectrum, 1e-300))
        log_spectrum += count * logs
        error = FFT_LEVEL * math.log2(size) * math.sqrt(size) * float(np.linalg.norm(tilted))
        error_here = error + 4 * UNIT * modulus * (1 + np.abs(logs))
        log_bound += count * np.log(modulus + error_here)
    # |product of (factor + error) - product of factors| <= product of (|factor| + |error|) - ...
    growth = np.minimum(log_bound - log_spectrum.real, 600.0)
    errors = np.where(
        growth < 1.0, np.exp(log_spectrum.real) * np.expm1(growth), np.exp(np.minimum(log_bound, 0))
    )
    per_bin = (2.0 * float(errors.sum()) - float(errors[0])) / size
    pmf = sfft.irfft(np.exp(log_spectrum), size)
    per_bin += FFT_LEVEL * math.log2(size) * float(np.linalg.norm(pmf))
    pmf = np.roll(pmf, -((first - offset) % size))
    return _tail(pmf, per_bin, step, first, theta, value, mean, infinite)


def curve_of_masses(masses: Array, step: float) -> Array:
    """delta at i * step, i = 0.., of masses at losses step, 2 step, ...: positive terms only.

    With A_i the mass above i, delta_i = (1 - e^-step) * sum over k >= i of A_k e^-(k-i)step.
    """
    above = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
    decay = np.exp(-step * np.arange(above.size))
    sums = np.cumsum((above * decay)[::-1])[::-1]
    return np.asarray(sums * (-math.expm1(-step)) / decay)


def _alone(distribution: LossDistribution) -> Tail:
    """The tail of a single round, with nothing to bound but the rounding of sums."""
    deltas = np.append(curve_of_masses(distribution.positive, distribution.step), 0.0)
    losses = np.arange(deltas.size) * distribution.step
    return Tail(losses, deltas, 4 * UNIT * deltas.size * deltas, distribution.infinite)


def _tail(
    pmf: Array,
    per_bin: float,
    step: float,
    first: int,
    theta: float,
    value: float,
    mean: float,
    infinite: float,
) -> Tail:
    """Undo the tilt and sum: delta(e) = sum over losses above e of mass * (1 - exp(e - loss))."""
    losses = (first + np.arange(pmf.size)) * step
    # far below the question the tilt blows the error bound up: nothing there is worth keeping
    reach = 500.0 / (theta + 1.0)
    keep = (losses > -step) & (losses > mean - reach)
    losses, pmf = losses[keep], pmf[keep]
    if losses.size == 0:  # the whole window lies below zero loss
        rest = np.full(2, 8.0 * math.exp(-WINDOW_EXPONENT) + per_bin * keep.size)
        return Tail(np.array([0.0, step]), np.zeros(2), rest, infinite)
    untilt = np.exp(-theta * (losses - mean))
    above = np.cumsum((pmf * untilt)[::-1])[::-1]
    below = np.cumsum((pmf * untilt * np.exp(-(losses - mean)))[::-1])[::-1]
    # far above it numbers overflow: no delta is told there, but its mass counts in all the others
    near = max(int(np.searchsorted(losses, mean + reach)), 2)
    bins = np.arange(pmf.size, 0, -1)[:near]
    losses, untilt, above, below = losses[:near], untilt[:near], above[:near], below[:near]
    scale = math.exp(value - theta * mean)
    deltas = scale * (above - np.exp(losses - mean) * below)
    # every bin may be off by per_bin; wrapped mass may sit anywhere above epsilon
    ratio = -math.expm1(-theta * step)
    bins = np.minimum(bins, 1.0 / ratio if ratio > 0 else np.inf)
    wrapped = 4.0 * math.exp(-WINDOW_EXPONENT)
    rounding = 8 * UNIT * pmf.size
    errors = scale * untilt * (per_bin * bins + wrapped) + rounding * scale * above
    return Tail(losses, np.maximum(deltas, 0.0), errors, infinite)
