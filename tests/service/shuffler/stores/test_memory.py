"""Memory: batches cut short, and bodies that are wiped."""

from __future__ import annotations

import pytest

from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.stores.memory import Arena, MemoryStore, Pool
from dpcheckin.service.storage.database import StorageFailure
from service.shuffler_world import CHARGE, Analyzer, Clock, SeededChance, attend, send


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
    store._batches[1].order.pop()
    with pytest.raises(StorageFailure, match="no longer complete"):
        list(core.batch(0).chunks)


def test_large_bodies_are_wiped_and_their_memory_is_used_again() -> None:
    pool = Pool()
    arena = Arena(pool)
    bodies = [bytes([i]) * size for i, size in enumerate((10, 40_000, 30 << 20, 40 << 20, 70 << 20))]
    places = [arena.keep(body) for body in bodies]
    assert [arena.read(place) for place in places] == bodies
    first = arena._pieces[0]
    assert first[:5] == bytes([1]) * 5
    arena.wipe()
    assert not any(first[: 31 << 20])
    again = Arena(pool)
    again.keep(bodies[2])
    again.keep(bodies[3])
    assert first in again._pieces
    assert len(pool._free) == 0
