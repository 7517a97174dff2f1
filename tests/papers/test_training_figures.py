import json
import subprocess
import sys
from dataclasses import replace
from math import log

import pytest

from dpcheckin.errors import DatasetMissing, InvalidParameter
from dpcheckin.learning import load_dataset
from dpcheckin.numerals import rounded_up
from dpcheckin.papers.catalogue import catalogue
from dpcheckin.papers.entry import Setting
from dpcheckin.papers.figures import TRAINING
from dpcheckin.papers.training import Machine, accounted_by_papers, is_finished, run_figure, run_folder
from dpcheckin.papers.training_figure import TrainingFigure


def test_figures_are_listed_without_torch():
    """`reproduce --list` names the training figures where torch is not installed."""
    code = "import sys; sys.modules['torch'] = None\n"
    code += "from dpcheckin.papers.figures import TRAINING; print(*TRAINING)"
    names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert names.stdout.split() == list(TRAINING)


def test_what_is_left_to_play_is_told(tmp_path):
    """P3 Fig. 6 has four runs of 6,000 rounds with 2,000 clients, and a kept one is not counted."""
    runs = TRAINING["p3-figure6"].all_runs()
    assert [run.seed for run in runs] == [0, 1, 2, 3]
    assert [run.gradients for run in runs] == [pytest.approx(12e6)] * 4
    kept = run_folder(runs[2].options, 2, tmp_path)
    kept.mkdir(parents=True)
    (kept / "report.json").write_text("{}")
    assert not any(is_finished(run, tmp_path) for run in runs)
    (kept / "log.json").write_text("[]")
    assert [is_finished(run, tmp_path) for run in runs] == [False, False, True, False]


def test_workers_play_what_one_process_plays(tmp_path):
    """A figure's result does not depend on the machine, nor does the folder of its run."""
    alone = run_figure("p3-figure6", tmp_path / "alone", quick=True)
    two = run_figure("p3-figure6", tmp_path / "two", quick=True, machine=Machine(workers=2))
    assert two["subsampled shuffle"]["accuracy"] == alone["subsampled shuffle"]["accuracy"]
    folders = [sorted(p.name for p in (tmp_path / n / "runs").iterdir()) for n in ("alone", "two")]
    assert folders[0] == folders[1]
    with pytest.raises(InvalidParameter, match="workers = 0"):
        Machine(workers=0)


def test_figures_look_for_their_data_where_they_are_told(tmp_path, monkeypatch):
    """An empty --data-dir is named, and nothing is drawn."""
    monkeypatch.setitem(__import__("sys").modules, "torchvision", None)
    with pytest.raises(DatasetMissing, match=f"{tmp_path}.*--data-dir"):
        run_figure("p0-figure6", tmp_path / "out", machine=Machine(data_dir=tmp_path))
    assert not (tmp_path / "out" / "p0-figure6").exists()


def test_a_figure_is_played_and_drawn(tmp_path):
    results = run_figure("p3-figure6", tmp_path, quick=True)
    run = results["subsampled shuffle"]
    assert set(results) == {"subsampled shuffle"} and run["accuracies"] == [run["accuracy"]]
    place = tmp_path / "p3-figure6-quick"
    assert (place / "p3-figure6.png").exists()
    kept = json.loads((place / "summary.json").read_text())
    assert kept["caption"][0].startswith("A quick look, not the figure itself")
    assert kept["caption"][1:] == list(TRAINING["p3-figure6"].departures)
    theirs = run["papers_epsilon"]
    assert run["epsilon"] < theirs["P3 upper bound (guarantee)"]
    cohort = Setting("subsampled-shuffle", 1437, 20, 1e-5, cohort=72, local_epsilon=2.0)
    (bound,) = (b for b in catalogue() if b.name == "P3 upper bound")
    assert theirs["P3 upper bound (guarantee)"] == bound.evaluate(cohort).epsilon
    again = run_figure("p3-figure6", tmp_path, quick=True)  # finished runs are not played again
    assert {k: v["accuracy"] for k, v in again.items()} == {k: v["accuracy"] for k, v in results.items()}
    with pytest.raises(InvalidParameter, match="figure"):
        run_figure("p9-figure1", tmp_path)


P1_ACCOUNTANTS = ("P1 baseline", "P1 approach 1", "P1 approach 2")
PRINTED = {  # figure: seeds, then for every run rounds, rate, clip, delta, learning rate in clips
    "p0-figure3a": (1, (6800, 0.1, 0.1, None, None)),
    "p0-figure3b": (1, (None, 1e-4, 0.05, None, None)),
    "p0-figure4": (5, (None, 1e-3, 0.04, None, None)),
    "p0-figure5b": (3, (None, 0.1, 0.1, None, None)),
    "p1-figure2": (1, (100_000, 1e-3, 0.05, 1 / 60_000, 0.1 * 0.05)),
    "p3-figure6": (4, (6000, 2000 / 60_000, 0.005, 1e-5, 12 * 0.005)),
    "p4-figure1b": (1, (5540, 0.1, 0.01, None, None)),
}


@pytest.mark.parametrize("name", PRINTED)
def test_runs_have_the_printed_settings(name):
    """Numbers from the papers' text; None where it says nothing."""
    figure, (seeds, printed) = TRAINING[name], PRINTED[name]
    assert figure.seeds == seeds
    for run in figure.runs.values():
        found = (run.rounds, run.rate, run.clip, run.delta, run.settings.learning_rate)
        for ours, theirs in zip(found, printed, strict=True):
            assert theirs is None or ours == pytest.approx(theirs)
        assert run.settings.averaging == 0.0  # no paper averages its parameters


def test_what_is_not_printed_is_said_under_the_picture():
    """Where a paper prints neither delta nor learning rate, the caption says which are used."""
    for name, (_, (rounds, *_rest, delta, rate)) in PRINTED.items():
        said = " ".join(TRAINING[name].departures)
        assert ("δ is not printed" in said) == (delta is None)
        assert ("earning rate" in said) == (rate is None)
        assert rounds is not None or any(word in said for word in ("rounds", "epochs"))
    for name in ("p0-figure6", "p1-figure6"):
        assert "CIFAR-100, which is not to be had" in " ".join(TRAINING[name].departures)
        assert {run.data for run in TRAINING[name].runs.values()} <= {"mnist", "cifar10"}


def test_the_papers_accountants_say_what_the_papers_print():
    """P3's text: 5.8 after 200 epochs; ours of the same run is a tenth of it."""
    figure = TRAINING["p3-figure6"]
    run = figure.runs["subsampled shuffle"]
    theirs = accounted_by_papers(figure.accountants, run, [{"round": 6000}], 60_000)
    ((epsilon, row),) = theirs["P3 upper bound (guarantee)"]
    assert row == 0 and epsilon == pytest.approx(5.8, abs=0.05)
    gaussian = TRAINING["p4-figure1b"].runs["shuffled check-in"]
    named = accounted_by_papers(("P1 baseline",), gaussian, [{"round": 5540}], 60_000)
    assert list(named) == ["P1 baseline (refuted claim)"]
    assert accounted_by_papers(("P3 upper bound",), gaussian, [{"round": 1}], 60_000) == {}


def test_what_p1s_accountants_say_at_one_clip_is_in_the_caption():
    """Half the local epsilon of the curves: Abadi et al.'s formula at sensitivity one clip."""
    delta = 1 / 60_000
    local = {"local_epsilon": (2 * log(1.25 / delta**2)) ** 0.5 / 0.86, "local_delta": delta**2}
    run = Setting("shuffled-check-in", 60_000, 100_000, delta, rate=1e-3, **local)
    found = [b.evaluate(run).epsilon for b in catalogue() if b.name in P1_ACCOUNTANTS]
    for name in ("p1-figure2", "p1-figure6"):
        (said,) = (text for text in TRAINING[name].departures if "one clip P1" in text)
        assert f"{rounded_up(found[0])}, {rounded_up(found[1])} and {rounded_up(found[2])}" in said


def test_figures_that_show_the_same_run_play_it_once(tmp_path):
    """P0's Fig. 5a at rate 0.1 is a curve of its Fig. 5b; P1's Fig. 2 one of its Fig. 6."""
    assert TRAINING["p0-figure5a"].runs["rate 0.1"] == TRAINING["p0-figure5b"].runs["constant"]
    both = [TRAINING[name].runs for name in ("p1-figure2", "p1-figure6")]
    assert both[0]["shuffled check-in"] == both[1]["MNIST"]
    run_figure("p0-figure5b", tmp_path, quick=True)
    played = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/*/checkpoint.pt")}
    run_figure("p0-figure5a", tmp_path, quick=True)
    after = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/*/checkpoint.pt")}
    assert len(played) == 2 and len(after) == 3  # a quick look has no rate below 0.05
    assert after.items() >= played.items()


def test_a_run_without_its_data_is_left_out_and_named(tmp_path, monkeypatch):
    """CIFAR-10 may not be there: the rest is played, and the summary says what is not."""

    def missing(name, data_dir=None):
        if name.startswith("cifar"):
            raise DatasetMissing(f"{name} is nowhere")
        return load_dataset("digits")

    short = replace(TRAINING["p3-figure6"].runs["subsampled shuffle"], data="mnist", model="small")
    short = replace(short, rounds=2, rate=0.1)
    both = {"here": short, "not here": replace(short, data="cifar10")}
    monkeypatch.setitem(TRAINING, "p1-figure6", TrainingFigure("two runs", both, seeds=2))
    monkeypatch.setattr("dpcheckin.learning.data.own.load_dataset", missing)
    results = run_figure("p1-figure6", tmp_path)
    assert results["here"]["rounds"] == 2
    seeds = [sorted(tmp_path.glob(f"runs/*/seed-{s}/report.json")) for s in (0, 1)]
    accuracies = [json.loads(path.read_text())["accuracy"] for (path,) in seeds]
    assert results["here"]["accuracies"] == accuracies
    assert results["here"]["accuracy"] == pytest.approx(sum(accuracies) / 2)
    assert results["not here"] == {"left_out": "cifar10 is nowhere"}
    monkeypatch.setitem(TRAINING, "p1-figure6", TrainingFigure("one", {"x": both["not here"]}))
    with pytest.raises(DatasetMissing, match="cifar10"):
        run_figure("p1-figure6", tmp_path / "other")
