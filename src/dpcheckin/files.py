"""Files: written whole or not at all, and tables read strictly."""

from __future__ import annotations

import csv
import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from dpcheckin.errors import InvalidParameter


@contextmanager
def replacing(path: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """A file to write (in this mode) that gets its name, path, when it is whole; a crash leaves what was there before.

    It is written beside, flushed to the disk and renamed. Until then it is named after the process, for two may write
    the same result.
    """
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    with open(fresh, mode, newline=None if "b" in mode else "") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def csv_lines(path: Path) -> Iterator[Iterator[list[str]]]:
    """The lines of a CSV file, perhaps gzipped; one that cannot be read is refused."""
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        # spreadsheets put a byte order mark in front of the header: utf-8-sig takes it off
        with opened(path, "rt", encoding="utf-8-sig", newline="") as stream:
            yield csv.reader(stream, skipinitialspace=True, strict=True)
    except (OSError, EOFError, UnicodeDecodeError, csv.Error, zlib.error) as problem:
        raise InvalidParameter("data", str(path), f"a readable CSV file in UTF-8 ({problem})") from None
