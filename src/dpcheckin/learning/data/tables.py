"""Tables of records: CSV and parquet files, and folders with one file per client.

A table becomes arrays of numbers here, or one line that names file, column and row; what clients and classes are is
`data.own`'s business. The windows that clients choose for themselves come from such a table too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpcheckin.console import remark
from dpcheckin.display import needed
from dpcheckin.errors import InvalidParameter
from dpcheckin.files import csv_lines
from dpcheckin.options import meant
from dpcheckin.protocols import ClientWindows

Bounds = Mapping[str, tuple[float, float]]
Column = NDArray[Any]

_FILES = (".csv", ".csv.gz", ".parquet")
_SHOWN_COLUMNS = 12
_FEW, _UNSCALED = 20, 10.0  # records that show what a column is like; values that are as good as scaled


@dataclass(frozen=True)
class Choice:
    """Which columns of a table are what, see `client_data`."""

    target: str | None = None
    owner: str | None = None
    columns: tuple[str, ...] | None = None
    bounds: Bounds = field(default_factory=dict)

    def __post_init__(self) -> None:
        for column, (low, high) in self.bounds.items():
            if not (np.isfinite(low) and np.isfinite(high) and low < high):
                raise InvalidParameter("bounds", f"{column}={low:g}:{high:g}", "lowest < highest")


@dataclass(frozen=True)
class Table:
    """Columns of equal length by name, and what the table is called in messages."""

    name: str
    columns: Mapping[str, Column]
    owners: Column | None = None
    """The client of each row where the table itself says it (a folder of files)."""

    def records(self, choice: Choice, asks_owner: bool = True) -> tuple[NDArray[np.float64], Column, Column | None]:
        """Inputs (records, columns), targets, and owners if there are any, by a choice of columns.

        The owners of records to evaluate on do not matter: then `asks_owner` is False.
        """
        if choice.target is None:
            raise InvalidParameter("target", None, f"a column of {self.name}: {self._listed()}")
        targets = self._column("target", choice.target)
        owners = self.owners
        if choice.owner is not None and (asks_owner or choice.owner in self.columns):
            owners = self._column("owner", choice.owner)
            self._refuse_empty(choice.owner, owners)
        wanted = self._inputs(choice)
        for name in choice.bounds:
            self._column("bounds", name)
        inputs = [self._numbers(name, choice.bounds) for name in wanted]
        for name, values in zip(wanted, inputs, strict=True):
            if asks_owner and (doubt := _doubt(values)):
                remark(f"dpcheckin: column {name!r} of {self.name} {doubt}")
        if targets.dtype.kind in "OU":
            self._refuse_empty(choice.target, targets)
        if choice.target in choice.bounds:
            targets = self._numbers(choice.target, choice.bounds)
        if not len(targets):
            raise InvalidParameter("data", self.name, "a table with at least one row")
        return np.stack(inputs, axis=1), targets, owners

    def _inputs(self, choice: Choice) -> Sequence[str]:
        apart = {choice.target, choice.owner}
        if choice.columns is None:
            wanted = [name for name in self.columns if name not in apart]
        else:
            wanted = list(choice.columns)
            for name in wanted:
                self._column("columns", name)
                if name in apart:
                    raise InvalidParameter("columns", name, "columns beside target and owner")
        if not wanted:
            raise InvalidParameter("columns", "none", f"a column of {self.name} to learn from")
        return wanted

    def _listed(self) -> str:
        names = list(self.columns)
        more = ", …" if len(names) > _SHOWN_COLUMNS else ""
        return ", ".join(names[:_SHOWN_COLUMNS]) + more

    def _column(self, parameter: str, name: str) -> Column:
        if name not in self.columns:
            allowed = f"a column of {self.name}: {self._listed()}{meant(name, self.columns)}"
            raise InvalidParameter(parameter, name, allowed)
        return self.columns[name]

    def _refuse_empty(self, name: str, values: Column) -> None:
        for row, value in enumerate(values.tolist(), start=1):
            if value is None or value == "" or value != value:
                raise InvalidParameter("data", value, f"a value in column {name!r}, row {row} of {self.name}")

    def _numbers(self, name: str, bounds: Bounds) -> NDArray[np.float64]:
        values = self.columns[name]
        if values.dtype.kind not in "biuf":
            self._refuse_text(name, values)
        numbers = values.astype(np.float64)
        if (row := not_finite(numbers)) is not None:
            raise InvalidParameter(
                "data", float(numbers[row]), f"finite numbers in column {name!r}, row {row + 1} of {self.name}"
            )
        if name in bounds:
            low, high = bounds[name]
            numbers = 2 * (np.clip(numbers, low, high) - low) / (high - low) - 1
        return numbers

    def _refuse_text(self, name: str, values: Column) -> NoReturn:
        for row, value in enumerate(values.tolist(), start=1):
            try:
                float(value)
            except (TypeError, ValueError):
                raise InvalidParameter(
                    f"column {name}",
                    value,
                    f"a number in row {row:,} of {self.name}; encode it, say with --owner that it "
                    "names the client, or name the --columns to learn from",
                ) from None
        raise InvalidParameter("data", str(values.dtype), f"numbers in column {name!r}")


def _doubt(values: NDArray[np.float64]) -> str:
    """What makes a column one that will hardly have been meant: it is said before rounds are spent on it."""
    if len(values) < _FEW:
        return ""
    distinct, largest = np.unique(values), float(np.abs(values).max())
    gaps = np.diff(distinct)
    if not len(gaps):
        return f"is {values[0]:g} in every record: nothing can be learned from it"
    if len(distinct) == len(values) and np.median(gaps) == 1 and (gaps == np.round(gaps)).all():
        return "numbers the records: leave it out, or name it as the owner if it says whose they are"
    if largest <= _UNSCALED:
        return ""
    return (
        f"goes up to {largest:,.6g}, and clipped gradients will see little else: "
        "give bounds that are known beforehand, or scale it"
    )


def not_finite(rows: NDArray[Any]) -> int | None:
    """The first row that holds NaN or infinity."""
    finite = np.isfinite(rows).all(axis=tuple(range(1, rows.ndim)))
    return None if finite.all() else int(np.argmin(finite))


def is_table_file(source: str | Path) -> bool:
    """Is this a table's file, or a folder of them?"""
    path = Path(source).expanduser()
    return bool(_folder_files(path)) if path.is_dir() else path.name.lower().endswith(_FILES)


def _folder_files(folder: Path) -> list[Path]:
    files = (p for p in folder.iterdir() if p.is_file() and p.name.lower().endswith(_FILES))
    return sorted(files)


def read_table(path: Path) -> Table:
    """A file's table, or a folder's: one file per client, whose name is the owner."""
    path = path.expanduser()
    if not path.exists():
        raise InvalidParameter("data", str(path), "a file or folder that exists")
    if not path.is_dir():
        return _read_parquet(path) if path.suffix.lower() == ".parquet" else _read_csv(path)
    tables = [read_table(file) for file in _folder_files(path)]
    first = tables[0]
    for table in tables[1:]:
        if list(table.columns) != list(first.columns):
            raise InvalidParameter(
                "data", f"{path.name}/{table.name}", f"the columns of {first.name}: {first._listed()}"
            )
    merged = {name: _joined([table.columns[name] for table in tables]) for name in first.columns}
    rows = [len(next(iter(table.columns.values()))) for table in tables]
    return Table(path.name, merged, np.repeat([table.name for table in tables], rows))


def _joined(parts: Sequence[Column]) -> Column:
    if len({part.dtype.kind in "biuf" for part in parts}) > 1:  # numbers here, text there
        parts = [part.astype(object) for part in parts]
    return np.concatenate(parts)


def _read_csv(path: Path) -> Table:
    with csv_lines(path) as lines:
        rows = [row for row in lines if row]
    if len(rows) < 2:
        raise InvalidParameter("data", str(path), "a CSV file with a header and records")
    header, body = [name.strip() for name in rows[0]], rows[1:]
    twice = [name for name in header if header.count(name) > 1]
    if twice or "" in header:
        fault = f"two columns {twice[0]!r}" if twice else "a column without a name"
        raise InvalidParameter("data", f"{fault} in {path.name}", "one name for each column")
    for row, cells in enumerate(body, start=1):
        if len(cells) != len(header):
            raise InvalidParameter(
                "data", f"{len(cells)} cells in row {row:,} of {path.name}", f"{len(header)}, as in the header"
            )
    columns = zip(header, zip(*body, strict=True), strict=True)
    return Table(path.name, {name: _typed(cells) for name, cells in columns})


def _typed(cells: Sequence[str]) -> Column:
    """Numbers if every cell is one, otherwise text."""
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        return np.array([cell.strip() for cell in cells], dtype=object)


def _read_parquet(path: Path) -> Table:
    parquet, arrow = needed("pyarrow.parquet", "parquet"), needed("pyarrow", "parquet")
    try:
        table = parquet.read_table(path)
    except (OSError, arrow.ArrowException) as problem:
        reason = str(problem).splitlines()[0]
        raise InvalidParameter("data", str(path), f"a readable parquet file ({reason})") from None
    return Table(path.name, {name: table[name].to_numpy() for name in table.column_names})


def read_windows(path: Path) -> ClientWindows:
    """Windows from a table with the columns first, last (slots, from 0) and, if not 1, probability; a row a client."""
    columns = {"probability": np.ones(1), **read_table(path).columns}
    for name in ("first", "last", "probability"):
        if name not in columns:
            raise InvalidParameter("windows", str(path), f"a table with a column {name!r}")
        values = columns[name]
        if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
            raise InvalidParameter("windows", str(path), f"numbers in column {name!r}")
    first, last = columns["first"], columns["last"]
    whole = all(np.array_equal(end, np.round(end)) for end in (first, last))
    if not (whole and (first <= last).all()):
        raise InvalidParameter("windows", str(path), "whole numbers with first ≤ last")
    slots = [range(int(a), int(b) + 1) for a, b in zip(first, last, strict=True)]
    chosen = np.broadcast_to(columns["probability"], len(slots))
    return ClientWindows(slots, chosen.tolist())
