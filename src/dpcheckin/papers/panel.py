"""What a reproduced table or figure is: rows, columns of figures, and sentences about them.

A panel knows how to compute each of its cells but not when, where or how often: caching, progress
and drawing are `report`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from dpcheckin.accounting.figures import Kind

Cell = float | None
Cells = Mapping[tuple[str, str], Cell]
Parameters = Mapping[str, float]


@dataclass(frozen=True)
class Row:
    """One row of a table or one abscissa of a figure, with the parameters its cells need."""

    label: str
    x: float | None = None
    parameters: Parameters = field(default_factory=dict)


def rows_over(
    name: str, values: Iterable[float], shown: str = "{}", **fixed: float
) -> tuple[Row, ...]:
    """The rows of a picture along one parameter.

    Args:
        name: of the parameter.
        values: of it.
        shown: format of a row's label.
        fixed: the other parameters.
    """
    return tuple(Row(shown.format(v), float(v), {**fixed, name: v}) for v in values)


@dataclass(frozen=True)
class Column:
    """One column or curve.

    Args:
        label: its name.
        kind: what its figures are worth.
        compute: returns None where the bound does not apply.
        printed: figures copied from the paper, shown so that ours can be held against them.
        source: paper and theorem, where the label does not say so.
        ours: what is proved here, drawn in black.
    """

    label: str
    kind: Kind
    compute: Callable[[Parameters], Cell]
    printed: bool = False
    source: str = ""
    ours: bool = False


def printed(label: str, key: str, kind: Kind) -> Column:
    """A column copied from the paper; its figures are among the rows' parameters.

    Args:
        label: its name.
        key: of its figures.
        kind: what they are worth.
    """
    return Column(label, kind, lambda p: p.get(key), printed=True)


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
