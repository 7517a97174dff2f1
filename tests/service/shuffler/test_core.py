"""The shuffler's rules, each over every store."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import pytest

from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.rounds import CHUNK_BYTES, Settled
from dpcheckin.service.shuffler.stores.base import StorageFailure, Store
from dpcheckin.service.wire import envelope, signing
from dpcheckin.service.wire.canonical import canonical, digest, parse
from dpcheckin.service.wire.documents import RoundDocument
from dpcheckin.service.wire.problems import Problem, Refusal
from service import wire_vectors
from service.shuffler_world import (
    CHARGE,
    IDENTITY,
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


def refused(problem: Problem, call: Callable[..., object], *arguments: object) -> None:
    with pytest.raises(Refusal) as caught:
        call(*arguments)
    assert caught.value.problem is problem


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def core(store: Store, clock: Clock) -> Shuffler:
    return core_over(store, clock, identity=signing.public_identity(IDENTITY))


@pytest.fixture
def analyzer() -> Analyzer:
    return Analyzer.of(population=4, minimum_batch=2, rounds=3)


@pytest.fixture
def opened(core: Shuffler, analyzer: Analyzer) -> Shuffler:
    """Round 0 is open, all four clients are there."""
    analyzer.publish(core)
    analyzer.open(core, 0)
    attend(core, 4)
    return core


def closed(core: Shuffler, clock: Clock, analyzer: Analyzer, number: int, *clients: int) -> None:
    """Open a round, let these clients report, close it."""
    analyzer.open(core, number)
    attend(core, 4)
    send(core, analyzer, number, *clients)
    clock.now += 10


# --- one whole round ------------------------------------------------------------------------


def test_a_batch_is_released_whole_permuted_and_the_same_every_time(
    opened: Shuffler, analyzer: Analyzer, clock: Clock
) -> None:
    assert send(opened, analyzer, 0, 0, 1, 2, 3) == [None] * 4
    assert opened.status(0) == {
        "state": "open",
        "present": None,
        "reports": None,
        "reason": None,
    }
    clock.now += 10
    assert opened.status(0) == {
        "state": "closed",
        "present": 4,
        "reports": 4,
        "reason": None,
    }
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


def test_a_client_is_taken_once_a_round_however_it_asks(
    opened: Shuffler, analyzer: Analyzer, clock: Clock
) -> None:
    duplicate = Problem.DUPLICATE
    assert send(opened, analyzer, 0, 0, 0, 1) == [None, duplicate, None]
    assert send(opened, analyzer, 0, 1, 2) == [duplicate, None]
    cover = opened.examine(client(0), 0, analyzer.cover(0))
    assert opened.accept([cover]) == [duplicate]
    clock.now += 10
    opened.claim(0, CHARGE)
    assert sorted(analyzer.marks(batch_of(opened, 0))) == [0, 1, 2]


def test_a_cover_is_answered_like_a_report_and_forgotten(
    opened: Shuffler, analyzer: Analyzer, clock: Clock
) -> None:
    send(opened, analyzer, 0, 0, 1)
    cover = opened.examine(client(2), 0, analyzer.cover(0))
    assert opened.accept([cover]) == [None]
    assert opened.accept([cover]) == [Problem.DUPLICATE]
    assert send(opened, analyzer, 0, 2) == [Problem.DUPLICATE]
    clock.now += 10
    assert opened.status(0)["reports"] == 2


def test_shares_are_summed_and_only_the_sum_leaves(store: Store, clock: Clock) -> None:
    analyzer = Analyzer.of(
        population=4,
        minimum_batch=2,
        protocol="distributed-check-in",
        randomizer=wire_vectors.randomizer(3, 6),
    )
    core = core_over(store, clock)
    analyzer.publish(core)
    analyzer.open(core, 0)
    attend(core, 4)
    big = 2**32 - 5
    core.accept(
        [
            core.examine(client(i), 0, analyzer.report(0, mark))
            for i, mark in enumerate([big, 7, 1000])
        ]
    )
    clock.now += 10
    core.claim(0, CHARGE)
    found = records(batch_of(core, 0))
    assert np.frombuffer(found[0], "<u4").tolist() == [(big + 7 + 1000) % 2**32] * 6
    size = envelope.sizes(analyzer.plan)
    assert {len(record) for record in found[1:]} == {size.released}
    assert sorted(analyzer.marks(batch_of(core, 0))) == [7, 1000, big]
    core.finish(0)


@pytest.mark.parametrize("protocol", ["fixed", "sliding"])
def test_of_a_slot_one_report_is_kept_and_the_rest_destroyed(
    store: Store, clock: Clock, protocol: str
) -> None:
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
    analyzer = Analyzer.of(
        population=2, minimum_batch=0, randomizer=wire_vectors.randomizer(1, dimension)
    )
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


# --- void rounds ----------------------------------------------------------------------------


def test_a_round_with_too_few_present_is_void_and_its_count_is_not_told(
    core: Shuffler, analyzer: Analyzer, clock: Clock
) -> None:
    told: list[Settled] = []
    core._on_settled = told.append
    analyzer.publish(core)
    analyzer.open(core, 0)
    attend(core, 3)
    send(core, analyzer, 0, 0, 1, 2)
    clock.now += 10
    assert core.status(0) == {
        "state": "void",
        "present": 3,
        "reports": None,
        "reason": "population",
    }
    assert [settled.reports for settled in told] == [None]
    refused(Problem.NOT_CLAIMED, core.claim, 0, CHARGE)
    refused(Problem.NOT_CLAIMED, core.batch, 0)
    refused(Problem.NOT_CLAIMED, core.finish, 0)
    core.tick()
    assert core.find(0).purged


@pytest.mark.parametrize("covers", [1, 2])
def test_with_covers_only_those_whose_envelope_came_in_time_are_counted(
    core: Shuffler, clock: Clock, covers: int
) -> None:
    """Six fetch the round, three or four envelopes arrive: reports that were lost hide nobody."""
    analyzer = Analyzer.of(population=4, minimum_batch=0, rounds=3, cover=True)
    analyzer.publish(core)
    analyzer.open(core, 0)
    attend(core, 6)
    send(core, analyzer, 0, 0, 1)
    for who in range(2, 2 + covers):
        assert core.accept([core.examine(client(who), 0, analyzer.cover(0))]) == [None]
    clock.now += 10
    void = {"state": "void", "present": 3, "reports": None, "reason": "population"}
    whole = {"state": "closed", "present": 4, "reports": 2, "reason": None}
    assert core.status(0) == (void if covers == 1 else whole)


def test_a_round_with_too_few_reports_is_void_and_counts_as_charged(
    opened: Shuffler, analyzer: Analyzer, clock: Clock
) -> None:
    send(opened, analyzer, 0, 0)
    clock.now += 10
    opened.tick()
    assert opened.status(0) == {
        "state": "void",
        "present": 4,
        "reports": 1,
        "reason": "batch",
    }
    refused(Problem.NOT_CLAIMED, opened.claim, 0, CHARGE)
    for number in (1, 2):
        closed(opened, clock, analyzer, number)
    refused(Problem.PLAN_EXHAUSTED, analyzer.open, opened, 3)


def test_rounds_void_by_population_cost_no_round_of_the_plan(
    core: Shuffler, analyzer: Analyzer, clock: Clock
) -> None:
    analyzer.publish(core)
    for number in range(5):
        analyzer.open(core, number)
        clock.now += 10
    closed(core, clock, analyzer, 5, 0, 1)
    core.claim(5, CHARGE)


def test_no_more_than_the_plans_rounds_are_ever_claimed(
    core: Shuffler, analyzer: Analyzer, clock: Clock
) -> None:
    analyzer.publish(core)
    for number in range(3):
        closed(core, clock, analyzer, number, 0, 1, 2)
        core.claim(number, CHARGE)
        core.finish(number)
    refused(Problem.PLAN_EXHAUSTED, analyzer.open, core, 3)


def test_a_claim_beyond_the_plan_is_refused_even_if_a_round_got_through(
    core: Shuffler, analyzer: Analyzer, clock: Clock
) -> None:
    """The two checks are independent: a closed round too many is made by hand."""
    analyzer.publish(core)
    for number in range(3):
        closed(core, clock, analyzer, number, 0, 1, 2)
    core.tick()
    with core.store.transaction() as transaction:
        known = transaction.round(analyzer.plan.id, 0)
        assert known is not None
        extra = RoundDocument.from_object(parse(known.document)["document"])
        made = signing.signed_bytes(
            RoundDocument(**{**extra.fields(), "round": 3}),
            IDENTITY,
        )
        transaction.add_round(type(known)(0, known.plan, 3, made, known.opens, known.closes + 1000))
    core.refresh()
    attend(core, 4)
    send(core, analyzer, 3, 0, 1)
    clock.now += 2000
    for number in range(3):
        core.claim(number, CHARGE)
    assert core.status(3)["state"] == "closed"
    refused(Problem.PLAN_EXHAUSTED, core.claim, 3, CHARGE)


# --- the clock ------------------------------------------------------------------------------


def test_a_round_takes_reports_from_opens_to_closes(
    core: Shuffler, analyzer: Analyzer, clock: Clock
) -> None:
    analyzer.publish(core)
    document = analyzer.signed_round(0, clock.now + 5, clock.now + 10)
    core.open_round(0, document)
    report = analyzer.report(0)
    refused(Problem.NO_ROUND, core.current)
    refused(Problem.NO_ROUND, core.examine, client(0), 0, report)
    clock.now += 5
    assert core.current().document == document
    taken = core.examine(client(0), 0, report)
    clock.now += 4.999
    assert core.accept([taken]) == [None]
    late = core.examine(client(1), 0, report)
    clock.now += 0.001
    assert core.accept([late]) == [Problem.ROUND_CLOSED]
    refused(Problem.ROUND_CLOSED, core.examine, client(1), 0, report)
    refused(Problem.NO_ROUND, core.current)


def test_a_clock_set_back_does_not_open_a_closed_round(
    new_store: Callable[[], Store], clock: Clock, analyzer: Analyzer
) -> None:
    core = core_over(new_store(), clock)
    analyzer.publish(core)
    analyzer.open(core, 0)
    attend(core, 4)
    taken = core.examine(client(3), 0, analyzer.report(0, 3))
    send(core, analyzer, 0, 0, 1)
    clock.now += 10
    core.tick()
    clock.now -= 8
    for front in (core, core_over(new_store(), clock)):
        refused(Problem.NO_ROUND, front.current)
        refused(Problem.ROUND_CLOSED, front.examine, client(3), 0, analyzer.report(0, 3))
        assert front.accept([taken]) == [Problem.ROUND_CLOSED]
        assert not front.mark_present(taken.serial, [client(9)])
        assert front.status(0)["reports"] == 2


def test_the_end_once_seen_stays_even_before_it_could_be_stored(
    opened: Shuffler, analyzer: Analyzer, clock: Clock
) -> None:
    clock.now += 10
    refused(Problem.NO_ROUND, opened.current)  # seen, not yet written down
    clock.now -= 9
    refused(Problem.NO_ROUND, opened.current)
    assert opened.status(0)["state"] == "void"


def test_a_clock_that_leaps_ahead_closes_and_loses_nothing(
    opened: Shuffler, analyzer: Analyzer, clock: Clock
) -> None:
    send(opened, analyzer, 0, 0, 1, 2)
    clock.now += 1e6
    opened.claim(0, CHARGE)
    assert sorted(analyzer.marks(batch_of(opened, 0))) == [0, 1, 2]


# --- what is looked at ----------------------------------------------------------------------


def test_envelopes_of_another_size_kind_round_key_or_suite_are_refused(
    opened: Shuffler, analyzer: Analyzer
) -> None:
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


# --- publishing -----------------------------------------------------------------------------


def test_everybody_is_shown_the_same_signed_plan_keys_model_and_round(
    opened: Shuffler, analyzer: Analyzer
) -> None:
    page = parse(opened.plan_page())
    assert canonical(page["plan"]) == analyzer.signed_plan()
    assert [canonical(key) for key in page["keys"]] == [analyzer.signed_key()]
    assert opened.model(digest(b"m")) == b"m"
    current = parse(opened.current().document)
    assert current["document"]["round"] == 0


def test_publishing_again_is_harmless_and_contradictions_are_refused(
    opened: Shuffler, analyzer: Analyzer, clock: Clock
) -> None:
    page = opened.plan_page()
    opened.publish_plan(analyzer.signed_plan())
    opened.publish_key(analyzer.key.key_id, analyzer.signed_key())
    opened.publish_model(digest(b"m"), b"m")
    document = opened.current().document
    opened.open_round(0, document)
    assert opened.plan_page() == page
    refused(
        Problem.CONFLICT, opened.publish_key, analyzer.key.key_id, analyzer.signed_key(from_round=1)
    )
    refused(
        Problem.CONFLICT, opened.open_round, 0, analyzer.signed_round(0, clock.now, clock.now + 99)
    )
    refused(
        Problem.ROUND_OPEN, opened.open_round, 1, analyzer.signed_round(1, clock.now, clock.now + 9)
    )


def test_a_plan_is_replaced_only_when_nothing_is_under_way_and_never_comes_back(
    opened: Shuffler, analyzer: Analyzer, clock: Clock
) -> None:
    send(opened, analyzer, 0, 0, 1)
    other = Analyzer.of(population=4, minimum_batch=2, rounds=3)
    refused(Problem.ROUND_OPEN, opened.publish_plan, other.signed_plan())
    clock.now += 10
    opened.claim(0, CHARGE)
    refused(Problem.ROUND_OPEN, opened.publish_plan, other.signed_plan())
    opened.finish(0)
    opened.publish_plan(other.signed_plan())
    refused(Problem.CONFLICT, opened.publish_plan, analyzer.signed_plan())
    refused(Problem.CONFLICT, opened.publish_key, analyzer.key.key_id, analyzer.signed_key())
    refused(Problem.NOT_FOUND, opened.status, 0)
    other.publish(opened)
    closed(opened, clock, other, 0, 0, 1, 2)
    assert opened.status(0)["reports"] == 3


def test_documents_are_checked_before_they_are_kept(
    opened: Shuffler, analyzer: Analyzer, clock: Clock
) -> None:
    stranger = signing.identity_from_seed(bytes(32))
    for body in (b"", b"[]", b"{}", signing.signed_bytes(analyzer.plan, stranger)):
        refused(Problem.MALFORMED, opened.publish_plan, body)
    refused(Problem.MALFORMED, opened.publish_key, b"12345678", analyzer.signed_key())
    refused(Problem.MALFORMED, opened.publish_model, digest(b"other"), b"m")
    document = analyzer.signed_round(1, clock.now, clock.now + 9)
    refused(Problem.MALFORMED, opened.open_round, 2, document)
    names = ("zz", "g" * 64, "AB" * 32, "ab " * 21 + " ", "ab" * 32 + "\n")
    bodies = (b"", b"{}", b'{"charge":5}', *(canonical({"charge": name}) for name in names))
    for body in bodies:
        refused(Problem.MALFORMED, opened.claim, 0, body)
    refused(Problem.ROUND_OPEN, opened.claim, 0, CHARGE)
    refused(Problem.NOT_CLAIMED, opened.finish, 0)


def test_a_plan_with_envelopes_larger_than_the_operator_allows_is_refused(
    store: Store, clock: Clock, analyzer: Analyzer
) -> None:
    small = core_over(store, clock, largest_envelope=10)
    refused(Problem.TOO_LARGE, small.publish_plan, analyzer.signed_plan())


def test_a_round_needs_its_key_its_model_a_future_and_a_new_number(
    opened: Shuffler, analyzer: Analyzer, clock: Clock
) -> None:
    clock.now += 10
    now = clock.now

    def document(number: int, closes: float = 9.0, model: bytes = b"m") -> bytes:
        return analyzer.signed_round(number, now - 1, now + closes, model)

    refused(Problem.NOT_FOUND, opened.open_round, 1, document(1, model=b"unknown"))
    refused(Problem.ROUND_CLOSED, opened.open_round, 1, document(1, closes=0.0))
    later = Analyzer(analyzer.plan, envelope.OpeningKey(1, envelope.new_private_key(1)))
    refused(Problem.NOT_FOUND, opened.open_round, 1, later.signed_round(1, now, now + 9))
    opened.publish_key(later.key.key_id, later.signed_key(from_round=3))
    refused(Problem.NOT_FOUND, opened.open_round, 2, later.signed_round(2, now, now + 9))
    other = Analyzer.of()
    refused(Problem.CONFLICT, opened.open_round, 1, other.signed_round(1, now, now + 9))
    opened.open_round(3, later.signed_round(3, now, now + 9))
    refused(Problem.MALFORMED, opened.examine, client(0), 3, analyzer.report(3))
    assert opened.accept([opened.examine(client(0), 3, later.report(3))]) == [None]
    refused(Problem.ROUND_CLOSED, opened.examine, client(0), 2, later.report(2))
    clock.now += 10
    refused(Problem.CONFLICT, opened.open_round, 1, document(1, closes=100.0))


def test_old_models_are_forgotten_when_a_round_opens(
    opened: Shuffler, analyzer: Analyzer, clock: Clock
) -> None:
    clock.now += 10
    opened.publish_model(digest(b"next"), b"next")
    assert opened.model(digest(b"m")) == b"m"
    opened.open_round(1, analyzer.signed_round(1, clock.now, clock.now + 9, b"next"))
    refused(Problem.NOT_FOUND, opened.model, digest(b"m"))
    assert opened.model(digest(b"next")) == b"next"


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


def test_a_broken_generator_is_a_failure_and_not_a_loop(
    opened: Shuffler, analyzer: Analyzer
) -> None:
    opened.chance = Repeating(100, [5])
    assert send(opened, analyzer, 0, 0) == [None]
    with pytest.raises(StorageFailure):
        send(opened, analyzer, 0, 1)


# --- clients --------------------------------------------------------------------------------


def test_clients_are_enrolled_rotated_and_revoked(store: Store) -> None:
    tokens = [digest(b"t%d" % i) for i in range(3)]
    version = store.clients_version()
    made = store.enroll(tokens)
    assert store.clients() == dict(zip(tokens, made, strict=True))
    assert store.clients_version() != version
    fresh = digest(b"fresh")
    assert store.replace_token(made[0], fresh)
    assert store.revoke(made[1])
    assert not store.revoke(made[1])
    assert not store.replace_token(made[1], tokens[1])
    assert store.clients() == {fresh: made[0], tokens[2]: made[2]}


def test_an_exception_undoes_control_work(store: Store, analyzer: Analyzer) -> None:
    with pytest.raises(RuntimeError), store.transaction() as transaction:
        transaction.set_plan(analyzer.plan.id, analyzer.signed_plan())
        raise RuntimeError
    with store.transaction() as transaction:
        assert transaction.plan() is None
