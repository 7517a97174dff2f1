"""T-fold composition of loss distributions by FFT, certified.

What the FFT can get wrong (wrapped-around mass, round-off) is bounded and charged in the safe
direction, and the distribution is tilted towards the tail in question first, so that the bound
stays meaningful at delta = 1e-15.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpcheckin.accounting.engine.arrays import FFT_LEVEL, UNIT, Array, Complex
from dpcheckin.accounting.engine.loss import LossDistribution, Tail, curve_of_masses, single
from dpcheckin.errors import NumericalFailure
from dpcheckin.special import fourier

# Mass of the tilted distribution that may fall outside the FFT window, in natural logarithms.
WINDOW_EXPONENT = 38.0
# Of more rounds than this the error of a transform, so many times, would count: the frequencies
# that are left of so many are then added up term by term.
LONG_RUN, FREQUENCIES_LEFT = 2_000_000, 512

Parts = Sequence[tuple[LossDistribution, int]]


class Cumulant:
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

    def shift(self, variance: float) -> float:
        """The shift of a tilt that Chernoff's bound of the window needs, if losses are normal.

        Where next to nothing varies they are rather Poisson: exp(shift * loss) decides.
        """
        reach = max(float(np.abs(losses).max()) for _, losses, _ in self._parts)
        most = 400.0 / reach
        return min(math.sqrt(2 * WINDOW_EXPONENT / variance), most) if variance > 0 else most

    def largest_loss(self) -> float:
        return sum(count * float(losses[-1]) for _, losses, count in self._parts)


def log_delta_guess(cumulant: Cumulant, theta: float) -> float:
    """Saddle-point estimate of log delta at the epsilon whose tilt is theta (a guide only)."""
    value, mean, variance = cumulant(theta)
    spread = math.sqrt(2 * math.pi * variance) * theta * (theta + 1)
    return value - theta * mean - math.log(max(spread, 1.0))


def tilt_for(cumulant: Cumulant, *, delta: float | None, epsilon: float | None) -> float:
    """The tilt that moves the composed distribution to where the question is asked."""
    low, high = 0.0, 1.0

    def beyond(theta: float) -> bool:
        if delta is not None:
            return log_delta_guess(cumulant, theta) < math.log(delta)
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


def _window(cumulant: Cumulant, theta: float) -> tuple[float, float]:
    """Ends outside which the tilted composition has mass at most 2 exp(-WINDOW_EXPONENT)."""
    value, mean, variance = cumulant(theta)
    ends = []
    for sign in (-1.0, 1.0):
        guess = cumulant.shift(variance)
        best = math.inf
        for factor in np.geomspace(0.02, 8.0, 25):
            s = guess * factor
            shifted = cumulant(theta + sign * s)[0]
            best = min(best, (shifted - value - sign * s * mean + WINDOW_EXPONENT) / s)
        ends.append(mean + sign * best)
    return ends[0], ends[1]


class Mass(NamedTuple):
    """What one round's distribution holds in all: with a bound, and without."""

    whole: float
    lost: float

    @staticmethod
    def of(distribution: LossDistribution) -> Mass:
        lost = distribution.infinite
        return Mass(max(math.fsum(distribution.masses()), 1.0 - lost), lost)


def unbounded(parts: Sequence[tuple[Mass, int]]) -> tuple[float, bool]:
    """Mass without bound after all rounds, and whether anything worth telling has one.

    It is (whole + lost)^n - whole^n, where both together are one or slightly more. Where next to
    nothing is left that has a bound, that is charged too.
    """
    logs = math.fsum(n * math.log(mass.whole + mass.lost) for mass, n in parts)
    most = math.exp(min(logs, 700.0))
    log_odds = math.fsum(
        n * (math.log1p(mass.lost / mass.whole) if mass.whole > 0.0 else math.inf)
        for mass, n in parts
    )
    if log_odds > 100.0:
        return most, False
    return most * -math.expm1(-log_odds), True


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
        return single(parts[0][0])
    step = parts[0][0].step
    infinite, bounded = unbounded([(Mass.of(d), n) for d, n in parts])
    if not bounded:
        return Tail.without_loss(infinite)
    cumulant = Cumulant(parts)
    theta = tilt_for(cumulant, delta=delta, epsilon=epsilon)
    value, mean, variance = cumulant(theta)
    if variance == 0.0:
        return Tail.without_loss(infinite)
    low, high = _window(cumulant, theta)
    first, last = math.floor(low / step) - 1, math.ceil(high / step) + 1
    if last - first > longest:
        raise WindowTooLong(last - first)
    least = max(last - first + 1, 2 * max(d.reach for d, _ in parts) + 2)
    size = fourier.next_fast_len(least, True)
    first -= (size - (last - first + 1)) // 2

    log_spectrum = np.zeros(size // 2 + 1, dtype=np.complex128)
    log_bound = np.zeros(size // 2 + 1)
    offset = 0
    for distribution, count in parts:
        factor = Factor.of(distribution, theta, size, count)
        log_spectrum += count * factor.logs
        log_bound += count * factor.log_bound
        offset += count * factor.centre
    pmf, per_bin = inverted(log_spectrum, log_bound, size)
    pmf = np.roll(pmf, -((first - offset) % size))
    rounds = sum(count for _, count in parts)
    return untilted(pmf, per_bin, step, first, theta, value, mean, infinite, rounds)


class Factor(NamedTuple):
    """The transform of one round's tilted losses, in logarithms, and what it may be wrong by.

    Attributes:
        logs: Of the transform of the centred losses.
        log_bound: Of its modulus, rounding included.
        centre: By how many grid points the losses were moved.
    """

    logs: Complex
    log_bound: Array
    centre: int

    @staticmethod
    def of(distribution: LossDistribution, theta: float, size: int, count: int) -> Factor:
        """The factor of one round, on so many grid points, for so many rounds."""
        indices = np.arange(-distribution.reach, distribution.reach + 1)
        with np.errstate(divide="ignore"):
            exponent = np.log(distribution.masses()) + theta * distribution.step * indices
        tilted = np.exp(exponent - exponent.max())
        tilted /= tilted.sum()
        # centre the factor, so that its spectrum has almost no phase to multiply by the count
        centre = round(float(tilted @ indices))
        # the mass at zero loss may dwarf the rest: its transform is exact without the FFT
        zero = float(tilted[distribution.reach])
        tilted[distribution.reach] = 0.0
        signal = np.zeros(size)
        signal[(indices - centre) % size] = tilted
        turns = 2j * math.pi / size * ((centre * np.arange(size // 2 + 1)) % size)
        spectrum = fourier.rfft(signal)
        error = FFT_LEVEL * math.log2(size) * math.sqrt(size) * float(np.linalg.norm(tilted))
        errors = np.full(spectrum.size, error)
        if count > LONG_RUN:
            for k in range(min(FREQUENCIES_LEFT, spectrum.size)):
                angles = (-2 * math.pi / size) * ((k * (indices - centre)) % size)
                spectrum[k] = np.sum(tilted * np.exp(1j * angles))
                errors[k] = (30 + math.log2(indices.size)) * UNIT
        spectrum += zero * np.exp(turns)
        modulus = np.abs(spectrum)
        logs = np.log(np.where(modulus > 1e-300, spectrum, 1e-300))
        error_here = errors + 4 * UNIT * modulus * (1 + np.abs(logs))
        return Factor(logs, np.log(modulus + error_here), centre)


def inverted(log_spectrum: Complex, log_bound: Array, size: int) -> tuple[Array, float]:
    """The masses of a product of transforms, and what each of them may be wrong by.

    |product of (factor + error) - product of factors| <= product of (|factor| + |error|) - ...
    """
    growth = np.minimum(log_bound - log_spectrum.real, 600.0)
    errors = np.where(
        growth < 1.0, np.exp(log_spectrum.real) * np.expm1(growth), np.exp(np.minimum(log_bound, 0))
    )
    per_bin = (2.0 * float(errors.sum()) - float(errors[0])) / size
    pmf = fourier.irfft(np.exp(log_spectrum), size)
    per_bin += FFT_LEVEL * math.log2(size) * float(np.linalg.norm(pmf))
    return pmf, per_bin


def untilted(
    pmf: Array,
    per_bin: float,
    step: float,
    first: int,
    theta: float,
    value: float,
    mean: float,
    infinite: float,
    rounds: int,
) -> Tail:
    """Undo the tilt and sum: delta(e) = sum over losses above e of mass * (1 - exp(e - loss))."""
    losses = (first + np.arange(pmf.size)) * step
    # far below the question the tilt blows the error bound up: nothing there is worth keeping
    reach = 300.0 / theta if theta > 0.0 else math.inf
    keep = (losses > -step) & (losses > mean - reach)
    losses, pmf = losses[keep], pmf[keep]
    if losses.size == 0:  # the whole window lies below zero loss
        rest = np.full(2, 8.0 * math.exp(-WINDOW_EXPONENT) + per_bin * keep.size)
        return Tail(np.array([0.0, step]), np.zeros(2), rest, infinite)
    untilt = np.exp(-theta * (losses - mean))
    scale = math.exp(value - theta * mean)
    masses = scale * untilt * pmf
    # nor is it far above, where numbers vanish, but what is there counts in all the others
    near = max(int(np.searchsorted(losses, mean + reach)), 2)
    bins, losses, untilt = np.arange(pmf.size, 0, -1)[:near], losses[:near], untilt[:near]
    above = np.cumsum(masses[::-1])[::-1][:near]
    deltas = curve_of_masses(masses[1:], step)[:near]
    # every bin may be off by per_bin; wrapped mass may sit anywhere above epsilon
    ratio = -math.expm1(-theta * step)
    bins = np.minimum(bins, 1.0 / ratio if ratio > 0 else np.inf)
    wrapped = 4.0 * math.exp(-WINDOW_EXPONENT)
    # terms of the sums, and the logarithm of one round's mass, so many times
    rounding = 8 * UNIT * (pmf.size + rounds)
    errors = scale * untilt * (per_bin * bins + wrapped) + rounding * above
    return Tail(losses, np.maximum(deltas, 0.0), errors, infinite)
