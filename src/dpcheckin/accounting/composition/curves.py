"""Many one-round curves composed: certified epsilon and delta, one question or many at once.

Questions share what they can. One discretisation serves deltas of several decades, one transform
deltas near one another, and figures are the same to rounding as those asked for one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcheckin.accounting.engine.arrays import FloatArray
from dpcheckin.accounting.engine.compose import compose
from dpcheckin.accounting.engine.curves import Curve, FunctionCurve, crossing
from dpcheckin.accounting.engine.grids import FINE, Accuracy, Grids, Sides
from dpcheckin.accounting.engine.sampling import refined
from dpcheckin.accounting.figures import Bracket, rounded_up
from dpcheckin.accounting.rounds.base import SMALLEST_DELTA, TAIL_SHARE
from dpcheckin.display import Tabular, axes_for, legend_beside

# Deltas this many decades apart may share a grid, made for the smallest, or a transform: that
# moves an epsilon by less than a millionth.
DECADES_OF_A_GRID, DECADES_OF_A_TILT = 6.0, 4.0
PLACES = 2_000  # of a whole profile

Curves = list[tuple[Curve, int]]


class CurveComposition:
    """Many one-round curves composed; results are kept between questions.

    Args:
        make: The curves and their counts, good for deltas down to its argument.
        total: Number of rounds.
        most: A loss that all of them together never exceed.
        accuracy: How fine and how long grids may be.
    """

    def __init__(
        self,
        make: Callable[[float], Curves],
        total: int,
        most: float,
        accuracy: Accuracy = FINE,
    ) -> None:
        self._make, self.total, self._most, self._accuracy = make, total, most, accuracy
        self._kept: dict[float, Curves] = {}
        self._sides: dict[int, Sides] = {}

    def epsilon(self, delta: float) -> Bracket:
        """Smallest epsilon for this delta, between certified bounds (upper may be infinite)."""
        if self.total == 1:  # only rounds with one curve come here alone
            return self._single_epsilon(delta)
        upper = self.upper(delta)
        below = self._distributions(delta).below
        lower = compose(below, delta=delta).epsilon(delta, upper=False)
        return bracket(min(lower, self._most), upper)

    def upper(self, delta: float) -> float:
        """The upper end of `epsilon` alone, which is there sooner."""
        if self.total == 1:
            return self._single_epsilon(delta).upper
        above = self._distributions(delta).above
        upper = compose(above, delta=delta).epsilon(delta, upper=True)
        return min(upper, self._most)

    def epsilons(self, deltas: Sequence[float]) -> list[Bracket]:
        """The same for many deltas: neighbours share discretisation and transform."""
        if self.total == 1:
            return [self.epsilon(delta) for delta in deltas]
        found: dict[float, Bracket] = {}
        for alike in _spans(deltas, DECADES_OF_A_GRID):
            both = self._distributions(alike[0])
            for near in _spans(alike, DECADES_OF_A_TILT):
                middle = math.sqrt(near[0] * near[-1])
                tails = [compose(parts, delta=middle) for parts in (both.above, both.below)]
                for delta in near:
                    upper = tails[0].epsilon(delta, upper=True)
                    lower = tails[1].epsilon(delta, upper=False)
                    found[delta] = bracket(min(lower, self._most), min(upper, self._most))
        return [found[delta] for delta in deltas]

    def profile(self, smallest: float) -> Profile:
        """delta(epsilon) from zero to where it falls below `smallest`, from above.

        The larger of both orders of the two datasets; between the places it is at most linear in
        exp(epsilon).
        """
        sides = [self]
        if not all(curve.symmetric for curve, _ in self._curves(SMALLEST_DELTA)):
            sides.append(self._swapped())
        profiles = [side._one_profile(smallest) for side in sides]
        end = max(float(profile.epsilons[-1]) for profile in profiles)
        epsilons = np.linspace(0.0, end, PLACES)
        deltas = np.max([profile.at(epsilons) for profile in profiles], axis=0)
        if math.isfinite(self._most) and self._most <= end:
            deltas[epsilons >= self._most] = 0.0
        return Profile(epsilons, deltas)

    def _one_profile(self, smallest: float) -> Profile:
        above = self._distributions(smallest).above
        tails = [
            compose(above, delta=delta)
            for delta in np.geomspace(0.3, smallest, max(2, math.ceil(-math.log10(smallest) / 3)))
        ]
        end = min(tail.epsilon(smallest, upper=True) for tail in tails)
        if math.isinf(end):
            end = max(tail.furthest for tail in tails)
        epsilons = np.linspace(0.0, min(end, self._most) or 1.0, PLACES)
        return Profile(
            epsilons, np.min([tail.deltas(epsilons, upper=True) for tail in tails], axis=0)
        )

    def refined_epsilon(self, delta: float) -> Bracket:
        """The same for curves given as functions, on a grid refined until the bracket is narrow."""
        curves = [
            (c, n) for c, n in self._curves(delta / self.total) if isinstance(c, FunctionCurve)
        ]
        lower, upper = refined(curves, delta)
        return Bracket(min(lower, self._most), min(upper, self._most))

    def delta(self, epsilon: float) -> Bracket:
        """delta for this epsilon, between certified bounds."""
        if epsilon >= self._most:
            return Bracket(0.0, 0.0)
        curves = self._curves(SMALLEST_DELTA)
        if not curves:
            return Bracket(0.0, 0.0)
        if sum(n for _, n in curves) == 1:
            curve = curves[0][0]
            lower = max(curve.lower_at(epsilon), curve.swapped().lower_at(epsilon))
            upper = max(curve.upper_at(epsilon), curve.swapped().upper_at(epsilon))
            return Bracket(lower, max(upper, lower))
        found = self._composed_delta(epsilon)
        if all(curve.symmetric for curve, _ in curves):
            return found
        other = self._swapped()
        turned = other._composed_delta(epsilon)
        return Bracket(max(found.lower, turned.lower), max(found.upper, turned.upper))

    def _swapped(self) -> CurveComposition:
        """The two datasets in the other order."""

        def make(smallest: float) -> Curves:
            return [(curve.swapped(), n) for curve, n in self._make(smallest)]

        return CurveComposition(make, self.total, self._most, self._accuracy)

    def _composed_delta(self, epsilon: float) -> Bracket:
        magnitude = 1e-9
        for _ in range(12):
            both = self._distributions(magnitude)
            upper = compose(both.above, epsilon=epsilon).delta(epsilon, upper=True)
            # the tails cut off must not be what the answer consists of
            if upper >= magnitude or magnitude <= 1e-30:
                break
            magnitude = max(upper * 0.1, magnitude * 1e-4, 1e-30)
        lower = compose(both.below, epsilon=epsilon).delta(epsilon, upper=False)
        return Bracket(lower, upper)

    def _curves(self, smallest: float) -> Curves:
        if smallest not in self._kept:
            self._kept[smallest] = self._make(smallest)
        return self._kept[smallest]

    def _single_epsilon(self, delta: float) -> Bracket:
        """One round needs no grid."""
        smallest = TAIL_SHARE * 10.0 ** math.floor(math.log10(delta))
        curve = self._curves(smallest)[0][0]
        sides = [
            crossing(curve.lower_at, delta, self._most, up=False),
            crossing(curve.upper_at, delta, self._most, up=True),
        ]
        return Bracket(min(sides), sides[1])

    def _distributions(self, delta: float) -> Sides:
        key = math.floor(math.log10(delta))
        if key not in self._sides:
            self._sides[key] = self._discretised(10.0**key)
        return self._sides[key]

    def _discretised(self, delta: float) -> Sides:
        tolerance = TAIL_SHARE * delta / self.total
        curves = self._curves(tolerance)
        return Grids(curves, tolerance, self._accuracy).sides(sum(n for _, n in curves))


@dataclass(frozen=True, slots=True)
class Profile(Tabular):
    """Bounds of a convex, falling delta(epsilon) at increasing places, the first at zero."""

    epsilons: FloatArray
    deltas: FloatArray

    def at(self, epsilons: FloatArray) -> FloatArray:
        """Upper bounds in between: chords in exp(epsilon), and the last value beyond the end."""
        at = np.searchsorted(self.epsilons, epsilons, side="right") - 1
        i = np.clip(at, 0, self.epsilons.size - 2)
        gap = self.epsilons[i + 1] - self.epsilons[i]
        inside = np.clip(epsilons - self.epsilons[i], 0.0, gap)
        # expm1(inside) / expm1(gap), without their overflow
        share = np.exp(inside - gap) * np.expm1(-inside) / np.expm1(-gap)
        return np.asarray((1.0 - share) * self.deltas[i] + share * self.deltas[i + 1])

    def records(self) -> list[dict[str, float]]:
        """Rows of the table: epsilon and delta."""
        pairs = zip(self.epsilons.tolist(), self.deltas.tolist(), strict=True)
        return [{"epsilon": epsilon, "delta": delta} for epsilon, delta in pairs]

    def shown(self) -> list[dict[str, str]]:
        rows = self.records()[:: max(len(self.epsilons) // 12, 1)]
        return [
            {"ε": rounded_up(row["epsilon"]), "δ(ε), certified": rounded_up(row["delta"])}
            for row in rows
        ]

    def plot(self, axes: Any = None) -> Any:
        """δ(ε), on a logarithmic scale.

        Args:
            axes: Of matplotlib, to draw on; left out, a new figure.
        """
        axes = axes_for(axes, xlabel="ε", ylabel="δ(ε)")
        axes.plot(
            self.epsilons,
            np.where(self.deltas > 0.0, self.deltas, np.nan),
            color="#1b9e4b",
            label="certified",
        )
        axes.set_yscale("log")
        legend_beside(axes)
        return axes


def _spans(deltas: Sequence[float], decades: float) -> list[list[float]]:
    """The deltas in increasing groups, each within so many decades of its smallest."""
    groups: list[list[float]] = []
    for delta in sorted(set(deltas)):
        if groups and delta <= groups[-1][0] * 10.0**decades:
            groups[-1].append(delta)
        else:
            groups.append([delta])
    return groups


def bracket(lower: float, upper: float) -> Bracket:
    """The bracket; ends that differ by rounding alone are one."""
    if upper < lower <= upper + 1e-12 + 1e-9 * upper:
        lower = upper
    return Bracket(lower, upper)
