"""SQLite databases of parties, and what goes wrong with stores, whoever's they are.

A full disk and a damaged file are failures: what was under way is not done. A lock that somebody else holds is not:
trying again is enough.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpcheckin.errors import ServiceError


class StorageFailure(ServiceError):
    """Disk full, database away: whatever was under way is not done and was not acknowledged."""


class StorageBusy(ServiceError):
    """Somebody else is in the way for the moment; trying again is enough."""


def damaged(why: str) -> StorageFailure:
    """The one line about a database that does not hold what was written to it, and why somebody thinks so."""
    first = why.strip().split("\n", 1)[0]
    return StorageFailure(f"the database is damaged: {first} (docs/upgrading.md: restore)")


@contextmanager
def translated() -> Iterator[None]:
    """SQLite's exceptions as ours; what is wrong with the statement itself stays a bug."""
    try:
        yield
    except sqlite3.OperationalError as problem:
        code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise StorageBusy(f"SQLite: {problem}") from problem
        raise StorageFailure(f"SQLite: {problem}") from problem
    except UnicodeDecodeError as problem:  # sqlite3 speaks UTF-8, also of what it cannot read
        raise damaged("a text in it is not UTF-8") from problem
    except sqlite3.DatabaseError as problem:
        if isinstance(problem, (sqlite3.IntegrityError, sqlite3.ProgrammingError)):
            raise
        raise StorageFailure(f"SQLite: {problem}") from problem


Row = Sequence[Any]
_WAIT_SECONDS = 5.0


class Database:
    """One SQLite `file` that several processes may have open: a connection that writes, and one that reads. None: in
    memory, where one connection does both.

    A write-ahead log with synchronous=FULL: a commit is on disk before it is acknowledged. Deleted content is
    overwritten with zeros (secure_delete).
    """

    def __init__(self, file: Path | None) -> None:
        self._write_lock = threading.RLock()
        self._read_lock = self._write_lock if file is None else threading.RLock()
        try:
            if file is not None:
                os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as problem:
            raise StorageFailure(f"cannot open {file}: {problem.strerror}") from problem
        with translated():
            self.writer = _connected(file or ":memory:")
            try:
                self.reader = self.writer if file is None else _connected(file)
            except BaseException:
                self.writer.close()
                raise

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction of the one writer: all or nothing."""
        with self._write_lock, translated(), committed(self.writer):
            yield self.writer

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection that reads, for one statement."""
        with self._read_lock, translated():
            yield self.reader

    def read(self, statement: str, *values: Any) -> list[Row]:
        """All rows of a statement that changes nothing, with `values` for its placeholders."""
        with self.reading() as connection:
            return connection.execute(statement, values).fetchall()

    def check_pages(self) -> None:
        """Read every page and index; raises `StorageFailure` if one is not what was written."""
        answer = self.read("PRAGMA integrity_check(1)")
        if answer != [("ok",)]:
            raise damaged(str(answer[0][0]).replace("*** in database main ***", ""))

    def clean(self) -> None:
        """Move the log into the file and truncate it, so that nothing deleted is left in either."""
        with self._write_lock, translated():
            busy, _, _ = self.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise StorageBusy("a reader keeps the log from being truncated")

    def close(self) -> None:
        """Give the file back."""
        with self._write_lock, self._read_lock:
            self.reader.close()
            self.writer.close()


def _connected(file: Path | str) -> sqlite3.Connection:
    connection = sqlite3.connect(file, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        for pragma in (
            "journal_mode = WAL",
            "synchronous = FULL",
            "secure_delete = ON",
            "temp_store = MEMORY",  # nothing may leak into temporary files
            "wal_autocheckpoint = 4000",
        ):
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def committed(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction of a connection; an exception undoes it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
