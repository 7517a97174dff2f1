"""Files that are whole or not there: written beside, flushed to the disk, and renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def replacing(path: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """A file to write that gets its name when it is whole; a crash leaves what was there before.

    Until then it is named after the process, for two may write the same result.
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
