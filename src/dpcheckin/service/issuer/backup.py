"""Backup and restore of an issuer: its identity, the analyzer's token, who is enrolled, plans and how far they are.

Never a round's private key, and nobody who got a token: a copy of those would outlive their destruction. Taken in one
transaction beside a running issuer. A restored one makes new keys for the rounds to come, and clients fetch new tokens:
those that were signed with a lost key are worth nothing, so that nobody has two of one round.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.issuer.settings import STORE
from dpcheckin.service.issuer.store import SCHEMA_VERSION, IssuerStore
from dpcheckin.service.storage.backup_file import BackupDamaged, read_backup, write_backup
from dpcheckin.service.storage.files import make_folder, write_secret
from dpcheckin.service.storage.identity import IDENTITY, TOKEN_FILE

KIND = "issuer"
_SECRETS = (IDENTITY, TOKEN_FILE)


def backup(folder: Path, file: Path) -> int:
    """Write the `folder` of an issuer, which may be running, to a new `file`; how many records that were."""
    if not all((folder / name).is_file() for name in (*_SECRETS, STORE)):
        raise InvalidParameter("folder", str(folder), "the folder of an issuer that has run")
    with closing(IssuerStore(folder / STORE)) as store:
        store.verify()  # damage is not carried on
        return write_backup(file, KIND, _records(folder, store))


def _records(folder: Path, store: IssuerStore) -> Iterator[dict[str, Any]]:
    yield {"version": SCHEMA_VERSION, **{name: (folder / name).read_text().strip() for name in _SECRETS}}
    clients, plans = store.copied()
    for client, token, taken in clients:
        yield {"client": client.hex(), "token": token.hex(), "taken": taken}
    for document, first in plans:
        yield {"plan": document.decode(), "first": first}


def restore(folder: Path, file: Path) -> int:
    """Make a `folder` without an issuer's files from the backup in a `file`; how many clients it knows."""
    for name in (*_SECRETS, STORE):
        if (folder / name).exists():
            raise InvalidParameter("folder", str(folder), f"one without {name}")
    records = read_backup(file, KIND)
    if not records or records[0].get("version") != SCHEMA_VERSION:
        raise BackupDamaged(f"{file} is not of version {SCHEMA_VERSION}, which this issuer knows")
    try:
        secrets = {name: str(records[0][name]) for name in _SECRETS}
        clients = [
            (bytes.fromhex(one["client"]), bytes.fromhex(one["token"]), int(one["taken"]))
            for one in records
            if "client" in one
        ]
        plans = [(one["plan"].encode(), int(one["first"])) for one in records if "plan" in one]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise BackupDamaged(f"{file} holds a record that is none of an issuer's") from None
    make_folder(folder)
    fresh = folder / f"{STORE}.new"
    fresh.unlink(missing_ok=True)
    with closing(IssuerStore(fresh)) as store:
        store.put_back(clients, plans)
        store.verify()
    for name, content in secrets.items():
        write_secret(folder / name, content.encode() + b"\n")
    fresh.rename(folder / STORE)  # last: a folder that is not whole is not served as if it were
    return len(clients)
