"""What people type and what they are told: numbers, options with dashes, hints, signs of life."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import typer
import typer.main

from cli_in_process import run_cli
from dpcheckin import console
from dpcheckin.accounting import Kind
from dpcheckin.cli import COMMANDS, PANELS, application
from dpcheckin.cli.arguments import EXTRAS
from dpcheckin.console import waiting as signs
from dpcheckin.options import DEFAULT_DELTA
from dpcheckin.papers.panel import Column, Panel, Row
from dpcheckin.report.compare import Line
from dpcheckin.report.reproduce import write_csv, write_png

_PROGRESS = ("dpcheckin compare", "dpcheckin sweep")  # what slow machines say in between
RUN = ("--population", "2000", "--rate", "1/20", "--local-epsilon", "1", "--rounds", "20")


def every_number(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The options and arguments of all commands that take a number."""
    for one in command.params:
        if isinstance(one.metavar, str) and one.metavar in ("NUMBER", "INTEGER"):
            yield f"{path} {one.name}", one
        assert not isinstance(one.type, (click.types.IntParamType, click.types.FloatParamType)), (
            f"{path} {one.name} reads plain digits only"
        )
    for name, inner in getattr(command, "commands", {}).items():
        yield from every_number(inner, f"{path} {name}")


def test_every_number_of_every_command_is_read_as_people_type_it() -> None:
    found = dict(every_number(typer.main.get_command(application())))
    assert {" deploy demo clients", " flower fleet rate", " ui port"} <= set(found)
    for where, one in found.items():
        text, value = ("1e3", 1000) if one.metavar == "INTEGER" else ("250%", 2.5)
        assert one.type.convert(text, one, None) == value, where


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("shuffler", "enroll", "--count", "0"), "'--count': 0 is below 1"),
        (("shuffler", "enroll", "--count", "2e6"), "'--count': 2,000,000 is above 1,000,000"),
        (("flower", "fleet", "--nodes", "0"), "'--nodes': 0 is below 1"),
    ],
)
def test_limits_of_numbers_are_kept(typed: tuple[str, ...], said: str) -> None:
    assert said in run_cli(*typed, code=2)


def test_a_population_may_be_typed_as_a_power_of_ten() -> None:
    answers = {
        run_cli("epsilon", "--population", people, "--rate", "1/20", "--local-epsilon", "1")
        for people in ("2000", "2e3", "2_000")
    }
    assert len(answers) == 1


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("epsilom",), "No such command 'epsilom'. Did you mean 'epsilon'"),
        (("epsilon", "--pop", "5"), "No such option '--pop'. Did you mean --population?"),
        (("epsilon", "--local-epsilonn", "5"), "Did you mean --local-epsilon"),
        (("epsilon", "--n", "5"), "Did you mean --population?"),
        (("epsilon", "-n", "5"), "Did you mean --population?"),
        (("epsilon", "--epsilon", "5"), "Did you mean --local-epsilon?"),
        (("plan", "--sampling-rate", "5"), "Did you mean --rate?"),
        (("plan", "--weather", "fair"), "No such option '--weather'."),
        (("epsilon", *RUN[:2], "--rate", "2", *RUN[4:]), "such as 2%"),
        (("trust", "--population", "1.5"), "such as 60000, 60_000 or 1e6"),
        (("audit", "--rate", "1/0"), "1/30 or 2%"),
    ],
)
def test_a_slip_is_answered_with_what_was_meant(typed: tuple[str, ...], said: str) -> None:
    answer = run_cli(*typed, code=2)
    assert said in answer
    assert answer.count("Did you mean") <= 1
    assert len(answer.strip().splitlines()) == 1


def test_an_interrupt_is_one_line_and_exit_code_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dpcheckin.protocols.questions.RunQuestion.guarantee", interrupted)
    assert run_cli("epsilon", *RUN, code=130).strip() == "dpcheckin: interrupted"


def test_an_interrupt_while_the_parser_loads_is_one_line_too() -> None:
    code = (
        "import sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'typer': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from dpcheckin.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "dpcheckin: interrupted\n")


@pytest.mark.parametrize("party", ["analyzer", "issuer"])
def test_settings_that_cannot_be_read_are_named_by_the_folder_typed(party: str, tmp_path: Path) -> None:
    if party == "analyzer":
        said = run_cli(party, "serve", "--folder", str(tmp_path), code=2)
        assert said.startswith(f"dpcheckin: --folder = '{tmp_path}' ") and "analyzer.toml" in said
    (tmp_path / f"{party}.toml").write_text("[", encoding="utf-8")
    said = run_cli(party, "serve", "--folder", str(tmp_path), code=2)
    assert f"--folder = '{tmp_path}' is not allowed: expected a folder with {party}.toml" in said


def test_every_command_has_a_place_in_the_help() -> None:
    """Every command stands in one of the boxes, and none of them in a box for the rest."""
    named = [name for names in PANELS.values() for name in names]
    assert len(named) == len(set(named))
    assert {name.partition(" ")[0] for name in COMMANDS} <= set(named)
    shown = run_cli("--help")
    assert all(title in shown for title in PANELS) and "More" not in shown


def test_a_rate_may_be_typed_in_three_ways() -> None:
    answers = {
        run_cli("epsilon", "--population", "2000", "--rate", rate, "--local-epsilon", "1", "--json")
        for rate in ("0.05", "1/20", "5%")
    }
    assert len(answers) == 1


def test_every_command_has_the_same_default_delta() -> None:
    app = typer.main.get_command(application())
    commands = {**app.commands, **app.commands["survey"].commands}
    defaults = {
        name: one.default
        for name, command in commands.items()
        for one in command.params
        if "--delta" in one.opts and one.default is not None
    }
    assert {"epsilon", "plan", "compare", "bounds", "train", "run"} <= set(defaults)
    assert set(defaults.values()) == {DEFAULT_DELTA}


def test_bounds_is_compare_with_all(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        Line("ours", "here", Kind.GUARANTEE, 0.5, None),
        Line("theirs", "there", Kind.REFUTED, None, "it does not apply"),
    ]
    monkeypatch.setattr("dpcheckin.report.compare.compare", lambda *_, **__: lines)
    assert run_cli("bounds", *RUN, "--json") == run_cli("compare", *RUN, "--all", "--json")
    said = run_cli("bounds", *RUN)
    assert said == run_cli("compare", *RUN, "--all")
    assert "it does not apply" in said
    assert "it does not apply" not in run_cli("compare", *RUN)
    assert "after 20 rounds" in " ".join(said.split())
    assert "after 1 round ┏" in " ".join(run_cli("compare", *RUN[:6]).split())


def test_one_round_is_not_rounds() -> None:
    assert "over 1 round (" in run_cli("epsilon", *RUN[:6])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("epsilon", *RUN[:4]), "--local-epsilon is needed: a number"),
        (("epsilon", "--rate", "0.1"), "--population is needed: a whole number"),
        (("compare", *RUN[:4]), "--local-epsilon is needed: a local epsilon or a noise"),
        (("epsilon", *RUN, "--lowest-rate", "2"), "--lowest-rate = 2.0 is not allowed"),
        (
            ("plan", "--epsilon", "1", "--rate", "0.1"),
            "--rounds is needed: a value (population, rounds and local-epsilon are left out, one",
        ),
        (
            ("plan", "--epsilon", "1", "--population", "9", "--noise-multiplier", "2"),
            "--rate is needed: a value (rounds and rate are left out, one can be solved for)",
        ),
        (
            ("plan", "--epsilon", "1", *RUN),
            "--rounds = 20 is not allowed: leave it out, or another of population, rate",
        ),
        (("plan", "--epsilon", "1", *RUN[:6], "--solve", "rate"), "--solve = 'rate'"),
        (("compare", *RUN, "--over", "rounds", "--values", "1,x"), "--values = '1,x'"),
        (("sweep", "--rounds", "5,10"), "a sweep has no --rounds: write --over rounds=5,10"),
        (("sweep", "--rounds=5"), "a sweep has no --rounds: write --set rounds=5"),
        (("sweep", "--pigeons", "5"), "No such option"),
        (("epsilon", *RUN[:4], "--randomizer", "laplace:2"), "laplace, and 2 as --local-epsilon"),
        (("epsilon", *RUN[:4], "--randomizer", "gausian:2"), "; did you mean gaussian:SIGMA?"),
        (("epsilon", *RUN, "--cohort", "9"), "--cohort = 9 is not allowed: leave it out: check-in"),
        (("train", "--data", "mnsit"), "; did you mean mnist?"),
        (("reproduce", "P1-Table2"), "NAMES = 'P1-Table2' is not allowed"),
        (("reproduce", "P1-Table2"), "; did you mean p1-table2?"),
        (("survey", "plan", "heavy"), "KIND = 'heavy' is not allowed"),
        (("survey", "plan"), "Missing argument 'KIND'"),
        (("utility", "p9"), "THEOREM = 'p9' is not allowed"),
    ],
)
def test_errors_speak_of_options_as_they_are_typed(arguments: tuple[str, ...], said: str) -> None:
    text = run_cli(*arguments, code=2)
    assert said in text
    assert len(text.splitlines()) == 1


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "dpcheckin", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("dpcheckin ")


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("torch", ("train",)),
        ("torch", ("sweep", "--over", "rounds=1,2")),
        ("uvicorn", ("ui", "--no-browser")),
        ("matplotlib.figure", ("compare", *RUN, "--over", "rounds", "--values", "1,2", "--out")),
    ],
)
def test_a_missing_extra_is_one_line(module: str, arguments: tuple[str, ...], tmp_path: Path) -> None:
    given = (*arguments, str(tmp_path)) if arguments[-1] == "--out" else arguments
    code = (
        f"import sys; sys.modules[{module!r}] = None; sys.argv = ['dpcheckin', *{given!r}]\n"
        "from dpcheckin.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    top = module.partition(".")[0]
    line = f"dpcheckin: {top} is not installed: pip install 'dpcheckin[{EXTRAS[top]}]'"
    assert done.returncode == 2
    assert [x for x in done.stderr.splitlines() if x.partition(": ")[0] not in _PROGRESS] == [line]


def test_long_work_says_so_within_a_second_and_then_now_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Off a terminal each sign is a line of its own; it says how far the work is."""
    monkeypatch.setattr(console, "FIRST", 0.05)
    monkeypatch.setattr(console, "THEN", 0.05)
    err = io.StringIO()
    monkeypatch.setattr(sys, "stderr", err)
    with signs("plan") as say:
        say("rounds = 7")
        end = time.monotonic() + 300
        while err.getvalue().count("\n") < 2 and time.monotonic() < end:
            time.sleep(0.01)
    lines = err.getvalue().splitlines()
    assert len(lines) >= 2
    assert all(line.startswith("dpcheckin plan: ") and "rounds = 7" in line for line in lines)


def test_on_a_terminal_the_sign_is_taken_away_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(console, "FIRST", 0.01)
    err = Terminal()
    monkeypatch.setattr(sys, "stderr", err)
    with signs("plan"):
        end = time.monotonic() + 300
        while not err.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
    assert "dpcheckin plan: " in err.getvalue()
    assert "\n" not in err.getvalue()
    assert err.getvalue().endswith("\r\x1b[K")


def test_quick_work_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    err = io.StringIO()
    monkeypatch.setattr(sys, "stderr", err)
    with signs("plan"):
        pass
    assert err.getvalue() == ""


def test_pandas_reads_what_panels_write(tmp_path: Path) -> None:
    """A line for each figure, with its source beside it; a figure that is missing is missing."""
    pandas = pytest.importorskip("pandas")
    columns = (
        Column("ours, certified", Kind.GUARANTEE, lambda _: None),
        Column("theirs", Kind.REFUTED, lambda _: None, source="P1, Eq. 3"),
    )
    rows = tuple(Row(f"{n:,}", float(n)) for n in (1, 1000))
    panel = Panel("panel", "A panel", rows, columns, "rounds", "")
    cells = {("1", columns[0].label): 0.1, ("1,000", columns[0].label): 2.5}
    cells |= {("1", columns[1].label): 0.25, ("1,000", columns[1].label): None}
    write_csv(panel, cells, tmp_path / "panel.csv")
    frame = pandas.read_csv(tmp_path / "panel.csv")
    assert frame["rounds"].tolist() == [1, 1000, 1, 1000]
    wide = frame.pivot(index="rounds", columns="bound", values="epsilon")
    assert wide["ours, certified"].tolist() == [0.1, 2.5]
    assert wide["theirs"].isna().tolist() == [False, True]
    assert set(frame[frame["bound"] == "theirs"]["source"]) == {"P1, Eq. 3"}
    assert frame["kind"].unique().tolist() == ["guarantee", "refuted claim"]


def test_the_legend_of_a_panel_stands_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    drawn: list[Figure] = []
    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *a, **k: (drawn.append(self), save(self, *a, **k))[1])
    column = Column("ours", Kind.GUARANTEE, lambda _: None)
    panel = Panel("panel", "A panel", (Row("1", 1.0), Row("2", 2.0)), (column,), "rounds", "")
    write_png(panel, {("1", "ours"): 0.1, ("2", "ours"): 0.2}, tmp_path / "panel.png")
    (axes,) = drawn[0].axes
    assert axes.get_legend().get_window_extent().x0 >= axes.get_window_extent().x1


@pytest.mark.parametrize("party", ["shuffler", "issuer"])
def test_test_certificates_are_made_once_and_named_in_the_settings(party: str, tmp_path: Path) -> None:
    asked = (party, "init", "--folder", str(tmp_path), "--test-certificate", "localhost")
    made = json.loads(run_cli(*asked, "--json"))
    assert all(Path(made[name]).is_file() for name in ("authority", "tls_certificate", "tls_key"))
    settings = tomllib.loads((tmp_path / f"{party}.toml").read_text(encoding="utf-8"))
    entries = settings["issuer"] if party == "issuer" else settings
    assert (tmp_path / entries["tls_key"]) == Path(made["tls_key"])
    assert f"--folder = '{tmp_path}' is not allowed" in run_cli(*asked, code=2)


@pytest.mark.parametrize("party", ["shuffler", "issuer"])
def test_a_party_without_certificates_says_what_it_needs(party: str, tmp_path: Path) -> None:
    said = run_cli(party, "serve", "--folder", str(tmp_path), code=2)
    assert "--tls-certificate is needed: a certificate, and tls-key (or --dev" in said
