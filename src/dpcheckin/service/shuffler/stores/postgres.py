"""The store for several front ends at once: one PostgreSQL database between them.

Group commits of different front ends run beside each other; what keeps them apart is the primary key of `seen_N` (one
entry per client and round, whoever asks first) and a share lock on the row of the round (no entry slips in while it is
being closed). Control work takes one advisory lock.

Destroying a round drops its tables, and with them their files. What was written to the server's own log goes when the
log does: `clean` switches it and asks for a checkpoint, which removes the old segments on a server configured as
docs/operating.md says.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, LiteralString

import numpy as np
import psycopg
from psycopg import errors as pg

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.shuffler.chance import Ids
from dpcheckin.service.shuffler.records import Entry, IdCollision, State
from dpcheckin.service.shuffler.stores import schema
from dpcheckin.service.shuffler.stores.base import Store
from dpcheckin.service.shuffler.stores.transaction import Transaction
from dpcheckin.service.storage.database import Row, StorageBusy, StorageFailure
from dpcheckin.service.storage.files import without_password
from dpcheckin.service.wire.problems import Problem

_LOG = logging.getLogger("dpcheckin.shuffler")
_CONTROL_LOCK = 0x64706369  # "dpci"
_IDLE_SECONDS = 1.0
_TYPES = {
    "blob": "BYTEA",
    "int": "BIGINT",
    "real": "DOUBLE PRECISION",
    "serial": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
}
_SESSION_SETTINGS = {
    "synchronous_commit": "on",
    "lock_timeout": "5s",
    "statement_timeout": "120s",
    "idle_in_transaction_session_timeout": "60s",
    "application_name": "dpcheckin-shuffler",
}

Connection = psycopg.Connection[tuple[Any, ...]]


def _sql(statement: str) -> LiteralString:
    """Statements hold no values, only placeholders and serial numbers of rounds."""
    return statement.replace("?", "%s")


class _PostgresTransaction(Transaction):
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def run(self, statement: str, *values: Any) -> list[Row]:
        cursor = self._connection.execute(_sql(statement), values)
        return list(cursor.fetchall()) if cursor.description else []

    def run_many(self, statement: str, rows: Iterable[Row]) -> None:
        self._connection.cursor().executemany(_sql(statement), list(rows))

    def create_round_tables(self, serial: int) -> None:
        for name in ("present", "seen"):
            self.run(f"CREATE TABLE {name}_{serial} (client BYTEA PRIMARY KEY)")
        self.run(f"CREATE TABLE reports_{serial} (id BIGINT PRIMARY KEY, body BYTEA NOT NULL)")
        # Sealed bytes do not compress; trying costs more than storing them.
        self.run(f"ALTER TABLE reports_{serial} ALTER COLUMN body SET STORAGE EXTERNAL")

    def insert_release(self, serial: int, order: Ids) -> None:
        self.run(f"CREATE TABLE release_{serial} (position BIGINT PRIMARY KEY, id BIGINT UNIQUE)")
        copy = f"COPY release_{serial} (position, id) FROM STDIN"
        with self._connection.cursor() as cursor, cursor.copy(_sql(copy)) as rows:
            for position, report in enumerate(order):
                rows.write_row((position, int(report)))


@contextmanager
def _translated() -> Iterator[None]:
    """The server's exceptions as ours."""
    try:
        yield
    except (pg.LockNotAvailable, pg.DeadlockDetected, pg.QueryCanceled, pg.SerializationFailure) as p:
        raise StorageBusy(f"PostgreSQL: {_first_line(p)}") from p
    except (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError) as p:
        # internal: a damaged page, or a server that may not write at the moment
        raise StorageFailure(f"PostgreSQL: {_first_line(p)}") from p


def _first_line(problem: Exception) -> str:
    return without_password(str(problem).strip().split("\n", 1)[0])


class _Session:
    """One connection, made again when the server went away, used by one thread at a time."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._used = 0.0

    @contextmanager
    def use(self) -> Iterator[Connection]:
        with self._lock, _translated():
            connection = self._ready()
            try:
                yield connection
            except BaseException:
                self._forget_if_broken()
                raise
            self._used = time.monotonic()

    def _ready(self) -> Connection:
        """A connection that answers; an idle one is asked first, since servers restart."""
        if self._connection is not None and time.monotonic() - self._used > _IDLE_SECONDS:
            try:
                self._connection.execute("SELECT 1")
            except psycopg.Error:
                self.drop()
        if self._connection is None or self._connection.closed:
            # a server whose machine has vanished says nothing: after ten seconds it is away
            patience = {"connect_timeout": 5, "keepalives_idle": 5, "tcp_user_timeout": 10_000}
            self._connection = psycopg.connect(self._address, autocommit=True, **patience)  # type: ignore[arg-type]
            for setting in _SESSION_SETTINGS.items():
                self._connection.execute("SELECT set_config(%s, %s, false)", setting)
        return self._connection

    def _forget_if_broken(self) -> None:
        if self._connection is not None and (self._connection.closed or self._connection.broken):
            self._connection = None

    def drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class PostgresStore(Store):
    """A database, and three sessions on it: for reports, for control, for reading. `address`: `postgresql://…`."""

    def __init__(self, address: str) -> None:
        try:
            psycopg.conninfo.conninfo_to_dict(address)
        except psycopg.Error:  # its message may quote the password
            shown = without_password(address)
            raise InvalidParameter("store", shown, "an address as libpq reads it") from None
        self._reports, self._control, self._reads = (_Session(address) for _ in range(3))
        try:
            with self.transaction() as transaction:
                schema.prepare(transaction, _TYPES)
                if transaction.one("SHOW fsync") != ("on",):
                    _LOG.warning("the database does not wait for its disk")
        except BaseException:
            self.close()
            raise

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        with self.writing() as transaction:
            transaction.run("SELECT pg_advisory_xact_lock(?)", _CONTROL_LOCK)
            yield transaction

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        with self._control.use() as connection, connection.transaction():
            yield _PostgresTransaction(connection)

    @staticmethod
    def _is_open(connection: Connection, serial: int) -> bool:
        """Open, and kept so until this transaction is over."""
        row = connection.execute("SELECT state FROM rounds WHERE serial = %s FOR SHARE", (serial,)).fetchone()
        return row is not None and row[0] == State.OPEN.value

    def accept(self, serial: int, entries: Sequence[Entry]) -> list[Problem | None]:
        with self._reports.use() as connection, connection.transaction():
            if not self._is_open(connection, serial):
                return [Problem.ROUND_CLOSED] * len(entries)
            first: dict[bytes, Entry] = {}
            for entry in entries:
                first.setdefault(entry.client, entry)
            # In one order everywhere, so that two front ends never wait for each other in a ring.
            served = connection.execute(
                _sql(
                    f"INSERT INTO seen_{serial} (client) "
                    "SELECT unnest(?::bytea[]) ON CONFLICT DO NOTHING RETURNING client"
                ),
                (sorted(first),),
            ).fetchall()
            new = {bytes(row[0]) for row in served}
            self._keep(connection, serial, [first[client] for client in new])
            return [None if e.client in new and first[e.client] is e else Problem.DUPLICATE for e in entries]

    @staticmethod
    def _keep(connection: Connection, serial: int, entries: list[Entry]) -> None:
        if not entries:
            return
        copy = f"COPY reports_{serial} (id, body) FROM STDIN (FORMAT BINARY)"
        try:
            with connection.cursor() as cursor, cursor.copy(_sql(copy)) as rows:
                rows.set_types(["int8", "bytea"])
                # By random id, so that the order in the file is not the order of arrival.
                for entry in sorted(entries, key=lambda entry: entry.id):
                    rows.write_row((entry.id, entry.body))
        except pg.UniqueViolation:
            raise IdCollision("an id of this group is in use") from None

    def mark_present(self, serial: int, clients: Sequence[bytes]) -> bool:
        with self._reports.use() as connection, connection.transaction():
            if not self._is_open(connection, serial):
                return False
            connection.execute(
                _sql(f"INSERT INTO present_{serial} (client) SELECT unnest(?::bytea[]) ON CONFLICT DO NOTHING"),
                (sorted(set(clients)),),
            )
            return True

    def read(self, statement: str, *values: Any) -> list[Row]:
        with self._reads.use() as connection:
            return list(connection.execute(_sql(statement), values, binary=True).fetchall())

    def report_ids(self, serial: int) -> Ids:
        rows = self.read(f"SELECT id FROM reports_{serial} WHERE id >= 0")
        return np.fromiter((row[0] for row in rows), dtype=np.int64, count=len(rows))

    def purge(self, serial: int, at_once: int) -> bool:
        with self.writing() as transaction:
            transaction.drop_round_tables(serial)
        return True

    def clean(self) -> None:
        """Push destroyed bytes out of the server's log; a server that forbids it keeps them."""
        with self._control.use() as connection:
            try:
                connection.execute("SELECT pg_switch_wal()")
                connection.execute("CHECKPOINT")
            except pg.InsufficientPrivilege:
                _LOG.warning("destroyed reports stay in the database's log")

    def close(self) -> None:
        for session in (self._reports, self._control, self._reads):
            session.drop()
