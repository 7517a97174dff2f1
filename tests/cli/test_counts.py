"""One way to write counts: thousands in groups for people, plain digits for programs."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from cli_in_process import run_cli
from dpcheckin.accounting import CheckInRound, Kind, any_pure, guarantee
from dpcheckin.dashboard.form import Form, shell
from dpcheckin.dashboard.runs import RunFolder
from dpcheckin.display import Tabular, told
from dpcheckin.errors import InvalidParameter
from dpcheckin.learning.sweeps.report import shown
from dpcheckin.numerals import rounded_down, rounded_up, written
from dpcheckin.papers.panel import Column, Panel, Row
from dpcheckin.report.reproduce import write_csv

RUN = ("--population", "60000", "--rate", "1/30", "--local-epsilon", "2", "--rounds", "6000")
# digits that are no part of a word, a decimal fraction, a path, an option or an arXiv number
_BARE = re.compile(r"(?<![\w.,/:=#-])\d{4,}(?![\w.,:%/-]*\w)")


def bare_counts(text: str) -> list[str]:
    """Counts above 999 that are written without commas."""
    return _BARE.findall(text)


def test_the_looking_glass_sees_bare_counts() -> None:
    assert bare_counts("of 60000 clients, ε 1120 and 6,000 rounds at 1e-05, 0.00012345") == ["60000", "1120"]
    assert not bare_counts("60,000 clients (arXiv 2206.03151v2), --rounds=5000")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (60000, "60,000"),
        (60000.0, "60,000"),
        (1e6, "1,000,000"),
        (9133405.0, "9,133,405"),
        (-1500, "-1,500"),
        (1234.5, "1,234.5"),
        (999, "999"),
        (0.02, "0.02"),
        (1e-5, "1e-05"),
    ],
)
def test_a_number_is_written_for_people(value: float, text: str) -> None:
    assert written(value) == text
    assert told(value) == text


@pytest.mark.parametrize("figure", [1120.0, 16089.7, 117712.3, 1.5e9, 1e14])
def test_large_figures_keep_their_side_and_have_no_power_of_ten(figure: float) -> None:
    up, down = rounded_up(figure), rounded_down(figure)
    assert "e" not in up + down
    assert not bare_counts(f" {up} {down} ")
    low, high = (float(text.replace(",", "")) for text in (down, up))
    assert low <= figure <= high
    assert high - low <= 1e-3 * figure


def test_a_pair_with_a_large_epsilon_is_still_a_pair() -> None:
    """(1,120, 1e-05) would be three numbers."""
    stated = guarantee([(CheckInRound(60_000, 0.1, any_pure(2.0)), 6000)], 1e-5)
    assert stated.local is not None and stated.local.epsilon > 1000
    assert re.search(r"what is left is \(1,\d{3}; 1e-05\) over 6,000 rounds", str(stated))
    assert re.search(r"The run is \(1\.\d+, 1e-05\)-differentially", str(stated))


@pytest.mark.parametrize(
    "typed",
    [
        ("epsilon", *RUN, "--no-lower-bound"),
        ("epsilon", *RUN[:2], "--randomizer", "privunit:5000", *RUN[2:], "--no-lower-bound"),
        ("plan", "--epsilon", "1", *RUN[:6]),
        ("trust", *RUN[:4], "--local-epsilon", "6", "--rounds", "9000"),
        ("survey", "plan", "count", "--population", "2000000"),
    ],
)
def test_answers_have_their_thousands_in_groups(typed: tuple[str, ...]) -> None:
    said = run_cli(*typed)
    assert re.search(r"\d,\d{3}\b", said)
    assert bare_counts(said) == []


@pytest.mark.parametrize(
    "typed",
    [
        ("epsilon", "--population", "5e13", *RUN[2:]),
        ("epsilon", "--population", "5000.5", *RUN[2:]),
        ("epsilon", *RUN, "--cohort", "5000"),
        ("survey", "plan", "count", "--population", "5e13"),
    ],
)
def test_errors_have_their_thousands_in_groups(typed: tuple[str, ...]) -> None:
    said = run_cli(*typed, code=2)
    assert bare_counts(said.replace("such as 60000, 60_000", "")) == []


def test_errors_of_the_library_too() -> None:
    assert str(InvalidParameter("rounds", 60000, "less")).startswith("rounds = 60,000 is")
    assert str(InvalidParameter("rate", np.float64(1500.5), "less")).startswith("rate = 1,500.5 ")
    assert str(InvalidParameter("turns", True, "less")).startswith("turns = True ")


def test_json_is_plain() -> None:
    found = json.loads(run_cli("plan", "--epsilon", "1", *RUN[:6], "--json"))
    assert found["solved"]["value"] > 10_000
    assert isinstance(found["local"]["rounds"], int)


def test_csv_is_plain(tmp_path: Path) -> None:
    column = Column("ours", Kind.GUARANTEE, lambda _: None)
    panel = Panel("p", "A panel", (Row("60,000", 60000.0),), (column,), "rounds", "")
    write_csv(panel, {("60,000", "ours"): 1234.567}, tmp_path / "p.csv")
    with (tmp_path / "p.csv").open(encoding="utf-8") as stream:
        (row,) = csv.DictReader(stream)
    assert row["rounds"] == "60000"
    assert (row["epsilon"], row["epsilon_rounded_safely"]) == ("1234.567", "1235")


def test_commands_to_copy_are_plain() -> None:
    assert "--population 60000 " in shell(Form.read({"population": "60,000", "rounds": "6000"}))


def test_tables_of_notebooks_sweeps_and_runs(tmp_path: Path) -> None:
    class Table(Tabular):
        def records(self) -> list[dict[str, object]]:
            return [{"rounds": 6000, "rate": 0.02}]

    assert "<td>6,000</td><td>0.02</td>" in Table()._repr_html_()
    assert shown([{"rounds": 6000, "learning_rate": 0.5}])[1] == [["6,000", "0.5"]]
    (tmp_path / "run").mkdir()
    row = {"round": 1, "check_ins": 9, "accuracy": 0.5, "epsilon": 1234.5, "delta": 1e-5}
    (tmp_path / "run" / "log.json").write_text(json.dumps([row]))
    report = {"rounds": 1, "clip": 1.0, "settings": {"seed": 1234, "learning_rate": 1500.0}}
    (tmp_path / "run" / "report.json").write_text(json.dumps(report))
    (line,) = RunFolder(tmp_path).overview()
    assert line["epsilon"] == "1,235"
    assert line["parameters"]["learning_rate"] == "1,500"
