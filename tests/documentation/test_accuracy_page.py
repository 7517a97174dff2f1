"""The page of accuracies shows what is stored, and what is stored is the benchmark's."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dpcheckin.numerals import rounded_up
from dpcheckin.protocols import ShuffledCheckIn
from dpcheckin.randomizers import PrivUnit

pytest.importorskip("torch", reason="the runs' options are described beside torch")
ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/accuracy.md").read_text(encoding="utf-8")
STORED: dict[str, Any] = json.loads((ROOT / "docs/results/accuracy.json").read_text())


def benchmark_part(name: str) -> ModuleType:
    """A file of benchmarks/, which is no package."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


@pytest.fixture(scope="module")
def goals_file() -> ModuleType:
    return benchmark_part("_accuracy_goals")


@pytest.fixture(scope="module")
def page_file() -> ModuleType:
    return benchmark_part("_accuracy_page")


def test_the_page_shows_what_is_stored_and_nothing_else(goals_file: ModuleType, page_file: ModuleType) -> None:
    block = PAGE.partition("<!-- table -->\n")[2].partition("\n\n<!-- end of table -->")[0]
    rows = [page_file.page_row(STORED[g.name]) for g in goals_file.GOALS if g.name in STORED]
    assert rows and block.splitlines() == [*page_file.PAGE_HEAD, *rows]
    block = PAGE.partition("<!-- few -->\n")[2].partition("\n\n<!-- end of few -->")[0]
    few = [page_file.few_row(STORED[g.name]) for g in goals_file.FEW if g.name in STORED]
    assert few and block.splitlines() == [*page_file.FEW_HEAD, *few]


def test_the_price_beside_an_accuracy_is_the_plans(goals_file: ModuleType, page_file: ModuleType) -> None:
    """Check-ins and what colluding leaves are read from a stored statement: the accountant says the same today."""
    row = STORED["few-50-60000"]["shuffled"]
    plan = ShuffledCheckIn(60_000, 0.1, row["rounds"], PrivUnit(4.0, 1510))
    stated = plan.guarantee(1e-5)
    assert stated.local is not None
    assert page_file.colluding(row) == f"{rounded_up(stated.local.epsilon)}"
    assert page_file.check_ins(row) == "50" and stated.epsilon.upper == pytest.approx(row["epsilon"], rel=1e-6)


def test_what_is_stored_was_played_with_the_settings_of_the_benchmark(goals_file: ModuleType) -> None:
    """A setting that is changed after its run has to be played again."""
    goals = {goal.name: goal for goal in (*goals_file.GOALS, *goals_file.FEW)}
    assert set(STORED) <= set(goals)
    for name, row in STORED.items():
        goal = goals[name]
        for label, candidates in (("shuffled", goal.candidates), ("central", goal.central))[: 1 if goal.passes else 2]:
            played = {goals_file.command(goals_file.options_for(goal, c, 0, held=False)) for c in candidates}
            assert row[label]["command"] in played, name
            scores = row[label]["accuracies"]
            assert row[label]["accuracy"] == pytest.approx(sum(scores) / len(scores))
        ours = row["shuffled"]
        assert ours["epsilon"] <= goal.epsilon == row["epsilon_allowed"]
        if goal.passes:
            assert float(ours["rounds"]) * goal.candidates[0].get("rate", 0.1) <= goal.passes == row["passes"]
            continue
        assert row["goal"] == goal.accuracy / 100
        assert row["met"] == (ours["accuracy"] >= row["goal"])


def test_imagenet_heads_lose_at_most_five_points_to_privacy() -> None:
    """As the page says."""
    assert "within five points" in " ".join(PAGE.split())
    rows = [row for row in STORED.values() if row["task"] == "cifar10-imagenet"]
    assert rows
    for row in rows:
        assert row["without_privacy"] - row["shuffled"]["accuracy"] <= 0.05


def test_the_command_of_a_run_is_the_run(goals_file: ModuleType) -> None:
    """Words of the stored command name every option that differs from the default, and no other."""
    goal = goals_file.GOALS[0]
    options = goals_file.options_for(goal, goal.candidates[0], 2, held=False)
    words = goals_file.command(options).removeprefix("dpcheckin train ").split(" ")
    told = dict(zip(words[::2], words[1::2], strict=True))
    assert told["--seed"] == "2" and told["--epsilon-budget"] == "0.5"
    assert told["--public"] == "fashion-mnist" and "--validate" not in told
    assert "--delta" not in told
    held = goals_file.command(goals_file.options_for(goal, goal.candidates[0], 0, held=True))
    assert "--validate" in held and "--epsilon-budget" not in held


def test_a_stored_epsilon_is_what_the_accountant_certifies_now() -> None:
    row = STORED["mnist-0.5"]["shuffled"]
    plan = ShuffledCheckIn(60_000, 0.1, row["rounds"], PrivUnit(2.0, 6010))
    assert plan.epsilon(1e-5).upper == pytest.approx(row["epsilon"], rel=1e-6)
    assert row["population"] == 60_000 and row["delta"] == 1e-5
