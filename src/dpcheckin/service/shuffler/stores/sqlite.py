"""The default store: one SQLite file, one writer at a time, durable when a call returns.

Write-ahead log with synchronous=FULL: a commit is on disk before it is acknowledged. Deleted
content is overwritten with zeros (secure_delete), and `clean` moves the log into the file and
truncates it, so that nothing of a destroyed batch is left in either. One front end only: several
belong on PostgreSQL.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dpcheckin.service.files import InUse, make_folder, take_lock
from dpcheckin.service.shuffler.chance import Ids
from dpcheckin.service.shuffler.records import Entry, State
from dpcheckin.service.shuffler.stores import schema
from dpcheckin.service.shuffler.stores.base import IdCollision, Taken, Transaction
from dpcheckin.service.shuffler.stores.sql import Row, SqlTransaction
from dpcheckin.service.shuffler.stores.sql_store import SqlStore
from dpcheckin.service.storage import StorageBusy, StorageFailure, damaged, translated

_WAIT_SECONDS = 5.0
_TYPES = {
    "blob": "BLOB",
    "int": "INTEGER",
    "real": "REAL",
    "serial": "INTEGER PRIMARY KEY AUTOINCREMENT",
}
DEFAULT_RESERVE = 64 << 20
"""Bytes of disk that reports may not use, so that a full disk can still close and destroy."""


class _SqliteTransaction(SqlTransaction):
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, statement: str, *values: Any) -> list[Row]:
        return self._connection.execute(statement, values).fetchall()

    def run_many(self, statement: str, rows: Iterable[Row]) -> None:
        self._connection.executemany(statement, rows)

    def change(self, statement: str, *values: Any) -> int:
        return self._connection.execute(statement, values).rowcount

    def create_round_tables(self, serial: int) -> None:
        for name in ("present", "seen"):
            self.run(f"CREATE TABLE {name}_{serial} (client BLOB PRIMARY KEY) WITHOUT ROWID")
        # The id is the row's own key, and it is random: the file keeps no order of arrival.
        self.run(f"CREATE TABLE reports_{serial} (id INTEGER PRIMARY KEY, body BLOB NOT NULL)")

    def insert_release(self, serial: int, order: Ids) -> None:
        self.run(
            f"CREATE TABLE release_{serial} (position INTEGER PRIMARY KEY, id INTEGER NOT NULL)"
        )
        self.run_many(
            f"INSERT INTO release_{serial} (position, id) VALUES (?, ?)",
            enumerate(int(i) for i in order),
        )
        self.run(f"CREATE UNIQUE INDEX released_{serial} ON release_{serial} (id)")


class SqliteStore(SqlStore):
    """A file, its log, one connection that writes and one that reads.

    Args:
        file: the database, made when it is not there.
        reserve: bytes of disk that reports may not use.
        free_bytes: how many are free; None: the file system's own answer.
    """

    def __init__(
        self,
        file: Path | str,
        *,
        reserve: int = DEFAULT_RESERVE,
        free_bytes: Callable[[], int] | None = None,
    ) -> None:
        self.file = Path(file)
        self._reserve = reserve
        self._free_bytes = free_bytes or (lambda: shutil.disk_usage(self.file.parent).free)
        self._write_lock = threading.Lock()
        self._read_lock = threading.Lock()
        try:
            make_folder(self.file.parent)
            os.close(os.open(self.file, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as problem:
            raise StorageFailure(f"cannot open {self.file}: {problem.strerror}") from problem
        opened: list[sqlite3.Connection] = []
        try:
            with translated():
                for _ in range(2):
                    opened.append(self._connect())
                self._writer, self._reader = opened
                with self.writing() as transaction:
                    schema.prepare(transaction, _TYPES)
        except BaseException:
            for connection in opened:
                connection.close()
            raise

    def verify(self) -> None:
        """Every page, every index, every digest."""
        said = self.read("PRAGMA integrity_check(1)")
        if said != [("ok",)]:
            raise damaged(str(said[0][0]).replace("*** in database main ***", ""))
        super().verify()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.file, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
        )
        for pragma in (
            "journal_mode = WAL",
            "synchronous = FULL",
            "secure_delete = ON",
            "temp_store = MEMORY",  # nothing may leak into temporary files
            "wal_autocheckpoint = 4000",
        ):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    @contextmanager
    def writing(self) -> Iterator[_SqliteTransaction]:
        """A transaction of the one writer; translated errors, all or nothing."""
        with self._write_lock, translated():
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield _SqliteTransaction(self._writer)
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        with self.writing() as transaction:
            yield transaction

    def check_room(self) -> None:
        if self._reserve and self._free_bytes() < self._reserve:
            raise StorageFailure(f"less than {self._reserve:,} bytes of disk are free")

    @staticmethod
    def _is_open(transaction: _SqliteTransaction, serial: int) -> bool:
        row = transaction.one("SELECT state FROM rounds WHERE serial = ?", serial)
        return row is not None and row[0] == State.OPEN.value

    def accept(self, serial: int, entries: Sequence[Entry]) -> list[Taken]:
        self.check_room()
        with self.writing() as transaction:
            if not self._is_open(transaction, serial):
                return [Taken.CLOSED] * len(entries)
            execute, outcome = self._writer.execute, []
            serve = f"INSERT OR IGNORE INTO seen_{serial} VALUES (?)"
            keep = f"INSERT INTO reports_{serial} VALUES (?, ?)"
            try:
                for entry in entries:
                    if not execute(serve, (entry.client,)).rowcount:
                        outcome.append(Taken.DUPLICATE)
                        continue
                    execute(keep, (entry.id, entry.body))
                    outcome.append(Taken.YES)
            except sqlite3.IntegrityError:
                raise IdCollision("an id of this group is in use") from None
            return outcome

    def mark_present(self, serial: int, clients: Sequence[bytes]) -> bool:
        self.check_room()
        with self.writing() as transaction:
            if not self._is_open(transaction, serial):
                return False
            self._writer.executemany(
                f"INSERT OR IGNORE INTO present_{serial} VALUES (?)", [(c,) for c in clients]
            )
            return True

    def read(self, statement: str, *values: Any) -> list[Row]:
        with self._read_lock, translated():
            return self._reader.execute(statement, values).fetchall()

    def report_ids(self, serial: int) -> Ids:
        with self._read_lock, translated():
            found = self._reader.execute(f"SELECT id FROM reports_{serial} WHERE id >= 0")
            return np.fromiter((row[0] for row in found), dtype=np.int64)

    def purge(self, serial: int, at_once: int) -> bool:
        # A little at a time: overwriting a large batch in one go would hold up everybody, and
        # would need as much log as the batch is long.
        with self.writing() as transaction:
            there = "SELECT 1 FROM sqlite_master WHERE name = ?"
            if transaction.one(there, f"reports_{serial}") is None:
                return True
            deleted = transaction.change(
                f"DELETE FROM reports_{serial} WHERE id IN "
                f"(SELECT id FROM reports_{serial} LIMIT ?)",
                at_once,
            )
            if deleted == at_once:
                return False
            for name in ("present", "seen", "release", "reports"):
                transaction.run(f"DROP TABLE IF EXISTS {name}_{serial}")
            return True

    def clean(self) -> None:
        with self._write_lock, translated():
            busy, _, _ = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise StorageBusy("a reader keeps the log from being truncated")

    @contextmanager
    def serve_alone(self) -> Iterator[None]:
        try:
            lock = take_lock(self.file.with_name(self.file.name + ".lock"))
        except InUse:
            raise InUse(
                f"another shuffler serves {self.file}; several front ends belong on PostgreSQL"
            ) from None
        try:
            yield
        finally:
            os.close(lock)

    def close(self) -> None:
        with self._write_lock, self._read_lock:
            self._reader.close()
            self._writer.close()
