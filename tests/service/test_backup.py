"""Backup and restore by command: what comes back, what never goes in, what is refused."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.analyzer import backup as analyzer_backup
from dpcheckin.service.analyzer import state
from dpcheckin.service.analyzer.core import Status
from dpcheckin.service.analyzer.state import AnalyzerState, CheckpointDamaged
from dpcheckin.service.shuffler import backup as shuffler_backup
from dpcheckin.service.shuffler.records import State
from dpcheckin.service.shuffler.stores import schema
from dpcheckin.service.shuffler.stores.base import Store
from dpcheckin.service.shuffler.stores.sqlite import MemoryStore, SqliteStore
from dpcheckin.service.storage.backup_file import BackupDamaged, read_backup, write_backup
from dpcheckin.service.storage.files import InUse
from dpcheckin.service.storage.journal import Journal, JournalDamaged, journal_bytes
from dpcheckin.service.wire.canonical import canonical, digest, parse
from dpcheckin.service.wire.credentials import new_token, token_digest
from dpcheckin.service.wire.problems import Problem, Refusal
from service.analyzer_world import World, small_plan
from service.cli_runner import Cli
from service.shuffler_process import ShufflerProcess, open_round, publish
from service.shuffler_process import state as state_of
from service.shuffler_world import CHARGE, Analyzer, Clock, attend, core_over, send

# --- the shuffler ---------------------------------------------------------------------------


def rounds_of(store: Store) -> list[Any]:
    with store.transaction() as now:
        return now.rounds(*State)


def lived_in(store: Store) -> Analyzer:
    """A done round, a void one, a claimed one, a closed one and an open one."""
    store.enroll([token_digest(new_token()) for _ in range(5)])
    clock = Clock()
    core = core_over(store, clock)
    analyzer = Analyzer.of(population=2, minimum_batch=1, rounds=20)
    analyzer.publish(core)
    for number in range(5):
        analyzer.open(core, number)
        if number != 1:
            attend(core, 2)
            send(core, analyzer, number, 0, 1)
        if number < 4:
            clock.now += 10
            core.tick()
        if number in (0, 2):
            core.claim(number, CHARGE)
        if number == 0:
            core.finish(0)
    return analyzer


@pytest.fixture
def sql(new_store: Callable[[], Any]) -> Store:
    store = new_store()
    if isinstance(store, MemoryStore):
        pytest.skip("memory keeps nothing")
    return store


def test_what_comes_back_is_everything_but_reports(sql: Store, tmp_path: Path) -> None:
    """From either store into a fresh SQLite."""
    analyzer = lived_in(sql)
    file = tmp_path / "backup"
    shuffler_backup.backup(sql, file, "token")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert b"a5" * 16 not in file.read_bytes()  # of no report a byte
    fresh = SqliteStore(tmp_path / "fresh.db")
    kept = shuffler_backup.read(file)
    assert kept.about["token"] == "token"
    shuffler_backup.restore(fresh, kept)
    fresh.verify()
    assert fresh.clients() == sql.clients()
    before, after = rounds_of(sql), rounds_of(fresh)
    assert [one.state for one in before] == ["done", "void", "claimed", "closed", "open"]
    assert [one.state for one in after] == ["done", "void", "done", "done", "done"]
    assert all(one.purged for one in after)
    for old, new in zip(before, after, strict=True):
        assert (old.plan, old.number, old.document) == (new.plan, new.number, new.document)
        assert (old.opens, old.closes, old.charge) == (new.opens, new.closes, new.charge)
    with sql.writing() as was, fresh.writing() as is_now:
        assert was.about("id") == is_now.about("id")
    core = core_over(fresh, Clock(2_000_000.0))
    for number in (2, 3, 4):  # nothing is released a second time
        with pytest.raises(Refusal) as refused:
            core.claim(number, CHARGE)
        assert refused.value.problem is Problem.NOT_CLAIMED
    with pytest.raises(Refusal) as refused:  # nor is a round opened a second time
        analyzer.open(core, 4)
    assert refused.value.problem is Problem.CONFLICT
    analyzer.open(core, 5)
    fresh.close()


def test_a_backup_of_a_running_shuffler_makes_another_one_that_serves(cli: Cli, tmp_path: Path) -> None:
    old, new, file = tmp_path / "old", tmp_path / "new", tmp_path / "backup"
    analyzer = Analyzer.of(population=2, minimum_batch=0, rounds=10)
    with ShufflerProcess(old) as shuffler:
        (token,) = shuffler.enroll(1)
        shuffler.wait_for_clients(1)
        publish(shuffler.analyzer(), analyzer)
        open_round(shuffler.analyzer(), analyzer, 0, 3600)
        ended = cli("shuffler", "backup", "--folder", str(old), "--out", str(file))
        assert (ended.code, ended.out) == (0, f"{file}: 5 records\n")
        again = cli("shuffler", "backup", "--folder", str(old), "--out", str(file))
        assert again.code == 2  # nothing is overwritten
        assert "out = " in again.err
        full = cli("shuffler", "restore", "--folder", str(old), "--from", str(file))
        assert full.code == 2
        assert "another shuffler serves" in full.err
    ended = cli("shuffler", "restore", "--folder", str(new), "--from", str(file))
    assert (ended.code, ended.out) == (0, f"{new}: restored from {file}\n")
    assert stat.S_IMODE(new.stat().st_mode) == 0o700
    # clients believe only this identity's statements of void rounds
    assert (new / "identity.key").read_text() == (old / "identity.key").read_text()
    assert stat.S_IMODE((new / "identity.key").stat().st_mode) == 0o600
    twice = cli("shuffler", "restore", "--folder", str(new), "--from", str(file))
    assert twice.code == 2
    assert "an empty one" in twice.err
    with ShufflerProcess(new) as shuffler:
        call = shuffler.analyzer()  # the analyzer's token came back too
        assert state_of(call, 0)["state"] == "done"
        open_round(call, analyzer, 1, 3600)
        shuffler.caller(token).get("/v1/round").expect(200)


def test_what_is_no_backup_of_a_shuffler_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db")
    lived_in(store)
    file = tmp_path / "backup"
    shuffler_backup.backup(store, file)
    whole = file.read_bytes()
    good = tmp_path / "good"
    good.write_bytes(whole)
    fresh = SqliteStore(tmp_path / "fresh.db")
    for damage in (
        whole[:-1],
        whole[:-100],
        whole[: len(whole) // 2],
        b"",
        b"\n",
        whole[:200] + bytes([whole[200] ^ 1]) + whole[201:],
        whole[:-10] + b"x" + whole[-9:],
    ):
        file.write_bytes(damage)
        with pytest.raises(BackupDamaged):
            shuffler_backup.restore(fresh, shuffler_backup.read(file))
    records = parse_lines(whole)
    records[0]["about"]["version"] = schema.VERSION + 1
    rewritten(tmp_path / "newer", records)
    with pytest.raises(BackupDamaged, match="newer one"):
        shuffler_backup.restore(fresh, shuffler_backup.read(tmp_path / "newer"))
    rewritten(tmp_path / "odd", [*parse_lines(whole)[:2], {"client": "zz", "token": "00"}])
    with pytest.raises(BackupDamaged, match="non-hexadecimal"):
        shuffler_backup.restore(fresh, shuffler_backup.read(tmp_path / "odd"))
    write_backup(tmp_path / "other", "analyzer", [])
    with pytest.raises(BackupDamaged, match="no shuffler's backup"):
        shuffler_backup.restore(fresh, shuffler_backup.read(tmp_path / "other"))
    with pytest.raises(InvalidParameter, match="from = "):
        shuffler_backup.restore(fresh, shuffler_backup.read(tmp_path / "none"))
    with pytest.raises(InvalidParameter, match="store = "):
        shuffler_backup.backup(MemoryStore(), tmp_path / "memory")
    assert not fresh.clients()
    assert rounds_of(fresh) == []
    with fresh.serve_alone(), pytest.raises(InUse):
        shuffler_backup.restore(fresh, shuffler_backup.read(good))
    store.close()
    fresh.close()


def parse_lines(whole: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in whole.splitlines()[1:-1]]


def rewritten(file: Path, records: list[dict[str, Any]]) -> None:
    write_backup(file, "shuffler", records)


# --- the analyzer ---------------------------------------------------------------------------


def test_a_restored_analyzer_pays_for_what_was_released_in_the_meantime(cli: Cli, tmp_path: Path) -> None:
    world = World(tmp_path / "a", small_plan(), {2: Status("open")})
    world.stop.wait = lambda *_: world.stop.set()  # type: ignore[assignment, method-assign]
    assert world.run() == "stopped"  # two rounds, and one under way
    file = tmp_path / "backup"
    ended = cli("analyzer", "backup", "--folder", str(world.folder), "--out", str(file))
    assert (ended.code, ended.out) == (0, f"{file}: 3 files\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    world.stop.clear()
    world.shuffler.status_of[2] = Status("void", 120, 1, "batch")
    world.run()
    paid = [charge["round"] for charge in world.charges()]
    assert paid == [0, 1, 2, 3]
    restored = tmp_path / "b"
    ended = cli("analyzer", "restore", "--folder", str(restored), "--from", str(file))
    assert (ended.code, ended.out) == (0, f"{restored}: checkpoint, identity.key, privacy.ledger\n")
    assert stat.S_IMODE(restored.stat().st_mode) == 0o700
    assert (restored / "identity.key").read_bytes() == (world.folder / "identity.key").read_bytes()
    world.folder = restored
    assert [charge["round"] for charge in world.charges()] == [0, 1]
    assert world.run() == "all 4 rounds of the plan have been charged"
    assert [charge["round"] for charge in world.charges()] == [0, 1, 2, 3]
    assert [row["state"] for row in world.kept.log] == ["released", "released", "void by batch", "lost"]


def test_keys_are_in_a_backup_only_if_they_are_asked_for(tmp_path: Path) -> None:
    world = World(tmp_path / "a", small_plan(), {})
    world.run(rotate_every=3)
    (world.folder / "analyzer.toml").write_text("# settings\n")
    secret = sorted((world.folder / "keys").glob("*.key"))[-1].read_text().strip().encode()
    analyzer_backup.backup(world.folder, tmp_path / "without")
    assert analyzer_backup.backup(world.folder, tmp_path / "with", with_keys=True) > 4
    for name, there in (("without", False), ("with", True)):
        restored = tmp_path / f"from-{name}"
        analyzer_backup.restore(restored, tmp_path / name)
        found = [file.read_bytes() for file in (restored / "keys").glob("*.key")]
        assert any(secret in one for one in found) is there
        assert (restored / "analyzer.toml").read_text() == "# settings\n"
        for file in restored.rglob("*"):
            assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0


def test_a_folder_with_something_in_it_is_not_overwritten(cli: Cli, tmp_path: Path) -> None:
    world = World(tmp_path / "a", small_plan(), {})
    world.run()
    analyzer_backup.backup(world.folder, tmp_path / "backup")
    ended = cli("analyzer", "restore", "--folder", str(world.folder), "--from", str(tmp_path / "backup"))
    assert ended.code == 2
    assert "one without identity.key" in ended.err
    empty = cli("analyzer", "backup", "--folder", str(tmp_path / "no"), "--out", str(tmp_path / "x"))
    assert empty.code == 2
    assert "an analyzer that has run" in empty.err
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "keys/from-1x.key", "keys/../x", 7])
def test_a_backup_writes_nowhere_else(tmp_path: Path, name: Any) -> None:
    write_backup(tmp_path / "backup", "analyzer", [{"file": name, "content": ""}])
    with pytest.raises(BackupDamaged, match="none of an analyzer's"):
        analyzer_backup.restore(tmp_path / "a", tmp_path / "backup")
    write_backup(tmp_path / "short", "analyzer", [])
    with pytest.raises(BackupDamaged, match="lacks"):
        analyzer_backup.restore(tmp_path / "a", tmp_path / "short")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("party", ["shuffler", "analyzer"])
def test_from_half_a_backup_nothing_is_made(cli: Cli, tmp_path: Path, party: str) -> None:
    half = tmp_path / "half"
    half.write_bytes(b'{"backup":"shuffler","format":1}\n')
    ended = cli(party, "restore", "--folder", str(tmp_path / "new"), "--from", str(half))
    assert ended.code == 2 and len(ended.err.splitlines()) == 1
    assert not (tmp_path / "new").exists()


def test_a_journal_in_use_is_copied_as_far_as_it_was_acknowledged(tmp_path: Path) -> None:
    with Journal(tmp_path / "ledger") as journal:
        for number in range(5):
            journal.append({"n": number})
        copy = journal_bytes(tmp_path / "ledger")
        assert copy == (tmp_path / "ledger").read_bytes()
    content = (tmp_path / "ledger").read_bytes()
    (tmp_path / "ledger").write_bytes(content + b'{"half')
    assert journal_bytes(tmp_path / "ledger") == content
    (tmp_path / "ledger").write_bytes(content[: content[:-1].rfind(b"\n") + 1])
    with pytest.raises(JournalDamaged, match="lacks entries"):
        journal_bytes(tmp_path / "ledger")


# --- versions of a checkpoint ---------------------------------------------------------------


def test_a_checkpoint_says_its_format_and_a_newer_one_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path / "a", small_plan(), {})
    world.run()
    body = parse((world.folder / state.FILE).read_bytes()[32:], 1 << 30)

    def written(fields: dict[str, Any]) -> AnalyzerState:
        said = canonical(fields)
        return AnalyzerState.from_bytes(digest(said) + said)

    assert body["format"] == state.FORMAT
    first = {name: value for name, value in body.items() if name != "format"}
    assert written(first).log == world.kept.log  # as the first release wrote it
    for odd in (state.FORMAT + 1, 0, "2", True):
        with pytest.raises(CheckpointDamaged, match=r"known are 1 to 2.*upgrading"):
            written(body | {"format": odd})


def test_a_round_that_was_charged_is_not_opened_again_by_a_shuffler_put_back_in_time(tmp_path: Path) -> None:
    """The shuffler is restored from before the round, the analyzer died between charge and end."""
    world = World(tmp_path / "a", small_plan(), {})
    world.shuffler.on_claim = lambda *_: world.stop.set()

    def no_batch(number: int, largest: int) -> Any:
        raise KeyboardInterrupt

    world.shuffler.batch = no_batch  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        world.run()
    assert [charge["round"] for charge in world.charges()] == [0]
    again = World(world.folder, world.document, {})
    again.time = 2000.0
    again.run()
    assert [row["state"] for row in again.kept.log] == ["lost", "released", "released", "released"]
    assert 0 not in again.shuffler.rounds
    assert len({charge["round"] for charge in again.charges()}) == len(again.charges()) == 4


def test_backups_are_read_as_a_whole(tmp_path: Path) -> None:
    write_backup(tmp_path / "x", "shuffler", [{"a": 1}])
    assert read_backup(tmp_path / "x", "shuffler") == [{"a": 1}]
    whole = (tmp_path / "x").read_bytes().replace(b'"format":1', b'"format":2')
    body, _, _ = whole.removesuffix(b"\n").rpartition(b"\n")
    end = {"digest": digest(body + b"\n").hex(), "lines": 2}
    (tmp_path / "x").write_bytes(body + b"\n" + canonical(end) + b"\n")
    with pytest.raises(BackupDamaged, match="of format 2, known is 1"):
        read_backup(tmp_path / "x", "shuffler")
    with pytest.raises(InvalidParameter, match="out = "):
        write_backup(tmp_path / "no" / "x", "shuffler", [])

    def broken() -> Any:
        yield {"a": 1}
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        write_backup(tmp_path / "y", "shuffler", broken())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x"]
