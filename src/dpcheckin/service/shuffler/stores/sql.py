"""What SQLite and PostgreSQL have in common: control work in plain SQL.

Each round has four tables of its own, named by its serial: `present_N` and `seen_N` (clients),
`reports_N` (random id, body; covers have ids below 0) and `release_N` (position, id). Clients and
reports share no column; destroying a round is dropping its tables. Placeholders are written `?`.
"""

from __future__ import annotations

import dataclasses
import hashlib
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from dpcheckin.service.shuffler.chance import Ids
from dpcheckin.service.shuffler.records import Counts, PlanRecord, RoundRecord, State
from dpcheckin.service.shuffler.stores.base import Transaction

ATTENDANCE = ("present", "seen")
_COLUMNS = (
    "serial, plan, number, document, opens, closes, state, present, reports, reason, charge, "
    "share_sum, purged"
)
_CHANGEABLE = {"state", "present", "reports", "reason", "charge", "share_sum", "purged"}

Row = Sequence[Any]


def round_checksum(record: RoundRecord) -> bytes:
    """Digest of everything that is remembered of a round: a changed bit does not go unnoticed."""
    values = dataclasses.astuple(record)
    plain = [one.value if isinstance(one, State) else one for one in values]
    return hashlib.sha256(repr(plain).encode()).digest()


def round_from(row: Row) -> RoundRecord:
    """A row of `rounds` as a value."""
    serial, plan, number, document, opens, closes, state, present, reports, reason = row[:10]
    charge, share_sum, purged = row[10:]
    return RoundRecord(
        serial,
        bytes(plan),
        number,
        bytes(document),
        opens,
        closes,
        State(state),
        present,
        reports,
        reason,
        None if charge is None else bytes(charge),
        None if share_sum is None else bytes(share_sum),
        bool(purged),
    )


class SqlTransaction(Transaction):
    """Control work over a connection that has already begun a transaction."""

    @abstractmethod
    def run(self, statement: str, *values: Any) -> list[Row]:
        """All rows of a statement."""

    @abstractmethod
    def run_many(self, statement: str, rows: Iterable[Row]) -> None:
        """One statement for each row of values."""

    @abstractmethod
    def change(self, statement: str, *values: Any) -> int:
        """How many rows a statement changed."""

    @abstractmethod
    def create_round_tables(self, serial: int) -> None:
        """`present_N`, `seen_N` and `reports_N`."""

    @abstractmethod
    def insert_release(self, serial: int, order: Ids) -> None:
        """Create and fill `release_N`."""

    def one(self, statement: str, *values: Any) -> Row | None:
        """The first row."""
        rows = self.run(statement, *values)
        return rows[0] if rows else None

    def clients_changed(self) -> None:
        """Count up the version of the list of clients."""
        self.run("UPDATE about SET value = CAST(value AS INTEGER) + 1 WHERE name = 'clients'")

    def about(self, name: str) -> str | None:
        """What the database says of itself under a name."""
        row = self.one("SELECT value FROM about WHERE name = ?", name)
        return None if row is None else str(row[0])

    def set_about(self, name: str, value: str) -> None:
        """Replace what the database says of itself under a name."""
        self.run(
            "INSERT INTO about (name, value) VALUES (?, ?) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
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
        row = self.one("SELECT id, document FROM plans ORDER BY place DESC LIMIT 1")
        return None if row is None else PlanRecord(bytes(row[0]), bytes(row[1]))

    def knows_plan(self, plan: bytes) -> bool:
        return self.one("SELECT 1 FROM plans WHERE id = ?", plan) is not None

    def set_plan(self, plan: bytes, document: bytes) -> None:
        self.run(
            "INSERT INTO plans (id, document, place) "
            "SELECT ?, ?, coalesce(max(place), 0) + 1 FROM plans",
            plan,
            document,
        )

    def key(self, plan: bytes, key_id: bytes) -> tuple[int, bytes] | None:
        row = self.one(
            "SELECT from_round, document FROM keys WHERE plan = ? AND id = ?", plan, key_id
        )
        return None if row is None else (row[0], bytes(row[1]))

    def keys(self, plan: bytes) -> list[bytes]:
        rows = self.run("SELECT document FROM keys WHERE plan = ? ORDER BY from_round, id", plan)
        return [bytes(row[0]) for row in rows]

    def put_key(self, plan: bytes, key_id: bytes, from_round: int, document: bytes) -> None:
        self.run(
            "INSERT INTO keys (plan, id, from_round, document) VALUES (?, ?, ?, ?)",
            plan,
            key_id,
            from_round,
            document,
        )

    def has_model(self, model: bytes) -> bool:
        return self.one("SELECT 1 FROM models WHERE id = ?", model) is not None

    def put_model(self, model: bytes, body: bytes) -> None:
        self.run("INSERT INTO models (id, body) VALUES (?, ?) ON CONFLICT DO NOTHING", model, body)

    def forget_models(self, keep: bytes) -> None:
        self.run("DELETE FROM models WHERE id <> ?", keep)

    def round(self, plan: bytes, number: int) -> RoundRecord | None:
        row = self.one(f"SELECT {_COLUMNS} FROM rounds WHERE plan = ? AND number = ?", plan, number)
        return None if row is None else round_from(row)

    def last_round(self, plan: bytes) -> RoundRecord | None:
        row = self.one(
            f"SELECT {_COLUMNS} FROM rounds WHERE plan = ? ORDER BY number DESC LIMIT 1", plan
        )
        return None if row is None else round_from(row)

    def rounds(self, *states: State) -> list[RoundRecord]:
        marks = ", ".join("?" for _ in states)
        return self._rounds(f"state IN ({marks})", *(state.value for state in states))

    def count_rounds(self, plan: bytes, state: State, reason: str | None = None) -> int:
        row = self.one(
            "SELECT count(*) FROM rounds "
            "WHERE plan = ? AND state = ? AND coalesce(reason, '') = coalesce(?, '')",
            plan,
            state.value,
            reason,
        )
        assert row is not None
        return int(row[0])

    def unpurged(self) -> list[RoundRecord]:
        return self._rounds("state IN ('void', 'done') AND purged = 0")

    def _rounds(self, condition: str, *values: Any) -> list[RoundRecord]:
        rows = self.run(f"SELECT {_COLUMNS} FROM rounds WHERE {condition} ORDER BY serial", *values)
        return [round_from(row) for row in rows]

    def add_round(self, record: RoundRecord) -> None:
        self.run(
            "INSERT INTO rounds (plan, number, document, opens, closes, state, purged) "
            "VALUES (?, ?, ?, ?, ?, ?, 0)",
            record.plan,
            record.number,
            record.document,
            record.opens,
            record.closes,
            record.state.value,
        )
        added = self.round(record.plan, record.number)
        assert added is not None
        self.seal_round(added.serial)
        self.create_round_tables(added.serial)

    def change_round(self, serial: int, **changes: Any) -> None:
        assert changes.keys() <= _CHANGEABLE
        values = [value.value if isinstance(value, State) else value for value in changes.values()]
        values = [int(value) if isinstance(value, bool) else value for value in values]
        setting = ", ".join(f"{name} = ?" for name in changes)
        self.run(f"UPDATE rounds SET {setting} WHERE serial = ?", *values, serial)
        self.seal_round(serial)

    def counts(self, serial: int) -> Counts:
        tables = ("present_{}", "seen_{}", "reports_{} WHERE id >= 0")
        found = [self.one("SELECT count(*) FROM " + name.format(serial)) for name in tables]
        return Counts(*(int(row[0]) for row in found if row is not None))

    def forget_attendance(self, serial: int) -> None:
        for name in ATTENDANCE:
            self.run(f"DROP TABLE IF EXISTS {name}_{serial}")

    def fix_release(self, serial: int, order: Ids) -> None:
        self.insert_release(serial, order)
        # covers go with the round, a little at a time: here it would hold up everybody
        self.run(
            f"DELETE FROM reports_{serial} "
            f"WHERE id >= 0 AND id NOT IN (SELECT id FROM release_{serial})"
        )
