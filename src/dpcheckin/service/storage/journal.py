"""An append-only file of entries that survives kill -9 and notices when it was changed.

One line of canonical JSON for each entry; each names the digest of the one before it. An entry is on disk (fsync)
before `append` returns. Beside the file stands its *head*, the number and digest of the last entry, written after each
append, so that a journal that lost its end is noticed too. At most one process has a journal open. What the entries
mean is for the ledgers built on it.

A crash may leave half a line, which nobody was told about: it is cut off. It may leave the head one entry behind: the
entry counts. Anything else is damage, and the journal refuses to open.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpcheckin.errors import ServiceError
from dpcheckin.service.storage.files import InUse, make_folder, replace_file, sync_folder, take_lock, write_all
from dpcheckin.service.wire.canonical import canonical, digest, parse
from dpcheckin.service.wire.problems import Malformed

START = "0" * 64
_HEAD_SLOT = 512


class JournalDamaged(ServiceError):
    """The file does not hold what was written to it."""


class JournalUnavailable(ServiceError):
    """The entry could not be made durable; it does not count as written."""


@dataclass(frozen=True)
class JournalEntry:
    """One entry, and the digest that stands for it and everything before it."""

    index: int
    body: dict[str, Any]
    digest: str


def _digest(index: int, previous: str, body: dict[str, Any]) -> str:
    return digest(canonical({"body": body, "index": index, "previous": previous})).hex()


def _line(entry: JournalEntry, previous: str) -> bytes:
    return canonical({"body": entry.body, "digest": entry.digest, "previous": previous}) + b"\n"


def _entries_in(content: bytes, path: Path) -> list[JournalEntry]:
    """The entries of whole lines, each checked against the one before."""
    entries: list[JournalEntry] = []
    for index, line in enumerate(content.splitlines()):
        previous = entries[-1].digest if entries else START
        try:
            recorded_line = parse(line)
            body, recorded = recorded_line["body"], recorded_line["digest"]
            named = recorded_line["previous"]
        except (Malformed, KeyError, TypeError):
            raise JournalDamaged(f"{path}: entry {index} cannot be read") from None
        if named != previous or recorded != _digest(index, previous, body):
            raise JournalDamaged(f"{path}: entry {index} is not the one that was written")
        entries.append(JournalEntry(index, body, recorded))
    return entries


def _head_line(count: int, last: str) -> bytes:
    summary = f"{count} {last}"
    line = f"{summary} {digest(summary.encode()).hex()}\n".encode()
    return line.ljust(_HEAD_SLOT, b"\n")


def _head_in(content: bytes, path: Path) -> tuple[int, str]:
    """The newer of the two places; an empty file is that of a new journal."""
    heads = []
    for start in (0, _HEAD_SLOT):
        parts = content[start : start + _HEAD_SLOT].decode("ascii", "replace").split()
        if len(parts) == 3 and digest(" ".join(parts[:2]).encode()).hex() == parts[2]:
            heads.append((int(parts[0]), parts[1]))
    if content and not heads:
        raise JournalDamaged(f"{path} cannot be read")
    return max(heads, default=(0, START))


def _head_of(path: Path) -> Path:
    return path.with_name(path.name + ".head")


def journal_bytes(path: Path) -> bytes:
    """A copy of a journal that may be in use: all entries that were acknowledged, checked against its head."""
    head = _head_of(path)
    count, _ = _head_in(head.read_bytes() if head.exists() else b"", head)  # before its entries
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(_entries_in(whole, path)) < count:
        raise JournalDamaged(f"{path} lacks entries that were written")
    return whole


def entries_of(path: Path) -> list[JournalEntry]:
    """The entries of a journal that may be in use, to be looked at."""
    return _entries_in(journal_bytes(path), path) if path.exists() else []


def restore_journal(path: Path, content: bytes) -> None:
    """Make a journal of the whole entries of `journal_bytes`, `content`; `path` must not exist, its folder must."""
    entries = _entries_in(content, path)
    last = entries[-1].digest if entries else START
    slot = _head_line(len(entries), last)
    places = (slot, b"") if len(entries) % 2 == 0 else (b"\n" * _HEAD_SLOT, slot)
    replace_file(_head_of(path), b"".join(places))
    replace_file(path, content)


class Journal:
    """The open journal; use as a context manager or call `close`. Beside its file are `<name>.head` and `.lock`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._head_path = _head_of(path)
        self._failed = False
        self.entries: list[JournalEntry] = []
        make_folder(path.parent)
        try:
            self._open_files = [take_lock(path.with_name(path.name + ".lock"))]
        except InUse:
            raise InUse(f"{path} is open in another process") from None
        try:
            self._handle = self._opened(path, os.O_APPEND)
            self._head = self._opened(self._head_path, 0)
            self._recover()
        except BaseException:
            self.close()
            raise

    def _opened(self, path: Path, flags: int) -> int:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o600)
        self._open_files.append(handle)
        return handle

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[JournalEntry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def last_digest(self) -> str:
        """What the next entry will name as its predecessor."""
        return self.entries[-1].digest if self.entries else START

    def append(self, body: dict[str, Any]) -> JournalEntry:
        """Write an entry durably; raises `JournalUnavailable` when that is not certain. `body`: any JSON object."""
        if self._failed:
            raise JournalUnavailable(f"{self.path} failed before; open it again")
        previous = self.last_digest
        entry = JournalEntry(len(self.entries), body, _digest(len(self.entries), previous, body))
        before = os.fstat(self._handle).st_size
        try:
            write_all(self._handle, _line(entry, previous))
        except OSError as problem:
            self._undo(before)
            raise self._unavailable(problem) from None
        try:
            os.fsync(self._handle)
        except OSError as problem:
            self._failed = True  # what a failed fsync left on disk is unknown until it is read again
            raise self._unavailable(problem) from None
        self.entries.append(entry)
        try:
            self._write_head()
        except OSError as problem:
            # the entry counts, but its loss would go unnoticed: write nothing more in this state
            self._failed = True
            raise self._unavailable(problem) from None
        return entry

    def close(self) -> None:
        """Let others open it."""
        while self._open_files:
            os.close(self._open_files.pop())

    def _unavailable(self, problem: OSError) -> JournalUnavailable:
        why = "the disk is full" if problem.errno == errno.ENOSPC else str(problem.strerror)
        return JournalUnavailable(f"{self.path}: {why}; nothing was charged and nothing may go on")

    def _undo(self, size: int) -> None:
        try:
            os.ftruncate(self._handle, size)
        except OSError:
            self._failed = True

    def _write_head(self) -> None:
        """Into one of two places in turn, so that a write cut short leaves the other one whole."""
        line = _head_line(len(self.entries), self.last_digest)
        os.pwrite(self._head, line, _HEAD_SLOT * (len(self.entries) % 2))
        os.fsync(self._head)

    def _recover(self) -> None:
        content = self.path.read_bytes()
        end = content.rfind(b"\n") + 1
        self.entries = _entries_in(content[:end], self.path)
        count, last = _head_in(os.pread(self._head, 2 * _HEAD_SLOT, 0), self._head_path)
        if len(self.entries) < count:
            raise JournalDamaged(f"{self.path} holds {len(self.entries):,} entries, but {count:,} were written")
        if len(self.entries) > count + 1:
            raise JournalDamaged(f"{self._head_path} is behind the journal by more than one entry")
        if count and self.entries[count - 1].digest != last:
            raise JournalDamaged(f"{self.path} does not end as {self._head_path} says")
        if end < len(content):  # half a line: never acknowledged
            os.ftruncate(self._handle, end)
        os.fsync(self._handle)
        if len(self.entries) > count:
            self._write_head()
        sync_folder(self.path.parent)
