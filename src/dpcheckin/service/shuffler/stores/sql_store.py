"""A store over SQL: what SQLite and PostgreSQL do alike beyond control work.

Reading bodies in their two orders, and the list of clients. How a transaction begins, and how a
database says that it is busy or gone, is each one's own.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from dpcheckin.service.shuffler.stores.base import Store
from dpcheckin.service.shuffler.stores.schema import check_content, clients_sum
from dpcheckin.service.shuffler.stores.sql import Row, SqlTransaction


def _changed(transaction: SqlTransaction, change: int) -> None:
    """Count up the version of the list of clients, and keep its checksum."""
    transaction.clients_changed()
    said = int(transaction.about("clients_sum") or "0", 16)
    transaction.set_about("clients_sum", format((said + change) % 2**256, "x"))


class SqlStore(Store):
    """A store whose statements are written with `?` for placeholders."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[SqlTransaction]:
        """A transaction for the list of clients; an exception undoes it."""

    @abstractmethod
    def read(self, statement: str, *values: Any) -> list[Row]:
        """All rows of a statement that changes nothing, outside of any transaction."""

    def model(self, model: bytes) -> bytes | None:
        rows = self.read("SELECT body FROM models WHERE id = ?", model)
        return bytes(rows[0][0]) if rows else None

    def each_body(self, serial: int, at_once: int) -> Iterator[list[bytes]]:
        last = -1
        while rows := self.read(
            f"SELECT id, body FROM reports_{serial} WHERE id > ? ORDER BY id LIMIT ?",
            last,
            at_once,
        ):
            yield [bytes(row[1]) for row in rows]
            last = rows[-1][0]

    def released(self, serial: int, start: int, count: int) -> list[bytes]:
        rows = self.read(
            f"SELECT body FROM release_{serial} JOIN reports_{serial} USING (id) "
            "WHERE position >= ? AND position < ? ORDER BY position",
            start,
            start + count,
        )
        return [bytes(row[0]) for row in rows]

    def enroll(self, digests: Sequence[bytes]) -> list[bytes]:
        made = [os.urandom(16) for _ in digests]
        with self.writing() as transaction:
            added = list(zip(made, digests, strict=True))
            transaction.run_many("INSERT INTO clients (id, token) VALUES (?, ?)", added)
            _changed(transaction, clients_sum(added))
        return made

    def replace_token(self, client: bytes, token: bytes) -> bool:
        return self._change_client(client, token)

    def revoke(self, client: bytes) -> bool:
        return self._change_client(client, None)

    def _change_client(self, client: bytes, token: bytes | None) -> bool:
        with self.writing() as transaction:
            found = transaction.one("SELECT token FROM clients WHERE id = ?", client)
            if found is None:
                return False
            change = -clients_sum([(client, bytes(found[0]))])
            if token is None:
                transaction.run("DELETE FROM clients WHERE id = ?", client)
            else:
                transaction.run("UPDATE clients SET token = ? WHERE id = ?", token, client)
                change += clients_sum([(client, token)])
            _changed(transaction, change)
            return True

    def verify(self) -> None:
        with self.writing() as transaction:
            check_content(transaction)

    def probe(self) -> None:
        with self.writing() as transaction:
            transaction.set_about("probe", os.urandom(8).hex())

    def clients(self) -> dict[bytes, bytes]:
        rows = self.read("SELECT token, id FROM clients")
        return {bytes(row[0]): bytes(row[1]) for row in rows}

    def clients_version(self) -> int:
        return int(self.read("SELECT value FROM about WHERE name = 'clients'")[0][0])
