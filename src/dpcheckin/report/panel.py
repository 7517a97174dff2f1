"""What a reproduced table or figure is: rows, columns of figures, and sentences about them.

A panel knows how to compute each of its cells but not when, where or how often: caching, progress
and drawing live beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dpcheckin.accounting.figures import Kind

Cell = float | None
Cells = Mapping[tuple[str, str], Cell]


@dataclass(frozen=True)
class Row:
    """One row of a table or one abscissa of a figure, with the parameters its cells need."""

    label: str
    x: float | None = None
    parameters: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Column:
    """One column or curve; ``compute`` returns None where the bound does not apply."""

    label: str
    kind: Kind
    compute: Callable[[Mapping[str, float]], Cell]
    printed: bool = False
    """True for figures copied from the paper, shown so that ours can be held against them."""
    source: str = ""
    """Paper and theorem, where the label does not say so."""


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


def column_values(panel: Panel, cells: Cells, label: str) -> list[Cell]:
    """One column, top to bottom."""
    return [cells[(row.label, label)] for row in panel.rows]
