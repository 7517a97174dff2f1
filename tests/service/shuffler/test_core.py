"""The shuffler's rules, each over every store."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import pytest

from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.rounds import CHUNK_BYTES
from dpcheckin.service.shuffler.stores.base import Store
from dpcheckin.service.storage.database import StorageFailure
from dpcheckin.service.wire import envelope
from dpcheckin.service.wire.canonical import canonical, digest
from dpcheckin.service.wire.problems import Problem
from service import wire_vectors
from service.shuffler.rules import closed, refused
from service.shuffler_world import (
    CHARGE,
    Analyzer,
    Clock,
    SeededChance,
    attend,
    batch_of,
    client,
    core_over,
    records,
    send,
)

# --- one whole round ------------------------------------------------------------------------


def test_a_batch_is_released_whole_permuted_and_the_same_every_time(
    opened: Shuffler, analyzer: Analyzer, clock: Clock
) -> None:
    assert send(opened, analyzer, 0, 0, 1, 2, 3) == [None] * 4
    assert opened.status(0) == {"state": "open", "present": None, "reports": None, "reason": None}
    clock.now += 10
    assert opened.status(0) == {"state": "closed", "present": 4, "reports": 4, "reason": None}
    refused(Problem.NOT_CLAIMED, opened.batch, 0)
    opened.claim(0, CHARGE)
    first = batch_of(opened, 0)
    assert sorted(analyzer.marks(first)) == [0, 1, 2, 3]
    assert set(records(first)) == {analyzer.report(0, c) for c in range(4)}
    opened.claim(0, CHARGE)
    assert batch_of(opened, 0) == first
    refused(Problem.CONFLICT, opened.claim, 0, canonical({"charge": "cd" * 32}))
    opened.finish(0)
    opened.finish(0)
    assert opened.status(0)["state"] == "done"
    refused(Problem.NOT_CLAIMED, opened.batch, 0)
    refused(Problem.NOT_CLAIMED, opened.claim, 0, CHARGE)


def test_another_front_end_and_a_restart_release_the_same_bytes(
    new_store: Callable[[], Store], clock: Clock, analyzer: Analyzer
) -> None:
    one = core_over(new_store(), clock, seed=1)
    analyzer.publish(one)
    analyzer.open(one, 0)
    attend(one, 4)
    send(one, analyzer, 0, 0, 1, 2)
    clock.now += 10
    two = core_over(new_store(), clock, seed=2)
    two.claim(0, CHARGE)
    assert batch_of(one, 0) == batch_of(two, 0)
    one.claim(0, CHARGE)
    assert batch_of(one, 0) == batch_of(core_over(new_store(), clock, seed=3), 0)
    one.finish(0)
    refused(Problem.NOT_CLAIMED, two.batch, 0)
    two.finish(0)


def test_a_client_is_taken_once_a_round_however_it_asks(opened: Shuffler, analyzer: Analyzer, clock: Clock) -> None:
    duplicate = Problem.DUPLICATE
    assert send(opened, analyzer, 0, 0, 0, 1) == [None, duplicate, None]
    assert send(opened, analyzer, 0, 1, 2) == [duplicate, None]
    cover = opened.examine(client(0), 0, analyzer.cover(0))
    assert opened.accept([cover]) == [duplicate]
    clock.now += 10
    opened.claim(0, CHARGE)
    assert sorted(analyzer.marks(batch_of(opened, 0))) == [0, 1, 2]


def test_a_cover_is_answered_like_a_report_and_forgotten(opened: Shuffler, analyzer: Analyzer, clock: Clock) -> None:
    send(opened, analyzer, 0, 0, 1)
    cover = opened.examine(client(2), 0, analyzer.cover(0))
    assert opened.accept([cover]) == [None]
    assert opened.accept([cover]) == [Problem.DUPLICATE]
    assert send(opened, analyzer, 0, 2) == [Problem.DUPLICATE]
    clock.now += 10
    assert opened.status(0)["reports"] == 2


def test_shares_are_summed_and_only_the_sum_leaves(store: Store, clock: Clock) -> None:
    analyzer = Analyzer.of(
        population=4, minimum_batch=2, protocol="distributed-check-in", randomizer=wire_vectors.randomizer(3, 6)
    )
    core = core_over(store, clock)
    analyzer.publish(core)
    analyzer.open(core, 0)
    attend(core, 4)
    big = 2**32 - 5
    core.accept([core.examine(client(i), 0, analyzer.report(0, mark)) for i, mark in enumerate([big, 7, 1000])])
    clock.now += 10
    core.claim(0, CHARGE)
    found = records(batch_of(core, 0))
    assert np.frombuffer(found[0], "<u4").tolist() == [(big + 7 + 1000) % 2**32] * 6
    size = envelope.sizes(analyzer.plan)
    assert {len(record) for record in found[1:]} == {size.released}
    assert sorted(analyzer.marks(batch_of(core, 0))) == [7, 1000, big]
    core.finish(0)


@pytest.mark.parametrize("protocol", ["fixed", "sliding"])
def test_of_a_slot_one_report_is_kept_and_the_rest_destroyed(store: Store, clock: Clock, protocol: str) -> None:
    analyzer = Analyzer.of(
        protocol=f"random-check-in-{protocol}",
        rate=None,
        slots=5,
        check_in_probability=1.0,
        minibatch=1,
        population=4,
        minimum_batch=0,
        rounds=5,
    )
    core = core_over(store, clock)
    analyzer.publish(core)
    kept = []
    for number in range(5):
        closed(core, clock, analyzer, number, *range(number))
        assert core.status(number)["reports"] is None  # loads are secret, empty slots too
        core.claim(number, CHARGE)
        released = batch_of(core, number)
        assert {len(one) for one in records(released)} == {envelope.sizes(analyzer.plan).released}
        assert len(records(released)) == 1
        assert batch_of(core, number) == released
        marks = analyzer.marks(released) if number else []  # of an empty slot: a dummy
        assert set(marks) <= set(range(number))
        serial = core.find(number).serial
        assert [len(bodies) for bodies in core.store.each_body(serial, 10)] == [1] * len(marks)
        kept += marks
        core.finish(number)
    refused(Problem.CONFLICT, analyzer.open, core, 5)


def test_averaged_windows_release_all_of_a_slot(store: Store, clock: Clock) -> None:
    analyzer = Analyzer.of(
        protocol="random-check-in-averaged",
        rate=None,
        slots=5,
        check_in_probability=1.0,
        minibatch=1,
        population=4,
        minimum_batch=0,
        rounds=5,
    )
    core = core_over(store, clock)
    analyzer.publish(core)
    closed(core, clock, analyzer, 0, 1, 2, 3)
    core.claim(0, CHARGE)
    assert sorted(analyzer.marks(batch_of(core, 0))) == [1, 2, 3]


def test_a_batch_longer_than_a_chunk_streams_in_parts(store: Store, clock: Clock) -> None:
    dimension = 100_000
    analyzer = Analyzer.of(population=2, minimum_batch=0, randomizer=wire_vectors.randomizer(1, dimension))
    core = core_over(store, clock)
    analyzer.publish(core)
    analyzer.open(core, 0)
    attend(core, 2)
    count = 3 * CHUNK_BYTES // (4 * dimension)
    send(core, analyzer, 0, *range(count))
    clock.now += 10
    core.claim(0, CHARGE)
    release = core.batch(0)
    chunks = list(release.chunks)
    assert len(chunks) > 2
    assert max(map(len, chunks)) <= CHUNK_BYTES + 4 * count
    assert sorted(analyzer.marks(b"".join(chunks))) == list(range(count))
    core.finish(0)
    assert core.find(0).purged


# --- what is looked at ----------------------------------------------------------------------


def test_envelopes_of_another_size_kind_round_key_or_suite_are_refused(opened: Shuffler, analyzer: Analyzer) -> None:
    good = analyzer.report(0)
    refused(Problem.TOO_LARGE, opened.examine, client(0), 0, good + b"x")
    refused(Problem.WRONG_SIZE, opened.examine, client(0), 0, good[:-1])
    refused(Problem.WRONG_SIZE, opened.examine, client(0), 0, b"")
    for place, value in [(0, 0), (4, 2), (5, 2), (5, 9), (6, 2), (6, 3), (7, 1), (11, 1), (12, 0)]:
        changed = bytearray(good)
        changed[place] ^= value or 0xFF
        refused(Problem.MALFORMED, opened.examine, client(0), 0, bytes(changed))
    longer = good[:20] + struct.pack(">I", 1) + good[24:]
    refused(Problem.MALFORMED, opened.examine, client(0), 0, longer)
    refused(Problem.NO_ROUND, opened.examine, client(0), 1, good)
    assert opened.accept([opened.examine(client(0), 0, good)]) == [None]


def test_before_anything_is_published_there_is_nothing(core: Shuffler, analyzer: Analyzer) -> None:
    refused(Problem.NOT_FOUND, core.plan_page)
    refused(Problem.NO_ROUND, core.current)
    refused(Problem.NOT_FOUND, core.model, digest(b"m"))
    refused(Problem.NOT_FOUND, core.status, 0)
    refused(Problem.NOT_FOUND, core.publish_key, analyzer.key.key_id, analyzer.signed_key())
    refused(Problem.NOT_FOUND, core.open_round, 0, analyzer.signed_round(0, 0.0, 1e9))
    core.publish_plan(analyzer.signed_plan())
    refused(Problem.NO_ROUND, core.examine, client(0), 0, analyzer.report(0))
    refused(Problem.NOT_FOUND, core.status, 0)


# --- chance ---------------------------------------------------------------------------------


class Repeating(SeededChance):
    """The same ids again and again, until it has been asked a few times."""

    def __init__(self, bad: int, first: list[int]) -> None:
        super().__init__(1)
        self.bad, self.first = bad, first

    def ids(self, count: int) -> list[int]:
        if self.bad:
            self.bad -= 1
            return self.first[:count]
        return super().ids(count)


def test_colliding_ids_are_drawn_again(opened: Shuffler, analyzer: Analyzer, clock: Clock) -> None:
    opened.chance = Repeating(2, [5, 5])
    assert send(opened, analyzer, 0, 0) == [None]  # id 5
    assert send(opened, analyzer, 0, 1) == [None]  # 5 again, then another
    opened.chance = Repeating(1, [7, 7])
    assert send(opened, analyzer, 0, 2, 3) == [None, None]
    clock.now += 10
    opened.claim(0, CHARGE)
    assert sorted(analyzer.marks(batch_of(opened, 0))) == [0, 1, 2, 3]


def test_a_broken_generator_is_a_failure_and_not_a_loop(opened: Shuffler, analyzer: Analyzer) -> None:
    opened.chance = Repeating(100, [5])
    assert send(opened, analyzer, 0, 0) == [None]
    with pytest.raises(StorageFailure):
        send(opened, analyzer, 0, 1)
