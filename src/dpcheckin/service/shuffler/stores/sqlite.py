"""The default store: one SQLite file, one writer at a time, durable when a call returns.

`clean` leaves nothing of a destroyed batch in the file or its log. One front end only: several belong on PostgreSQL.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from dpcheckin.service.shuffler.chance import Ids
from dpcheckin.service.shuffler.records import Entry, IdCollision, State
from dpcheckin.service.shuffler.stores import schema
from dpcheckin.service.shuffler.stores.base import Store
from dpcheckin.service.shuffler.stores.transaction import Transaction
from dpcheckin.service.storage.database import Database, Row, StorageFailure
from dpcheckin.service.storage.files import InUse, make_folder, take_lock
from dpcheckin.service.wire.problems import Problem

_TYPES = {"blob": "BLOB", "int": "INTEGER", "real": "REAL", "serial": "INTEGER PRIMARY KEY AUTOINCREMENT"}
DEFAULT_RESERVE = 64 << 20
"""Bytes of disk that reports may not use, so that a full disk can still close and destroy."""


class SqliteTransaction(Transaction):
    """Control work of a SQLite connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, statement: str, *values: Any) -> list[Row]:
        return self._connection.execute(statement, values).fetchall()

    def run_many(self, statement: str, rows: Iterable[Row]) -> None:
        self._connection.executemany(statement, rows)

    def create_round_tables(self, serial: int) -> None:
        for name in ("present", "seen"):
            self.run(f"CREATE TABLE {name}_{serial} (client BLOB PRIMARY KEY) WITHOUT ROWID")
        # The id is the row's own key, and it is random: the file keeps no order of arrival.
        self.run(f"CREATE TABLE reports_{serial} (id INTEGER PRIMARY KEY, body BLOB NOT NULL)")

    def insert_release(self, serial: int, order: Ids) -> None:
        self.run(f"CREATE TABLE release_{serial} (position INTEGER PRIMARY KEY, id INTEGER NOT NULL)")
        self.run_many(f"INSERT INTO release_{serial} (position, id) VALUES (?, ?)", enumerate(int(i) for i in order))
        self.run(f"CREATE UNIQUE INDEX released_{serial} ON release_{serial} (id)")

    def is_open(self, serial: int) -> bool:
        """Does a round take reports?"""
        return self.one("SELECT state FROM rounds WHERE serial = ?", serial) == (State.OPEN.value,)


class SqliteStore(Store):
    """A `file` and its log; reports leave `reserve` bytes of the disk alone; `free_bytes` says how many are free."""

    def __init__(
        self, file: Path | str, *, reserve: int = DEFAULT_RESERVE, free_bytes: Callable[[], int] | None = None
    ) -> None:
        self.file = Path(file)
        self._reserve = reserve
        self._free_bytes = free_bytes or (lambda: shutil.disk_usage(self.file.parent).free)
        try:
            make_folder(self.file.parent)
        except OSError as problem:
            raise StorageFailure(f"cannot open {self.file}: {problem.strerror}") from problem
        self.database = Database(self.file)
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        with self.writing() as transaction:
            schema.prepare(transaction, _TYPES)

    @contextmanager
    def writing(self) -> Iterator[SqliteTransaction]:
        with self.database.writing() as connection:
            yield SqliteTransaction(connection)

    def read(self, statement: str, *values: Any) -> list[Row]:
        return self.database.read(statement, *values)

    def verify(self) -> None:
        """Every page, every index, every digest."""
        self.database.check_pages()
        super().verify()

    def check_room(self) -> None:
        if self._reserve and self._free_bytes() < self._reserve:
            raise StorageFailure(f"less than {self._reserve:,} bytes of disk are free")

    def accept(self, serial: int, entries: Sequence[Entry]) -> list[Problem | None]:
        self.check_room()
        with self.writing() as transaction:
            if not transaction.is_open(serial):
                return [Problem.ROUND_CLOSED] * len(entries)
            execute, outcome = self.database.writer.execute, list[Problem | None]()
            serve = f"INSERT OR IGNORE INTO seen_{serial} VALUES (?)"
            keep = f"INSERT INTO reports_{serial} VALUES (?, ?)"
            try:
                for entry in entries:
                    if not execute(serve, (entry.client,)).rowcount:
                        outcome.append(Problem.DUPLICATE)
                        continue
                    execute(keep, (entry.id, entry.body))
                    outcome.append(None)
            except sqlite3.IntegrityError:
                raise IdCollision("an id of this group is in use") from None
            return outcome

    def mark_present(self, serial: int, clients: Sequence[bytes]) -> bool:
        self.check_room()
        with self.writing() as transaction:
            if not transaction.is_open(serial):
                return False
            transaction.run_many(f"INSERT OR IGNORE INTO present_{serial} VALUES (?)", [(c,) for c in clients])
            return True

    def report_ids(self, serial: int) -> Ids:
        with self.database.reading() as connection:
            found = connection.execute(f"SELECT id FROM reports_{serial} WHERE id >= 0")
            return np.fromiter((row[0] for row in found), dtype=np.int64)

    def purge(self, serial: int, at_once: int) -> bool:
        # A little at a time: overwriting a large batch in one go would hold up everybody, and
        # would need as much log as the batch is long.
        with self.writing() as transaction:
            there = "SELECT 1 FROM sqlite_master WHERE name = ?"
            if transaction.one(there, f"reports_{serial}") is None:
                return True
            some = f"DELETE FROM reports_{serial} WHERE id IN (SELECT id FROM reports_{serial} LIMIT ?)"
            if self.database.writer.execute(some, (at_once,)).rowcount == at_once:
                return False
            transaction.drop_round_tables(serial)
            return True

    def clean(self) -> None:
        self.database.clean()

    def serve_alone(self) -> AbstractContextManager[None]:
        return self._locked()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            lock = take_lock(self.file.with_name(self.file.name + ".lock"))
        except InUse:
            raise InUse(f"another shuffler serves {self.file}; several front ends belong on PostgreSQL") from None
        try:
            yield
        finally:
            os.close(lock)

    def close(self) -> None:
        self.database.close()


class MemoryStore(SqliteStore):
    """The store for tests and trials: the same tables in this process, and nothing survives it.

    Bodies lie beside the tables, under their ids, and rows wait until somebody asks the tables: writing them one by one
    would take longer than all the rest.
    """

    immediate = True

    def __init__(self) -> None:
        self.database = Database(None)
        self._bodies: defaultdict[int, dict[int, bytearray]] = defaultdict(dict)
        """By the serial of the round."""
        self._served: dict[int, set[bytes]] = {}
        """Clients served, of the rounds that are known to be open."""
        self._waiting: defaultdict[int, list[Entry]] = defaultdict(list)
        self._prepare()

    @contextmanager
    def writing(self) -> Iterator[SqliteTransaction]:
        with self.database.reading():
            self._write_down()
            self._served.clear()  # what is open may change
            with super().writing() as transaction:
                yield transaction

    def read(self, statement: str, *values: Any) -> list[Row]:
        with self.database.reading():
            self._write_down()
            return super().read(statement, *values)

    def report_ids(self, serial: int) -> Ids:
        with self.database.reading():
            self._write_down()
            return super().report_ids(serial)

    def accept(self, serial: int, entries: Sequence[Entry]) -> list[Problem | None]:
        with self.database.reading():
            if serial not in self._served:
                with self.writing() as transaction:
                    if not transaction.is_open(serial):
                        return [Problem.ROUND_CLOSED] * len(entries)
                    rows = transaction.run(f"SELECT client FROM seen_{serial}")
                self._served[serial] = {row[0] for row in rows}
            served, bodies, waiting = self._served[serial], self._bodies[serial], self._waiting[serial]
            if any(entry.id in bodies for entry in entries):
                raise IdCollision("an id of this group is in use")
            outcome = list[Problem | None]()
            for entry in entries:
                if entry.client in served:
                    outcome.append(Problem.DUPLICATE)
                    continue
                served.add(entry.client)
                bodies[entry.id] = bytearray(entry.body)
                waiting.append(entry._replace(body=b""))
                outcome.append(None)
            return outcome

    def _write_down(self) -> None:
        """The rows of all that was accepted, each batch in the order of its random ids."""
        if not self._waiting:
            return
        with super().writing() as transaction:
            for serial, entries in self._waiting.items():
                transaction.run_many(f"INSERT INTO seen_{serial} VALUES (?)", [(entry.client,) for entry in entries])
                rows = sorted((entry.id, b"%d" % entry.id) for entry in entries)
                transaction.run_many(f"INSERT INTO reports_{serial} VALUES (?, ?)", rows)
        self._waiting.clear()

    def body(self, serial: int, kept: Any) -> bytes:
        return bytes(self._bodies[serial][int(kept)])

    def purge(self, serial: int, at_once: int) -> bool:
        done = super().purge(serial, at_once)
        for body in self._bodies.pop(serial, {}).values() if done else ():
            body[:] = bytes(len(body))
        return done

    def check_room(self) -> None:
        """There is room as long as there is memory."""

    def serve_alone(self) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        """Nothing: whoever opens it again finds what was there."""

    def __del__(self) -> None:
        self.database.close()
