"""Fixtures of the service tests: a PostgreSQL server, stores of every kind, a priced plan."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpcheckin.service.pricing import Price
from dpcheckin.service.shuffler.stores.base import Store
from dpcheckin.service.shuffler.stores.sqlite import MemoryStore, SqliteStore
from service.cli_runner import Cli, runner
from service.plans import plan
from service.postgres_server import PostgresServer

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    reason = PostgresServer.missing()
    if reason is not None:
        pytest.skip(reason)
    server = PostgresServer()
    yield server
    server.remove()


@pytest.fixture
def postgres_address(postgres: PostgresServer) -> str:
    """As good as a fresh database."""
    return postgres.new_schema(f"test_{os.getpid()}_{next(_numbers)}")


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Opens the same store again and again (memory: gives the one there is)."""
    opened: list[Store] = []
    if request.param == "memory":
        only = MemoryStore()
        made: Callable[[], Store] = lambda: only  # noqa: E731
    elif request.param == "sqlite":
        made = lambda: SqliteStore(tmp_path / "shuffler.db", reserve=0)  # noqa: E731
    else:
        from dpcheckin.service.shuffler.stores.postgres import PostgresStore

        address = request.getfixturevalue("postgres_address")
        made = lambda: PostgresStore(address)  # noqa: E731

    def open_one() -> Store:
        opened.append(made())
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return runner(monkeypatch, capsys)


@pytest.fixture
def store(new_store: Callable[[], Store]) -> Store:
    return new_store()


@pytest.fixture(scope="module")
def price() -> Price:
    """A plan whose budget ends before its rounds do."""
    found = Price(plan(epsilon_budget=4.0))
    assert 2 < found.allowed_rounds < found.document.rounds
    return found
