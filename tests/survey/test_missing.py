"""Clients without a value: refused by name, left out, or counted; what was done is said."""

import json

import numpy as np
import pytest

from cli_in_process import run_cli
from dpcheckin.errors import InvalidParameter
from dpcheckin.survey import HeavyHitters, Histogram, Mean, Survey, simulate
from dpcheckin.survey.data import settled

COLOURS = ["red", "blue", "", "red", "green, dark"] * 40
INCOMES = ["10", "NA", "20", "", "30"] * 40


@pytest.fixture(params=["csv", "json", "jsonl"])
def table(request, tmp_path):
    path = tmp_path / f"people.{request.param}"
    rows = list(zip(COLOURS, INCOMES, strict=True))
    if request.param == "csv":
        path.write_text("colour,income\n" + "".join(f'"{colour}",{income}\n' for colour, income in rows))
        return path
    objects = [
        {"colour": colour or None, "income": float(income) if income.isdecimal() else None} for colour, income in rows
    ]
    lines = [json.dumps(one) for one in objects]
    path.write_text("\n".join(lines) if request.param == "jsonl" else f"[{','.join(lines)}]")
    return path


@pytest.fixture(autouse=True)
def names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "names").write_text("green, dark\nblue\nred\n")


def survey_of(kind, table, tmp_path, *more, code=0):
    asked = ["survey", "run", kind, "--data", table, "--out", tmp_path / "out", "--rounds", "1", "--epsilon", "4"]
    return run_cli(*map(str, (*asked, *more)), code=code)


NUMBERS = ("mean", "--low", "0", "--high", "40", "--column", "income")


@pytest.mark.parametrize("more", [NUMBERS, ("histogram", "--column", "colour")])
def test_a_missing_value_is_refused_and_the_way_out_is_named(more, table, tmp_path):
    kind, *rest = more
    said = survey_of(kind, table, tmp_path, *rest, code=2)
    assert len(said.strip().splitlines()) == 1
    assert "missing" in said and "drop" in said
    assert not (tmp_path / "out").exists()


def test_dropped_clients_are_no_part_of_the_figures_and_the_report_says_so(table, tmp_path):
    facts = json.loads(survey_of(*NUMBERS[:1], table, tmp_path, *NUMBERS[1:], "--missing", "drop", "--json"))
    assert facts["plan"]["population"] == 120 and facts["truth"] == [20.0]
    said = "80 of 200 clients have no value and are left out: figures are about the others"
    assert facts["missing"].startswith(said)
    assert said in (tmp_path / "out" / "report.html").read_text()


def test_a_category_of_the_missing_is_one_more_category(table, tmp_path):
    said = survey_of("histogram", table, tmp_path, "--column", "colour", "--missing", "category", "--json")
    facts = json.loads(said[said.index("{") :])
    counts = dict(zip(facts["estimate"]["names"], facts["truth"], strict=True))
    assert counts == {"red": 80, "blue": 40, "green, dark": 40, "missing": 40}
    assert "40 of 200 clients have no value and are counted as" in facts["missing"]


def test_categories_that_were_named_get_one_more(table, tmp_path):
    asked = ["--column", "colour", "--missing", "category", "--json"]
    facts = json.loads(survey_of("histogram", table, tmp_path, "--categories", "@names", *asked))
    assert facts["estimate"]["names"] == ["green, dark", "blue", "red", "missing"]
    assert facts["truth"] == [40, 40, 80, 40]


def test_only_a_histogram_has_room_for_the_missing(table, tmp_path):
    said = survey_of(NUMBERS[0], table, tmp_path, *NUMBERS[1:], "--missing", "category", code=2)
    assert "--missing = 'category'" in said


def test_pandas_columns_lack_values_in_three_ways():
    pandas = pytest.importorskip("pandas", reason="pandas is optional")
    for column in (
        pandas.Series([1.0, np.nan, 3.0]),
        pandas.Series([1, None, 3], dtype="Int64"),
        pandas.Series(["1", None, "3"]),
    ):
        values, told = settled(column, "mean", "drop")
        assert Mean(0, 4).encode(values).tolist() == [0.25, 0.75]
        assert told.startswith("1 of 3 clients has no value")


def test_a_simulation_in_python_drops_and_counts_as_the_command_does():
    survey = Survey(Mean(0, 40), 120, 4.0)
    values = [float(x) if x.isdecimal() else None for x in INCOMES]
    assert "left out" in simulate(survey, values, missing="drop").notice
    with pytest.raises(InvalidParameter, match="value 2"):
        simulate(survey, values)
    named = Survey(Histogram(("red", "missing")), 4, 4.0)
    outcome = simulate(named, ["red", None, "red", float("nan")], missing="category")
    assert outcome.truth.tolist() == [2, 2]


def test_nothing_is_no_string_that_somebody_holds():
    with pytest.raises(InvalidParameter, match="value 2"):
        simulate(Survey(HeavyHitters(16, 2, alphabet="an"), 3, 4.0), ["a", np.nan, "n"])


@pytest.mark.parametrize(
    ("text", "word"),
    [("age\n4\nage\n5\n", "line 3"), ('age\n"1,000"\n', "without units or commas"), ("12\n13\n", "first line")],
)
def test_what_is_wrong_with_a_file_is_named(text, word, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(text)
    said = survey_of("mean", path, tmp_path, "--column", "age", "--low", "0", "--high", "90", code=2)
    assert word in said and "did you mean" not in said
