"""One report as a law on a lattice, and sums of many: E[(S - threshold)+], its error bounded.

The law is tilted to where the threshold is (when that helps), raised to the power by FFT, and the tail is summed in the
frequency domain, where only frequencies that matter are touched. One large atom may be kept out of the FFT: its
transform is known exactly, and it would dominate the error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpcheckin.accounting.engine.arrays import Array, Complex
from dpcheckin.accounting.engine.seats import Seats
from dpcheckin.errors import NumericalFailure
from dpcheckin.special import UNIT, fourier
from dpcheckin.special.fourier import FFT_LEVEL, Integers

LONGEST = 1 << 22
SHORT = 6  # sums of products, of law and frequencies, that take as long as a point of an FFT
TOGETHER = 16  # of it long windows are multiples
LONG = 1 << 18  # windows


class ReportLaw:
    """The numbers of a lattice: so many seats, and the profile of what one report gives away."""

    def __init__(self, seats: Seats) -> None:
        law, self._law = seats.law, seats.law
        self.count, self.empty, self.population = seats.count, seats.empty, seats.population
        self.participation, self.absent = seats.participation, seats.absent
        self.rest = max(1.0 - self.participation - self.absent, 0.0)
        self.shares = seats.shares
        # W never exceeds this (may be infinite)
        self.largest_ratio = math.exp(law.local_epsilon) if law.local_epsilon < 700 else math.inf

    def finite_profile(self, alpha: Array) -> Array:
        """The local profile with h(infinity) taken off."""
        return np.asarray(np.maximum(self._law.profile(alpha) - self._law.local_delta, 0.0))

    def shared_profile(self, alpha: Array) -> Array:
        """E(1 + share (W - 1) - alpha)+ for alpha >= 1: the profile of what gets through."""
        return np.asarray(sum(p * w * self.finite_profile(1 + (alpha - 1) / w) for w, p in self.shares))


@dataclass(frozen=True, slots=True)
class Reach:
    """Where to stop a lattice for W - 1, and the deviation of what is kept (guides only)."""

    top: float
    deviation: float  # kept from being tiny beside the top
    bare: float


def useful_reach(model: ReportLaw, share: float = 1e-5) -> Reach:
    """Far enough that what lies beyond adds at most about this `share` to a typical delta of the `model`."""
    largest = min(model.largest_ratio - 1, 1e280)
    x = np.concatenate([[0.0], np.geomspace(1e-6 * min(largest, 1.0), largest, 600)])
    h = model.shared_profile(1 + x)
    areas = np.concatenate([[0.0], np.cumsum(0.5 * (h[1:] + h[:-1]) * np.diff(x))])
    deviation = np.sqrt(np.maximum(2 * 2 * (areas - x * h), 0.0))
    reports = model.count * model.participation
    beyond = reports * h <= share * 0.4 * math.sqrt(reports) * deviation
    i = int(np.argmax(beyond)) if beyond.any() else x.size - 1
    i = max(i, 1)
    top, bare = float(x[i]), float(deviation[i])
    return Reach(top, max(bare, 1e-3 * top), max(bare, 1e-6 * top))


@dataclass(frozen=True, slots=True)
class Tilt:
    """An exponential tilt and the FFT window that holds the tilted sum."""

    theta: float
    factors: Array
    asked: float  # the threshold it was made for
    mean: float  # of the tilted sum
    spread: float
    plain_spread: float  # of the sum without tilt
    low: float  # left end of the window
    centre: int
    size: int

    def serves(self, threshold: float) -> bool:
        """Is the tilt still a good one for this threshold?"""
        away = abs(threshold - self.asked)
        return away <= 0.7 * self.spread and away * self.theta <= 20.0

    @staticmethod
    def to(mass: Array, nodes: Array, threshold: float, steps: int) -> Tilt:
        """The tilt that brings the mean of `steps` with this `mass` at the `nodes` to the `threshold`, if it can.

        Reports with heavy tails reach a far threshold by one large report, not by many moderate ones: a tilt would then
        only inflate the largest, and none is needed.
        """
        best = Tilt._at(0.0, mass, nodes, threshold, steps)
        if best is None or best.size > LONGEST:
            raise NumericalFailure("reports with tails this heavy do not fit on a lattice")
        longest = 1.6 * best.size
        good, bad = 0.0, 300.0 / max(float(nodes[-1]), -float(nodes[0]))  # factors overflow there
        plain = best
        for _ in range(6):
            gap = threshold - best.mean
            if gap <= 0.3 * best.spread:
                break
            theta = good + min(gap, 2.0 * best.spread) / best.spread**2
            if theta >= bad:
                # a tilt far too large says little about a good one
                theta = 0.5 * (good + bad) if good > 0.0 else 0.25 * bad
            tried = Tilt._at(theta, mass, nodes, threshold, steps)
            if tried is None or tried.size > longest:
                bad = theta
            else:
                good, best = theta, replace(tried, plain_spread=plain.spread)
        return best

    @staticmethod
    def _at(theta: float, mass: Array, nodes: Array, threshold: float, steps: int) -> Tilt | None:
        """This tilt; None if it brings the mean beyond the threshold."""
        step = float(nodes[1] - nodes[0])
        factors = np.exp(theta * nodes)
        weights = mass * factors
        weights /= weights.sum()
        mean = float(weights @ nodes)
        spread = math.sqrt(max(float(weights @ (nodes - mean) ** 2), 1e-300) * steps)
        if theta > 0.0 and steps * mean > threshold + min(spread, 5.0 / theta):
            return None
        low, high = _window(weights, nodes, steps, mean, spread)
        # thresholds nearby have a slightly different law: leave room for it
        size = max(math.ceil((high - low + spread) / step) + 4, nodes.size + 1)
        return Tilt(
            theta=theta,
            factors=factors,
            asked=threshold,
            mean=steps * mean,
            spread=spread,
            plain_spread=spread,
            low=low - spread / 2,
            centre=round(mean / step),
            size=_fast(size) if size <= LONGEST else size,
        )


def _fast(size: int) -> int:
    """A length that an FFT likes, from `size` on."""
    if size <= LONG:
        return fourier.next_fast_len(size, True)
    return TOGETHER * fourier.next_fast_len(-(-size // TOGETHER), True)


def _window(weights: Array, nodes: Array, steps: int, mean: float, spread: float) -> tuple[float, float]:
    """Ends outside which the tilted sum has mass at most exp(-40), by Chernoff's bound."""
    ends = []
    for sign in (-1.0, 1.0):
        furthest = abs((nodes[-1] if sign > 0 else nodes[0]) - mean)
        best, away = steps * furthest, sign * (nodes - mean)
        # (growth + 40) / s falls and then rises with s: most laws end at one of the first
        for factor in (8.0, 4.0, 1.5, 0.6, 0.2, 0.06, 0.02):
            s = factor / spread
            if s * furthest > 600:
                continue
            growth = steps * math.log(float(weights @ np.exp(s * away)))
            tried = (growth + 40.0) / s
            if tried > best:
                break
            best = tried
        ends.append(steps * mean + sign * best)
    return ends[0], ends[1]


class LatticeSums:
    """The sum of `steps` copies of a law, ready to answer for several thresholds."""

    def __init__(self, mass: Array, indices: Integers, atom: float, steps: int, step: float, tilt: Tilt) -> None:
        self._steps, self._step, self._tilt = steps, step, tilt
        weights = mass * tilt.factors
        normaliser = float(weights.sum())
        self._log_normaliser = steps * math.log(normaliser)
        weights /= normaliser
        size = tilt.size
        few = _enough_frequencies(weights, steps, size)
        weights[-int(indices[0])] -= atom / normaliser
        spectrum: Complex
        if few * weights.size <= SHORT * size:  # a short law among very many seats: no FFT needed
            spectrum, each = fourier.direct(weights, int(indices[0]) - tilt.centre, few, size)
            spectrum = np.conj(spectrum)
        else:
            signal = np.zeros(size)
            signal[(indices - tilt.centre) % size] = weights
            spectrum = fourier.rfft(signal)[:few]
            each = FFT_LEVEL * math.log2(size) * math.sqrt(size) * float(np.linalg.norm(signal))
        if atom > 0.0:
            spectrum += atom / normaliser * fourier.turns(tilt.centre * np.arange(spectrum.size), size)
        modulus = np.abs(spectrum)
        # Frequencies that do not matter are left out, and paid for below. Laws of few atoms have
        # many of them between the few where the atoms agree.
        kept = np.flatnonzero(modulus > math.exp(-60.0 / steps))
        spectrum, modulus = spectrum[kept], modulus[kept]
        # logarithm and power by real functions, many times as quick as the complex ones
        logs, angles = np.log(modulus), np.arctan2(spectrum.imag, spectrum.real)
        moduli = np.exp(steps * logs)
        self._power = np.empty(kept.size, np.complex128)
        self._power.real = moduli * np.cos(steps * angles)
        self._power.imag = moduli * np.sin(steps * angles)
        self._kept = kept
        self._weight = np.where((kept == 0) | (2 * kept == size), 1.0, 2.0)
        rounding = each / modulus + 6 * UNIT * (1 + np.hypot(logs, angles))
        growth = np.expm1(np.minimum(steps * np.log1p(rounding), 200.0))
        self._errors = 2 * np.abs(self._power) * (growth + 40 * UNIT) / size

    @cached_property
    def _ramp(self) -> _Ramp:
        return _Ramp(-self._tilt.theta * self._step, self._kept, self._tilt.size)

    def masses(self, together: int = 1) -> tuple[Integers, Array]:
        """Where the sum may be, in steps, and lower bounds of its masses there.

        `together`: a power of two up to `TOGETHER`: so many neighbouring sums count as the first of them, a multiple of
        it. The deviation of the sum has to be many times as much.
        """
        tilt, size, kept = self._tilt, self._tilt.size, self._kept
        first = together * math.ceil((math.floor(tilt.low / self._step) + 1) / together)
        merged = together if size % together == 0 and size > 2 * together * kept[-1] else 1
        spectrum = np.zeros(size // merged // 2 + 1, np.complex128)
        starts = fourier.turns(kept * ((first - self._steps * tilt.centre) % size), size)
        # the mean of neighbours is one more factor, the mean of their turns
        neighbours = fourier.turns(np.outer(np.arange(merged), kept), size).mean(0)
        spectrum[kept] = self._power * starts * neighbours
        found = fourier.irfft(spectrum, size // merged)
        error = merged * (float(self._errors.sum()) + math.exp(-59.0) + 4 * math.exp(-39.0))
        # a transform, whose factors are rounded, and means of turns
        level = FFT_LEVEL * math.log2(size) + UNIT * (merged + 40)
        error += level * float(np.linalg.norm(found))
        places = first + merged * np.arange(found.size)
        # what is merged counts with the smallest factor that one of it has
        logs = self._log_normaliser - tilt.theta * self._step * (places + (merged - 1))
        there = (found > error) & (np.abs(logs) < 600.0)
        places, found = places[there], (found[there] - error) * np.exp(logs[there]) * (1 - 1e-12)
        if merged < together:
            groups = (places - first) // together
            found = np.asarray(np.bincount(groups, found), np.float64)
            places = first + together * np.arange(found.size)
        return places, found

    def excess(self, threshold: float) -> tuple[float, float]:
        """E[(S - threshold)+] and a bound on its error."""
        tilt, step, size = self._tilt, self._step, self._tilt.size
        theta = tilt.theta
        first = math.floor(threshold / step) + 1  # the first lattice sum above the threshold
        overshoot = first * step - threshold
        count = size - max(math.floor((threshold - tilt.low) / step), 0) - 1
        log_scale = self._log_normaliser - theta * threshold
        if log_scale > 500.0:
            raise NumericalFailure("reports with tails this heavy cannot be tilted")
        scale = math.exp(log_scale)
        largest = size * step if theta * size * step < 1 else 1 / (math.e * theta)
        wrapped = 4 * math.exp(-39.0) * largest
        if count <= 0:
            return 0.0, wrapped * scale
        kernel = self._ramp.weighted(overshoot, step, count)
        kernel *= math.exp(-theta * overshoot)
        turned = fourier.turns(self._kept * ((first - self._steps * tilt.centre) % size), size)
        value = float(self._weight @ (self._power * turned * kernel).real) / size
        magnitude = np.abs(kernel)
        error = float(self._errors @ magnitude) + math.exp(-59.0) * float(magnitude[0]) + wrapped
        return max(value, 0.0) * scale, error * scale


def _enough_frequencies(law: Array, steps: int, size: int) -> int:
    """A number of frequencies beyond which the law's transform is below exp(-60 / steps).

    |transform(t)|^2 = 1 - sum over i, j of p_i p_j (1 - cos((i - j) t)), of which neighbours alone
    make 2 (1 - cos t) times the sum of p_i p_{i+1}: the more, the larger t is.
    """
    needed = 30.0 / max(steps * float(law[1:] @ law[:-1]) * (1 - 1e-9), 30.0)  # sin^2(t / 2)
    return min(math.ceil(math.asin(math.sqrt(needed)) / math.pi * size), size // 2) + 1


def _power_and_gap(log: float, turns: Integers, size: int) -> tuple[Complex, Complex]:
    """z and 1 - z for z = exp(log + 2 pi i turns / size), the latter without cancellation."""
    versed, cosine, sine = fourier.versed(turns, size)
    scale = math.exp(log)
    power, gap = np.empty(turns.shape, np.complex128), np.empty(turns.shape, np.complex128)
    power.real, power.imag = scale * cosine, scale * sine
    gap.real, gap.imag = versed - math.expm1(log) * cosine, -power.imag
    return power, gap


class _Ramp:
    """sum over j < count of (start + j step) exp(j (log + 2 pi i turn / size)) for every turn."""

    def __init__(self, log: float, turns: Integers, size: int) -> None:
        self._log, self._turns, self._size = log, turns, size
        self._ratio, self._gap = _power_and_gap(log, turns, size)

    def weighted(self, start: float, step: float, count: int) -> Complex:
        """The sums."""
        log, turns, size = self._log, self._turns, self._size
        last, lost = _power_and_gap(count * log, count * turns, size)
        # next to zero the closed form cancels: sum those few terms as they stand
        angles = 2 * math.pi / size * turns
        small = np.flatnonzero(np.abs(log) + angles < 1.0 / count)
        small = small[np.hypot(log, angles[small]) * count < 0.5]
        gap = self._gap
        if small.size:
            gap = gap.copy()
            gap[small] = 1.0
        plain = lost / gap  # sum of r^j
        ramp = (self._ratio * plain - count * last) / gap  # sum of j r^j
        out = start * plain + step * ramp
        j = np.arange(count)
        for i in small:
            power = j * (log if angles[i] == 0.0 else complex(log, angles[i]))
            out[i] = np.sum((start + step * j) * np.exp(power))
        return np.asarray(out)
