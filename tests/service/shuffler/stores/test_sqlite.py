"""SQLite: the reserve of disk, foreign files, locks, batches cut short, what memory keeps of the destroyed."""

from __future__ import annotations

from typing import Any

import pytest

from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.records import Entry, IdCollision
from dpcheckin.service.shuffler.stores.sqlite import MemoryStore, SqliteStore
from dpcheckin.service.storage.database import StorageBusy, StorageFailure
from dpcheckin.service.wire.problems import Problem
from service.shuffler_world import CHARGE, Analyzer, Clock, SeededChance, attend, send


def test_reports_leave_a_reserve_of_disk_for_closing_and_destroying(tmp_path: Any) -> None:
    free = [10_000]
    store = SqliteStore(tmp_path / "s.db", reserve=1000, free_bytes=lambda: free[0])
    clock = Clock()
    core = Shuffler(store, clock=clock, chance=SeededChance())
    analyzer = Analyzer.of(population=2, minimum_batch=0)
    analyzer.publish(core)
    analyzer.open(core, 0)
    attend(core, 2)
    assert send(core, analyzer, 0, 0) == [None]
    free[0] = 999
    with pytest.raises(StorageFailure, match="less than 1,000 bytes"):
        send(core, analyzer, 0, 1)
    with pytest.raises(StorageFailure):
        attend(core, 3)
    clock.now += 10
    core.claim(0, CHARGE)
    core.finish(0)
    store.close()


def test_a_database_that_is_none_or_of_another_version_is_refused(tmp_path: Any) -> None:
    (tmp_path / "none.db").write_bytes(b"this is not a database" * 100)
    with pytest.raises(StorageFailure, match="not a database"):
        SqliteStore(tmp_path / "none.db")
    store = SqliteStore(tmp_path / "other.db")
    store.database.writer.execute("UPDATE about SET value = '99' WHERE name = 'version'")
    store.close()
    with pytest.raises(StorageFailure, match="version"):
        SqliteStore(tmp_path / "other.db")
    with pytest.raises(StorageFailure, match="cannot open"):
        SqliteStore(tmp_path)


def test_a_locked_database_is_busy(tmp_path: Any) -> None:
    store, other = SqliteStore(tmp_path / "s.db"), SqliteStore(tmp_path / "s.db")
    other.database.writer.execute("PRAGMA busy_timeout = 20")
    with store.transaction(), pytest.raises(StorageBusy), other.transaction():
        pass
    store.close()
    other.close()


def test_a_batch_that_is_not_complete_is_not_passed_off_as_one() -> None:
    store, clock = MemoryStore(), Clock()
    core = Shuffler(store, clock=clock, chance=SeededChance())
    analyzer = Analyzer.of(population=2, minimum_batch=0)
    analyzer.publish(core)
    analyzer.open(core, 0)
    attend(core, 2)
    send(core, analyzer, 0, 0, 1)
    clock.now += 10
    core.claim(0, CHARGE)
    store.database.writer.execute("DELETE FROM release_1 WHERE position = 1")
    with pytest.raises(StorageFailure, match="no longer complete"):
        list(core.batch(0).chunks)


def test_what_is_destroyed_is_overwritten_in_memory_too() -> None:
    store = MemoryStore()
    with store.writing() as transaction:
        transaction.put_model(b"id", b"a body to be destroyed" * 1000)
    assert b"to be destroyed" in store.database.writer.serialize()
    with store.writing() as transaction:
        transaction.forget_models(b"")
    assert b"to be destroyed" not in store.database.writer.serialize()


def test_bodies_beside_the_tables_are_overwritten_when_their_round_is_destroyed() -> None:
    store, clock = MemoryStore(), Clock()
    core = Shuffler(store, clock=clock, chance=SeededChance())
    analyzer = Analyzer.of(population=2, minimum_batch=0)
    analyzer.publish(core)
    analyzer.open(core, 0)
    attend(core, 2)
    send(core, analyzer, 0, 0, 1)
    assert send(core, analyzer, 0, 1) == [Problem.DUPLICATE], "and what is not taken is not kept"
    (held,) = [list(kept.values()) for kept in store._bodies.values()]
    assert len(held) == 2 and all(any(body) for body in held)
    clock.now += 10
    core.claim(0, CHARGE)
    core.finish(0)
    core.tick()
    assert not store._bodies and not any(any(body) for body in held)


def test_rows_that_wait_are_there_for_whoever_asks_and_survive_what_fails() -> None:
    store, clock = MemoryStore(), Clock()
    core = Shuffler(store, clock=clock, chance=SeededChance())
    analyzer = Analyzer.of(population=3, minimum_batch=0)
    analyzer.publish(core)
    analyzer.open(core, 0)
    attend(core, 3)
    send(core, analyzer, 0, 0, 1)
    assert store.read("SELECT count(*) FROM seen_1") == [(2,)]
    send(core, analyzer, 0, 2)
    with pytest.raises(ZeroDivisionError), store.writing() as transaction:
        transaction.run("DELETE FROM seen_1")
        1 / 0  # noqa: B018
    assert store.read("SELECT count(*) FROM seen_1") == [(3,)]
    assert len(store.report_ids(1)) == 3
    assert send(core, analyzer, 0, 2) == [Problem.DUPLICATE]
    clock.now += 10
    core.claim(0, CHARGE)
    assert sum(map(len, core.batch(0).chunks)) > 3 * 100


def test_an_id_that_is_in_use_takes_nothing_of_its_group() -> None:
    store = MemoryStore()
    core = Shuffler(store, clock=Clock(), chance=SeededChance())
    analyzer = Analyzer.of(population=2, minimum_batch=0)
    analyzer.publish(core)
    analyzer.open(core, 0)
    assert store.accept(1, [Entry(b"a" * 16, 7, b"body")]) == [None]
    with pytest.raises(IdCollision):
        store.accept(1, [Entry(b"b" * 16, 8, b"body"), Entry(b"c" * 16, 7, b"body")])
    assert store.read("SELECT count(*) FROM seen_1") == [(1,)]
    assert store.accept(1, [Entry(b"b" * 16, 8, b"body")]) == [None]
