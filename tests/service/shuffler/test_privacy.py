"""What the shuffler keeps, and in which order it lets go: nothing that joins a report to a client.

Statistical tests have a fixed rate of false alarms, one in a million.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psycopg
import pytest
from scipy import stats

from dpcheckin.service.shuffler.chance import SecureChance, sorted_by_keys
from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.stores.base import Store
from dpcheckin.service.shuffler.stores.postgres import PostgresStore
from dpcheckin.service.shuffler.stores.sqlite import MemoryStore, SqliteStore
from dpcheckin.service.storage.database import StorageBusy
from dpcheckin.service.wire import envelope
from dpcheckin.service.wire.canonical import canonical, digest
from dpcheckin.service.wire.documents import RoundDocument
from service import wire_vectors
from service.postgres_server import PostgresServer
from service.shuffler_world import CHARGE, Analyzer, Clock, attend, batch_of, client, core_over, send

FALSE_ALARMS = 1e-6


def is_uniform(counts: Counter[tuple[int, ...]], outcomes: int) -> bool:
    """Does a chi-square test accept that all outcomes are equally likely?"""
    seen = [counts[key] for key in counts] + [0] * (outcomes - len(counts))
    return bool(stats.chisquare(seen).pvalue > FALSE_ALARMS)


# --- order ----------------------------------------------------------------------------------


def test_the_secure_permutation_is_uniform() -> None:
    chance = SecureChance()
    counts = Counter(tuple(chance.permutation(4).tolist()) for _ in range(30_000))
    assert is_uniform(counts, 24)


def test_the_chi_square_test_finds_a_slight_bias() -> None:
    """A swap of one pair in twenty is caught, so that the other tests mean something."""
    chance = SecureChance()
    counts: Counter[tuple[int, ...]] = Counter()
    for turn in range(30_000):
        order = tuple(chance.permutation(4).tolist())
        counts[tuple(sorted(order)) if turn % 20 == 0 else order] += 1
    assert not is_uniform(counts, 24)


def test_keys_with_a_tie_are_drawn_again() -> None:
    draws = iter([np.array([1, 1, 0], np.uint64), np.array([2, 1, 0], np.uint64)])
    assert sorted_by_keys(lambda: next(draws)).tolist() == [2, 1, 0]
    assert SecureChance().permutation(0).tolist() == []
    assert SecureChance().permutation(1).tolist() == [0]


class Releases:
    """Round after round of the same four clients; counts the orders in which they come out."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[int, ...]] = Counter()
        self._clock = Clock()

    def run(self, rounds: int) -> None:
        analyzer = Analyzer.of(population=4, minimum_batch=0, rounds=rounds)
        plan_id = analyzer.plan.id.hex()
        core = Shuffler(MemoryStore(), clock=self._clock, chance=SecureChance())
        analyzer.publish(core)
        for number in range(rounds):
            self._open(core, analyzer, plan_id, number)
            attend(core, 4)
            send(core, analyzer, number, 0, 1, 2, 3)
            self._clock.now += 10
            core.claim(number, CHARGE)
            self.counts[tuple(analyzer.marks(batch_of(core, number)))] += 1
            core.finish(number)

    def _open(self, core: Shuffler, analyzer: Analyzer, plan_id: str, number: int) -> None:
        """Signatures are not checked here, and would take most of the time."""
        document = RoundDocument(
            plan_id, number, digest(b"m").hex(), analyzer.key.key_id.hex(), self._clock.now, self._clock.now + 10
        )
        signed = {"document": document.to_object(), "signature": "00" * 64}
        core.open_round(number, canonical(signed))


@pytest.mark.parametrize("releases", [1_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_released_batches_are_uniformly_permuted(releases: int) -> None:
    """Whole releases, from four reports in the same order of arrival to the analyzer's bytes."""
    found = Releases()
    for _ in range(releases // 50):
        found.run(50)
    assert sum(found.counts.values()) == releases
    assert is_uniform(found.counts, 24)


def test_the_one_report_kept_of_a_slot_is_chosen_uniformly() -> None:
    clock, counts = Clock(), Counter[tuple[int, ...]]()
    for _ in range(20):
        analyzer = Analyzer.of(
            protocol="random-check-in-fixed",
            rate=None,
            slots=50,
            check_in_probability=1.0,
            minibatch=1,
            population=3,
            minimum_batch=0,
            rounds=50,
        )
        core = Shuffler(MemoryStore(), clock=clock, chance=SecureChance())
        analyzer.publish(core)
        for number in range(50):
            analyzer.open(core, number)
            attend(core, 3)
            send(core, analyzer, number, 0, 1, 2)
            clock.now += 10
            core.claim(number, CHARGE)
            counts[tuple(analyzer.marks(batch_of(core, number)))] += 1
            core.finish(number)
    assert is_uniform(counts, 3)


# --- what the tables hold -------------------------------------------------------------------


def test_sqlite_keeps_no_time_no_order_and_no_link(tmp_path: Path) -> None:
    count = 400
    analyzer, clock = Analyzer.of(population=2, minimum_batch=0), Clock()
    store = SqliteStore(tmp_path / "shuffler.db", reserve=0)
    core = Shuffler(store, clock=clock, chance=SecureChance())
    analyzer.publish(core)
    analyzer.open(core, 0)
    for start in range(0, count, 40):
        send(core, analyzer, 0, *range(start, start + 40))
    other = sqlite3.connect(tmp_path / "shuffler.db")
    columns = {
        table: [row[1] for row in other.execute(f"PRAGMA table_info({table})")]
        for table in ("reports_1", "seen_1", "present_1")
    }
    assert columns == {"reports_1": ["id", "body"], "seen_1": ["client"], "present_1": ["client"]}
    rows = other.execute("SELECT rowid, id, body FROM reports_1").fetchall()
    assert all(rowid == report for rowid, report, _ in rows)  # the random id is the row's key
    assert _independent([int.from_bytes(body[24:32]) for _, _, body in rows])
    other.close()
    store.close()


def test_postgresql_keeps_no_time_and_no_link(postgres_address: str) -> None:
    analyzer, clock = Analyzer.of(population=2, minimum_batch=0), Clock()
    store = PostgresStore(postgres_address)
    core = Shuffler(store, clock=clock, chance=SecureChance())
    analyzer.publish(core)
    analyzer.open(core, 0)
    send(core, analyzer, 0, *range(400))
    with psycopg.connect(postgres_address) as other:
        columns: dict[str, list[str]] = {}
        for table, column in other.execute(
            "SELECT table_name, column_name FROM information_schema.columns "
            "WHERE table_schema = current_schema() AND table_name LIKE '%\\_1' ORDER BY 1, 2"
        ):
            columns.setdefault(table, []).append(column)
        stored = other.execute("SELECT body FROM reports_1 ORDER BY ctid").fetchall()
    assert columns == {"reports_1": ["body", "id"], "seen_1": ["client"], "present_1": ["client"]}
    assert _independent([int.from_bytes(body[24:32]) for (body,) in stored])
    store.close()


def _independent(marks: list[int]) -> bool:
    """Is the order in the file unrelated to the order of arrival?"""
    found = stats.spearmanr(range(len(marks)), marks).statistic
    return bool(abs(found) * np.sqrt(len(marks) - 1) < stats.norm.isf(FALSE_ALARMS / 2))


# --- nothing is left ------------------------------------------------------------------------


PIECE = os.urandom(20)  # no file holds it by chance


def patterned(analyzer: Analyzer, number: int) -> bytes:
    """A report that holds the same few bytes again and again, with random ones in between."""
    size = envelope.sizes(analyzer.plan).sealed
    filled = b"".join(PIECE + os.urandom(30) for _ in range(size // 50 + 1))
    return analyzer.report(number)[:24] + filled[:size]


def found_in(folder: Path, pieces: list[bytes]) -> set[str]:
    """Names of files that hold any of these bytes."""
    holding = set()
    for file in folder.rglob("*"):
        try:
            content = file.read_bytes() if file.is_file() else b""
        except OSError:
            continue  # a temporary file that has just gone
        if any(piece in content for piece in pieces):
            holding.add(file.name)
    return holding


Story = Callable[[Shuffler, Analyzer, Clock], None]


def claimed_and_finished(core: Shuffler, analyzer: Analyzer, clock: Clock) -> None:
    attend(core, 2)
    clock.now += 10
    core.claim(0, CHARGE)
    batch_of(core, 0)
    core.finish(0)


def void_by_population(core: Shuffler, analyzer: Analyzer, clock: Clock) -> None:
    clock.now += 10
    core.tick()
    assert core.status(0)["reason"] == "population"


def interrupted_and_recovered(core: Shuffler, analyzer: Analyzer, clock: Clock) -> None:
    """The process dies between the decision and the overwriting; another finishes the work."""
    attend(core, 2)
    clock.now += 10
    core.claim(0, CHARGE)
    with core.store.transaction() as transaction:
        record = transaction.round(analyzer.plan.id, 0)
        assert record is not None
        transaction.change_round(record.serial, state="done")
    core_over(core.store, clock).tick()
    assert core.find(0).purged


STORIES = [claimed_and_finished, void_by_population, interrupted_and_recovered]


@pytest.mark.parametrize("story", STORIES)
def test_nothing_of_a_batch_is_left_in_sqlites_files(tmp_path: Path, story: Story) -> None:
    store = SqliteStore(tmp_path / "shuffler.db", reserve=0)
    fill(store, story, lambda: found_in(tmp_path, [PIECE]))
    assert found_in(tmp_path, [PIECE]) == set()
    store.close()
    assert found_in(tmp_path, [PIECE]) == set()


@pytest.mark.parametrize("story", STORIES)
def test_nothing_of_a_batch_is_left_in_postgresqls_files(
    postgres: PostgresServer, postgres_address: str, story: Story
) -> None:
    """Tables and log, on a server set up as the operating guide says."""
    store = PostgresStore(postgres_address)
    fill(store, story, lambda: found_in(postgres.data, [PIECE]))
    assert found_in(postgres.data, [PIECE]) == set()
    store.close()


def fill(store: Store, story: Story, look: Callable[[], set[str]]) -> None:
    """Let a story happen to a batch of reports that are seen to be in the files before."""
    analyzer = Analyzer.of(population=2, minimum_batch=0, randomizer=wire_vectors.randomizer(1, 3000))
    clock = Clock()
    core = Shuffler(store, clock=clock, chance=SecureChance())
    analyzer.publish(core)
    analyzer.open(core, 0)
    for number in range(40):
        body = patterned(analyzer, 0)
        assert core.accept([core.examine(client(number), 0, body)]) == [None]
    assert look(), "the reports should have been in the files"
    story(core, analyzer, clock)


def test_who_was_there_is_gone_when_a_round_closes(tmp_path: Path) -> None:
    analyzer, clock = Analyzer.of(population=50, minimum_batch=0), Clock()
    store = SqliteStore(tmp_path / "shuffler.db", reserve=0)
    core = core_over(store, clock)
    analyzer.publish(core)
    analyzer.open(core, 0)
    attend(core, 50)
    send(core, analyzer, 0, *range(20))
    clients = [client(number) for number in range(50)]
    assert found_in(tmp_path, clients)
    clock.now += 10
    assert core.status(0)["state"] == "closed"
    assert found_in(tmp_path, clients) == set()
    store.close()


def test_a_reader_in_the_way_is_told_and_the_deletion_repeated(tmp_path: Path) -> None:
    """The log cannot be truncated while somebody reads an old state: busy, then done."""
    analyzer, clock = Analyzer.of(population=2, minimum_batch=0), Clock()
    store = SqliteStore(tmp_path / "shuffler.db", reserve=0)
    store.database.writer.execute("PRAGMA busy_timeout = 50")
    core = core_over(store, clock)
    analyzer.publish(core)
    analyzer.open(core, 0)
    attend(core, 2)
    core.accept([core.examine(client(0), 0, patterned(analyzer, 0))])
    clock.now += 10
    core.claim(0, CHARGE)
    reader = sqlite3.connect(tmp_path / "shuffler.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM rounds").fetchone()
    with pytest.raises(StorageBusy):
        core.finish(0)
    assert not core.find(0).purged
    reader.close()
    core.finish(0)
    assert core.find(0).purged
    assert found_in(tmp_path, [PIECE]) == set()
    store.close()
