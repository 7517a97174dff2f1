"""An issuer's database that does not hold what was written to it is not served from."""

import os
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dpcheckin.service.issuer import server
from dpcheckin.service.issuer.store import IssuerStore
from dpcheckin.service.storage.database import StorageBusy, StorageFailure
from dpcheckin.service.storage.files import take_lock
from dpcheckin.service.wire.credentials import token_digest
from dpcheckin.service.wire.problems import Refusal
from service.cli_runner import Cli
from service.issuer_world import IssuerWorld

TOKENS = [token_digest(f"token {number}") for number in range(40)]


@pytest.fixture
def world(tmp_path: Path) -> IssuerWorld:
    """Two keys, forty clients and some tokens; closed."""
    made = IssuerWorld(tmp_path, ahead=2)
    for client in made.store.enroll(TOKENS)[:5]:
        made.token(client, 0)
    made.store.close()
    return made


def problem_of(file: Path) -> str | None:
    """What is said of a file before it is served, None if nothing."""
    try:
        with closing(IssuerStore(file)) as store:
            store.verify()
    except StorageFailure as problem:
        return str(problem)
    return None


def changed(file: Path, table: str, column: str) -> None:
    """One bit of one value, as a bad disk changes it: nothing in SQLite notices."""
    with closing(sqlite3.connect(file)) as base:
        (value,) = base.execute(f"SELECT {column} FROM {table} LIMIT 1").fetchone()
    content = bytearray(file.read_bytes())
    place = content.find(value[:48])
    assert place > 0
    content[place + min(20, len(value) // 2)] ^= 0x04
    file.write_bytes(content)


def test_a_whole_database_is_served(world: IssuerWorld) -> None:
    assert problem_of(world.file) is None


@pytest.mark.parametrize(("table", "column"), [("keys", "primes"), ("plans", "document")])
def test_a_changed_key_or_plan_is_noticed(world: IssuerWorld, table: str, column: str) -> None:
    changed(world.file, table, column)
    said = problem_of(world.file) or ""
    assert said.startswith("the database is damaged: ") and "\n" not in said


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE about SET value = 'x' WHERE name = 'clients'",
        "UPDATE plans SET next_round = 'x'",
        "UPDATE plans SET next_round = -1",
        "UPDATE plans SET id = x'00'",
        "UPDATE keys SET primes = x''",
        "UPDATE keys SET primes = zeroblob(256)",
        "UPDATE keys SET primes = 'text'",
    ],
)
def test_values_that_make_no_sense_are_noticed(world: IssuerWorld, change: str) -> None:
    with closing(sqlite3.connect(world.file)) as base:
        base.execute(change)
        base.commit()
    assert "damaged" in (problem_of(world.file) or "")


def test_a_damaged_or_a_second_issuer_does_not_serve(
    world: IssuerWorld, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def issuer_app(front: Any) -> Any:
        raise AssertionError("it serves")

    monkeypatch.setattr(server, "issuer_app", issuer_app)
    folder = world.file.parent
    command = ("issuer", "serve", "-f", str(folder), "--dev", "--port", "0", "--admin-port", "0")
    with pytest.raises(AssertionError, match="it serves"):
        cli(*command)
    held = take_lock(folder / "issuer.lock")
    ended = cli(*command)
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "issuer.lock is held by another process" in ended.err
    os.close(held)
    changed(world.file, "keys", "primes")
    ended = cli(*command)
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "the database is damaged: " in ended.err


def test_whatever_is_changed_the_answer_is_a_failure_of_storage(world: IssuerWorld) -> None:
    """300 places: it is refused at once, or what it cannot answer it calls a failure."""
    whole, chance = world.file.read_bytes(), random.Random(18)
    refused = 0
    for _ in range(300):
        content = bytearray(whole)
        for _ in range(chance.choice((1, 1, 8))):
            content[chance.randrange(len(content))] = chance.randrange(256)
        for leftover in world.file.parent.glob("issuer.db-*"):
            leftover.unlink()
        world.file.write_bytes(content)
        if problem_of(world.file) is not None:
            refused += 1
            continue
        try:
            world.restart()
        except (StorageFailure, StorageBusy):
            continue
        with closing(world.store):
            for client in list(world.store.clients().values())[:2]:
                try:
                    _, hidden = world.blinded(0)
                    world.ask(client, [0], [hidden.message])
                except (StorageFailure, StorageBusy, Refusal):
                    pass
    assert refused > 20
