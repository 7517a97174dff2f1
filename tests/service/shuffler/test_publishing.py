"""What an analyzer publishes: checked, kept once, never changed; over every store."""

from __future__ import annotations

from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.stores.base import Store
from dpcheckin.service.wire import envelope, signing
from dpcheckin.service.wire.canonical import canonical, digest, parse
from dpcheckin.service.wire.problems import Problem
from service.shuffler.rules import closed, refused
from service.shuffler_world import CHARGE, Analyzer, Clock, client, core_over, send


def test_everybody_is_shown_the_same_signed_plan_keys_model_and_round(opened: Shuffler, analyzer: Analyzer) -> None:
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
    refused(Problem.CONFLICT, opened.publish_key, analyzer.key.key_id, analyzer.signed_key(from_round=1))
    refused(Problem.CONFLICT, opened.open_round, 0, analyzer.signed_round(0, clock.now, clock.now + 99))
    refused(Problem.ROUND_OPEN, opened.open_round, 1, analyzer.signed_round(1, clock.now, clock.now + 9))


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


def test_documents_are_checked_before_they_are_kept(opened: Shuffler, analyzer: Analyzer, clock: Clock) -> None:
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


def test_old_models_are_forgotten_when_a_round_opens(opened: Shuffler, analyzer: Analyzer, clock: Clock) -> None:
    clock.now += 10
    opened.publish_model(digest(b"next"), b"next")
    assert opened.model(digest(b"m")) == b"m"
    opened.open_round(1, analyzer.signed_round(1, clock.now, clock.now + 9, b"next"))
    refused(Problem.NOT_FOUND, opened.model, digest(b"m"))
    assert opened.model(digest(b"next")) == b"next"
