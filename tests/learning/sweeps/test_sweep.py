"""Sweeps: what is played, by whom, what is kept, and what is shown at the end."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from multiprocessing import active_children

import pytest
import typer
from typer.testing import CliRunner

from dpcheckin.accounting import CheckInRound, compose, hemisphere
from dpcheckin.cli.sweep import sweep as sweep_command
from dpcheckin.errors import DpCheckinError, InvalidParameter
from dpcheckin.learning.sweeps.grid import Sweep, in_this_process, make_runner, run_sweep
from dpcheckin.learning.sweeps.report import shown, table, write_sweep

SHORT = ["--set", "rounds=4", "--set", "evaluate-every=2"]


@pytest.fixture
def small(tiny):
    def make(**changes):
        given = {"over": {"local_epsilon": (2.0, 6.0)}, "seeds": (0, 1), **changes}
        return Sweep(tiny(rounds=4, settings={"evaluate_every": 2}), **given)

    return make


class Counting:
    """Counts the cells it is given; may stop after some, as if the machine went down."""

    def __init__(self, stop_after=math.inf):
        self.given, self.played, self._stop_after = 0, 0, stop_after

    def __call__(self, cells, folder):
        self.given += len(cells)
        for result in in_this_process(cells, folder):
            if self.played >= self._stop_after:
                raise KeyboardInterrupt
            self.played += 1
            yield result


def without_time(results):
    return [{k: v for k, v in r.items() if k != "seconds"} for r in results]


def test_every_value_is_played_with_every_seed(small):
    cells = small(over={"local_epsilon": (2.0, 6.0), "rate": (0.1, 0.2, 0.3)}).cells()
    assert len(cells) == 12 and len({cell.key for cell in cells}) == 12
    said = {(c.options.local_epsilon, c.options.rate, c.options.settings.seed) for c in cells}
    assert said == {(e, r, s) for e in (2.0, 6.0) for r in (0.1, 0.2, 0.3) for s in (0, 1)}


def test_a_key_depends_on_the_run_and_not_on_the_machine(small):
    cell = small().cells()[0]
    elsewhere = replace(cell, options=replace(cell.options, workers=64, backend="ray"))
    other = replace(cell, options=replace(cell.options, rate=0.11))
    assert cell.key == elsewhere.key != other.key


def test_an_interrupted_sweep_plays_only_what_is_missing(small, tmp_path):
    """Stop after three of four, go on, and get what an uninterrupted sweep gets."""
    straight = run_sweep(small(), tmp_path / "straight", in_this_process)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(small(), tmp_path / "broken", Counting(stop_after=3))
    rest = Counting()
    resumed = run_sweep(small(), tmp_path / "broken", rest)
    assert rest.given == 1
    assert without_time(resumed) == without_time(straight)
    again = Counting()
    assert run_sweep(small(), tmp_path / "broken", again) == resumed and again.given == 0


def test_a_wider_grid_reuses_the_folder(small, tmp_path):
    run_sweep(small(), tmp_path, in_this_process)
    wider = Counting()
    found = run_sweep(small(over={"local_epsilon": (2.0, 6.0, 8.0)}), tmp_path, wider)
    assert wider.given == 2 and len(found) == 6


def test_a_torn_result_is_played_again(small, tmp_path):
    cell = small().cells()[0]
    run_sweep(small(), tmp_path, in_this_process)
    (tmp_path / "cells" / f"{cell.key}.json").write_text('{"key": ')
    again = Counting()
    run_sweep(small(), tmp_path, again)
    assert again.given == 1


def test_processes_give_the_results_of_one_process(small, tmp_path):
    """The digest of the trained parameters is part of a result: equal means equal bits."""
    here = run_sweep(small(), tmp_path / "here", in_this_process)
    there = run_sweep(small(), tmp_path / "there", make_runner("processes", 2))
    assert without_time(here) == without_time(there)
    assert len({result["model"] for result in here}) == 4


def test_a_diverging_point_is_told_and_does_not_end_the_others(small, tmp_path):
    wild = small(over={"learning_rate": (0.5, 3e38)}, seeds=(0,))
    results = run_sweep(wild, tmp_path, in_this_process)
    rows = write_sweep(wild, results, tmp_path)["table"]
    assert rows[0]["runs"] == 1 and "failed" not in rows[0]
    assert rows[1]["runs"] == 0 and "learning_rate" in rows[1]["failed"]
    again = Counting()
    run_sweep(wild, tmp_path, again)
    assert again.given == 1, "a failure is tried again"


def test_the_table_has_means_over_seeds_and_epsilon_rounded_up():
    runs = [
        {"point": {"rate": 0.1}, "seed": s, "accuracy": a, "epsilon": 0.12341, "delta": 1e-5}
        | {"rounds_run": 3, "key": str(s)}
        for s, a in enumerate((0.5, 0.7))
    ]
    (row,) = table(runs)
    assert row["accuracy"] == pytest.approx(0.6)
    assert row["accuracy_deviation"] == pytest.approx(0.02**0.5)
    headings, ((rate, count, accuracy, epsilon, *_),) = shown([row])
    assert headings[:4] == ["rate", "runs", "accuracy", "epsilon"]
    assert (rate, count, accuracy, epsilon) == ("0.1", "2", "60.00 ± 14.14 %", "0.1235")


def test_prices_are_the_accountants(small, tmp_path):
    """Without training a sweep states epsilon only, of up to a billion clients."""
    base = replace(small().base, randomizer="ldp-sgd", rounds=30, rate=0.01)
    sizes = (10_000, 10**9)
    prices = Sweep(base, {"population": sizes, "local_epsilon": (2.0,)}, train=False)
    results = run_sweep(prices, tmp_path, in_this_process)
    for size, result in zip(sizes, results, strict=True):
        one = CheckInRound(size, 0.01, hemisphere(2.0))
        assert result["epsilon"] == compose([(one, 30)]).epsilon(1e-5).upper
        assert result["colluding_epsilon"] > result["epsilon"]
    write_sweep(prices, results, tmp_path)
    assert (tmp_path / "sweep.png").stat().st_size > 5000


@pytest.mark.parametrize(
    "over,name", [({"colour": (1,)}, "colour"), ({"rate": ()}, "rate"), ({"rate": (0.1, 0.1)}, "rate")]
)
def test_a_bad_grid_is_refused(tiny, over, name):
    with pytest.raises(InvalidParameter, match=name):
        Sweep(tiny(), over)


def test_a_bad_point_is_refused_before_anything_is_played(small):
    with pytest.raises(InvalidParameter, match="rate"):
        small(over={"rate": (0.1, 1.5)}).check()


def test_a_dead_worker_process_is_told(small, tmp_path, monkeypatch):
    """Killed workers end the sweep with one line that says what to do."""
    monkeypatch.setattr("dpcheckin.learning.sweeps.grid.play_cell", _die)
    with pytest.raises(DpCheckinError, match="run the same command again"):
        run_sweep(small(), tmp_path, make_runner("processes", 1))


def test_whoever_gives_up_waits_for_no_run(small, tmp_path, monkeypatch):
    """Ctrl-C: the workers' runs would take a minute more, and are left where they are."""
    monkeypatch.setattr("dpcheckin.learning.sweeps.grid.play_cell", _first_quickly)
    playing = make_runner("processes", 2)(small().cells(), tmp_path)
    next(playing)
    began = time.monotonic()
    playing.close()  # what an interrupt in the loop comes to
    assert time.monotonic() - began < 30
    assert not active_children()


def _first_quickly(cell, folder):
    try:
        (folder / "first").touch(exist_ok=False)
    except FileExistsError:
        time.sleep(60)
    return {"key": cell.key}


def _die(cell, folder):
    os._exit(9)


@pytest.fixture
def command(tmp_path):
    app = typer.Typer()
    app.command()(sweep_command)

    def run(*arguments):
        out = ["--out", str(tmp_path), "--backend", "local"]
        return CliRunner().invoke(app, [*SHORT, *out, *arguments])

    return run


def test_the_command_prints_a_table_or_json(command, tmp_path):
    arguments = ["--over", "local-epsilon=2,6", "--seeds", "2"]
    first = command(*arguments)
    assert first.exit_code == 0, first.output
    assert "local epsilon" in first.stdout and "±" in first.stdout
    content = json.loads(command(*arguments, "--json").stdout)
    assert [row["local_epsilon"] for row in content["table"]] == [2.0, 6.0]
    assert len(content["runs"]) == 4 and {run["seed"] for run in content["runs"]} == {0, 1}
    assert {"sweep.json", "sweep.csv", "sweep.md", "sweep.png", "cells"} <= {path.name for path in tmp_path.iterdir()}
    lines = (tmp_path / "sweep.csv").read_text().splitlines()
    assert len(lines) == 5 and lines[0].startswith("local_epsilon,seed,accuracy")


def test_a_run_of_a_sweep_is_that_of_train(command):
    """Same options, same figures: the sweep's defaults are train's."""
    from dpcheckin.cli.train import train

    app = typer.Typer()
    app.command()(train)
    options = ["--rounds", "4", "--evaluate-every", "2", "--threads", "1"]
    one = json.loads(CliRunner().invoke(app, [*options, "--seed", "5", "--json"]).stdout)
    content = json.loads(command("--seeds", "5,6", "--json").stdout)
    run = content["runs"][0]
    assert (run["accuracy"], run["epsilon"]) == (one["accuracy"], one["epsilon"])


@pytest.mark.parametrize(
    "arguments,words",
    [
        (["--over", "colour=1,2"], "over = 'colour=1,2'"),
        (["--over", "rate"], "over = 'rate'"),
        (["--over", "rate=0.1,fast"], "rate = 'fast'"),
        (["--over", "rate=0.1,2"], "rate = 2"),
        (["--over", "rate=0.1,0.2", "--set", "rate=0.3"], "set = 'rate=0.3'"),
        (["--set", "by-owner=perhaps"], "by_owner = 'perhaps'"),
        (["--seeds", "none"], "seeds = 'none'"),
        (["--seeds", "0"], "seeds = 0"),
        (["--backend", "cloud"], "backend = 'cloud'"),
        (["--backend", "processes", "--workers", "0"], "workers = 0"),
        (["--ray-address", "auto"], "ray_address = 'auto'"),
    ],
)
def test_bad_input_is_one_clear_line(command, arguments, words):
    result = command(*arguments)
    assert isinstance(result.exception, InvalidParameter)
    assert words in str(result.exception) and "\n" not in str(result.exception)


SCRIPT = """
import sys
from dpcheckin.cli import main
sys.argv = ["dpcheckin", "sweep", "--over", "rate=0.1,0.2", "--seeds", "2", "--set", "rounds=40",
            "--set", "checkpoint-every=5", "--backend", "processes", "--out", sys.argv[1]]
if __name__ == "__main__":
    main()
"""


@pytest.mark.slow
def test_a_sweep_killed_with_kill_9_goes_on(tmp_path):
    """The starter dies without warning; its workers follow; the rest is played later."""
    script = tmp_path / "play.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(tmp_path / "killed")]
    process = subprocess.Popen(command)
    deadline = time.monotonic() + 120
    cells = tmp_path / "killed" / "cells"
    while not list(cells.glob("*.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = {path.name for path in cells.glob("*.json")}
    assert 0 < len(before) < 4, "killed too early or too late: it proves nothing"
    subprocess.run(command, check=True)
    subprocess.run([*command[:2], str(tmp_path / "straight")], check=True)
    read = [
        without_time(json.loads((tmp_path / name / "sweep.json").read_text())["runs"])
        for name in ("killed", "straight")
    ]
    assert read[0] == read[1]


def test_runners_by_name():
    assert make_runner("local", 1) is in_this_process
    assert callable(make_runner("processes", 3))
    with pytest.raises(InvalidParameter, match="backend"):
        make_runner("gossip", 1)
