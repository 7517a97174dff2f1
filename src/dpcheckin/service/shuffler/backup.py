"""Backup and restore of a shuffler: who is enrolled, what was announced, which rounds there were.

Never a report, and nobody who was present: a copy of those would outlive their destruction. The copy is taken in one
transaction beside a running shuffler, from SQLite or PostgreSQL, and goes back into either. Rounds that had not ended
when it was taken come back as done: they may have been released since, and are not released again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.shuffler.records import RoundRecord, State
from dpcheckin.service.shuffler.stores import schema
from dpcheckin.service.shuffler.stores.base import Store
from dpcheckin.service.shuffler.stores.sqlite import MemoryStore
from dpcheckin.service.shuffler.stores.transaction import Transaction, round_from
from dpcheckin.service.storage.backup_file import BackupDamaged, read_backup, write_backup

KIND = "shuffler"
_PLAIN = ("opens", "closes", "present", "reports", "reason")
"""Fields of a round that stand in a backup as they are."""


def backup(store: Store, file: Path, token: str | None = None, identity: str | None = None) -> int:
    """Write everything but reports of a store, which may be in use, to a new file; how many records that were.

    The analyzer's `token` can be kept too, and the shuffler's own `identity`, a seed in hex: clients believe no other's
    void rounds.
    """
    _check_kept(store)
    store.verify()
    with store.transaction() as transaction:
        return write_backup(file, KIND, _records(transaction, token, identity))


def _check_kept(store: Store) -> None:
    if isinstance(store, MemoryStore):
        raise InvalidParameter("store", "memory:", "sqlite:FILE or postgresql://…")


def _records(transaction: Transaction, token: str | None, identity: str | None) -> Iterator[dict[str, Any]]:
    known = {"version": schema.VERSION, "id": transaction.about("id")}
    yield {"about": {**known, "token": token, "identity": identity}}
    for plan, document in transaction.run("SELECT id, document FROM plans ORDER BY place"):
        yield {"plan": bytes(plan).hex(), "document": bytes(document).decode()}
    for plan, key, from_round, document in transaction.run(
        "SELECT plan, id, from_round, document FROM keys ORDER BY plan, from_round, id"
    ):
        named = {"key": bytes(key).hex(), "of": bytes(plan).hex()}
        yield {**named, "from": from_round, "document": bytes(document).decode()}
    for row in transaction.all_rounds():
        record = round_from(row[:-1])
        charge = None if record.charge is None else record.charge.hex()
        named = {"of": record.plan.hex(), "document": record.document.decode(), "state": record.state.value}
        plain = {name: getattr(record, name) for name in _PLAIN}
        yield {"round": record.number, **named, **plain, "charge": charge}
    for client, digest in transaction.run("SELECT id, token FROM clients"):
        yield {"client": bytes(client).hex(), "token": bytes(digest).hex()}


@dataclass(frozen=True)
class Backup:
    """A backup that was read whole, and is of a version that is known."""

    file: Path
    about: dict[str, Any]
    records: list[dict[str, Any]]


def read(file: Path) -> Backup:
    """Read a backup and check it, before any store is made for it. `file`: what `backup` wrote."""
    records = read_backup(file, KIND)
    about = records[0].get("about") if records else None
    if not isinstance(about, dict) or not isinstance(about.get("version"), int):
        raise BackupDamaged(f"{file} does not say of which version it is")
    if about["version"] > schema.VERSION:
        raise BackupDamaged(
            f"{file} is of version {about['version']}, this shuffler knows {schema.VERSION}: "
            "restore it with the release that wrote it, or a newer one"
        )
    return Backup(file, about, records[1:])


def restore(store: Store, kept: Backup) -> None:
    """Put what was `kept` into a store without clients, plans and rounds that nobody serves: all of it or nothing."""
    _check_kept(store)
    with store.serve_alone(), store.transaction() as transaction:
        _check_empty(transaction)
        try:
            _put_back(transaction, kept.about, kept.records)
        except (KeyError, TypeError, ValueError) as problem:
            raise BackupDamaged(f"{kept.file}: {problem}") from None
        schema.check_content(transaction)


def _check_empty(transaction: Transaction) -> None:
    for table in ("plans", "rounds", "clients"):
        if transaction.one(f"SELECT 1 FROM {table}") is not None:
            raise InvalidParameter("store", f"with {table}", "an empty one: nothing is overwritten")


def _put_back(transaction: Transaction, about: dict[str, Any], records: list[dict[str, Any]]) -> None:
    clients = []
    for record in records:
        if "plan" in record:
            transaction.set_plan(bytes.fromhex(record["plan"]), record["document"].encode())
        elif "key" in record:
            plan, key = bytes.fromhex(record["of"]), bytes.fromhex(record["key"])
            transaction.put_key(plan, key, record["from"], record["document"].encode())
        elif "round" in record:
            _put_round(transaction, record)
        else:
            clients.append((bytes.fromhex(record["client"]), bytes.fromhex(record["token"])))
    schema.add_clients(transaction, clients)
    if about.get("id"):
        transaction.set_about("id", str(about["id"]))


def _put_round(transaction: Transaction, record: dict[str, Any]) -> None:
    state = State(record["state"])
    if state is not State.VOID:
        state = State.DONE  # what had not ended may have been released since
    transaction.insert_round(
        RoundRecord(
            serial=0,
            plan=bytes.fromhex(record["of"]),
            number=record["round"],
            document=record["document"].encode(),
            state=state,
            charge=None if record["charge"] is None else bytes.fromhex(record["charge"]),
            purged=True,
            **{name: record[name] for name in _PLAIN},
        )
    )
