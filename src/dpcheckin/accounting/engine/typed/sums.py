"""Sums over seats of several types: an upper bound of E(S)+ for every mixture of the types at once.

On a vertical line Re z = theta > 0, with M the moment generating function of S,

    E(S)+ = 1/(2 pi i) integral of M(z) / z^2 dz,

and the trapezoidal rule with period L gives E(S)+ plus terms E(S - lL)+ e^(theta l L), l != 0, all of them positive
(Poisson summation): a finite sum that errs on the safe side only. Laplace noise of mean zero raises E(S)+ as well; it
makes the integrand fall like 1/|z|^4, so that what the sum leaves out is bounded without knowing M there. The number of
terms depends neither on the population nor on the number of check-ins.

With j seats of one type and N - j of another the sum is a function of j whose second differences are the same sum with
(M_1 - M_2)^2 in place of two factors: the maximum over j lies below the chord of a cell by at most an eighth of that,
and cells are halved until that is next to nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpcheckin.accounting.engine.arrays import Array, Complex
from dpcheckin.accounting.engine.seats import Seats
from dpcheckin.accounting.engine.typed.laws import SeatLaw, Types
from dpcheckin.errors import NumericalFailure
from dpcheckin.special import UNIT
from dpcheckin.special.fourier import next_fast_len

# Laplace noise that every sum may have, in deviations of the sum: 2e-4 of its variance
FREE_NOISE = 0.01
FAR, FAR_NOISE = 8.0, 3e-3  # from so many deviations on in parts of the distance beyond them
LEFT_OUT = 5e-5  # of the answer, about: what frequencies beyond the last may add
FALLEN_SHARE = 1e-5  # likewise, where the transforms have fallen
FEW_FREQUENCIES = 100  # so many are added without asking whether fewer would do
MOST_FREQUENCIES = 40_000
NEGLIGIBLE = 46.0  # frequencies whose term is e^-46 of the largest are added up in size only
TOLERANCE = 2e-4  # of the answer, by which the maximum over counts may be missed
MOST_CELLS = 64
_THETAS = np.geomspace(0.4, 80.0, 48)  # in deviations
_TRIED = np.array([6.0, 9.0, 13.0, 18.0, 26.0, 40.0, 60.0])  # frequencies, in deviations
_SLIGHT = np.geomspace(4e-3, 0.4, 24)[:-1]  # where one report of a long tail makes the sum


@dataclass(frozen=True, slots=True, eq=False)
class _Factor:
    """Logarithms of one seat's moment generating function on the line, and their errors."""

    change: Complex  # the function minus one
    logs: Complex
    errors: Array


@dataclass(frozen=True, slots=True)
class _Line:
    theta: float
    period: float
    last: int
    beyond: float  # a bound on what the frequencies after the last would add


def typed_upper(seats: Seats, types: Types, rise: float) -> float:
    """An upper bound of the theorem's delta for any number of clients of each type.

    `seats`: who may sit where; one of the seats is the theorem's own and holds the worst law. `types`: the types at
    this alpha. `rise`: alpha - 1.
    """
    typed = seats.count - 1
    threshold = rise * (seats.count + seats.empty)
    noise = _noise(seats, types, threshold)
    line = _line(seats, types, noise, threshold)
    factors = [_factor(law, seats, line) for law in types.laws]
    worst = _factor(types.worst, seats, line)
    largest = typed * max(float(f.logs[0].real) for f in factors) + float(worst.logs[0].real)
    exponent = largest - line.theta * threshold
    paid = seats.count * seats.participation * types.violation
    if exponent < -600.0:  # far below any delta that is asked for; all weights add up to less
        return (math.exp(-600.0) * (1 + 1 / line.theta) ** 2 + paid) / seats.population
    if exponent > 600.0:
        raise NumericalFailure("tails this heavy cannot be tilted")
    kernel = _kernel(line, noise)
    phases = (2j * math.pi / line.period * threshold) * np.arange(line.last + 1)
    terms = abs(largest) + line.theta * threshold  # of which the exponent is the difference
    value = _Maximum(factors, typed, worst, kernel, phases, terms).upper() + line.beyond
    return (value * math.exp(exponent) + paid) / seats.population


def _noise(seats: Seats, types: Types, threshold: float) -> float:
    """Scale of the Laplace noise: more than the types ask for raises the sum, and is sound."""
    deviation = _deviation(seats, types)
    free = FREE_NOISE * deviation
    if types.worst.step > 0.0:  # far out a sum falls over a distance in proportion to its own
        free = max(free, FAR_NOISE * (threshold - FAR * deviation))
    return max(types.smoothing, free)


def _deviation(seats: Seats, types: Types) -> float:
    variance = max(law.variance for law in (*types.laws, types.worst))
    return math.sqrt(max(seats.count * seats.participation * variance, 1e-300))


def _line(seats: Seats, types: Types, noise: float, threshold: float) -> _Line:
    """Where to integrate: near the saddle, with a period that holds the sum."""
    deviation = _deviation(seats, types)
    laws = (*types.laws, types.worst)
    furthest = max(law.furthest for law in laws)
    widest = max(law.step for law in laws)
    theta = (_THETAS if widest == 0.0 else np.append(_SLIGHT, _THETAS)) / deviation
    theta = np.unique(np.minimum(theta, min(0.9 / noise, 300.0 / furthest)))
    grown = np.max([law.growth(theta) for law in types.laws], axis=0)
    exponents = seats.count * np.log1p(seats.participation * grown) - theta * threshold
    at = int(np.argmin(exponents - 2 * np.log(theta) - np.log1p(-((noise * theta) ** 2))))
    chosen = float(theta[at])
    # a period too short makes the bound looser, never wrong
    period = max(26.0 / chosen, 10.0 * deviation, 1.5 * furthest)
    if widest > 0.0:
        # laws on a lattice have long tails, whose aliases a tilt makes large
        period = next_fast_len(math.ceil(2 * period / widest), True) * widest
    answer = _answer(seats, types, threshold, chosen, float(exponents[at]))
    end = _end(seats, types, _Line(chosen, period, 0, 0.0), noise * noise, answer)
    return _Line(chosen, period, end.last, end.beyond)


def _answer(seats: Seats, types: Types, threshold: float, theta: float, exponent: float) -> float:
    """About E(S)+ in units of e^exponent: many small reports, or one large one, make it."""
    deviation = _deviation(seats, types)
    at_saddle = 1.0 / (2.5 * (theta**2 * deviation + theta))
    if types.worst.step == 0.0:
        return at_saddle
    away = threshold / deviation
    many = 0.4 * deviation * math.exp(-0.5 * away * away) / (1.0 + away * away)
    single = seats.count * seats.participation * max(law.excess(threshold) for law in types.laws)
    return max(min(at_saddle, (many + single) * math.exp(-exponent)), 1e-300)


class _End(NamedTuple):
    """Number of the last frequency that is added, and a bound on what lies beyond it."""

    last: int
    beyond: float


def _end(seats: Seats, types: Types, line: _Line, squared: float, answer: float) -> _End:
    """The last frequency worth adding, from the kernel alone or where the transforms have fallen.

    Raises:
        NumericalFailure: If that would be too many.
    """
    # beyond / answer = (theta^2 deviation sqrt(2 pi)) / (3 pi noise^2 Y^3), about
    plain = (9.4 * squared * LEFT_OUT * answer) ** (-1 / 3)
    turns = line.period / (2 * math.pi)
    if plain * turns > FEW_FREQUENCIES:
        fallen = _where_fallen(seats, types, line, squared, plain, answer)
        enough = fallen is not None and fallen.beyond <= FALLEN_SHARE * answer
        if fallen is not None and (enough or plain * turns > MOST_FREQUENCIES):
            return fallen
    if plain * turns > MOST_FREQUENCIES:
        raise NumericalFailure("reports this rare leave no smooth sum")
    last = math.ceil(plain * turns)
    return _End(last, 1.0 / (3 * math.pi * squared * (last / turns) ** 3))


def _where_fallen(seats: Seats, types: Types, line: _Line, squared: float, plain: float, answer: float) -> _End | None:
    """Where the laws' own transforms have fallen, if that is before the frequency `plain`.

    The kernel beyond Y adds up to at most 1 / (3 pi noise^2 Y^3). Where all laws are on one lattice that counts with
    what is left of the transforms, but for windows of 2 Y about the multiples of the lattice's frequency, where the
    transforms return.
    """
    steps = {law.finest for law in types.laws}
    turn = 2 * math.pi / min(steps) if len(steps) == 1 and min(steps) > 0.0 else 0.0
    deviation = _deviation(seats, types)
    found: _End | None = None
    for start in _TRIED / deviation:
        if start > min(plain, turn / 4):
            break
        fall = min(law.decay(line.theta, seats.participation, start) for law in types.laws)
        left = math.exp(-min((seats.count - 1) * fall, 700.0)) / (3 * start**3)
        # the sum of (k - 1/2)^-4 over k >= 1 is below 16.24
        returned = (2 * start + 2 * math.pi / line.period) * 16.24 / turn**4
        beyond = (left + returned) / (math.pi * squared)
        if found is None or beyond < found.beyond:
            found = _End(math.ceil(float(start) * line.period / (2 * math.pi)), beyond)
        if left <= returned or beyond <= FALLEN_SHARE * answer:
            break
    return found


def _factor(law: SeatLaw, seats: Seats, line: _Line) -> _Factor:
    change, error = law.transform(line.theta, line.period, line.last)
    change = seats.participation * change
    error = seats.participation * error
    real, imaginary = change.real, change.imag
    slip = error + 8 * UNIT * np.abs(change)
    # log |1 + c| with all digits of a small c; a modulus that may be zero is what it can be at most
    squared = 2 * real + real * real + imaginary * imaginary
    small = np.log(np.maximum(np.hypot(1.0 + real, imaginary), np.maximum(slip, 1e-300)))
    size = np.where(squared < -0.5, small, 0.5 * np.log1p(np.maximum(squared, -0.5)))
    logs = size + 1j * np.arctan2(imaginary, 1.0 + real)
    errors = slip / np.maximum(np.exp(size), 1e-300) + 8 * UNIT * np.abs(logs)
    return _Factor(change, logs, errors)


def _kernel(line: _Line, noise: float) -> Complex:
    """Weights of the trapezoidal rule."""
    step = 2 * math.pi / line.period
    z = line.theta + 1j * step * np.arange(line.last + 1)
    kernel = (step / math.pi) / (z * z * (1 - noise * noise * z * z))
    kernel[0] *= 0.5
    return np.asarray(kernel)


class _Maximum:
    """The largest sum over all numbers of seats of each type, in units of e^exponent."""

    def __init__(
        self, factors: list[_Factor], typed: int, worst: _Factor, kernel: Complex, phases: Complex, terms: float
    ) -> None:
        self._typed = typed
        errors = typed * np.max([factor.errors for factor in factors], axis=0)
        first, second = factors[0], factors[-1]
        # all but the typed seats; at frequency zero the largest pattern is one
        rest = worst.logs - phases
        rest -= typed * max(float(f.logs[0].real) for f in factors) + float(worst.logs[0].real)
        top = rest.real + typed * np.maximum(first.logs.real, second.logs.real)
        sizes = np.abs(kernel)
        keep = top > -NEGLIGIBLE
        keep[0] = True
        self._dropped = float(sizes[~keep] @ np.exp(top[~keep])) * (1 + 1e-9)
        self._kernel, self._sizes = kernel[keep], sizes[keep]
        self._rest = rest[keep]
        self._logs = (first.logs[keep], second.logs[keep])
        self._gap = np.abs(first.change - second.change)[keep] ** 2 * (1 + 1e-9)
        turning = np.abs(phases[keep]) + typed * np.abs(self._logs[0].imag)
        doubt = errors[keep] + worst.errors[keep] + 8 * UNIT * (turning + terms)
        relative = np.expm1(np.minimum(doubt, 50.0)) + (keep.sum() + 40) * UNIT
        self._doubt = float((self._sizes * np.exp(top[keep])) @ relative)
        self._one_type = len(factors) == 1

    def upper(self) -> float:
        """An upper bound of the maximum."""
        slack = self._dropped + self._doubt
        ends = (0, self._typed)
        values = {j: self._value(j) for j in ends}
        if self._one_type or self._typed < 1:
            return values[0] + slack
        cells, done = [(self._bound(0, self._typed, values), ends)], 0.0
        while cells and len(values) < MOST_CELLS:
            cells.sort()
            bound, (low, high) = cells.pop()
            best = max(values.values())
            if bound <= best * (1 + TOLERANCE) + slack:
                done = max(done, bound)
                break
            if high - low <= 1:
                done = max(done, values[low], values[high])
                continue
            middle = (low + high) // 2
            values[middle] = self._value(middle)
            for cell in ((low, middle), (middle, high)):
                cells.append((self._bound(*cell, values), cell))
        left = max((bound for bound, _ in cells), default=0.0)
        return max(done, left, max(values.values())) + slack

    def _value(self, count: int) -> float:
        """The sum with so many seats of the first type."""
        powers = self._rest + count * self._logs[0] + (self._typed - count) * self._logs[1]
        return float((self._kernel * np.exp(powers)).real.sum())

    def _bound(self, low: int, high: int, values: dict[int, float]) -> float:
        """Of the sums in a cell: its chord, and as much more as second differences allow."""
        left, right, width = values[low], values[high], high - low
        if width <= 1:
            return max(left, right)
        others = self._typed - 2
        patterns = [j * self._logs[0].real + (others - j) * self._logs[1].real for j in (low, high - 2)]
        size = np.exp(self._rest.real + np.maximum(*patterns))
        bend = 0.5 * width**2 * float((self._sizes * size) @ self._gap) * (1 + 1e-9)
        rise = right - left
        if abs(rise) >= bend:
            return max(left, right)
        at = 0.5 * (1 + rise / bend)
        return left + rise * at + bend * at * (1 - at)
