"""What an issuer must not forget: clients, plans, the keys of rounds, and who got which token.

One SQLite file, durable when a call returns. Who got
tokens is written down before a signature leaves: after a crash the same client gets the same signature again, and
nobody gets a second token. When a round is past, its private key and the list of who has a token for it are destroyed.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dpcheckin.service.issuer.private_keys import PrivateKey, SigningFailure
from dpcheckin.service.storage.database import Database, Row, StorageFailure, damaged
from dpcheckin.service.wire.canonical import parse
from dpcheckin.service.wire.documents import PlanDocument
from dpcheckin.service.wire.problems import Malformed
from dpcheckin.service.wire.schema import integer
from dpcheckin.service.wire.signing import read_signed

SCHEMA_VERSION = "1"
_CLIENT_BYTES = 16
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS clients (id BLOB PRIMARY KEY, token BLOB NOT NULL UNIQUE)",
    "CREATE TABLE IF NOT EXISTS plans (id BLOB PRIMARY KEY, document BLOB NOT NULL, next_round INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS keys (plan BLOB NOT NULL, round INTEGER NOT NULL, "
    "primes BLOB NOT NULL, PRIMARY KEY (plan, round))",
    "CREATE TABLE IF NOT EXISTS issued (plan BLOB NOT NULL, round INTEGER NOT NULL, "
    "client BLOB NOT NULL, blinded BLOB NOT NULL, PRIMARY KEY (plan, round, client))",
    "CREATE TABLE IF NOT EXISTS taken (client BLOB PRIMARY KEY, rounds INTEGER NOT NULL)",
)


@dataclass(frozen=True)
class Asked:
    """One token that a client asks for."""

    round: int
    blinded: bytes
    """Digest of the blinded message."""


class IssuerStore:
    """One file; several processes may have it open. `file`: the database, made when it is not there."""

    def __init__(self, file: Path) -> None:
        self._database = Database(file)
        try:
            self._prepare(file)
        except BaseException:
            self.close()
            raise

    def _prepare(self, file: Path) -> None:
        """Set the file up; one that a newer release has written is not touched."""
        with self._database.writing() as connection:
            run = connection.execute
            for statement in _SCHEMA:
                run(statement)
            run("INSERT INTO about VALUES ('version', ?), ('clients', '0') ON CONFLICT DO NOTHING", (SCHEMA_VERSION,))
            (version,) = run("SELECT value FROM about WHERE name = 'version'").fetchone()
            if version != SCHEMA_VERSION:
                raise StorageFailure(
                    f"{file} is of version {str(version)[:20]}, this program knows {SCHEMA_VERSION}: "
                    "run the release that wrote it, or a newer one (docs/upgrading.md)"
                )

    def verify(self) -> None:
        """Read everything that is served; raises `StorageFailure` if it makes no sense.

        Every page and index, every plan against its id, every key by a signature. A client's changed digest is not
        found, and locks that client out.
        """
        self._database.check_pages()
        read = self._database.read
        try:
            self.clients_version()
            for plan, document, first in read("SELECT id, document, next_round FROM plans"):
                integer(0)("next_round", first)
                if read_signed(PlanDocument, parse(document), None).id != plan:
                    raise Malformed("a plan is not the one that was written")
            for (primes,) in read("SELECT primes FROM keys"):
                PrivateKey.from_bytes(primes).check()
        except (Malformed, SigningFailure, ValueError, TypeError, IndexError) as problem:
            raise damaged(str(problem) or "a value of the wrong type") from None

    def probe(self) -> None:
        """Write something that means nothing: raises `StorageFailure` when tokens would fail."""
        with self._database.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO about VALUES ('probe', ?)", (secrets.token_hex(8),))

    def close(self) -> None:
        """Give the file back."""
        self._database.close()

    # --- clients ------------------------------------------------------------------------------

    def enroll(self, tokens: Sequence[bytes]) -> list[bytes]:
        """New clients, one for each digest of an access token; their ids."""
        clients = [secrets.token_bytes(_CLIENT_BYTES) for _ in tokens]
        with self._database.writing() as connection:
            for client, token in zip(clients, tokens, strict=True):
                connection.execute("INSERT INTO clients VALUES (?, ?)", (client, token))
            _count_clients(connection)
        return clients

    def revoke(self, client: bytes) -> bool:
        """Make a client's access token worthless; False if there is no such client.

        What it got already stays: tokens name nobody, so none can be taken back.
        """
        with self._database.writing() as connection:
            gone = connection.execute("DELETE FROM clients WHERE id = ?", (client,)).rowcount
            _count_clients(connection)
        return bool(gone)

    def clients_version(self) -> int:
        """Another number whenever the list of clients has changed."""
        return int(self._database.read("SELECT value FROM about WHERE name = 'clients'")[0][0])

    def clients(self) -> dict[bytes, bytes]:
        """Ids by the digest of the access token."""
        return {token: client for client, token in self._database.read("SELECT id, token FROM clients")}

    def has_taken(self, client: bytes, rounds: int) -> bool:
        """Note, durably, that a `client` has taken part in so many `rounds`; False if it was further before."""
        known = self._database.read("SELECT rounds FROM taken WHERE client = ?", client)
        if known and rounds <= known[0][0]:
            return bool(rounds == known[0][0])
        with self._database.writing() as connection:
            connection.execute(
                "INSERT INTO taken VALUES (?, ?) ON CONFLICT (client) DO UPDATE SET rounds = max(rounds, ?)",
                (client, rounds, rounds),
            )
        return True

    def crowd(self, plan: bytes, round_number: int) -> int:
        """How many clients may have a token of a round `round_number` of a `plan`: all who are enrolled, and who got
        one and were revoked since."""
        holders = "SELECT id FROM clients UNION SELECT client FROM issued WHERE plan = ? AND round = ?"
        return int(self._database.read(f"SELECT count(*) FROM ({holders})", plan, round_number)[0][0])

    # --- copies -------------------------------------------------------------------------------

    def copied(self) -> tuple[list[Row], list[Row]]:
        """Of one moment: clients with digest and rounds taken part in; plans' documents with their next rounds."""
        with self._database.writing() as connection:
            clients = connection.execute(
                "SELECT id, token, coalesce(rounds, 0) FROM clients LEFT JOIN taken ON client = id"
            ).fetchall()
            return clients, connection.execute("SELECT document, next_round FROM plans").fetchall()

    def put_back(self, clients: Sequence[Row], plans: Sequence[Row]) -> None:
        """Fill an empty store with what `copied` gave: `clients` and `plans`."""
        with self._database.writing() as connection:
            connection.executemany("INSERT INTO clients VALUES (?, ?)", [one[:2] for one in clients])
            connection.executemany("INSERT INTO taken VALUES (?, ?)", [(one[0], one[2]) for one in clients])
            for document, first in plans:
                plan = read_signed(PlanDocument, parse(document), None).id
                connection.execute("INSERT INTO plans VALUES (?, ?, ?)", (plan, document, first))
            _count_clients(connection)

    # --- plans and keys -----------------------------------------------------------------------

    def add_plan(self, plan: bytes, document: bytes) -> None:
        """Remember a plan and its document; again: nothing happens."""
        with self._database.writing() as connection:
            connection.execute("INSERT OR IGNORE INTO plans VALUES (?, ?, 0)", (plan, document))

    def next_round(self, plan: bytes) -> int | None:
        """The first round that tokens are given out for; None: the plan is not known."""
        rows = self._database.read("SELECT next_round FROM plans WHERE id = ?", plan)
        return int(rows[0][0]) if rows else None

    def keys(self, plan: bytes, rounds: range) -> dict[int, PrivateKey]:
        """The private keys there are for some rounds of a plan."""
        rows = self._database.read(
            "SELECT round, primes FROM keys WHERE plan = ? AND round >= ? AND round < ? ORDER BY round",
            plan,
            rounds.start,
            rounds.stop,
        )
        return {number: PrivateKey.from_bytes(primes) for number, primes in rows}

    def add_keys(self, plan: bytes, keys: dict[int, PrivateKey]) -> None:
        """Keep fresh keys of a plan; one that is there stays."""
        with self._database.writing() as connection:
            for number, key in keys.items():
                connection.execute("INSERT OR IGNORE INTO keys VALUES (?, ?, ?)", (plan, number, key.to_bytes()))

    def pass_rounds(self, plan: bytes, first: int) -> None:
        """Destroy keys and lists of the plan's rounds before `first`; the way never leads back."""
        with self._database.writing() as connection:
            connection.execute("UPDATE plans SET next_round = ? WHERE id = ? AND next_round < ?",
                (first, plan, first))  # fmt: skip
            for table in ("keys", "issued"):
                connection.execute(f"DELETE FROM {table} WHERE plan = ? AND round < ?", (plan, first))

    def forget_keys(self, plan: bytes | None = None) -> int:
        """Destroy all keys (of one plan): new ones are made, and clients fetch tokens anew."""
        with self._database.writing() as connection:
            for table in ("issued", "keys"):
                gone = connection.execute(f"DELETE FROM {table} WHERE plan = coalesce(?, plan)", (plan,)).rowcount
        return int(gone)

    # --- tokens -------------------------------------------------------------------------------

    def issue(self, plan: bytes, client: bytes, asked: Sequence[Asked]) -> list[PrivateKey | None]:
        """Write down, durably, that a `client` gets the tokens of a `plan` it has `asked` for; the keys to sign them
        with.

        None for a round that has no key, is past, or for which the client has asked for another token before.
        """
        with self._database.writing() as connection:
            row = connection.execute("SELECT next_round FROM plans WHERE id = ?", (plan,)).fetchone()
            first = row[0] if row else 0
            return [None if one.round < first else self._issue_one(connection, plan, client, one) for one in asked]

    @staticmethod
    def _issue_one(connection: sqlite3.Connection, plan: bytes, client: bytes, one: Asked) -> PrivateKey | None:
        key = connection.execute("SELECT primes FROM keys WHERE plan = ? AND round = ?", (plan, one.round)).fetchone()
        if key is None:
            return None
        place = (plan, one.round, client)
        connection.execute("INSERT OR IGNORE INTO issued VALUES (?, ?, ?, ?)", (*place, one.blinded))
        (kept,) = connection.execute(
            "SELECT blinded FROM issued WHERE plan = ? AND round = ? AND client = ?", place
        ).fetchone()
        return PrivateKey.from_bytes(key[0]) if kept == one.blinded else None


def _count_clients(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE about SET value = CAST(value AS INTEGER) + 1 WHERE name = 'clients'")
