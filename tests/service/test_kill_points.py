"""kill -9 during every stage of a round: nothing acknowledged is lost, nothing is released twice.

The slow tests kill at 200 random points each, over SQLite, and over PostgreSQL with two front ends.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.kill_points import STAGES, AnalyzerKilling, Killing

MANY = 200


@pytest.fixture
def killings() -> Iterator[list[Killing | AnalyzerKilling]]:
    made: list[Killing | AnalyzerKilling] = []
    yield made
    for one in made:
        one.stop()


def run(killings: list[Killing | AnalyzerKilling], killing: Killing, kills: int) -> None:
    killings.append(killing)
    found = killing.run(kills)
    print(f"killed {sum(found.values())} times: {dict(found)}; {killing.empty} empty rounds")
    assert sum(found.values()) == kills
    assert set(found) == set(STAGES[:kills])


@pytest.mark.parametrize("kills", [6, pytest.param(MANY, marks=pytest.mark.slow)])
def test_kills_at_random_points_over_sqlite(
    tmp_path: Path, killings: list[Killing | AnalyzerKilling], kills: int
) -> None:
    store = f"sqlite:{tmp_path / 'data' / 'shuffler.db'}"
    run(killings, Killing(tmp_path / "data", store, 1, seed=kills), kills)


@pytest.mark.slow
@pytest.mark.parametrize("kills", [MANY])
def test_kills_of_two_front_ends_at_random_points_over_postgresql(
    tmp_path: Path, killings: list[Killing | AnalyzerKilling], postgres_address: str, kills: int
) -> None:
    run(killings, Killing(tmp_path / "data", postgres_address, 2, seed=kills), kills)


@pytest.mark.slow
@pytest.mark.parametrize("kills", [100])
def test_an_analyzer_killed_after_a_charge_pays_once_and_goes_on_over_sqlite(
    tmp_path: Path, killings: list[Killing | AnalyzerKilling], kills: int
) -> None:
    charged(killings, AnalyzerKilling(tmp_path, None, 1, seed=kills), kills)


@pytest.mark.slow
def test_an_analyzer_killed_after_a_charge_pays_once_and_goes_on_over_postgresql(
    tmp_path: Path, killings: list[Killing | AnalyzerKilling], postgres_address: str
) -> None:
    charged(killings, AnalyzerKilling(tmp_path, postgres_address, 2, seed=1), 100)


def charged(killings: list[Killing | AnalyzerKilling], killing: AnalyzerKilling, kills: int) -> None:
    killings.append(killing)
    for _ in range(kills):
        killing.kill_after_a_charge()
    print(f"killed {sum(killing.found.values())} times: {dict(killing.found)}; {killing.empty} empty rounds")
    assert sum(killing.found.values()) == 2 * kills, "the analyzer, and a backup of it"
