"""Clients' own windows of random check-ins, from a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning.data.tables import read_table
from dpcheckin.protocols import ClientWindows


def read_windows(path: Path) -> ClientWindows:
    """Windows from a table with the columns first, last and, if not 1, probability.

    Args:
        path: of the table, one row for each client; slots are counted from 0.
    """
    table = read_table(path)
    for column in ("first", "last"):
        if column not in table.columns:
            raise InvalidParameter("windows", str(path), f"a table with a column {column!r}")
    columns = {
        name: np.asarray(table.columns[name])
        for name in ("first", "last", "probability")
        if name in table.columns
    }
    for name, values in columns.items():
        if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
            raise InvalidParameter("windows", str(path), f"numbers in column {name!r}")
    ends = [columns[name] for name in ("first", "last")]
    if any((end != np.round(end)).any() for end in ends) or (ends[0] > ends[1]).any():
        raise InvalidParameter("windows", str(path), "whole numbers with first ≤ last")
    slots = [range(int(a), int(b) + 1) for a, b in zip(*ends, strict=True)]
    return ClientWindows(slots, columns.get("probability", np.ones(len(slots))).tolist())
