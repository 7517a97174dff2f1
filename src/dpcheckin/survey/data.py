"""One column of a CSV file, one value a client."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter


def _opened(path: Path) -> TextIO:
    # spreadsheets put a byte order mark in front of the header: utf-8-sig takes it off
    if path.suffix == ".gz":
        return gzip.open(path, "rt", newline="", encoding="utf-8-sig")
    return path.open(newline="", encoding="utf-8-sig")


def read_column(path: Path, column: str) -> NDArray[np.str_]:
    """The values of a column as text, without blanks round them; empty ones are refused.

    Args:
        path: a CSV file with a header, perhaps gzipped (.gz).
        column: its name in the header.
    """
    return read_columns(path, (column,))[:, 0]


def read_columns(path: Path, columns: tuple[str, ...]) -> NDArray[np.str_]:
    """Several columns side by side.

    Args:
        path: a CSV file with a header, perhaps gzipped (.gz).
        columns: their names in the header.
    """
    if not path.is_file():
        raise InvalidParameter("data", str(path), "a CSV file with a header")
    try:
        with _opened(path) as stream:
            rows = _rows(csv.reader(stream, skipinitialspace=True, strict=True), columns)
    except (OSError, EOFError, UnicodeDecodeError, csv.Error, zlib.error) as problem:
        allowed = f"a readable CSV file in UTF-8 ({problem})"
        raise InvalidParameter("data", str(path), allowed) from None
    if not rows:
        raise InvalidParameter("data", str(path), "at least one line under the header")
    return np.array(rows)


def _rows(lines: Iterator[list[str]], columns: tuple[str, ...]) -> list[list[str]]:
    header = [name.strip() for name in next(lines, [])]
    for column in columns:
        if header.count(column) != 1:
            allowed = f"one of {', '.join(header) or 'none'}, once in the header"
            raise InvalidParameter("column", column, allowed)
    places = [header.index(column) for column in columns]
    rows = []
    for number, line in enumerate(lines, start=2):
        if not line:
            continue
        row = [line[at].strip() if at < len(line) else "" for at in places]
        if not all(row):
            empty = columns[row.index("")]
            raise InvalidParameter("data", f"line {number}", f"a value of {empty}")
        rows.append(row)
    return rows
