"""T-fold composition of loss distributions by FFT, certified.

What the FFT can get wrong (wrapped-around mass, round-off) is bounded and charged in the safe direction, and the
distribution is tilted towards the tail in question first, so that the bound stays meaningful at delta = 1e-15.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dpcheckin.accounting.engine.arrays import Array, Complex
from dpcheckin.accounting.engine.loss import VANISHED, LossDistribution, Tail, curve_of_masses, single
from dpcheckin.errors import NumericalFailure
from dpcheckin.special import UNIT, fourier
from dpcheckin.special.fourier import FFT_LEVEL
from dpcheckin.special.roots import switch

# Mass of the tilted distribution that may fall outside the FFT window, in natural logarithms.
WINDOW_EXPONENT = 38.0
# Of more rounds than this a transform's error would count: the frequencies left are then added up term by term.
LONG_RUN, FREQUENCIES_LEFT = 2_000_000, 512
NOTHING = 100.0  # a frequency of which exp(-100) is left is only bounded

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


def tilt_for(cumulant: Cumulant, *, delta: float | None, epsilon: float | None) -> float:
    """The tilt that moves a law with this `cumulant` to where the question is asked, `delta` or `epsilon`."""

    def beyond(theta: float) -> bool:
        value, mean, variance = cumulant(theta)
        if delta is None:
            assert epsilon is not None
            return mean > epsilon
        # a saddle-point estimate of log delta at the epsilon of this tilt: a guide only
        spread = math.sqrt(2 * math.pi * variance) * theta * (theta + 1)
        return value - theta * mean - math.log(max(spread, 1.0)) < math.log(delta)

    if cumulant(0.0)[2] == 0.0 or beyond(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while not beyond(high):
        low, high = high, 2 * high
        _, mean, variance = cumulant(high)
        largest = cumulant.largest_loss()
        # a small variance alone may be that of rare losses, far from the largest
        if high > 1e9 or (mean > largest / 2 and variance <= 1e-12 * largest**2):
            return low
    return switch(lambda theta: not beyond(theta), low, high, absolute=(high - low) * 2.0**-40)[0]


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

    It is (whole + lost)^n - whole^n, where both together are one or slightly more. Where next to nothing is left that
    has a bound, that is charged too.
    """
    logs = math.fsum(n * math.log(mass.whole + mass.lost) for mass, n in parts)
    most = math.exp(min(logs, 700.0))
    log_odds = math.fsum(
        n * (math.log1p(mass.lost / mass.whole) if mass.whole > 0.0 else math.inf) for mass, n in parts
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
    parts: Parts, *, delta: float | None = None, epsilon: float | None = None, longest: float = math.inf
) -> Tail:
    """The tail of the composition, most accurate near the given delta or epsilon.

    All parts share one step. The curve is returned on grid points from just below the question to the end of the
    window; if that is longer than `longest`, `WindowTooLong` is raised.
    """
    return next(repeated(parts, [1], delta=delta, epsilon=epsilon, longest=longest))


def repeated(
    parts: Parts,
    times: Sequence[int],
    *,
    delta: float | None = None,
    epsilon: float | None = None,
    longest: float = math.inf,
) -> Iterator[Tail]:
    """The same for each number of `times` that all the `parts` take place.

    The cumulants of n compositions are n times those of one, and the transform is a power: all numbers share one tilt,
    one window and one transform. They are best within a factor of two; a tilt that fits another number a little better
    would only make the round-off smaller, which is charged as always. The others are as for `compose`: `delta` or
    `epsilon` say where, `longest` how long a window may be.
    """
    masses = [(Mass.of(distribution), n) for distribution, n in parts]
    lost = {count: unbounded([(mass, n * count) for mass, n in masses]) for count in times}
    alone = 1 if len(parts) == 1 and parts[0][1] == 1 else 0
    powers = None
    if any(bounded for count, (_, bounded) in lost.items() if count != alone):
        powers = _Powers.of(parts, times, delta, epsilon, longest)
    for count in times:
        infinite, bounded = lost[count]
        if count == alone:
            yield single(parts[0][0])
        elif powers is None or not bounded:
            yield Tail.without_loss(infinite)
        else:
            yield powers.tail(count, infinite)


class _Powers:
    """A transform whose powers are the compositions, for numbers of `times` near one another, at one tilt theta."""

    def __init__(self, parts: Parts, cumulant: Cumulant, theta: float, times: Sequence[int], longest: float) -> None:
        self._theta, self._step = theta, parts[0][0].step
        self._value, self._mean, variance = cumulant(theta)
        self._rounds = sum(n for _, n in parts)
        # Chernoff's bound: outside these ends there is mass at most 2 exp(-WINDOW_EXPONENT)
        shifts = cumulant.shift(sorted(times)[len(times) // 2] * variance) * np.geomspace(0.02, 8.0, 25)
        self._shifts: Array = shifts
        self._rises = [np.array([cumulant(theta + sign * s)[0] - self._value for s in shifts]) for sign in (-1.0, 1.0)]
        widest = max(last - first for first, last in map(self._ends, times))
        if widest > longest:
            raise WindowTooLong(widest)
        least = max(widest + 1, 2 * max(distribution.reach for distribution, _ in parts) + 2)
        self._size = fourier.next_fast_len(least, True)
        self._logs = np.zeros(self._size // 2 + 1, dtype=np.complex128)
        self._log_bound = np.zeros(self._size // 2 + 1)
        self._centre = 0
        for distribution, n in parts:
            factor = Factor.of(distribution, theta, self._size, n * min(times), n * max(times))
            self._logs += n * factor.logs
            self._log_bound += n * factor.log_bound
            self._centre += n * factor.centre

    @staticmethod
    def of(
        parts: Parts, times: Sequence[int], delta: float | None, epsilon: float | None, longest: float
    ) -> _Powers | None:
        """At the tilt for the middle number; None where losses do not vary."""
        middle, cumulant = sorted(times)[len(times) // 2], Cumulant(parts)
        theta = tilt_for(Cumulant([(d, n * middle) for d, n in parts]), delta=delta, epsilon=epsilon)
        return _Powers(parts, cumulant, theta, times, longest) if cumulant(theta)[2] > 0.0 else None

    def _ends(self, count: int) -> tuple[int, int]:
        below, above = (
            float(np.min((count * (rises - sign * self._shifts * self._mean) + WINDOW_EXPONENT) / self._shifts))
            for sign, rises in zip((-1.0, 1.0), self._rises, strict=True)
        )
        mean = count * self._mean
        return math.floor((mean - below) / self._step) - 1, math.ceil((mean + above) / self._step) + 1

    def tail(self, count: int, infinite: float) -> Tail:
        """The tail of so many compositions, of which `infinite` has no bound."""
        first, last = self._ends(count)
        first -= (self._size - (last - first + 1)) // 2
        pmf, per_bin = inverted(count * self._logs, count * self._log_bound, self._size)
        pmf = np.roll(pmf, -((first - count * self._centre) % self._size))
        logs = count * self._value, count * self._mean
        return untilted(pmf, per_bin, self._step, first, self._theta, *logs, infinite, count * self._rounds)


class Factor(NamedTuple):
    """The transform of one round's tilted losses, in logarithms, and what it may be wrong by."""

    logs: Complex  # of the transform of the centred losses
    log_bound: Array  # of its modulus, rounding included
    centre: int  # by how many grid points the losses were moved

    @staticmethod
    def of(distribution: LossDistribution, theta: float, size: int, fewest: int, most: int) -> Factor:
        """For a `distribution`, a tilt `theta`, a window's `size`, and `fewest` to `most` times."""
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
        spectrum = fourier.rfft(signal)
        error = FFT_LEVEL * math.log2(size) * math.sqrt(size) * float(np.linalg.norm(tilted))
        log_bound = np.log(np.abs(spectrum) + (zero + error + 4 * UNIT))
        left = np.flatnonzero(log_bound > -NOTHING / fewest)
        spectrum, errors = spectrum[left], np.full(left.size, error)
        if most > LONG_RUN:
            for i, k in enumerate(left[left < FREQUENCIES_LEFT].tolist()):
                angles = (-2 * math.pi / size) * ((k * (indices - centre)) % size)
                spectrum[i] = np.sum(tilted * np.exp(1j * angles))
                errors[i] = (30 + math.log2(indices.size)) * UNIT
        spectrum += zero * np.exp(2j * math.pi / size * ((centre * left) % size)) if centre else zero
        modulus = np.abs(spectrum)
        logs = np.log(np.where(modulus > 1e-300, spectrum, 1e-300))
        log_bound[left] = np.log(modulus + errors + 4 * UNIT * modulus * (1 + np.abs(logs)))
        all_logs = np.full(log_bound.size, -1e300 / most, np.complex128)
        all_logs[left] = logs
        return Factor(all_logs, log_bound, centre)


def inverted(log_spectrum: Complex, log_bound: Array, size: int) -> tuple[Array, float]:
    """The `size` masses with this `log_spectrum`, bounded by `log_bound`, and what each of them may be wrong by.

    |product of (factor + error) - product of factors| <= product of (|factor| + |error|) - ...
    """
    left = np.flatnonzero(log_spectrum.real > -VANISHED)
    spectrum, errors = np.zeros_like(log_spectrum), np.exp(np.minimum(log_bound, 0.0))
    spectrum[left] = np.exp(log_spectrum[left])
    growth = np.minimum((log_bound - log_spectrum.real)[left], 600.0)
    errors[left] = np.minimum(errors[left], np.abs(spectrum[left]) * np.expm1(growth))
    per_bin = (2.0 * float(errors.sum()) - float(errors[0])) / size
    pmf = fourier.irfft(spectrum, size)
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
    """Undo the tilt and sum: delta(e) = sum over losses above e of mass * (1 - exp(e - loss)).

    The tilted masses are `pmf`, `per_bin` wrong at most, on a grid of this `step` from its point `first` on; at the
    tilt `theta` the cumulant has this `value` and `mean`; `infinite` has no bound after so many `rounds`.
    """
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
