"""The tables of a database, its version, how an older one is brought up to date, what damage shows.

A database says its version in `about`. An older one is migrated, step by step, in the transaction that opens it; a
newer one is not touched. Version 2 added a name to the database and checksums of what SQL cannot check by itself:
rounds and the list of clients.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping

from dpcheckin.service.shuffler.stores.transaction import Transaction, round_checksum, round_from
from dpcheckin.service.storage.database import StorageFailure, damaged
from dpcheckin.service.wire.canonical import digest, parse
from dpcheckin.service.wire.documents import KeyDocument, PlanDocument, RoundDocument
from dpcheckin.service.wire.problems import Malformed
from dpcheckin.service.wire.signing import read_signed

VERSION = 2

# {blob}, {int}, {real} and {serial} are spelled differently by the two. This is version 1: what
# came later is in the migrations, so that old and new databases end alike.
_TABLES = (
    "CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS plans (id {blob} PRIMARY KEY, document {blob} NOT NULL, place {int} NOT NULL UNIQUE)",
    "CREATE TABLE IF NOT EXISTS keys (plan {blob} NOT NULL, id {blob} NOT NULL, "
    "from_round {int} NOT NULL, document {blob} NOT NULL, PRIMARY KEY (plan, id))",
    "CREATE TABLE IF NOT EXISTS models (id {blob} PRIMARY KEY, body {blob} NOT NULL)",
    "CREATE TABLE IF NOT EXISTS rounds (serial {serial}, plan {blob} NOT NULL, "
    "number {int} NOT NULL, document {blob} NOT NULL, opens {real} NOT NULL, "
    "closes {real} NOT NULL, state TEXT NOT NULL, present {int}, reports {int}, reason TEXT, "
    "charge {blob}, share_sum {blob}, purged {int} NOT NULL, UNIQUE (plan, number))",
    "CREATE INDEX IF NOT EXISTS rounds_by_state ON rounds (state, purged)",
    "CREATE TABLE IF NOT EXISTS clients (id {blob} PRIMARY KEY, token {blob} NOT NULL UNIQUE)",
)


def _to_version_2(transaction: Transaction, types: Mapping[str, str]) -> None:
    transaction.run("ALTER TABLE rounds ADD COLUMN checksum {blob}".format(**types))
    for row in transaction.all_rounds():
        transaction.seal_round(row[0])
    transaction.set_about("id", secrets.token_hex(16))
    transaction.set_about("clients_sum", format(clients_sum(_clients(transaction)), "x"))


_MIGRATIONS: dict[int, Callable[[Transaction, Mapping[str, str]], None]] = {2: _to_version_2}


def prepare(transaction: Transaction, types: Mapping[str, str]) -> int:
    """Make what is missing and bring an older database up to date, all in one `transaction`, with `types` as this
    database spells them; the version that was found.
    """
    for statement in _TABLES:
        transaction.run(statement.format(**types))
    recorded = transaction.about("version")
    if recorded is None:
        transaction.set_about("version", "1")
        transaction.set_about("clients", "0")
    before = 1 if recorded is None else int(recorded) if recorded.isdecimal() and len(recorded) < 9 else 0
    if not 1 <= before <= VERSION:
        raise StorageFailure(
            f"the database is of version {(recorded or '')[:20]!r}, this shuffler knows 1 to {VERSION}:"
            " run the release that wrote it, or a newer one (docs/upgrading.md)"
        )
    for version in range(before + 1, VERSION + 1):
        _MIGRATIONS[version](transaction, types)
        transaction.set_about("version", str(version))
    return before


# --- damage ---------------------------------------------------------------------------------


def clients_sum(clients: Iterable[tuple[bytes, bytes]]) -> int:
    """A sum over (id, token) that any change of any of them changes, whatever their order."""
    total = 0
    for client, token in clients:
        total += int.from_bytes(hashlib.sha256(client + token).digest())
    return total % 2**256


def add_clients(transaction: Transaction, clients: Collection[tuple[bytes, bytes]]) -> None:
    """Enroll clients in a transaction: pairs of id and token digest."""
    transaction.run_many("INSERT INTO clients (id, token) VALUES (?, ?)", clients)
    count_clients(transaction, clients_sum(clients))


def count_clients(transaction: Transaction, change: int) -> None:
    """In a transaction: count up the version of the list of clients, and add the `change` to its checksum."""
    transaction.run("UPDATE about SET value = CAST(value AS INTEGER) + 1 WHERE name = 'clients'")
    before = int(transaction.about("clients_sum") or "0", 16)
    transaction.set_about("clients_sum", format((before + change) % 2**256, "x"))


def _clients(transaction: Transaction) -> list[tuple[bytes, bytes]]:
    rows = transaction.run("SELECT id, token FROM clients")
    return [(bytes(row[0]), bytes(row[1])) for row in rows]


def check_content(transaction: Transaction) -> None:
    """Compare what is stored with its digests; damage raises `StorageFailure`.

    The database itself notices a torn page, not a changed bit. Reports need no check here: a sealed part that was
    changed does not open.
    """
    try:
        _check_documents(transaction)
        _check_rounds(transaction)
    except (Malformed, ValueError, TypeError, KeyError) as problem:
        raise damaged(str(problem) or "a value of the wrong type") from None
    recorded = transaction.about("clients_sum")
    if recorded != format(clients_sum(_clients(transaction)), "x"):
        raise damaged("the list of clients is not the one that was written")


def _check_documents(transaction: Transaction) -> None:
    for plan, document in transaction.run("SELECT id, document FROM plans"):
        if read_signed(PlanDocument, parse(bytes(document)), None).id != bytes(plan):
            raise Malformed("a plan is not the one that was written")
    for plan, key, from_round, document in transaction.run("SELECT plan, id, from_round, document FROM keys"):
        held = read_signed(KeyDocument, parse(bytes(document)), None)
        if (bytes.fromhex(held.plan), held.key_id, held.from_round) != (bytes(plan), bytes(key), from_round):
            raise Malformed("a key is not the one that was written")
    for (model,) in transaction.run("SELECT id FROM models"):
        (body,) = transaction.run("SELECT body FROM models WHERE id = ?", model)
        if digest(bytes(body[0])) != bytes(model):
            raise Malformed("a model is not the one that was written")


def _check_rounds(transaction: Transaction) -> None:
    for *columns, checksum in transaction.all_rounds():
        record = round_from(columns)
        if checksum is None or bytes(checksum) != round_checksum(record):
            raise Malformed(f"round {record.number} is not the one that was written")
        read_signed(RoundDocument, parse(record.document), None)
