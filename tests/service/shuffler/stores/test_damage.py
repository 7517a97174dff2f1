"""A database that does not hold what was written to it is not served from, and one line says so."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dpcheckin.service.shuffler import server
from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.records import State
from dpcheckin.service.shuffler.stores import schema
from dpcheckin.service.shuffler.stores.base import Store
from dpcheckin.service.shuffler.stores.sqlite import MemoryStore, SqliteStore
from dpcheckin.service.storage.database import StorageFailure
from dpcheckin.service.wire.canonical import digest
from dpcheckin.service.wire.credentials import new_token, token_digest
from service.cli_runner import Cli
from service.shuffler_process import ShufflerProcess
from service.shuffler_world import CHARGE, Analyzer, Clock, attend, core_over, send

MODEL = bytes(range(256)) * 40


def lived_in(store: Store, clients: int = 40) -> Shuffler:
    """A claimed round, a void one and an open one, clients and a model of several pages."""
    made = store.enroll([token_digest(new_token()) for _ in range(clients)])
    store.revoke(made[0])
    store.replace_token(made[1], token_digest(new_token()))
    clock = Clock()
    core = core_over(store, clock)
    analyzer = Analyzer.of(population=2, minimum_batch=1, rounds=20)
    analyzer.publish(core)
    for number in range(3):
        analyzer.open(core, number)
        if number != 1:
            attend(core, 2)
            send(core, analyzer, number, 0, 1)
        if number < 2:
            clock.now += 10
            core.tick()
    core.claim(0, CHARGE)
    core.publish_model(digest(MODEL), MODEL)
    return core


@pytest.fixture
def file(tmp_path: Path) -> Path:
    place = tmp_path / "shuffler.db"
    with closing(SqliteStore(place)) as store:
        lived_in(store)
    return place


def problem_of(file: Path) -> str | None:
    """What is said of a file before it is served, None if nothing."""
    try:
        with closing(SqliteStore(file)) as store:
            store.verify()
    except StorageFailure as problem:
        return str(problem)
    return None


def test_a_whole_database_is_served(file: Path) -> None:
    assert problem_of(file) is None


def _table_pages(file: Path, table: str) -> list[int]:
    """Offsets of the bytes that hold a table's first row."""
    with closing(sqlite3.connect(file)) as base:
        first = base.execute(f"SELECT * FROM {table} LIMIT 1").fetchone()
        blob = max((v for v in first if isinstance(v, bytes)), key=len)
    content = file.read_bytes()
    place = content.find(blob[:200])
    assert place > 0, table
    return [place, place + min(150, len(blob) // 2)]


def flipped(file: Path, place: int, bits: int = 0xFF) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= bits
    file.write_bytes(content)


@pytest.mark.parametrize("table", ["plans", "keys", "models", "rounds", "clients"])
@pytest.mark.parametrize("which", [0, 1])
def test_one_changed_byte_in_any_table_is_noticed(file: Path, table: str, which: int) -> None:
    flipped(file, _table_pages(file, table)[which])
    said = problem_of(file)
    assert said is not None
    assert "damaged" in said
    assert "\n" not in said


def test_a_whole_row_that_is_gone_or_comes_back_is_noticed(file: Path) -> None:
    for change in (
        "DELETE FROM clients WHERE rowid IN (SELECT rowid FROM clients LIMIT 1)",
        "UPDATE rounds SET state = 'closed' WHERE state = 'claimed'",
        "UPDATE rounds SET reports = 7 WHERE state = 'claimed'",
        "UPDATE rounds SET closes = closes + 1000",
        "UPDATE about SET value = 'x' WHERE name = 'clients_sum'",
    ):
        before = file.read_bytes()
        with closing(sqlite3.connect(file)) as base:
            base.execute(change)
            base.commit()
        assert "damaged" in (problem_of(file) or ""), change
        file.write_bytes(before)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda c: c[: len(c) // 2], id="cut in half"),
        pytest.param(lambda c: c[:4096] + bytes(4096) + c[8192:], id="a page of zeros"),
        pytest.param(lambda c: c[: len(c) - 4096] + b"\xff" * 4096, id="a page of ones"),
        pytest.param(lambda c: bytes(100) + c[100:], id="no header"),
        pytest.param(lambda c: c[:60] + b"\xff" * 40 + c[100:], id="half a header"),
        pytest.param(lambda c: c[:4096] + c[8192:12288] + c[4096:8192] + c[12288:], id="swapped"),
        pytest.param(lambda c: c[:100] + b"\xfe" * 200 + c[300:], id="the list of tables"),
        pytest.param(lambda c: c[:3000] + b"\xfe" * 1000 + c[4000:], id="texts of the schema"),
    ],
)
def test_torn_files_are_refused_in_one_line(file: Path, damage: Callable[[bytes], bytes]) -> None:
    file.write_bytes(damage(file.read_bytes()))
    said = problem_of(file)
    assert said is not None
    assert "\n" not in said


def test_whatever_is_damaged_nothing_but_one_line_comes_out(file: Path) -> None:
    """Random damage is either noticed, or hits bytes that nobody reads."""
    whole, chance = file.read_bytes(), random.Random(5)
    noticed = 0
    for _ in range(60):
        content = bytearray(whole)
        start = chance.randrange(len(content))
        size = chance.choice([1, 16, 400])
        content[start : start + size] = chance.randbytes(len(content[start : start + size]))
        file.write_bytes(content)
        said = problem_of(file)
        assert said is None or "\n" not in said
        noticed += said is not None
    assert noticed > 20


@pytest.fixture
def no_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shuffler that would serve fails the test instead of serving for ever."""

    def build(settings: Any, store: Any) -> Any:
        raise AssertionError("it serves")

    monkeypatch.setattr(server, "build", build)


def test_serve_ends_with_one_line(cli: Cli, file: Path, no_service: None) -> None:
    flipped(file, _table_pages(file, "models")[0])
    options = ["--folder", str(file.parent), "--dev", "--port", "0", "--admin-port", "0"]
    ended = cli("shuffler", "serve", *options)
    assert ended.code == 2
    lines = [line for line in ended.err.splitlines() if not line.startswith("{")]
    assert len(lines) == 1
    assert "the database is damaged: " in lines[0]


def test_a_second_shuffler_on_one_file_is_refused(cli: Cli, tmp_path: Path, no_service: None) -> None:
    options = ["--folder", str(tmp_path), "--dev", "--port", "0", "--admin-port", "0"]
    with ShufflerProcess(tmp_path) as shuffler:
        ended = cli("shuffler", "serve", *options)
        assert ended.code == 2
        assert f"another shuffler serves {tmp_path / 'shuffler.db'}" in ended.err
        assert cli("shuffler", "enroll", "--folder", str(tmp_path)).code == 0
        shuffler.kill()  # the lock goes with its holder
        shuffler.start()


# --- versions -------------------------------------------------------------------------------


def _version_1(store: Store) -> None:
    """Take away what version 2 added."""
    with store.writing() as transaction:
        transaction.run("ALTER TABLE rounds DROP COLUMN checksum")
        transaction.run("DELETE FROM about WHERE name IN ('id', 'clients_sum')")
        transaction.set_about("version", "1")


@pytest.fixture
def sql(new_store: Callable[[], Any]) -> Callable[[], Store]:
    if isinstance(new_store(), MemoryStore):
        pytest.skip("memory has no versions")
    return new_store


def test_an_older_database_is_brought_up_to_date_and_keeps_everything(sql: Callable[[], Store]) -> None:
    store = sql()
    lived_in(store)
    clients = store.clients()
    with store.transaction() as now:
        rounds = now.rounds(*State)
    _version_1(store)
    again = sql()
    again.verify()
    assert again.clients() == clients
    with again.writing() as transaction:
        assert transaction.rounds(*State) == rounds
        assert transaction.about("version") == str(schema.VERSION)
        assert len(transaction.about("id") or "") == 32
    third = sql()  # once is enough
    third.verify()
    third.enroll([token_digest(new_token())])
    third.verify()


@pytest.mark.parametrize("version", ["3", "999", "x", ""])
def test_a_newer_database_is_left_alone(sql: Callable[[], Store], version: str) -> None:
    store = sql()
    with store.writing() as transaction:
        transaction.set_about("version", version)
    with pytest.raises(StorageFailure, match=r"version .*knows 1 to 2.*upgrading"):
        sql()
    with store.writing() as transaction:
        assert transaction.about("version") == version
        transaction.set_about("version", str(schema.VERSION))  # other tests share the server
