"""The store for tests and trials: everything in this process, nothing survives it."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np

from dpcheckin.service.shuffler.chance import Ids
from dpcheckin.service.shuffler.records import Counts, Entry, PlanRecord, RoundRecord, State
from dpcheckin.service.shuffler.stores.arena import Arena, Place, Pool
from dpcheckin.service.shuffler.stores.base import IdCollision, Store, Taken, Transaction


class _Batch:
    """Reports and attendance of one round."""

    def __init__(self, pool: Pool) -> None:
        self.present: set[bytes] = set()
        self.seen: set[bytes] = set()
        self.reports: dict[int, Place] = {}
        self.covers: dict[int, Place] = {}
        self.arena = Arena(pool)
        self.order: list[int] = []


class _State:
    """Control data; copied before a transaction, so that it can be undone."""

    def __init__(self) -> None:
        self.plans: dict[bytes, PlanRecord] = {}
        self.current: bytes | None = None
        self.keys: dict[tuple[bytes, bytes], tuple[int, bytes]] = {}
        self.models: dict[bytes, bytes] = {}
        self.rounds: dict[int, RoundRecord] = {}

    def copy(self) -> _State:
        other = _State()
        other.plans, other.current = dict(self.plans), self.current
        other.keys, other.models = dict(self.keys), dict(self.models)
        other.rounds = dict(self.rounds)
        return other


class _MemoryTransaction(Transaction):
    def __init__(self, state: _State, batches: dict[int, _Batch], pool: Pool) -> None:
        self._state = state
        self._batches = batches
        self._pool = pool

    def plan(self) -> PlanRecord | None:
        current = self._state.current
        return None if current is None else self._state.plans[current]

    def knows_plan(self, plan: bytes) -> bool:
        return plan in self._state.plans

    def set_plan(self, plan: bytes, document: bytes) -> None:
        self._state.plans[plan] = PlanRecord(plan, document)
        self._state.current = plan

    def key(self, plan: bytes, key_id: bytes) -> tuple[int, bytes] | None:
        return self._state.keys.get((plan, key_id))

    def keys(self, plan: bytes) -> list[bytes]:
        found = [(k[0], i[1], k[1]) for i, k in self._state.keys.items() if i[0] == plan]
        return [document for _, _, document in sorted(found)]

    def put_key(self, plan: bytes, key_id: bytes, from_round: int, document: bytes) -> None:
        self._state.keys[plan, key_id] = (from_round, document)

    def has_model(self, model: bytes) -> bool:
        return model in self._state.models

    def put_model(self, model: bytes, body: bytes) -> None:
        self._state.models[model] = body

    def forget_models(self, keep: bytes) -> None:
        self._state.models = {d: body for d, body in self._state.models.items() if d == keep}

    def round(self, plan: bytes, number: int) -> RoundRecord | None:
        for record in self._state.rounds.values():
            if (record.plan, record.number) == (plan, number):
                return record
        return None

    def last_round(self, plan: bytes) -> RoundRecord | None:
        of_plan = (r for r in reversed(self._state.rounds.values()) if r.plan == plan)
        return next(of_plan, None)

    def rounds(self, *states: State) -> list[RoundRecord]:
        return [r for r in self._state.rounds.values() if r.state in states]

    def count_rounds(self, plan: bytes, state: State, reason: str | None = None) -> int:
        wanted = (plan, state, reason)
        return sum((r.plan, r.state, r.reason) == wanted for r in self._state.rounds.values())

    def unpurged(self) -> list[RoundRecord]:
        return [r for r in self.rounds(State.VOID, State.DONE) if not r.purged]

    def add_round(self, record: RoundRecord) -> None:
        serial = len(self._state.rounds) + 1
        self._state.rounds[serial] = dataclasses.replace(record, serial=serial)
        self._batches[serial] = _Batch(self._pool)

    def change_round(self, serial: int, **changes: Any) -> None:
        self._state.rounds[serial] = dataclasses.replace(self._state.rounds[serial], **changes)

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
    """Dictionaries under one lock."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._pool = Pool()
        self._state = _State()
        self._batches: dict[int, _Batch] = {}
        self._clients: dict[bytes, bytes] = {}
        self._version = 0

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        with self._lock:
            copy = self._state.copy()
            yield _MemoryTransaction(copy, self._batches, self._pool)
            self._state = copy

    def accept(self, serial: int, entries: Sequence[Entry]) -> list[Taken]:
        with self._lock:
            if self._state.rounds[serial].state is not State.OPEN:
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
            if self._state.rounds[serial].state is not State.OPEN:
                return False
            self._batches[serial].present.update(clients)
            return True

    def model(self, model: bytes) -> bytes | None:
        return self._state.models.get(model)

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

    def enroll(self, digests: Sequence[bytes]) -> list[bytes]:
        made = [os.urandom(16) for _ in digests]
        with self._lock:
            self._clients.update(zip(digests, made, strict=True))
            self._version += 1
        return made

    def replace_token(self, client: bytes, token: bytes) -> bool:
        with self._lock:
            if not self.revoke(client):
                return False
            self._clients[token] = client
            return True

    def revoke(self, client: bytes) -> bool:
        with self._lock:
            tokens = [t for t, c in self._clients.items() if c == client]
            for token in tokens:
                del self._clients[token]
            self._version += 1
            return bool(tokens)

    def clients(self) -> dict[bytes, bytes]:
        with self._lock:
            return dict(self._clients)

    def clients_version(self) -> int:
        return self._version

    def close(self) -> None:
        pass
