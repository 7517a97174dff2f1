"""What a store must do. The rules are in the core; a store only keeps, counts and destroys.

Two kinds of work. *Control* (plans, keys, rounds, claims) is rare: it runs inside `transaction()`, one at a time over
all front ends. *Reports* come by the thousand: `accept` and `mark_present` take many at once, are atomic and durable
when they return, and may run beside each other. Control work and the list of clients are SQL, the same in every store.

Nothing a store keeps may join a report to a client or to a moment: reports lie under random ids, without time, in a
table that shares no column with the list of clients already served.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

from dpcheckin.service.shuffler.chance import Ids
from dpcheckin.service.shuffler.records import Entry
from dpcheckin.service.shuffler.stores import schema
from dpcheckin.service.shuffler.stores.transaction import Transaction
from dpcheckin.service.storage.database import Row
from dpcheckin.service.wire.problems import Problem


class Store(ABC):
    """Everything the shuffler keeps; statements are written with `?` for placeholders."""

    immediate: ClassVar[bool] = False
    """Does it keep a report in less time than somebody would wait for others to be kept with it?"""

    # --- what each store does in its own way ---------------------------------------------------

    @abstractmethod
    def writing(self) -> AbstractContextManager[Transaction]:
        """A transaction for the list of clients; an exception undoes it."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Control work, one at a time; an exception undoes it."""
        return self.writing()

    @abstractmethod
    def read(self, statement: str, *values: Any) -> list[Row]:
        """All rows of a statement that changes nothing, with `values`, outside of any transaction."""

    @abstractmethod
    def accept(self, serial: int, entries: Sequence[Entry]) -> list[Problem | None]:
        """Take at most one of the entries per client, durably; None for each that was taken, else why it was not:
        `ROUND_CLOSED` for all if the round `serial` is not open."""

    @abstractmethod
    def mark_present(self, serial: int, clients: Sequence[bytes]) -> bool:
        """Count clients as present in the round `serial`, durably; False if it is not open."""

    @abstractmethod
    def report_ids(self, serial: int) -> Ids:
        """The ids of all reports of a closed round, in no particular order."""

    @abstractmethod
    def purge(self, serial: int, at_once: int) -> bool:
        """Destroy at most `at_once` reports of the round `serial`, void or done; True when none is left."""

    @abstractmethod
    def clean(self) -> None:
        """See to it that nothing destroyed is left in any file; may raise `StorageBusy`."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything."""

    def check_room(self) -> None:  # noqa: B027 (nobody else can tell)
        """Raises `StorageFailure` when there is no room for reports, as far as can be seen."""

    def serve_alone(self) -> AbstractContextManager[None]:
        """Be the only one that serves this store, where there can be only one; else `InUse`."""
        return nullcontext()

    # --- bodies ---------------------------------------------------------------------------------

    def model(self, model: bytes) -> bytes | None:
        """The bytes of a model."""
        rows = self.read("SELECT body FROM models WHERE id = ?", model)
        return bytes(rows[0][0]) if rows else None

    def body(self, serial: int, kept: Any) -> bytes:
        """The body of a report of the round `serial`, whose row `kept` this."""
        return bytes(kept)

    def each_body(self, serial: int, at_once: int) -> Iterator[list[bytes]]:
        """All bodies of the closed round `serial`, in no particular order, at most `at_once` at a time."""
        last = -1
        while rows := self.read(
            f"SELECT id, body FROM reports_{serial} WHERE id > ? ORDER BY id LIMIT ?", last, at_once
        ):
            yield [self.body(serial, row[1]) for row in rows]
            last = rows[-1][0]

    def released(self, serial: int, start: int, count: int) -> list[bytes]:
        """Bodies number `start` to `start` + `count` - 1 of the fixed order of the round `serial`."""
        rows = self.read(
            f"SELECT body FROM release_{serial} JOIN reports_{serial} USING (id) "
            "WHERE position >= ? AND position < ? ORDER BY position",
            start,
            start + count,
        )
        return [self.body(serial, row[0]) for row in rows]

    # --- clients --------------------------------------------------------------------------------

    def enroll(self, digests: Sequence[bytes]) -> list[bytes]:
        """New clients with these token digests; their ids."""
        made = [os.urandom(16) for _ in digests]
        with self.writing() as transaction:
            added = list(zip(made, digests, strict=True))
            schema.add_clients(transaction, added)
        return made

    def replace_token(self, client: bytes, token: bytes) -> bool:
        """Another `token` digest for a `client`; False if there is no such client."""
        return self._change_client(client, token)

    def revoke(self, client: bytes) -> bool:
        """The client's token is worth nothing from now on; False if there is no such client."""
        return self._change_client(client, None)

    def _change_client(self, client: bytes, token: bytes | None) -> bool:
        with self.writing() as transaction:
            row = transaction.one("SELECT token FROM clients WHERE id = ?", client)
            if row is None:
                return False
            change = -schema.clients_sum([(client, bytes(row[0]))])
            if token is None:
                transaction.run("DELETE FROM clients WHERE id = ?", client)
            else:
                transaction.run("UPDATE clients SET token = ? WHERE id = ?", token, client)
                change += schema.clients_sum([(client, token)])
            schema.count_clients(transaction, change)
            return True

    def verify(self) -> None:
        """Read everything but reports; raises `StorageFailure` if it is not what was written."""
        with self.writing() as transaction:
            schema.check_content(transaction)

    def probe(self) -> None:
        """Write something that means nothing: raises `StorageFailure` when reports would fail."""
        with self.writing() as transaction:
            transaction.set_about("probe", os.urandom(8).hex())

    def clients(self) -> dict[bytes, bytes]:
        """Token digest → client, of all who are enrolled."""
        rows = self.read("SELECT token, id FROM clients")
        return {bytes(row[0]): bytes(row[1]) for row in rows}

    def clients_version(self) -> int:
        """A number that changes whenever `clients` does."""
        return int(self.read("SELECT value FROM about WHERE name = 'clients'")[0][0])
