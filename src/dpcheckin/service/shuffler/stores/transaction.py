"""Control work in SQL: plans, keys, models and rounds, the same over SQLite and PostgreSQL.

Each round has four tables of its own, named by its serial: `present_N` and `seen_N` (clients), `reports_N` (random id,
body; covers have ids below 0) and `release_N` (position, id). Clients and reports share no column; destroying a round
is dropping its tables. Placeholders are written `?`.
"""

from __future__ import annotations

import dataclasses
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from dpcheckin.service.shuffler.chance import Ids
from dpcheckin.service.shuffler.records import PlanRecord, RoundCounts, RoundRecord, State
from dpcheckin.service.storage.database import Row

_NAMES = [field.name for field in dataclasses.fields(RoundRecord)]
_COLUMNS = ", ".join(_NAMES)
_BLOBS = ("plan", "document", "charge", "share_sum")
_CHANGEABLE = {"state", "present", "reports", "reason", "charge", "share_sum", "purged"}


def round_checksum(record: RoundRecord) -> bytes:
    """Digest of everything that is remembered of a round: a changed bit does not go unnoticed."""
    plain = [value.value if isinstance(value, State) else value for value in dataclasses.astuple(record)]
    return hashlib.sha256(repr(plain).encode()).digest()


def _plain(value: Any) -> Any:
    """A field of a round as both databases take it."""
    if isinstance(value, State):
        return value.value
    return int(value) if isinstance(value, bool) else value


def round_from(row: Row) -> RoundRecord:
    """A row of `rounds` as a value."""
    values = dict(zip(_NAMES, row, strict=True))
    for name in _BLOBS:
        if values[name] is not None:
            values[name] = bytes(values[name])
    values["state"], values["purged"] = State(values["state"]), bool(values["purged"])
    return RoundRecord(**values)


class Transaction(ABC):
    """Control work over a connection that has already begun a transaction: all of it happens, or nothing."""

    @abstractmethod
    def run(self, statement: str, *values: Any) -> list[Row]:
        """All rows of a statement, with `values` for its placeholders."""

    @abstractmethod
    def run_many(self, statement: str, rows: Iterable[Row]) -> None:
        """One statement for each row of values: `statement` with each of `rows`."""

    @abstractmethod
    def create_round_tables(self, serial: int) -> None:
        """`present_N`, `seen_N` and `reports_N`."""

    @abstractmethod
    def insert_release(self, serial: int, order: Ids) -> None:
        """Create and fill `release_N` of the round `serial` with ids in this `order`."""

    def one(self, statement: str, *values: Any) -> Row | None:
        """The first row of a statement, with `values` for its placeholders."""
        rows = self.run(statement, *values)
        return rows[0] if rows else None

    def about(self, name: str) -> str | None:
        """What the database says of itself under a name."""
        row = self.one("SELECT value FROM about WHERE name = ?", name)
        return None if row is None else str(row[0])

    def set_about(self, name: str, value: str) -> None:
        """Let the database say this `value` of itself under a name."""
        self.run(
            "INSERT INTO about (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            name,
            value,
        )

    def all_rounds(self) -> list[Row]:
        """Every row of `rounds`: its columns, then its checksum."""
        return self.run(f"SELECT {_COLUMNS}, checksum FROM rounds ORDER BY serial")

    def seal_round(self, serial: int) -> None:
        """Write down the checksum of a row of `rounds` as it stands."""
        row = self.one(f"SELECT {_COLUMNS} FROM rounds WHERE serial = ?", serial)
        if row is not None:
            checksum = round_checksum(round_from(row))
            self.run("UPDATE rounds SET checksum = ? WHERE serial = ?", checksum, serial)

    def plan(self) -> PlanRecord | None:
        """The current plan."""
        row = self.one("SELECT id, document FROM plans ORDER BY place DESC LIMIT 1")
        return None if row is None else PlanRecord(bytes(row[0]), bytes(row[1]))

    def knows_plan(self, plan: bytes) -> bool:
        """Was this plan ever current?"""
        return self.one("SELECT 1 FROM plans WHERE id = ?", plan) is not None

    def set_plan(self, plan: bytes, document: bytes) -> None:
        """A plan that was never current becomes it, with its signed `document`."""
        self.run(
            "INSERT INTO plans (id, document, place) SELECT ?, ?, coalesce(max(place), 0) + 1 FROM plans",
            plan,
            document,
        )

    def key(self, plan: bytes, key_id: bytes) -> tuple[int, bytes] | None:
        """First round and signed document of the key `key_id` of a plan."""
        row = self.one("SELECT from_round, document FROM keys WHERE plan = ? AND id = ?", plan, key_id)
        return None if row is None else (row[0], bytes(row[1]))

    def keys(self, plan: bytes) -> list[bytes]:
        """All signed keys of a plan, by first round and id."""
        rows = self.run("SELECT document FROM keys WHERE plan = ? ORDER BY from_round, id", plan)
        return [bytes(row[0]) for row in rows]

    def put_key(self, plan: bytes, key_id: bytes, from_round: int, document: bytes) -> None:
        """A new key of a plan: `key_id`, `from_round` on, with its signed `document`."""
        self.run(
            "INSERT INTO keys (plan, id, from_round, document) VALUES (?, ?, ?, ?)", plan, key_id, from_round, document
        )

    def has_model(self, model: bytes) -> bool:
        """Is a model of this digest here?"""
        return self.one("SELECT 1 FROM models WHERE id = ?", model) is not None

    def put_model(self, model: bytes, body: bytes) -> None:
        """Keep `body` under the digest `model`; one that is here already stays."""
        self.run("INSERT INTO models (id, body) VALUES (?, ?) ON CONFLICT DO NOTHING", model, body)

    def forget_models(self, keep: bytes) -> None:
        """Forget all models but this one."""
        self.run("DELETE FROM models WHERE id <> ?", keep)

    def round(self, plan: bytes, number: int) -> RoundRecord | None:
        """The round of a plan with this number."""
        row = self.one(f"SELECT {_COLUMNS} FROM rounds WHERE plan = ? AND number = ?", plan, number)
        return None if row is None else round_from(row)

    def last_round(self, plan: bytes) -> RoundRecord | None:
        """The round with the highest number."""
        row = self.one(f"SELECT {_COLUMNS} FROM rounds WHERE plan = ? ORDER BY number DESC LIMIT 1", plan)
        return None if row is None else round_from(row)

    def rounds(self, *states: State) -> list[RoundRecord]:
        """All rounds of any plan in one of these states, oldest first."""
        marks = ", ".join("?" for _ in states)
        return self._rounds(f"state IN ({marks})", *(state.value for state in states))

    def count_rounds(self, plan: bytes, state: State, reason: str | None = None) -> int:
        """How many rounds of a plan are in this state, for this reason."""
        same = "plan = ? AND state = ? AND coalesce(reason, '') = coalesce(?, '')"
        return int(self.run(f"SELECT count(*) FROM rounds WHERE {same}", plan, state.value, reason)[0][0])

    def unpurged(self) -> list[RoundRecord]:
        """Void and done rounds of which something may be left."""
        return self._rounds("state IN ('void', 'done') AND purged = 0")

    def _rounds(self, condition: str, *values: Any) -> list[RoundRecord]:
        rows = self.run(f"SELECT {_COLUMNS} FROM rounds WHERE {condition} ORDER BY serial", *values)
        return [round_from(row) for row in rows]

    def insert_round(self, record: RoundRecord) -> int:
        """A round as it is remembered, without tables of its own; its serial, which is the store's to choose."""
        values = [_plain(getattr(record, name)) for name in _NAMES[1:]]
        marks = ", ".join("?" for _ in values)
        self.run(f"INSERT INTO rounds ({', '.join(_NAMES[1:])}) VALUES ({marks})", *values)
        added = self.round(record.plan, record.number)
        assert added is not None
        self.seal_round(added.serial)
        return added.serial

    def change_round(self, serial: int, **changes: Any) -> None:
        """Set fields of the round `serial`, by name; it keeps reports from being accepted into it meanwhile."""
        assert changes.keys() <= _CHANGEABLE
        setting = ", ".join(f"{name} = ?" for name in changes)
        self.run(f"UPDATE rounds SET {setting} WHERE serial = ?", *map(_plain, changes.values()), serial)
        self.seal_round(serial)

    def counts(self, serial: int) -> RoundCounts:
        """Clients who fetched the round, clients served, reports held."""
        tables = ("present_{}", "seen_{}", "reports_{} WHERE id >= 0")
        rows = [self.run("SELECT count(*) FROM " + name.format(serial))[0] for name in tables]
        return RoundCounts(*(int(row[0]) for row in rows))

    def forget_attendance(self, serial: int) -> None:
        """Destroy the lists of clients present and served."""
        for name in ("present", "seen"):
            self.run(f"DROP TABLE IF EXISTS {name}_{serial}")

    def drop_round_tables(self, serial: int) -> None:
        """Destroy what is left of a round: who was there, and every report."""
        self.forget_attendance(serial)
        for name in ("release", "reports"):
            self.run(f"DROP TABLE IF EXISTS {name}_{serial}")

    def fix_release(self, serial: int, order: Ids) -> None:
        """Fix what is released of the round `serial` in which `order`; reports not named in it are destroyed."""
        self.insert_release(serial, order)
        # covers go with the round, a little at a time: here it would hold up everybody
        self.run(f"DELETE FROM reports_{serial} WHERE id >= 0 AND id NOT IN (SELECT id FROM release_{serial})")
