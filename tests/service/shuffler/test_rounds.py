"""When rounds are void and when they close, over every store."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.rounds import Settled
from dpcheckin.service.shuffler.stores.base import Store
from dpcheckin.service.wire import signing
from dpcheckin.service.wire.canonical import parse
from dpcheckin.service.wire.documents import RoundDocument
from dpcheckin.service.wire.problems import Problem
from service.shuffler.rules import closed, refused
from service.shuffler_world import CHARGE, IDENTITY, Analyzer, Clock, attend, batch_of, client, core_over, send


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
    assert core.status(0) == {"state": "void", "present": 3, "reports": None, "reason": "population"}
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
    assert opened.status(0) == {"state": "void", "present": 4, "reports": 1, "reason": "batch"}
    refused(Problem.NOT_CLAIMED, opened.claim, 0, CHARGE)
    for number in (1, 2):
        closed(opened, clock, analyzer, number)
    refused(Problem.PLAN_EXHAUSTED, analyzer.open, opened, 3)


def test_rounds_void_by_population_cost_no_round_of_the_plan(core: Shuffler, analyzer: Analyzer, clock: Clock) -> None:
    analyzer.publish(core)
    for number in range(5):
        analyzer.open(core, number)
        clock.now += 10
    closed(core, clock, analyzer, 5, 0, 1)
    core.claim(5, CHARGE)


def test_no_more_than_the_plans_rounds_are_ever_claimed(core: Shuffler, analyzer: Analyzer, clock: Clock) -> None:
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
        made = signing.signed_bytes(RoundDocument(**{**extra.fields(), "round": 3}), IDENTITY)
        record = type(known)(0, known.plan, 3, made, known.opens, known.closes + 1000)
        transaction.create_round_tables(transaction.insert_round(record))
    core.refresh()
    attend(core, 4)
    send(core, analyzer, 3, 0, 1)
    clock.now += 2000
    for number in range(3):
        core.claim(number, CHARGE)
    assert core.status(3)["state"] == "closed"
    refused(Problem.PLAN_EXHAUSTED, core.claim, 3, CHARGE)


def test_a_round_takes_reports_from_opens_to_closes(core: Shuffler, analyzer: Analyzer, clock: Clock) -> None:
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


def test_a_clock_that_leaps_ahead_closes_and_loses_nothing(opened: Shuffler, analyzer: Analyzer, clock: Clock) -> None:
    send(opened, analyzer, 0, 0, 1, 2)
    clock.now += 1e6
    opened.claim(0, CHARGE)
    assert sorted(analyzer.marks(batch_of(opened, 0))) == [0, 1, 2]
