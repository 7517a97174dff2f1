"""A cover costs the shuffler what a report costs, and nothing of it is counted or released."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.stores.base import Store
from dpcheckin.service.shuffler.stores.sqlite import SqliteStore
from dpcheckin.service.wire.documents import VoidDocument
from dpcheckin.service.wire.problems import Problem, Refusal
from dpcheckin.service.wire.signing import identity_from_seed, public_identity, read_signed_bytes
from service.shuffler_world import Analyzer, Clock, batch_of, client, core_over, send

WIDE = {"name": "gaussian", "noise_multiplier": 2.0, "dimension": 5000, "clip": 1.0, "encoding": 1}


def put(core: Shuffler, who: int, body: bytes) -> None:
    assert core.accept([core.examine(client(who), 0, body)]) == [None]


@pytest.mark.parametrize("first", ["report", "cover"])
def test_sqlite_writes_as_much_for_a_cover_as_for_a_report(tmp_path: Path, first: str) -> None:
    """The bytes of its log, which are what an answer waits for: equal, whichever comes first."""
    analyzer, clock = Analyzer.of(population=4, randomizer=WIDE, cover=True), Clock()
    store = SqliteStore(tmp_path / "s.db", reserve=0)
    core = core_over(store, clock)
    analyzer.publish(core)
    analyzer.open(core, 0)
    make = {"report": lambda: analyzer.report(0), "cover": lambda: analyzer.cover(0)}
    order = [first, "cover" if first == "report" else "report"] * 6
    log, grown = tmp_path / "s.db-wal", {"report": 0, "cover": 0}
    for who, kind in enumerate(order):
        before = log.stat().st_size
        put(core, who, make[kind]())
        grown[kind] += log.stat().st_size - before
    assert grown["cover"] > 6 * 20_000
    assert grown["cover"] == pytest.approx(grown["report"], rel=0.25)
    store.close()


def test_covers_are_present_and_are_neither_counted_nor_released(store: Store, clock: Clock) -> None:
    analyzer = Analyzer.of(population=4, minimum_batch=2, cover=True)
    core = core_over(store, clock)
    analyzer.publish(core)
    analyzer.open(core, 0)
    send(core, analyzer, 0, 0, 1)
    for who in (2, 3, 4):
        put(core, who, analyzer.cover(0))
    assert core.accept([core.examine(client(2), 0, analyzer.report(0))]) == [Problem.DUPLICATE]
    clock.now += 20
    found = core.status(0)
    assert (found["present"], found["reports"], found["state"]) == (5, 2, "closed")
    core.claim(0, b'{"charge":"' + b"ab" * 32 + b'"}')
    assert sorted(analyzer.marks(batch_of(core, 0))) == [0, 1]
    core.finish(0)
    with pytest.raises(Refusal):
        core.batch(0)


def test_nothing_of_a_cover_is_left_when_its_round_is_over(tmp_path: Path) -> None:
    analyzer, clock = Analyzer.of(population=2, minimum_batch=0, cover=True), Clock()
    store = SqliteStore(tmp_path / "s.db", reserve=0)
    core = core_over(store, clock)
    analyzer.publish(core)
    analyzer.open(core, 0)
    covers = [analyzer.cover(0) for _ in range(3)]
    for who, body in enumerate(covers):
        put(core, who, body)
    clock.now += 20
    core.claim(0, b'{"charge":"' + b"ab" * 32 + b'"}')
    core.finish(0)
    store.close()
    content = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert not any(body[40:100] in content for body in covers)


# --- statements -------------------------------------------------------------------------------


SIGNER = identity_from_seed(b"\3" * 32)


def play(core: Shuffler, clock: Clock, analyzer: Analyzer, number: int, present: int) -> None:
    analyzer.open(core, number)
    for who in range(present):
        body = analyzer.report(number) if who < 2 else analyzer.cover(number)
        assert core.accept([core.examine(client(who), number, body)]) == [None]
    clock.now += 20


def stated(core: Shuffler) -> tuple[int, ...]:
    found = read_signed_bytes(VoidDocument, core.void_statement(), public_identity(SIGNER))
    return found.rounds


def test_the_shuffler_states_the_rounds_that_nobody_saw_and_no_others(
    new_store: Callable[[], Store], clock: Clock
) -> None:
    """Void by population: yes. Open, closed, claimed, void by batch (its number was seen): no."""
    analyzer = Analyzer.of(population=4, minimum_batch=2, rounds=9, cover=True)
    store = new_store()
    core = core_over(store, clock, signer=SIGNER)
    with pytest.raises(Refusal):
        core.void_statement()  # no plan yet
    analyzer.publish(core)
    assert stated(core) == ()
    play(core, clock, analyzer, 0, 3)
    assert stated(core) == (0,)  # also when nobody has closed it yet
    play(core, clock, analyzer, 1, 4)
    core.claim(1, b'{"charge":"' + b"ab" * 32 + b'"}')
    core.finish(1)
    analyzer.open(core, 2)
    assert stated(core) == (0,)
    for who in range(4):
        core.accept([core.examine(client(who), 2, analyzer.cover(2))])
    clock.now += 20
    assert core.status(2)["reason"] == "batch"
    assert stated(core) == (0,)
    play(core, clock, analyzer, 3, 1)
    core.tick()
    assert stated(core) == (0, 3)
    again = core_over(new_store(), clock, seed=1, signer=SIGNER)  # after a restart
    assert stated(again) == (0, 3)


def test_a_shuffler_without_a_key_states_nothing(store: Store, clock: Clock) -> None:
    core = core_over(store, clock)
    Analyzer.of(population=4).publish(core)
    with pytest.raises(Refusal) as refused:
        core.void_statement()
    assert refused.value.problem is Problem.NOT_FOUND
