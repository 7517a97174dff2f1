"""From points to a pair, from pairs to the claim: hull in exact rationals, rounds in doubles."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.proof.trapezoid import Numbers, Numeric, Saddle

Point = dict[str, Any]
_NOISE = 0.004  # deviation of the extra mechanism, in deviations of the total loss
_MARGIN = 1e-8  # of a delta, above what doubles lose


def place(point: Point) -> tuple[Fraction, Fraction]:
    """(alpha, delta), exactly."""
    return Fraction(point["alpha"]), Fraction(point["delta"])


def hull(points: list[Point]) -> list[Point]:
    """The points, in order of alpha from 1, of the largest convex function below all, with a mass at loss zero."""
    kept: list[Point] = []
    for point in points:
        a, d = place(point)
        while len(kept) >= 2:
            (b, e), (c, f) = place(kept[-2]), place(kept[-1])
            if (f - e) * (a - c) < (d - f) * (c - b):
                break
            kept.pop()
        if kept and place(kept[-1])[1] <= d:
            continue  # it does not fall any more
        kept.append(point)
    while len(kept) > 1 and Law(kept).middle < 0:
        del kept[1]
    return kept


class Law:
    """The finite losses of the pair whose profile is the chords of these points."""

    def __init__(self, points: list[Point]) -> None:
        alphas, deltas = zip(*(place(point) for point in points), strict=True)
        self.slopes = [(deltas[i + 1] - deltas[i]) / (alphas[i + 1] - alphas[i]) for i in range(len(alphas) - 1)] + [
            Fraction(0)
        ]
        self.middle = 1 - deltas[0] + 2 * self.slopes[0]
        self._rises = np.array([float(a - 1) for a in alphas[1:]])
        self._masses = np.array([float(b - a) for a, b in zip(self.slopes, self.slopes[1:], strict=False)])
        self.infinite = float(deltas[-1])

    @cached_property
    def _losses(self) -> Array:
        return np.asarray(np.log1p(self._rises))

    @property
    def furthest(self) -> float:
        return float(self._losses.max(initial=1e-12))

    @property
    def variance(self) -> float:
        """Of the finite losses, about."""
        return float(((2 + self._rises) * self._masses) @ self._losses**2)

    def logs(self, z: Numeric) -> Numeric:
        """log E e^(zL): a loss l and its mirror image together lose no digits."""
        w = np.multiply.outer(z, self._losses)
        both = self._rises * np.expm1(w) + 4 * np.sinh(w / 2) ** 2
        change = both @ self._masses - self.infinite
        if not np.iscomplexobj(change):
            return np.asarray(np.log1p(change))
        real, imaginary = change.real, change.imag
        squared = np.maximum(2 * real + real * real + imaginary * imaginary, -1 + 1e-300)
        return np.asarray(0.5 * np.log1p(squared) + 1j * np.arctan2(imaginary, 1.0 + real))


@dataclass(frozen=True)
class Rounds:
    """All rounds of a run as pairs (`laws`), and how many rounds have each."""

    laws: tuple[tuple[Law, int], ...]

    @cached_property
    def infinite(self) -> float:
        """Probability of an infinite loss in some round."""
        return -math.expm1(math.fsum(n * math.log1p(-law.infinite) for law, n in self.laws))

    @cached_property
    def deviation(self) -> float:
        return math.sqrt(math.fsum(law.variance * n for law, n in self.laws))

    def _logs(self, z: Numeric) -> Numeric:
        total = 0.0 * z
        for law, count in self.laws:
            total = total + count * law.logs(z)
        return total

    def saddle(self, epsilon: float) -> Saddle:
        """The sum of the losses beyond epsilon."""
        normal = float(self.normal)
        furthest = max(law.furthest for law, _ in self.laws)

        def logs(z: Numeric) -> Numeric:
            return np.asarray(self._logs(z) + z * (0.5 * normal**2 - epsilon))

        return Saddle(logs, self.deviation, furthest, losses=True)

    @cached_property
    def normal(self) -> str:
        return f"{_NOISE * self.deviation:.4g}"

    def numbers(self, epsilon: float) -> Numbers:
        """Good numbers for a claim of about this epsilon."""
        return self.saddle(epsilon).numbers(float(self.normal))

    def smallest(self, delta: float, guess: float) -> tuple[float, Numbers]:
        """The least epsilon, near a `guess`, that is proved at this `delta`, with the numbers of its proof."""
        numbers = self.numbers(guess)
        epsilon = self._least(numbers, delta, guess)
        numbers = self.numbers(epsilon)
        return self._least(numbers, delta, epsilon), numbers

    def _least(self, numbers: Numbers, delta: float, guess: float) -> float:
        line = _Line(self, numbers)
        low, high = 0.0, guess
        while not line.delta(high) <= delta:
            low, high = high, 2 * high + self.deviation
            if high > 1e6:
                return math.inf
        while high - low > 1e-9 * high:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if line.delta(middle) <= delta else (middle, high)
        return high

    def delta(self, numbers: Numbers, epsilon: float) -> float:
        """The delta that these numbers prove at this epsilon."""
        return _Line(self, numbers).delta(epsilon)


class _Line:
    """The transform of all rounds on one line, for many an epsilon."""

    def __init__(self, rounds: Rounds, numbers: Numbers) -> None:
        self._z = numbers.line()
        saddle = rounds.saddle(0.0)
        self._logs = saddle.logs(self._z) + numbers.noise(self._z)
        self._kernel = numbers.weights() * saddle.kernel(self._z)
        self._beyond, self._infinite = numbers.beyond, rounds.infinite

    def delta(self, epsilon: float) -> float:
        logs = self._logs - epsilon * self._z
        top = float(logs[0].real)
        total = float(np.sum((np.exp(logs - top) * self._kernel).real)) + self._beyond
        grown = math.exp(top) if top < 700 else math.inf
        return (total * grown + self._infinite) * (1 + _MARGIN)
