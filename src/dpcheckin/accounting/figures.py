"""Figures: what a number is worth, how it may be printed, and between which bounds it lies.

A number is a `Bracket`, many are `Brackets`, bounds of a whole delta(epsilon) a `Profile`; a `Kind` says what they are
worth and how they are rounded when printed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from enum import StrEnum
from typing import Any

import numpy as np

from dpcheckin.accounting.engine.arrays import FloatArray
from dpcheckin.display import Tabular, axes_for, legend_beside
from dpcheckin.errors import NumericalFailure
from dpcheckin.numerals import written


class Kind(StrEnum):
    """What a number is worth."""

    GUARANTEE = "guarantee"
    LOWER_BOUND = "lower bound"
    CONJECTURE = "conjecture"
    REFUTED = "refuted claim"

    def figure(self, value: float | None, digits: int = 4) -> str:
        """The `value` in so many `digits`, as it may be printed: rounding never turns it into a stronger claim."""
        if value is None:
            return "–"
        if self is Kind.GUARANTEE:
            return rounded_up(value, digits)
        return rounded_down(value, digits) if self is Kind.LOWER_BOUND else written(value, digits)


def rounded_up(value: float, digits: int = 4) -> str:
    """The `value` in so many `digits`, rounded up: a printed guarantee is never below the certified one.

    >>> rounded_up(0.07353001), rounded_up(0.1), rounded_up(12345.6), rounded_up(0.0)
    ('0.07354', '0.1', '12,350', '0')
    """
    return _rounded(value, digits, ROUND_CEILING)


def rounded_down(value: float, digits: int = 4) -> str:
    """The `value` in so many `digits`, rounded down, for lower bounds.

    >>> rounded_down(0.07353999), rounded_down(0.3)
    ('0.07353', '0.3')
    """
    return _rounded(value, digits, ROUND_FLOOR)


def _rounded(value: float, digits: int, direction: str) -> str:
    if not math.isfinite(value):
        return f"{value:g}"
    # The shortest decimal that names this very float: 0.1 stays 0.1 and does not become 0.1001.
    exact = Decimal(repr(float(value)))
    shown = Context(prec=digits, rounding=direction).plus(exact)
    return written(float(shown), digits)


@dataclass(frozen=True, slots=True)
class Bracket:
    """The closed interval [lower, upper]; `upper` is the end a guarantee may quote.

    >>> Bracket(0.646, 0.647).relative_width < 0.002
    True
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        if math.isnan(self.lower) or math.isnan(self.upper):
            raise NumericalFailure("a bound came out as NaN; no figure can be stated")
        if not self.lower <= self.upper:
            raise NumericalFailure(f"bounds crossed: lower {self.lower!r} > upper {self.upper!r}")
        if not self.upper >= 0.0 or self.lower == math.inf:
            raise NumericalFailure(f"no figure lies between {self.lower!r} and {self.upper!r}")

    @staticmethod
    def of(lower: float, upper: float) -> Bracket:
        """The interval from `lower` to `upper`; ends that differ by rounding alone are one."""
        if upper < lower <= upper + 1e-12 + 1e-9 * upper:
            lower = upper
        return Bracket(lower, upper)

    @property
    def relative_width(self) -> float:
        """(upper - lower) / upper; 0 when both ends are 0, 1 when only the upper is known."""
        if self.upper == self.lower:
            return 0.0
        if math.isinf(self.upper):
            return 1.0
        return (self.upper - self.lower) / self.upper


def is_array(value: object) -> bool:
    """Are these many numbers, and not one?"""
    return isinstance(value, list | tuple | range) or np.ndim(value) > 0  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Brackets:
    """Closed intervals in the shape of the question; `upper` is what a guarantee may quote.

    As an array it is its upper ends, so that it can be plotted or compared as it is.

    >>> found = Brackets.of([Bracket(0.1, 0.2), Bracket(0.3, 0.4)])
    >>> found.upper.tolist(), len(found), found[1]
    ([0.2, 0.4], 2, Bracket(lower=0.3, upper=0.4))
    """

    lower: FloatArray
    upper: FloatArray

    @staticmethod
    def of(found: Sequence[Bracket], shape: tuple[int, ...] | None = None) -> Brackets:
        """One array of each end of those `found`, in the given `shape`."""
        ends = [np.array([getattr(one, end) for one in found]) for end in ("lower", "upper")]
        return Brackets(*(values.reshape(shape or (-1,)) for values in ends))

    def __len__(self) -> int:
        return len(self.upper)

    def __getitem__(self, index: int) -> Bracket:
        return Bracket(float(self.lower.flat[index]), float(self.upper.flat[index]))

    def __iter__(self) -> Iterator[Bracket]:
        return (self[i] for i in range(self.upper.size))

    def __array__(self, dtype: object = None, copy: bool | None = None) -> FloatArray:
        return np.array(self.upper, dtype=dtype, copy=True if copy is None else copy)  # type: ignore[call-overload,no-any-return]


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
        return [{"ε": rounded_up(row["epsilon"]), "δ(ε), certified": rounded_up(row["delta"])} for row in rows]

    def plot(self, axes: Any = None) -> Any:
        """δ(ε), on a logarithmic scale.

        `axes`: of matplotlib, to draw on; left out, a new figure.
        """
        axes = axes_for(axes, xlabel="ε", ylabel="δ(ε)")
        axes.plot(self.epsilons, np.where(self.deltas > 0.0, self.deltas, np.nan), color="#1b9e4b", label="certified")
        axes.set_yscale("log")
        legend_beside(axes)
        return axes
