"""The store for tests and trials: everything in this process, nothing survives it.

Control work and clients are in a SQLite database in memory. Reports are not: who was there are sets, and bodies lie one
after the other in large pieces of memory, which is what makes it fast. Memory that is touched for the first time costs
several times what receiving a body does, so the pieces of a destroyed batch are overwritten and kept for the next one,
up to a limit.
"""

from __future__ import annotations

import mmap
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np

from dpcheckin.service.shuffler.chance import Ids
from dpcheckin.service.shuffler.records import Counts, Entry, IdCollision, State, Taken
from dpcheckin.service.shuffler.stores import schema
from dpcheckin.service.shuffler.stores.base import Store
from dpcheckin.service.shuffler.stores.sqlite import TYPES, SqliteTransaction
from dpcheckin.service.storage.database import Row, committed

_PIECE = 64 << 20
_KEPT_PIECES = 32
SMALL = 16 << 10
"""Bodies up to this size are kept as they are."""

Place = tuple[int, int, int] | bytes


class Pool:
    """Wiped pieces that wait for the next batch."""

    def __init__(self) -> None:
        self._free: list[mmap.mmap] = []

    def take(self, size: int) -> mmap.mmap:
        """A piece of at least that size."""
        if size <= _PIECE and self._free:
            return self._free.pop()
        return mmap.mmap(-1, max(size, _PIECE), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

    def give_back(self, piece: mmap.mmap, used: int) -> None:
        """A `piece` of which so many bytes were `used`: overwritten, then kept or returned to the system."""
        piece[:used] = bytes(used)
        if len(piece) == _PIECE and len(self._free) < _KEPT_PIECES:
            self._free.append(piece)
        else:
            piece.close()


class Arena:
    """Bodies of one batch."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._pieces: list[mmap.mmap] = []
        self._used: list[int] = []

    def keep(self, body: bytes) -> Place:
        """Where it was put."""
        size = len(body)
        if size <= SMALL:
            return body
        if not self._pieces or self._used[-1] + size > len(self._pieces[-1]):
            self._pieces.append(self._pool.take(size))
            self._used.append(0)
        start = self._used[-1]
        self._pieces[-1][start : start + size] = body
        self._used[-1] += size
        return len(self._pieces) - 1, start, size

    def read(self, place: Place) -> bytes:
        """What was put there."""
        if isinstance(place, bytes):
            return place
        piece, start, size = place
        return self._pieces[piece][start : start + size]

    def wipe(self) -> None:
        """Overwrite everything and give it back."""
        for piece, used in zip(self._pieces, self._used, strict=True):
            self._pool.give_back(piece, used)
        self._pieces, self._used = [], []


class _Batch:
    """Reports and attendance of one round."""

    def __init__(self, pool: Pool) -> None:
        self.present: set[bytes] = set()
        self.seen: set[bytes] = set()
        self.reports: dict[int, Place] = {}
        self.covers: dict[int, Place] = {}
        self.arena = Arena(pool)
        self.order: list[int] = []


class _MemoryTransaction(SqliteTransaction):
    def __init__(self, connection: sqlite3.Connection, batches: dict[int, _Batch], pool: Pool) -> None:
        super().__init__(connection)
        self._batches, self._pool = batches, pool

    def create_round_tables(self, serial: int) -> None:
        self._batches[serial] = _Batch(self._pool)

    def counts(self, serial: int) -> Counts:
        batch = self._batches[serial]
        return Counts(len(batch.present), len(batch.seen), len(batch.reports))

    def forget_attendance(self, serial: int) -> None:
        self._batches[serial].present.clear()
        self._batches[serial].seen.clear()

    def fix_release(self, serial: int, order: Ids) -> None:
        batch = self._batches[serial]
        batch.order = [int(i) for i in order]
        batch.reports = {i: batch.reports[i] for i in batch.order}


class MemoryStore(Store):
    """One connection, and the batches of rounds, under one lock."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._pool = Pool()
        self._batches: dict[int, _Batch] = {}
        self._open: set[int] = set()
        """Serials of the rounds that take reports: nobody waits for the database to know."""
        with self.writing() as transaction:
            schema.prepare(transaction, TYPES)

    @contextmanager
    def writing(self) -> Iterator[_MemoryTransaction]:
        with self._lock:
            with committed(self._connection):
                yield _MemoryTransaction(self._connection, self._batches, self._pool)
            taking = self._connection.execute("SELECT serial FROM rounds WHERE state = ?", (State.OPEN.value,))
            self._open = {row[0] for row in taking}

    transaction = writing

    def read(self, statement: str, *values: Any) -> list[Row]:
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    def accept(self, serial: int, entries: Sequence[Entry]) -> list[Taken]:
        with self._lock:
            if serial not in self._open:
                return [Taken.CLOSED] * len(entries)
            batch = self._batches[serial]
            seen, keep = batch.seen, batch.arena.keep
            reports, covers = batch.reports, batch.covers
            outcome = []
            for _, report, _ in entries:
                if report in (reports if report >= 0 else covers):
                    raise IdCollision("an id of this group is in use")
            for client, report, body in entries:
                if client in seen:
                    outcome.append(Taken.DUPLICATE)
                    continue
                seen.add(client)
                (reports if report >= 0 else covers)[report] = keep(body)
                outcome.append(Taken.YES)
            return outcome

    def mark_present(self, serial: int, clients: Sequence[bytes]) -> bool:
        with self._lock:
            if serial not in self._open:
                return False
            self._batches[serial].present.update(clients)
            return True

    def report_ids(self, serial: int) -> Ids:
        # Sorted by random id: a dictionary would hand them out in order of arrival.
        return np.array(sorted(self._batches[serial].reports), dtype=np.int64)

    def each_body(self, serial: int, at_once: int) -> Iterator[list[bytes]]:
        batch = self._batches[serial]
        places = iter(batch.reports.values())
        while chunk := [batch.arena.read(place) for place in islice(places, at_once)]:
            yield chunk

    def released(self, serial: int, start: int, count: int) -> list[bytes]:
        with self._lock:
            batch = self._batches[serial]
            wanted = batch.order[start : start + count]
            return [batch.arena.read(batch.reports[i]) for i in wanted]

    def purge(self, serial: int, at_once: int) -> bool:
        with self._lock:
            self._batches[serial].arena.wipe()
            self._batches[serial] = _Batch(self._pool)
            return True

    def clean(self) -> None:
        pass

    def close(self) -> None:
        """Nothing: whoever opens it again finds what was there."""

    def __del__(self) -> None:
        self._connection.close()
