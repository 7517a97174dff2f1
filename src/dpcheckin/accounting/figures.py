"""Many figures at once: brackets in the shape of the question, and bounds of a whole delta(epsilon)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcheckin.accounting.engine.arrays import FloatArray
from dpcheckin.accounting.statements import Bracket
from dpcheckin.display import Tabular, axes_for, legend_beside
from dpcheckin.numerals import rounded_up


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
