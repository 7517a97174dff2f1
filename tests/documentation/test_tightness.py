"""How tight guarantees are: what is stored, what is shown, and what is computed now."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tightness() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tightness", ROOT / "benchmarks/tightness.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["tightness"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_page_shows_what_is_stored(tightness: ModuleType) -> None:
    page = (ROOT / "docs/theory.md").read_text(encoding="utf-8")
    assert tightness.table(tightness.stored()) in page


def test_the_page_shows_which_questions_are_far(tightness: ModuleType) -> None:
    """And each that is further than a tenth says why."""
    table = tightness.far()
    assert table in (ROOT / "docs/theory.md").read_text(encoding="utf-8")
    for row in table.splitlines()[2:]:
        *_, ratio, why = (cell.strip() for cell in row.strip("|").split("|"))
        assert float(ratio) <= 1.1 or why != "–", row


def test_stored_gaps_meet_their_goals(tightness: ModuleType) -> None:
    """Half and 95% of the settings of every row with a goal."""
    rows = tightness.stored()
    for name, row in tightness.ROWS.items():
        found = tightness.ratios(rows[name])
        assert found.min() >= 1.0, name
        if row.median is not None:
            assert np.quantile(found, 0.5) <= row.median, name
            assert np.quantile(found, 0.95) <= row.most, name


@pytest.mark.parametrize(("name", "index"), [("any", 11), ("binary", 3), ("privunit-4", 5)])
def test_a_stored_setting_comes_out_again(tightness: ModuleType, name: str, index: int) -> None:
    """No worse than stored; bounds that got better since are let pass."""
    candidate, upper, lower = tightness.stored()[name][str(index)]
    found, guarantee, below = tightness.measured(name, 1, index)
    assert found == candidate
    assert guarantee <= upper * (1 + 1e-6)
    assert below >= lower * (1 - 1e-6)
