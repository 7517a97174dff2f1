"""The standing sample: what is stored, what is shown, and what a setting of it is."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def standing() -> ModuleType:
    spec = importlib.util.spec_from_file_location("standing", ROOT / "benchmarks/standing.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_shows_what_is_stored(standing: ModuleType) -> None:
    assert standing.table(standing.stored().values()) in (ROOT / "docs/theory.md").read_text(encoding="utf-8")


def test_every_answer_is_finite_above_its_lower_bound_and_within_limits(standing: ModuleType) -> None:
    rows = standing.stored()
    assert [*rows] == [*range(standing.SETTINGS)]
    bad = [row for row in rows.values() if standing.wrong(row)]
    assert len(bad) <= 3
    assert all("NumericalFailure: the noise is drawn too coarsely" in row["said"] for row in bad)
    assert sum(standing.spent(row) > standing.GOAL for row in rows.values()) <= 5


@pytest.mark.parametrize(
    "row",
    [
        {"upper": math.nan, "lower": 0.1},
        {"upper": math.inf, "lower": 0.1},
        {"upper": 0.1, "lower": 0.2},
        {"upper": 0.1, "lower": math.nan},
        {"said": "no"},
        {"upper": 0.1, "lower": 0.0, "seconds": 61.0},
        {"upper": 0.1, "lower": 0.0, "megabytes": 2001},
        {"upper": 0.1, "lower": 0.0, "seconds": math.nan},
    ],
)
def test_what_is_wrong_is_noticed(standing: ModuleType, row: dict[str, object]) -> None:
    assert standing.wrong({"seconds": 1.0, "megabytes": 100, **row})
    assert not standing.wrong({"seconds": 1.0, "megabytes": 100, "upper": 0.1, "lower": 0.1})


@pytest.mark.parametrize("index", [0, 30, 36])
def test_a_stored_answer_comes_out_again(standing: ModuleType, index: int) -> None:
    """A setting is drawn from its number alone, and answered as it was."""
    row = standing.stored()[index]
    again = standing.answer(index)
    assert {key: row[key] for key in standing.setting(index)} == standing.setting(index)
    assert again["upper"] == pytest.approx(row["upper"], rel=2e-3)
