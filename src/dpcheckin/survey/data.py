"""Clients' values from files, and what becomes of clients that have none.

A CSV file has a header and one client a line; a JSON file is a list of objects or has one object a line. A value is
missing where there is nothing: an empty cell, None, NaN, pandas' NA; of a number also what spreadsheets write for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.files import csv_lines
from dpcheckin.options import listed
from dpcheckin.survey.questions import MISSING
from dpcheckin.survey.questions.query import no_value

CATEGORY = "missing"
_NO_NUMBER = {"na", "n/a", "nan", "null", "none", "-", "#n/a"}
_TEXTS = ("histogram", "heavy-hitters")  # where "NA" may well be somebody's answer


def settled(values: Any, kind: str, how: str) -> tuple[Any, str]:
    """Clients' values without missing ones, and a sentence about what was done; empty where none is missing.

    `kind` is that of the question, `how` one of `MISSING`.

    >>> settled([3.0, None, 4.0], "mean", "drop")[1]
    '1 of 3 clients has no value and is left out: figures are about the others, and who has one counts as known'
    """
    if how not in MISSING:
        raise InvalidParameter("missing", how, listed(MISSING))
    if how == "category" and kind != "histogram":
        raise InvalidParameter("missing", how, "refuse or drop, as only a histogram has room for one more")
    given = values.to_numpy() if hasattr(values, "to_numpy") else values
    array = given if isinstance(given, np.ndarray) else np.array(given, dtype=object)
    each = _gone(array, kind not in _TEXTS)
    gone: NDArray[np.bool_] = np.asarray(np.any(each, axis=tuple(range(1, each.ndim))))
    count = int(gone.sum())
    if not count:
        return values, ""
    if how == "refuse":
        place = int(np.argmax(gone))
        others = "drop" if kind != "histogram" else "drop or category"
        raise no_value(array[place], place, f"a value of every client, or missing = {others}")
    has = "has no value and is" if count == 1 else "have no value and are"
    told = f"{count:,} of {len(array):,} clients {has}"
    if how == "category":
        named = np.where(each, CATEGORY, array.astype(str))
        return named, f"{told} counted as {CATEGORY!r}, a category that hides like any other"
    if count == len(array):
        raise InvalidParameter("data", f"{count:,} values", "at least one that is not missing")
    kept = np.array(array[~gone].tolist())  # whatever kind of array they make without the others
    return kept, f"{told} left out: figures are about the others, and who has one counts as known"


def _gone(array: NDArray[Any], numbers: bool) -> NDArray[np.bool_]:
    """Where an array has no value."""
    if array.dtype.kind == "f":
        return np.asarray(np.isnan(array))
    if array.dtype.kind not in "OUS":
        return np.zeros(array.shape, bool)

    def none(value: Any) -> bool:
        if isinstance(value, str):
            word = value.strip().lower()
            return not word or (numbers and word in _NO_NUMBER)
        return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)

    return np.array([none(value) for value in array.ravel()], dtype=bool).reshape(array.shape)


def read_columns(path: Path, columns: tuple[str, ...], empty: bool = False) -> NDArray[Any]:
    """The columns of a CSV or JSON file (path) side by side; of CSV as text without blanks round it.

    Empty values are refused unless `empty` allows them.
    """
    if not path.is_file():
        raise InvalidParameter("data", str(path), "a CSV file with a header, or a JSON file")
    if path.suffix.lower() in (".json", ".jsonl", ".ndjson"):
        rows = [_row(entry, columns, place) for place, entry in enumerate(_entries(path), 1)]
    else:
        with csv_lines(path) as lines:
            rows = list(_rows(lines, columns, empty))
    if not rows:
        raise InvalidParameter("data", str(path), "at least one client")
    return np.array(rows) if isinstance(rows[0][0], str) and None not in rows[0] else np.array(rows, dtype=object)


def _entries(path: Path) -> list[Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
        found = [json.loads(line) for line in text.splitlines() if line.strip()] if path.suffix != ".json" else None
        return list(json.loads(text)) if found is None else found
    except (OSError, ValueError, TypeError) as problem:
        raise InvalidParameter("data", str(path), f"a list of JSON objects, or one a line ({problem})") from None


def _row(entry: Any, columns: tuple[str, ...], place: int) -> list[Any]:
    if not isinstance(entry, dict):
        raise InvalidParameter("data", f"entry {place:,}", f"an object with {', '.join(columns)}")
    return [entry.get(column) for column in columns]


def _rows(lines: Iterator[list[str]], columns: tuple[str, ...], empty: bool) -> Iterator[list[str]]:
    header = [name.strip() for name in next(lines, [])]
    for column in columns:
        if header.count(column) != 1:
            allowed = f"one of {', '.join(header) or 'none'}, once in the header, which is the first line"
            raise InvalidParameter("column", column, allowed)
    places = [header.index(column) for column in columns]
    for number, line in enumerate(lines, start=2):
        if not line:
            continue
        if [cell.strip() for cell in line] == header:
            raise InvalidParameter("data", f"line {number:,}", "one header only: a second one has to go")
        row = [line[at].strip() if at < len(line) else "" for at in places]
        if not all(row) and not empty:
            absent = columns[row.index("")]
            raise InvalidParameter("data", f"line {number:,}", f"a value of {absent}, or --missing drop")
        yield row
