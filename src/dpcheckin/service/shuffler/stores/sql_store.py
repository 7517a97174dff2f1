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
from dpcheckin.service.shuffler.stores.sql import Row, SqlTransaction


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
            transaction.run_many(
                "INSERT INTO clients (id, token) VALUES (?, ?)", zip(made, digests, strict=True)
            )
            transaction.clients_changed()
        return made

    def replace_token(self, client: bytes, token: bytes) -> bool:
        return self._change_client("UPDATE clients SET token = ? WHERE id = ?", token, client)

    def revoke(self, client: bytes) -> bool:
        return self._change_client("DELETE FROM clients WHERE id = ?", client)

    def _change_client(self, statement: str, *values: bytes) -> bool:
        with self.writing() as transaction:
            changed = transaction.change(statement, *values)
            transaction.clients_changed()
            return bool(changed)

    def clients(self) -> dict[bytes, bytes]:
        rows = self.read("SELECT token, id FROM clients")
        return {bytes(row[0]): bytes(row[1]) for row in rows}

    def clients_version(self) -> int:
        return int(self.read("SELECT value FROM about WHERE name = 'clients'")[0][0])
