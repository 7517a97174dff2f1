"""Backup files: JSON lines between a first one that says what they are and a last one with their digest. For their
owner's eyes only; written whole or not at all, read whole or not at all.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dpcheckin.errors import InvalidParameter, ServiceError
from dpcheckin.service.storage.files import open_fresh
from dpcheckin.service.wire.canonical import canonical, parse
from dpcheckin.service.wire.problems import Malformed

FORMAT = 1
_LONGEST_LINE = 1 << 34


class BackupDamaged(ServiceError):
    """The file is not a backup, or not what was written."""


def write_backup(file: Path, kind: str, records: Iterable[dict[str, Any]]) -> int:
    """Write a new file, durably, with the `records` of a `kind` of party in the order they will be read; how many it
    holds.
    """
    if file.exists() or not file.absolute().parent.is_dir():
        raise InvalidParameter("out", str(file), "a new file in a folder that exists")
    fresh = file.with_name(file.name + ".new")
    count, running = 0, hashlib.sha256()
    descriptor = open_fresh(fresh)
    try:
        with os.fdopen(descriptor, "wb") as out:
            for record in ({"backup": kind, "format": FORMAT}, *records):
                line = canonical(record) + b"\n"
                running.update(line)
                out.write(line)
                count += 1
            out.write(canonical({"digest": running.hexdigest(), "lines": count}) + b"\n")
            out.flush()
            os.fsync(out.fileno())
        os.replace(fresh, file)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    return count - 1


def read_backup(file: Path, kind: str) -> list[dict[str, Any]]:
    """The records that `write_backup` wrote to a `file`, if its digest holds and it is of a party of this `kind`."""
    try:
        content = file.read_bytes()
    except OSError as problem:
        raise InvalidParameter("from", str(file), f"a backup ({problem.strerror})") from None
    body, _, last = content.removesuffix(b"\n").rpartition(b"\n")
    try:
        end = parse(last)
        lines = [parse(line, _LONGEST_LINE) for line in body.splitlines()]
        computed = {"digest": hashlib.sha256(body + b"\n").hexdigest(), "lines": len(lines)}
        if end != computed or not content.endswith(b"\n"):
            raise BackupDamaged(f"{file} is not the backup that was written")
        first = lines[0]
    except (Malformed, IndexError):
        raise BackupDamaged(f"{file} is no backup, or not a whole one") from None
    if not isinstance(first, dict) or first.get("backup") != kind:
        raise BackupDamaged(f"{file} is no {kind}'s backup")
    if first.get("format") != FORMAT:
        raise BackupDamaged(f"{file} is of format {first.get('format')!r}, known is {FORMAT}")
    return lines[1:]
