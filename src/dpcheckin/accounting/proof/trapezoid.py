"""Searching the numbers of one trapezoidal sum: abscissa, period, terms and noise.

Any numbers give a bound (docs/certificate.md); those chosen here give one that is sharp to about 1e-6 and cheap to
check. With Lambda = log M, the abscissa is near the saddle of Lambda - 2 log theta; the period is so long that
Chernoff's bound makes the aliases on both sides negligible, and the last term so far out that what lies beyond, bounded
by the noise alone, is negligible too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.errors import NumericalFailure

Numeric = NDArray[np.inexact[Any]]
"""Real or complex."""
LogTransform = Callable[[Numeric], Numeric]
"""z to log E e^(zS), elementwise."""
_NEGLIGIBLE = math.log(1e-6)  # of the answer
_MOST_TERMS = 40_000
_CANCELLED = 1e-2  # of the largest term: a sum that is smaller loses digits
_THETAS = np.geomspace(1e-3, 1e3, 181)  # in deviations
_LARGEST_EXPONENT = 600.0


def short(value: float, digits: int = 4) -> str:
    """A searched number with so many `digits`, as it is written: any value will do."""
    return f"{value:.{digits}g}"


def above(value: float, digits: int = 10) -> str:
    """A decimal with so many `digits` that is not below the value."""
    if not math.isfinite(value):
        raise NumericalFailure(f"a bound of a certificate came out as {value!r}")
    return str(Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(value))


@dataclass(frozen=True, slots=True)
class Numbers:
    """One trapezoidal sum, its numbers as written in the file."""

    theta: str
    period: str
    terms: int
    normal: str
    laplace: str = "0"

    def line(self) -> Numeric:
        """The points z of the sum."""
        step = 2 * math.pi / float(self.period)
        return np.asarray(float(self.theta) + 1j * step * np.arange(self.terms + 1))

    def noise(self, z: Numeric) -> Numeric:
        """log E e^(zN) of the noise."""
        normal, laplace = float(self.normal), float(self.laplace)
        return np.asarray(0.5 * (normal * z) ** 2 - np.log(1 - (laplace * z) ** 2))

    def weights(self) -> Array:
        """Of the terms: both signs of a frequency count."""
        return np.where(np.arange(self.terms + 1) > 0, 2.0, 1.0) / float(self.period)

    @property
    def beyond(self) -> float:
        """What the terms after the last may add, in units of M(theta)."""
        y = 2 * math.pi * self.terms / float(self.period)
        return _tail(y, float(self.normal), float(self.laplace), float(self.theta))


def _tail(y: float, normal: float, laplace: float, theta: float) -> float:
    room = 1 - (laplace * theta) ** 2
    falls = math.exp(-0.5 * (normal * y) ** 2) * room / (room + (laplace * y) ** 2)
    return falls / (math.pi * y)


@dataclass(frozen=True, slots=True)
class Saddle:
    """What the search needs of a sum S, and of the function whose mean is wanted: E(1 - e^-S)+ of `losses`, or E(S)+.

    `logs` is log E e^(zS), `deviation` about that of S, and no term of S is further out than `furthest`.
    """

    logs: LogTransform
    deviation: float
    furthest: float
    losses: bool = False

    def kernel(self, z: Numeric) -> Numeric:
        """The transform of the function: 1/z^2, or 1/(z(z + 1))."""
        return np.asarray(1 / (z * (z + 1)) if self.losses else 1 / (z * z))

    def numbers(self, normal: float, laplace: str = "0") -> Numbers:
        """Good numbers for `normal` noise of this deviation and `laplace` noise of this scale."""
        scale = float(laplace)
        top = _LARGEST_EXPONENT / self.furthest
        if scale > 0.0:
            top = min(top, 0.97 / scale)
        s = np.unique(np.minimum(_THETAS / self.deviation, top))
        noise = Numbers("1", "1", 1, short(normal), laplace)
        exponents = np.real(self.logs(s) + noise.noise(s))
        heights = exponents + np.log(self.kernel(s).real)
        saddle = int(np.argmin(heights))
        answers = self._answer(s, exponents, saddle) * np.exp(exponents[saddle] - exponents)
        # off the saddle terms cancel, but a tail that is tilted less needs a shorter period
        sizes = heights[saddle] + math.log(s[saddle]) - heights - np.log(s)
        near = np.flatnonzero(sizes >= min(math.log(_CANCELLED), 0.0)).tolist()
        periods = [self._period(s, exponents, i, answers[i]) for i in near]
        at, period = near[int(np.argmin(periods))], min(periods)
        theta, answer = float(short(float(s[at]))), float(answers[at])
        y = self._last(theta, noise, answer)
        terms = max(16, math.ceil(y * period / (2 * math.pi)))
        if not terms <= _MOST_TERMS:
            raise NumericalFailure("reports this rare leave no smooth sum")
        return Numbers(short(theta), short(period), terms, noise.normal, laplace)

    def _answer(self, s: Array, exponents: Array, at: int) -> float:
        """About the sum, in units of M(theta): the integral over the saddle."""
        left, right = max(at - 1, 0), min(at + 1, s.size - 1)
        # the second derivative in log theta is theta^2 Lambda'' + theta Lambda'
        step = math.log(s[right] / s[left]) / max(right - left, 1)
        heights = exponents + np.log(self.kernel(s).real)
        bend = (heights[right] - 2 * heights[at] + heights[left]) / step**2
        theta = float(s[at])
        width = theta / math.sqrt(max(bend, 1.0)) if right - left == 2 else theta
        return float(self.kernel(s[at]).real) * width / math.sqrt(2 * math.pi)

    def _period(self, s: Array, exponents: Array, at: int, answer: float) -> float:
        """So long that sums which are a period larger or smaller add next to nothing."""
        rise = exponents - exponents[at] - _NEGLIGIBLE - math.log(answer)
        # (x)+ is at most e^(sx - 1)/s, and (1 - e^-x)+ is at most one of it
        rise -= np.log(s) + 1 if not self.losses else np.maximum(np.log(s) + 1, 0.0)
        distance = np.abs(s - s[at])
        up, down = slice(at + 1, None), slice(0, at)
        sides = [np.min(rise[side] / distance[side]) for side in (up, down) if rise[side].size]
        return max(max(sides, default=0.0), 2.0 / float(s[at]))

    @staticmethod
    def _last(theta: float, noise: Numbers, answer: float) -> float:
        """A frequency beyond which the noise leaves next to nothing."""
        normal, laplace = float(noise.normal), float(noise.laplace)
        for y in np.geomspace(0.5, 12.0, 80) / normal:
            if _tail(float(y), normal, laplace, theta) <= math.exp(_NEGLIGIBLE) * answer:
                return float(y)
        return float(12.0 / normal)
