"""What a reproduced table or figure is: rows, columns of figures, and sentences about them.

A panel knows how to compute each of its cells but not when, where or how often: caching, progress and drawing are
`report`'s. The parameters of a row have the names of `entry.Setting`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

from dpcheckin.numerals import Kind
from dpcheckin.papers.entry import Computed, epsilon_of

Cell = float | None
Cells = Mapping[tuple[str, str], Cell]
Parameters = Mapping[str, float]


@dataclass(frozen=True)
class Row:
    """One row of a table or one abscissa of a figure, with the parameters its cells need."""

    label: str
    x: float | None = None
    parameters: Parameters = field(default_factory=dict)


Rows = Sequence[Row]


def rows_over(name: str, values: Iterable[float], shown: str = "{}", /, **fixed: float) -> tuple[Row, ...]:
    """The rows of a picture along the values of the parameter of this name, labelled as shown; fixed are the others."""
    return tuple(Row(shown.format(v), float(v), {**fixed, name: v}) for v in values)


@dataclass(frozen=True)
class Column:
    """One column or curve; `compute` returns None where the bound does not apply.

    `printed` figures are copied from the paper, so that ours can be held against them; `source` is paper and theorem,
    where the label does not say so; what is `ours` is proved here, and drawn in black.
    """

    label: str
    kind: Kind
    compute: Callable[[Parameters], Cell]
    printed: bool = False
    source: str = ""
    ours: bool = False


def called(function: Callable[..., Any], p: Mapping[str, Any]) -> Any:
    """The function's value, given those of the parameters p that it asks for by name."""
    return function(**{name: p[name] for name in signature(function).parameters if name in p})


def column(label: str, kind: Kind, function: Callable[..., Computed]) -> Column:
    """A column with this label and kind of what a function computes of a row, see `entry.epsilon_of`."""

    def compute(p: Parameters) -> float:
        return epsilon_of(called(function, p), kind, int(p.get("rounds", 1)), p["delta"])

    return Column(label, kind, compute)


@dataclass(frozen=True)
class Panel:
    """A table (rows without x) or one picture (rows with x)."""

    name: str
    title: str
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    row_title: str
    about: str
    remarks: Callable[[Cells], list[str]] = lambda cells: []
    log_x: bool = False
    log_y: bool = True

    @property
    def is_figure(self) -> bool:
        return all(row.x is not None for row in self.rows)
