"""Certified epsilon along one parameter, as a table and a plot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.accounting import Brackets, Kind, LowerBound
from dpcheckin.display import Tabular, axes_for, legend_beside
from dpcheckin.numerals import written


@dataclass(frozen=True, eq=False)
class Sweep(Tabular):
    """Certified epsilon for many values of one parameter.

    As an array it is its certified figures, `sweep.epsilon.upper`.

    Args:
        parameter: What varies: rounds, delta, rate, …
        values: Of the parameter.
        epsilon: Between certified bounds, one for each value.
        least: What no guarantee can be smaller than, at one value; None where nothing is known.
    """

    parameter: str
    values: NDArray[Any]
    epsilon: Brackets
    least: Callable[[Any], LowerBound | None] = field(repr=False)

    @cached_property
    def lower_bounds(self) -> NDArray[np.float64]:
        """Proven lower bounds, one for each value; NaN where nothing is known."""
        found = [self.least(value) for value in self.values.tolist()]
        return np.array([np.nan if one is None else one.epsilon.lower for one in found])

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self.epsilon.upper, dtype=dtype)

    def records(self) -> list[dict[str, Any]]:
        """Rows of the table: the parameter, and epsilon between its bounds."""
        return [
            {self.parameter: value, "epsilon": one.upper, "epsilon_at_least": one.lower}
            for value, one in zip(self.values.tolist(), self.epsilon, strict=True)
        ]

    def shown(self) -> list[dict[str, str]]:
        return [
            {
                self.parameter.replace("_", " "): written(row[self.parameter]),
                "ε (certified)": Kind.GUARANTEE.figure(row["epsilon"]),
            }
            for row in self.records()
        ]

    def plot(self, axes: Any = None, *, lower_bound: bool = False) -> Any:
        """Certified epsilon against the parameter.

        Args:
            axes: Of matplotlib, to draw on; left out, a new figure.
            lower_bound: Draw the proven lower bounds too, which takes longer.
        """
        axes = axes_for(axes, xlabel=self.parameter.replace("_", " "), ylabel="ε")
        order = np.argsort(self.values)
        x = self.values[order]
        axes.plot(
            x, self.epsilon.upper[order], color="#1b9e4b", marker="o", ms=3, label="certified"
        )
        if lower_bound:
            least = self.lower_bounds[order]
            axes.plot(x, least, color="#1f5fbf", ls=":", label="proven lower bound")
        if x.size > 2 and x[0] > 0 and x[-1] / x[0] > 20:
            axes.set_xscale("log")
            axes.set_yscale("log")
        legend_beside(axes)
        return axes
