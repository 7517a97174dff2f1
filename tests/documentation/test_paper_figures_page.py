"""The page of the papers' figures shows what is stored, and what is stored was played in full."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("torch", reason="the runs are described beside torch")

from dpcheckin.papers.figures import TRAINING
from dpcheckin.papers.training import LOG, REPORT, run_folder

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "paper-figures.md"
STORED: dict[str, Any] = json.loads((ROOT / "docs/results/paper-figures.json").read_text())


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    """A file of benchmarks/, which is no package."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return importlib.import_module("paper_figures")
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


def test_the_page_is_what_the_benchmark_writes(
    benchmark: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "page.md"
    copy.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(benchmark, "PAGE", copy)
    benchmark.write_page(STORED)
    assert copy.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")


def test_every_stored_figure_has_all_its_runs(benchmark: ModuleType) -> None:
    """A setting or a number of seeds that is changed after its run has to be played again."""
    assert STORED
    for name, kept in STORED.items():
        figure = TRAINING[name]
        assert set(kept["runs"]) == set(figure.runs)
        assert kept["caption"] == list(figure.departures)
        assert (benchmark.PICTURES / f"{name}.png").is_file()
        for label, options in figure.runs.items():
            reports = [
                json.loads((run_folder(options, seed, benchmark.RUNS) / REPORT).read_text())
                for seed in range(figure.seeds)
            ]
            facts = kept["runs"][label]
            assert facts["accuracies"] == [report["accuracy"] for report in reports]
            assert facts["rounds"] == options.rounds and facts["delta"] == options.delta
            assert [report["settings"]["seed"] for report in reports] == list(range(figure.seeds))


def test_every_kept_run_belongs_to_a_figure(benchmark: ModuleType) -> None:
    """Nothing is kept that no figure shows, and every log ends with its report's accuracy."""
    wanted = {
        run_folder(run.options, run.seed, benchmark.RUNS) for figure in TRAINING.values() for run in figure.all_runs()
    }
    kept = {path.parent for path in benchmark.RUNS.rglob(REPORT)}
    assert kept and kept <= wanted
    for folder in kept:
        log, report = (json.loads((folder / name).read_text()) for name in (LOG, REPORT))
        assert log[-1]["accuracy"] == report["accuracy"]
        assert log[-1]["round"] == report["rounds"]
