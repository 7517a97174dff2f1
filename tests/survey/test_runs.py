"""Simulated runs and the two commands: files, resuming, refusals."""

import csv
import gzip
import json
import subprocess
import sys

import numpy as np
import pytest

from cli_in_process import run_cli
from dpcheckin.errors import InvalidParameter
from dpcheckin.survey import Count, Histogram, Mean, Survey, simulate
from dpcheckin.survey.data import read_columns


@pytest.fixture
def table(tmp_path):
    draw = np.random.default_rng(4)
    path = tmp_path / "people.csv"
    with path.open("w", newline="") as stream:
        out = csv.writer(stream)
        out.writerow(["colour", "age", "smokes", "x", "y"])
        for _ in range(600):
            colour = draw.choice(["red", "green", "blue"], p=[0.5, 0.3, 0.2])
            row = [colour, draw.integers(18, 80), draw.integers(2), *draw.random(2)]
            out.writerow(row)
    return path


def test_equal_seeds_give_equal_answers_and_others_do_not():
    survey = Survey(Histogram(5), 500, 3.0, rate=0.5, rounds=2)
    values = np.arange(500) % 5
    one, same, other = (simulate(survey, values, seed=s).estimate.values for s in (1, 1, 2))
    assert (one == same).all() and (one != other).any()


def test_a_run_goes_on_where_it_was_killed(tmp_path):
    """Killed after the second of three rounds: the rest gives the same answer, bit for bit."""
    survey = Survey(Mean(0, 1), 400, 3.0, "levels:4", rate=0.5, rounds=3)
    values = np.linspace(0, 1, 400)
    whole = simulate(survey, values, seed=5).estimate.values

    class Killed(Exception):
        pass

    def kill(index: int, done: int, of: int) -> None:
        if index == 2:
            raise Killed

    with pytest.raises(Killed):
        simulate(survey, values, seed=5, folder=tmp_path, on_progress=kill)
    kept = sorted(path.name for path in (tmp_path / "rounds").glob("*.npy"))
    assert kept == ["round-0000.npy", "round-0001.npy"]
    assert (simulate(survey, values, seed=5, folder=tmp_path).estimate.values == whole).all()


def test_a_folder_of_another_run_is_refused(tmp_path):
    survey = Survey(Count(), 50, 3.0)
    simulate(survey, [0, 1] * 25, folder=tmp_path)
    with pytest.raises(InvalidParameter, match="out"):
        simulate(survey, [1, 1] * 25, folder=tmp_path)


def test_as_many_values_as_clients():
    with pytest.raises(InvalidParameter, match="population"):
        simulate(Survey(Count(), 50, 3.0), [0, 1])


def test_a_pandas_series_would_do():
    """Whatever has `to_numpy` is taken as a Series is; pandas itself need not be installed."""

    class Series:
        def to_numpy(self):
            return np.array([0, 1] * 25)

    survey = Survey(Count(), 50, 3.0)
    values = simulate(survey, Series()).estimate.values
    assert (values == simulate(survey, [0, 1] * 25).estimate.values).all()


def test_a_run_writes_estimate_picture_table_and_page(table, tmp_path):
    out = tmp_path / "out"
    arguments = ["survey", "run", "histogram", "--categories", "red,green,blue", "--data", table]
    arguments += ["--column", "colour", "--out", out, "--rounds", "1", "--delta", "1e-4", "--json"]
    facts = json.loads(run_cli(*map(str, arguments)))
    assert facts["estimate"]["names"] == ["red", "green", "blue"]
    assert sum(facts["truth"]) == 600
    assert facts["plan"]["epsilon"] <= 1.0
    assert json.loads((out / "estimate.json").read_text()) == facts
    with (out / "estimate.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["estimate"]) for row in rows] == facts["estimate"]["values"]
    assert (out / "estimate.png").read_bytes()[:4] == b"\x89PNG"
    page = (out / "report.html").read_text()
    assert "differentially private" in page and "data:image/png" in page
    assert '<a href="certificate.json">certificate.json</a>' in page
    claim = json.loads((out / "certificate.json").read_text())["claim"]
    # the claim is the figure itself, or at most 0.2% more where that cannot be proved
    assert facts["plan"]["epsilon"] <= float(claim["epsilon"]) <= 1.002 * facts["plan"]["epsilon"]
    for name, value, true in zip(("red", "green", "blue"), facts["estimate"]["values"], facts["truth"], strict=True):
        row = page.partition(f'<th scope="row">{name}</th>')[2].partition("</tr>")[0]
        assert f'<td data-head="estimate">{value:.0f}</td>' in row  # the answer, in figures
        assert f'<td data-head="truth">{true:.0f}</td>' in row
    arguments[-1] = "--resume"
    assert "red" in run_cli(*map(str, arguments))


@pytest.mark.parametrize(
    ("kind", "column", "more"),
    [
        ("count", "smokes", []),
        ("mean", "age", ["--low", "18", "--high", "80"]),
        ("sum", "age", ["--low", "18", "--high", "80"]),
        ("quantiles", "age", ["--low", "18", "--high", "80", "--bins", "16"]),
        ("distribution", "age", ["--low", "18", "--high", "80", "--bins", "16"]),
        ("vector-mean", "x,y", ["--clip", "1.5"]),
        ("heavy-hitters", "age", ["--bits", "8", "--top", "3", "--randomizer", "hash:6"]),
        ("histogram", "colour", []),
    ],
)
def test_every_kind_of_question_runs(kind, column, more, table, tmp_path):
    out = tmp_path / "out"
    asked = ["survey", "run", kind, "--data", table, "--column", column, "--out", out, *more]
    text = run_cli(*map(str, asked), "--rounds", "1", "--delta", "1e-4", "--epsilon", "2")
    assert "report.html" in text and "differentially private" in text
    assert (out / "estimate.png").exists()
    page = (out / "report.html").read_text()
    assert "<h2>Answer" in page


@pytest.mark.parametrize(
    ("kind", "column", "more", "beyond"),
    [
        ("mean", "age", ["--low", "18", "--high", "40"], "beyond 18 … 40"),
        ("sum", "age", ["--low", "18", "--high", "40"], "beyond 18 … 40"),
        ("quantiles", "age", ["--low", "18", "--high", "40", "--bins", "8"], "beyond 18 … 40"),
        ("vector-mean", "x,y", ["--clip", "0.5"], "longer than 0.5"),
    ],
)
def test_a_truth_of_clipped_values_is_called_one(kind, column, more, beyond, table, tmp_path):
    """Ages go up to 80: without a word their mean looks like one below 40."""
    with table.open() as stream:
        rows = list(csv.DictReader(stream))
    if kind == "vector-mean":
        outside = sum(float(row["x"]) ** 2 + float(row["y"]) ** 2 > 0.25 for row in rows)
    else:
        outside = sum(int(row["age"]) > 40 for row in rows)
    assert 0 < outside < 600
    out = tmp_path / "out"
    asked = ["survey", "run", kind, "--data", table, "--column", column, "--out", out, *more]
    text = run_cli(*map(str, asked), "--rounds", "1", "--delta", "1e-4", "--epsilon", "2")
    said = f"{outside} of 600 values are {beyond}: estimate and truth are of clipped values"
    assert said in text and "truth (clipped)" in text
    assert said in (out / "report.html").read_text()
    facts = json.loads((out / "estimate.json").read_text())
    assert (facts["clipped"], facts["notice"]) == (outside, said)


def test_nothing_is_said_of_clipping_where_nothing_is_clipped():
    found = simulate(Survey(Mean(0, 10), 4, 3.0), [0, 10, 3, 7])
    assert (found.clipped, found.notice) == (0, "") and "clipped" not in found.caption
    found = simulate(Survey(Mean(0, 10), 4, 3.0), [-1, 10.5, 3, 7])
    assert found.clipped == 2 and found.caption.endswith(found.notice)


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("histogram", ["--categories", "red,blue"]),
        ("count", []),
        ("mean", ["--low", "0", "--high", "1"]),
        ("heavy-hitters", ["--alphabet", "bluerd"]),
    ],
)
def test_a_strange_value_is_named_with_its_place(kind, more, table, tmp_path):
    with table.open() as stream:
        colours = [row["colour"] for row in csv.DictReader(stream)]
    strange = colours[0] if kind in ("count", "mean") else "green"
    place = colours.index(strange) + 1
    out = tmp_path / "out"
    asked = ["survey", "run", kind, "--data", table, "--column", "colour", "--out", out, *more]
    message = run_cli(*map(str, asked), code=2)
    assert f"--data = '{strange} (value {place}) in colour' is not allowed" in message
    assert colours.index("green") > 0 and not out.exists()


def test_the_plan_command_prints_both_trust_figures():
    asked = ["survey", "plan", "histogram", "--categories", "20", "--population", "5000"]
    text = run_cli(*asked, "--rounds", "1")
    assert "epsilon (certified)" in text and "if the shuffler colludes" in text
    facts = json.loads(run_cli(*asked, "--rounds", "1", "--error", "50", "--json"))
    assert facts["error"] <= 50 and facts["unit"] == "people"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["plan", "poem", "--population", "10"], "KIND"),
        (["plan", "histogram", "--population", "10"], "categories"),
        (["plan", "histogram", "--categories", "3"], "population"),
        (["plan", "mean", "--population", "100", "--low", "3", "--high", "2"], "low"),
        (["plan", "mean", "--population", "100"], "low"),
        (["plan", "vector-mean", "--population", "100"], "dimension"),
        (["plan", "count", "--population", "100", "--epsilon", "-1"], "epsilon"),
        (["plan", "count", "--population", "100", "--epsilon", "1", "--error", "2"], "epsilon"),
        (["plan", "count", "--population", "100", "--randomizer", "magic"], "randomizer"),
        (["plan", "quantiles", "--population", "9", "--low", "0", "--high", "1",
          "--quantiles", "half"], "quantiles"),
        (["plan", "histogram", "--population", "100", "--categories", "@nowhere"], "categories"),
        (["run", "count", "--data", "nowhere.csv", "--column", "a", "--out", "x"], "data"),
    ],
)  # fmt: skip
def test_bad_arguments_end_with_one_line(arguments, word):
    message = run_cli("survey", *arguments, code=2)
    assert word in message and len(message.strip().splitlines()) == 1


def test_a_column_is_read_also_from_a_gzipped_file(tmp_path):
    path = tmp_path / "a.csv.gz"
    with gzip.open(path, "wt") as stream:
        stream.write("a, b\n1, x\n\n2, y\n")
    assert read_columns(path, ("b",))[:, 0].tolist() == ["x", "y"]


@pytest.mark.parametrize("text", ["", "a,b\n", "a,b\n1,\n"])
def test_files_without_values_are_refused(text, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(InvalidParameter):
        read_columns(path, ("b",))


def test_help_needs_no_mathematics():
    """The command line lists a survey's options without numpy."""
    code = "import sys, dpcheckin.cli.survey\nprint(sorted({'numpy', 'scipy', 'matplotlib'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"a\n1\n\xff\xfe\n", "UTF-8"),
        (b'a\n1\n"2\n', "readable"),
        (b"a,a\n1,2\n3,4\n", "column"),
        (b"a\n1\nx\n", "x (value 2)"),
        (b"a\n1\nnan\n", "nan (value 2)"),
        (b"a,b\n1,2\n,3\n", "line 3"),
    ],
)
def test_bad_files_end_with_one_line_and_write_nothing(content, word, tmp_path):
    path, out = tmp_path / "a.csv", tmp_path / "out"
    path.write_bytes(content)
    asked = ["survey", "run", "mean", "--low", "0", "--high", "1", "--column", "a"]
    message = run_cli(*asked, "--data", str(path), "--out", str(out), code=2)
    assert word in message and len(message.strip().splitlines()) == 1
    assert not out.exists()


def test_a_file_that_only_says_it_is_gzipped_is_refused(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_text("a\n1\n")
    with pytest.raises(InvalidParameter, match="data"):
        read_columns(path, ("a",))


def test_results_do_not_go_where_a_file_is(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a\n1\n0\n")
    asked = ["survey", "run", "count", "--data", path, "--column", "a", "--out", path]
    assert "a folder" in run_cli(*map(str, asked), code=2)


def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbfage\n4\n")
    assert read_columns(path, ("age",))[:, 0].tolist() == ["4"]


def test_an_interrupted_run_says_how_to_go_on(table, tmp_path, monkeypatch, capsys):
    def interrupted(file, reports):
        raise KeyboardInterrupt

    monkeypatch.setattr("dpcheckin.survey.simulation._write", interrupted)
    asked = ["survey", "run", "count", "--data", table, "--column", "smokes", "--rounds", "1"]
    message = run_cli(*map(str, asked), "--out", str(tmp_path / "out"), code=130)
    assert "--resume" in message


def test_pandas_goes_in_and_comes_out():
    pandas = pytest.importorskip("pandas", reason="pandas is optional")
    survey = Survey(Histogram(("no", "yes")), 50, 3.0)
    answers = pandas.Series(["no", "yes"] * 25)
    estimate = simulate(survey, answers).estimate
    frame = estimate.to_frame()
    assert list(frame.index) == ["no", "yes"]
    assert frame.loc["yes", "values"] == estimate.values[1]
    assert (frame["lower"] <= frame["upper"]).all()


def test_errors_of_quantiles_are_in_the_unit_of_the_numbers(tmp_path):
    """What is planned for is computed in shares; planned and found are both told in years."""
    table = tmp_path / "people.csv"
    table.write_text("age\n" + "\n".join(str(18 + i % 60) for i in range(900)) + "\n")
    arguments = ["survey", "run", "quantiles", "--low", "18", "--high", "90", "--data", table]
    arguments += ["--column", "age", "--out", tmp_path / "out", "--rounds", "1", "--json"]
    facts = json.loads(run_cli(*map(str, arguments)))
    assert facts["plan"]["unit"] == "of the population" and facts["unit"] == "of the numbers' unit"
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count("of the population)</td>") == 1  # what was planned, as it was computed
    assert page.count("of the numbers&#x27; unit") == 6  # planned, found, the largest, and moved by 1, 10, 100 liars


def test_a_plan_for_quantiles_says_its_error_in_the_unit_of_the_numbers():
    asked = ["survey", "plan", "quantiles", "--low", "0", "--high", "300000", "--population", "3000", "--rounds", "1"]
    facts = json.loads(run_cli(*asked, "--json"))
    assert facts["figure_unit"] == "of the numbers' unit"
    assert facts["figure_error"] == pytest.approx(300_000 * facts["error"])
    assert "of the numbers' unit" in run_cli(*asked)


def test_names_that_no_font_writes_are_numbered_in_picture_and_table():
    """Warnings are errors here, and a missing glyph is one."""
    pytest.importorskip("matplotlib", reason="matplotlib draws")
    from dpcheckin.survey.drawing import labels
    from dpcheckin.survey.report import answer_table

    names = ("Łódź", "\U000e0101", "東京")  # the second is written by no font at all
    assert labels(names)[:2] == ["Łódź", "(2)"]
    estimate = simulate(Survey(Histogram(names), 30, 4.0), list(names) * 10).estimate
    axes = estimate.plot()
    assert "(2)" in [text.get_text() for text in axes.get_xticklabels()]
    assert axes.get_xlabel() == "numbered names: in the table"
    axes.figure.canvas.draw()
    assert [row[0] for row in answer_table(estimate).rows][1] == "(2) \U000e0101"
