"""Laws of reports with long tails, on points that lie further apart further out, and their transforms.

Near zero the points are a lattice; with each octave of distance their step doubles. Keeping the potential E(X - x)+ at
the points is mean preserving and larger in convex order, whatever the points are. What lies below the first is moved up
to it; what lies above the last is cut off and paid for. So a thousand points reach as far as single reports count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from dpcheckin.accounting.engine.arrays import Array, Complex, FloatArray
from dpcheckin.accounting.engine.seats import Profile
from dpcheckin.errors import NumericalFailure
from dpcheckin.special import fourier
from dpcheckin.special.fourier import FFT_LEVEL

STEP = 0.06  # in deviations of a report: a lattice adds a sixth of its square to the variance
_OCTAVE = 256  # points on either side of an octave; the step is at most 1/256 of the distance
_GROUPS = 24  # of the points of a piece, for a guide
_TURNS, _PLACES = 6.0, 5  # how far points count for a frequency, and frequencies of an octave
_BLOCK = 8  # its square is the number of points that are kept out of an FFT,
_LITTLE = 0.01  # unless all together weigh less than this
_LONGEST = 2**61  # points of a period: integers count no more


@dataclass(frozen=True, eq=False)
class LatticeMasses:
    """Masses at first * step, (first + 1) * step, …"""

    step: float
    first: int
    masses: Array

    @cached_property
    def values(self) -> Array:
        """The lattice points."""
        return (self.first + np.arange(self.masses.size)) * self.step

    @cached_property
    def key(self) -> tuple[float, int, bytes]:
        """What tells it from others."""
        return self.step, self.first, self.masses.tobytes()

    @cached_property
    def _transforms(self) -> dict[tuple[float, float, int], tuple[Complex, float]]:
        """What was asked for: laws have pieces in common, each for one line."""
        return {}

    def transform(self, theta: float, period: float, last: int) -> tuple[Complex, float]:
        """Sums of mass exp(z x), z = theta + 2 pi i m / period, m = 0 .. last, and their error.

        The period has to be a multiple of the step.
        """
        asked = theta, period, last
        if asked not in self._transforms:
            if not period / self.step <= _LONGEST:
                raise NumericalFailure("no lattice reaches from a report to so large a sum")
            self._transforms[asked] = self._computed(theta, round(period / self.step), last)
        return self._transforms[asked]

    def _computed(self, theta: float, size: int, last: int) -> tuple[Complex, float]:
        weights = np.asarray(self.masses * np.exp(theta * self.values), np.float64)
        if float(weights.sum()) < _LITTLE:
            return self._transformed(weights, size, last)
        block = self._block(weights)
        sums, error = fourier.direct(weights[block], self.first + block.start, last + 1, size)
        weights[block] = 0.0
        rest, doubt = self._transformed(weights, size, last)
        return sums + rest, error + doubt

    @staticmethod
    def _block(weights: Array) -> slice:
        """The few points that hold most: an FFT would err in proportion to them."""
        if weights.size <= _BLOCK**2:
            return slice(0, weights.size)
        sums = np.concatenate([[0.0], np.cumsum(weights)])
        start = int(np.argmax(sums[_BLOCK**2 :] - sums[: -(_BLOCK**2)]))
        return slice(start, start + _BLOCK**2)

    def _transformed(self, weights: FloatArray, size: int, last: int) -> tuple[Complex, float]:
        if size > 4 * (weights.size + last):
            return fourier.chirped(weights, self.first, last + 1, size)
        signal = np.bincount(np.arange(self.first, self.first + weights.size) % size, weights, size)
        spectrum = np.conj(fourier.rfft(signal))
        places = np.arange(last + 1) % size
        turned = 2 * places > size
        found = spectrum[np.where(turned, size - places, places)]
        found[turned] = np.conj(found[turned])
        error = FFT_LEVEL * math.log2(size) * math.sqrt(size) * float(np.linalg.norm(signal))
        return found, error


@dataclass(frozen=True, eq=False)
class NestedLaw:
    """A law on a few lattices whose steps are multiples of each other; its mean is about zero."""

    pieces: tuple[LatticeMasses, ...]

    @property
    def step(self) -> float:
        """The widest step; periods are multiples of it."""
        return max(piece.step for piece in self.pieces)

    @cached_property
    def variance(self) -> float:
        return math.fsum(float(piece.masses @ piece.values**2) for piece in self.pieces)

    @cached_property
    def furthest(self) -> float:
        return max(float(np.abs(piece.values[[0, -1]]).max()) for piece in self.pieces)

    def growth(self, theta: Array) -> Array:
        values, masses = self._grouped
        return np.asarray(np.expm1(np.outer(theta, values)) @ masses)

    def excess(self, threshold: float) -> float:
        values, masses = self._grouped
        return float(np.maximum(values - threshold, 0.0) @ masses)

    @cached_property
    def _grouped(self) -> tuple[Array, Array]:
        """About as many points as matter for a guide."""
        values, masses = [], []
        for piece in self.pieces:
            starts = _groups(piece.masses.size, min(max(-piece.first, 0), piece.masses.size - 1))
            mass = np.add.reduceat(piece.masses, starts)
            moment = np.add.reduceat(piece.masses * piece.values, starts)
            values.append(moment[mass > 0.0] / mass[mass > 0.0])
            masses.append(mass[mass > 0.0])
        return np.concatenate(values), np.concatenate(masses)

    @property
    def finest(self) -> float:
        """The step of which all points are multiples."""
        return min(piece.step for piece in self.pieces)

    def decay(self, theta: float, participation: float, start: float) -> float:
        """By how much log |M| falls, at least, from Im z = 0 to all between `start` and the mirror.

        M is the moment generating function of a seat on Re z = theta. Its tilted law has masses
        p_j at x_j, all multiples of the finest step h, so |M| has the period 2 pi / h, and
        |M|^2 / M(theta)^2 <= 1 - 2 p_r g with g(y) = sum over j of p_j (1 - cos y(x_j - x_r)), for
        any r. Terms may be left out. Between two y apart by D, g is above its chord minus
        D^2 / 8 sum over j of p_j (x_j - x_r)^2.

        `theta`: the tilt. `participation`: probability that the seat is taken; else it holds zero. `start`: the
        smallest imaginary part, at most pi / h.
        """
        x, p, reference = self._tilted(theta, participation)
        away = x - x[reference]
        least, y, end = math.inf, start, math.pi / self.finest
        while y < end:
            near = np.abs(away) <= _TURNS / y
            places = np.linspace(y, min(2 * y, end), _PLACES)
            found = (1.0 - np.cos(np.outer(places, away[near]))) @ p[near]
            bent = float(p[near] @ away[near] ** 2) * (places[1] - places[0]) ** 2 / 8
            least = min(least, float(found.min()) - bent)
            y *= 2.0
        return max(float(p[reference]) * least * (1 - 1e-9) - 1e-15, 0.0)

    def _tilted(self, theta: float, participation: float) -> tuple[Array, Array, int]:
        """Points, masses of a seat's tilted law, and the heaviest point."""
        x = np.concatenate([piece.values for piece in self.pieces])
        p = np.concatenate([piece.masses for piece in self.pieces])
        x, p = np.append(x, 0.0), np.append(participation * p, 1.0 - participation)
        p = p * np.exp(theta * x)
        p /= p.sum()
        return x, p, int(np.argmax(p))

    def sharing(self, *others: NestedLaw) -> NestedLaw:
        """The same law, with the pieces of others where those are equal: transformed once."""
        known = {piece.key: piece for law in others for piece in law.pieces}
        return NestedLaw(tuple(known.get(piece.key, piece) for piece in self.pieces))

    def transform(self, theta: float, period: float, last: int) -> tuple[Complex, Array]:
        total, error = np.full(last + 1, -1.0 + 0.0j), 0.0
        for piece in self.pieces:
            found, doubt = piece.transform(theta, period, last)
            total += found
            error += doubt
        return total, np.full(last + 1, error)


@lru_cache(maxsize=256)
def _groups(size: int, zero: int) -> NDArray[np.int64]:
    """Where groups of points begin: single points about `zero`, ever more together."""
    steps = np.geomspace(1, size, _GROUPS).astype(np.int64)
    starts = np.concatenate([[0, zero], zero - steps, zero + steps])
    return np.unique(np.clip(starts, 0, size - 1))


@dataclass(frozen=True, slots=True)
class _Run:
    """Consecutive points of one step: first * step, ..., last * step."""

    step: float
    first: int
    last: int

    @property
    def points(self) -> Array:
        return np.arange(self.first, self.last + 1) * self.step


@dataclass(frozen=True, slots=True)
class Points:
    """Points from about -bottom to about top, in runs of one step each."""

    step: float  # distance of points near zero
    bottom: float  # how far down, positive
    top: float  # how far up
    octave: int = _OCTAVE  # points of an octave: steps are at most this part of the distance

    @property
    def runs(self) -> list[_Run]:
        """In ascending order."""
        up, down = self._octaves(self.top), self._octaves(self.bottom)
        middle = _Run(self.step, -down[0][1], up[0][1])
        below = [_Run(step, -last, -first) for step, last, first in reversed(down[1:])]
        return [*below, middle, *(_Run(step, first, last) for step, last, first in up[1:])]

    def _octaves(self, reach: float) -> list[tuple[float, int, int]]:
        """Of one side: step, last and first index, octave by octave."""
        inner = 2 * self.octave
        found = [(self.step, min(max(math.ceil(reach / self.step), 1), inner), 0)]
        step = self.step
        while inner * step < reach:
            step *= 2.0
            found.append((step, min(math.ceil(reach / step), inner), inner // 2 + 1))
        return found


def on_points(above: Profile, below: Profile, joint: float, points: Points) -> NestedLaw:
    """A law of mean zero, above that with these potentials but for what is cut off.

    `above`: E(X - x)+, asked for x above `joint`. `below`: E(x - X)+, asked for x up to `joint`. `joint`: where the two
    meet. `points`: where the law may have mass.
    """
    runs = points.runs
    x = np.concatenate([run.points for run in runs])
    left = min(max(int(np.searchsorted(x, joint, side="right")), 1), x.size - 1)
    low, high, gaps = below(x[:left]), above(x[left:]), np.diff(x)
    # slopes of E(x - X)+ and of E(X - x)+; E(X - x)+ - E(x - X)+ = -x joins the two halves
    rising = np.diff(np.append(low, high[0] + x[left])) / gaps[:left]
    falling = np.diff(np.insert(high, 0, low[-1] - x[left - 1])) / gaps[left - 1 :]
    masses = np.empty(x.size)
    masses[0], masses[1:left] = rising[0], np.diff(rising)
    masses[left:-1], masses[-1] = np.diff(falling), -falling[-1]
    parts = np.split(np.maximum(masses, 0.0), np.cumsum([r.last - r.first + 1 for r in runs])[:-1])
    return NestedLaw(
        tuple(LatticeMasses(run.step, run.first, part) for run, part in zip(runs, parts, strict=True) if part.any())
    )
