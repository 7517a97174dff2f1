"""Runs are read while they go on, and nothing but runs is."""

import json
import os
from pathlib import Path

import pytest

from dashboard.log import rows, write_run
from dpcheckin.dashboard.runs import SCORES, RunFolder
from dpcheckin.errors import InvalidParameter


def test_states(tmp_path: Path) -> None:
    write_run(tmp_path / "done", 10, finished=True)
    write_run(tmp_path / "now", 3, finished=False)
    write_run(tmp_path / "old", 3, finished=False)
    os.utime(tmp_path / "old" / "log.json", (1e9, 1e9))
    # taken up again after it had been finished: the report is about fewer rounds than the log
    write_run(tmp_path / "resumed", 10, finished=True)
    write_run(tmp_path / "resumed", 12, finished=False)
    found = {run["name"]: run["state"] for run in RunFolder(tmp_path).overview()}
    assert found == {"done": "finished", "now": "going on", "old": "stopped", "resumed": "going on"}


def test_figures_are_rounded_up(tmp_path: Path) -> None:
    write_run(tmp_path / "one", 2, finished=False)
    shown = RunFolder(tmp_path).run("one")
    for row, raw in zip(shown["rows"], rows(2), strict=True):
        assert raw["epsilon"] <= float(row["epsilon_text"]) < raw["epsilon"] * 1.001
        assert row["check_ins"] == raw["check_ins"]


def test_a_run_is_shown_with_its_own_score(tmp_path: Path) -> None:
    """Regressions have a test loss, of which the least is best."""
    write_run(tmp_path / "classes", 3, finished=True)
    (tmp_path / "prices").mkdir()
    log = [{**row, "test_loss": loss} for row, loss in zip(rows(3), (0.5, 0.1099, 0.2), strict=True)]
    for row in log:
        del row["accuracy"]
    (tmp_path / "prices" / "log.json").write_text(json.dumps(log))
    folder = RunFolder(tmp_path)
    shown = {run["name"]: (run["score"], run["score_text"]) for run in folder.overview()}
    assert shown == {"classes": ("test accuracy", "34.1%"), "prices": ("test loss", "0.2")}
    assert folder.run("prices")["best"] == "0.1099"
    assert folder.run("classes")["best"] == "34.1%"
    assert [row["value"] for row in folder.run("prices")["rows"]] == [0.5, 0.1099, 0.2]


def test_scores_are_named_as_training_names_them() -> None:
    pytest.importorskip("torch", reason="training needs torch")
    from dpcheckin.learning.models import ACCURACY, mean_loss

    every = (ACCURACY, mean_loss(lambda outputs, targets: outputs))
    assert {score.name: (score.label, score.percent, score.better) for score in every} == {
        name: (label, bool(unit), best) for name, (label, _, unit, best) in SCORES.items()
    }


def test_the_folder_may_be_a_run_itself_or_hold_groups_of_runs(tmp_path: Path) -> None:
    write_run(tmp_path / "alone", 2, finished=False)
    assert [run["name"] for run in RunFolder(tmp_path / "alone").overview()] == ["alone"]
    (tmp_path / "group").mkdir()
    write_run(tmp_path / "group" / "a", 2, finished=False)
    assert set(RunFolder(tmp_path).folders()) == {"alone", "group/a"}


def test_the_version_changes_with_the_log(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    write_run(tmp_path / "one", 2, finished=False)
    before = folder.version()
    assert folder.version() == before
    write_run(tmp_path / "one", 3, finished=False)
    assert folder.version() != before


@pytest.mark.parametrize("name", ["..", "../other", "missing", "/etc"])
def test_only_runs_of_the_folder_are_shown(tmp_path: Path, name: str) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    write_run(tmp_path / "other", 2, finished=False)
    write_run(inside / "one", 2, finished=False)
    with pytest.raises(InvalidParameter, match="run"):
        RunFolder(inside).run(name)


def test_a_torn_or_foreign_file_is_no_run(tmp_path: Path) -> None:
    for name, text in {"torn": '[{"round": 1,', "foreign": '{"a": 1}', "other": "[1, 2]"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "log.json").write_text(text)
    assert RunFolder(tmp_path).overview() == []


def test_a_missing_folder_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match=r"^runs = .*expected a folder that exists$"):
        RunFolder(tmp_path / "nowhere")


def test_what_training_writes_is_what_is_read(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="training needs torch")
    from dpcheckin.learning.simulation.training import write_log

    write_log(tmp_path, rows(4))
    shown = RunFolder(tmp_path).run(tmp_path.name)
    assert [row["round"] for row in shown["rows"]] == [10, 20, 30, 40]
    assert json.loads((tmp_path / "log.json").read_text()) == rows(4)


def test_the_runs_of_a_sweep_are_finished_named_by_what_differs_and_have_parameters(tmp_path: Path) -> None:
    cells = tmp_path / "rates" / "cells"
    cells.mkdir(parents=True)
    for key, rate, seed in (("aaaaaaaa", 0.1, 0), ("bbbbbbbb", 0.2, 0)):
        write_run(cells / key, 3, finished=False)
        os.utime(cells / key / "log.json", (1e9, 1e9))
        result = {"point": {"rate": rate}, "seed": seed, "rounds_run": 30, "statement": "said"}
        (cells / f"{key}.json").write_text(json.dumps(result))
    write_run(cells / "cccccccc", 2, finished=False)  # still being played
    found = {run["title"]: run for run in RunFolder(tmp_path).overview()}
    assert set(found) == {"rates: rate 0.1", "rates: rate 0.2", "rates: run cccccc"}
    assert found["rates: rate 0.1"]["state"] == "finished"
    assert found["rates: rate 0.1"]["parameters"] == {"rate": "0.1", "seed": "0"}
    assert found["rates: run cccccc"]["state"] == "going on"
    shown = RunFolder(tmp_path).run("rates/cells/aaaaaaaa")
    assert shown["title"] == "rates: rate 0.1" and shown["report"]["statement"] == "said"


def test_what_a_sweep_writes_is_what_is_read(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="training needs torch")
    from dpcheckin.learning.options import RunOptions
    from dpcheckin.learning.sweeps.grid import Sweep, in_this_process, run_sweep

    sweep = Sweep(RunOptions(population=200, rounds=2), {"rate": (0.05, 0.1)})
    run_sweep(sweep, tmp_path / "small", in_this_process)
    found = {run["title"]: run["state"] for run in RunFolder(tmp_path).overview()}
    assert found == {"small: rate 0.05": "finished", "small: rate 0.1": "finished"}
