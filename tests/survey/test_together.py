"""Histograms within groups, and several questions on one budget, as the command and Python play them."""

import csv
import json
from collections import Counter

import numpy as np
import pytest

from cli_in_process import run_cli
from dpcheckin.accounting import guarantee
from dpcheckin.errors import InvalidParameter
from dpcheckin.survey import Count, HeavyHitters, Histogram, Quantiles, Survey, Wish, plan_together, simulate

REGIONS, WAYS = ("north", "south"), ("car", "bus", "on foot")


@pytest.fixture
def table(tmp_path):
    """2,000 people: ways differ between regions, and some have no way."""
    draw = np.random.default_rng(11)
    path = tmp_path / "people.csv"
    with path.open("w", newline="") as stream:
        out = csv.writer(stream)
        out.writerow(["region", "way", "maybe", "minutes"])
        for place in range(2000):
            region = REGIONS[int(place % 4 == 0)]
            way = draw.choice(WAYS, p=[0.6, 0.3, 0.1] if region == "north" else [0.1, 0.2, 0.7])
            out.writerow([region, way, "" if place % 10 == 7 else way, f"{draw.gamma(4, 7):.1f}"])
    return path


def counted(path, column):
    with path.open() as stream:
        return Counter((row["region"], row[column] or "missing") for row in csv.DictReader(stream))


GROUPED = ("histogram", "--by", "region", "--groups", ",".join(REGIONS), "--categories", ",".join(WAYS))


def played(path, out, *more, code=0):
    asked = ["survey", "run", *more, "--data", path, "--out", out, "--rounds", "1", "--delta", "1e-4"]
    return run_cli(*map(str, asked), code=code)


def test_one_report_counts_categories_within_groups(table, tmp_path):
    said = played(table, tmp_path / "out", *GROUPED, "--column", "way", "--epsilon", "4", "--json")
    facts, real = json.loads(said), counted(table, "way")
    names = [f"{region} · {way}" for region in REGIONS for way in WAYS]
    assert facts["estimate"]["names"] == names
    assert facts["truth"] == [real[tuple(name.split(" · "))] for name in names]
    assert facts["plan"]["rounds"] == 1  # not one for each group
    assert np.abs(np.subtract(facts["estimate"]["values"], facts["truth"])).max() < 60
    page = (tmp_path / "out" / "report.html").read_text()
    shares = page.partition("Within each group")[2].partition("</table>")[0]
    north = [facts["estimate"]["values"][place] for place in range(3)]
    assert f'<td data-head="car">{100 * north[0] / sum(north):.1f}%</td>' in shares


def test_who_has_no_value_is_a_category_of_every_group(table, tmp_path):
    said = played(table, tmp_path / "out", *GROUPED, "--column", "maybe", "--missing", "category", "--json")
    facts, real = json.loads(said), counted(table, "maybe")
    found = dict(zip(facts["estimate"]["names"], facts["truth"], strict=True))
    assert found["north · missing"] == real["north", "missing"] > 0
    assert found["missing · missing"] == 0  # nobody lacks a region
    assert sum(found.values()) == 2000


def test_pairs_may_be_given_as_a_frame_or_a_list(table):
    query = Histogram(WAYS).within(REGIONS)
    pairs = [("north", "bus"), ("south", "on foot")]
    assert query.encode(pairs).tolist() == [1, 5]
    pandas = pytest.importorskip("pandas", reason="pandas is optional")
    frame = pandas.read_csv(table)[["region", "way"]]
    survey = Survey(query, 2000, 4.0)
    outcome = simulate(survey, frame, seed=1)
    assert outcome.truth.sum() == 2000 and len(outcome.estimate.names) == 6
    with pytest.raises(InvalidParameter, match=r"west · bus \(value 1\)"):
        query.encode([("west", "bus")])


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (("mean", "--low", "0", "--high", "9", "--column", "minutes", "--by", "region"), "only a histogram"),
        (("histogram", "--groups", "2", "--column", "way"), "column of the groups"),
        (("mean", "--low", "0", "--high", "9"), "--column"),
        ((*GROUPED, "--column", "minutes"), "minutes within region"),
    ],
)
def test_what_cannot_be_asked_within_groups_is_said(more, word, table, tmp_path):
    said = played(table, tmp_path / "out", *more, code=2)
    assert word in said and len(said.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


QUESTIONS = """
[[question]]
kind = "histogram"
column = "way"
categories = ["car", "bus", "on foot"]
by = "region"
groups = ["north", "south"]

[[question]]
kind = "quantiles"
column = "minutes"
low = 0
high = 90
bins = 30
quantiles = [0.5]
weight = 3

[[question]]
name = "silent"
kind = "histogram"
column = "maybe"
categories = ["car", "bus", "on foot"]
missing = "drop"
"""


@pytest.fixture
def asked(tmp_path):
    path = tmp_path / "questions.toml"
    path.write_text(QUESTIONS)
    return path


def test_several_questions_keep_to_one_budget(table, asked, tmp_path):
    out = tmp_path / "out"
    facts = json.loads(played(table, out, asked, "--epsilon", "1", "--json"))
    assert list(facts["answers"]) == ["way", "minutes", "silent"]
    surveys = [Survey.from_document(_survey(one)) for one in facts["questions"].values()]
    assert [survey.population for survey in surveys] == [2000, 2000, 1800]
    rounds = [(survey.plan.accounting_round(), survey.rounds) for survey in surveys]
    composed = guarantee(rounds, 1e-4)  # of the surveys as they were played
    assert facts["epsilon"] == composed.epsilon.upper <= 1.0 < 1.02 * facts["epsilon"]
    alone = {name: one["epsilon"] for name, one in facts["questions"].items()}
    assert alone["minutes"] > alone["way"] and max(alone.values()) < facts["epsilon"] < sum(alone.values())
    for name, found in facts["answers"].items():
        assert json.loads((out / name / "estimate.json").read_text()) == found
    page = (out / "report.html").read_text()
    assert "minutes: quantiles" in page and str(facts["statement"]).partition(". If")[0] in page
    assert json.loads((out / "report.card.json").read_text())["epsilon"] == facts["epsilon"]
    assert played(table, out, asked, code=2).count("--resume") == 1
    again = json.loads(played(table, out, asked, "--epsilon", "1", "--resume", "--json"))
    assert again["answers"] == facts["answers"]


def _survey(document):
    own = ("query", "population", "local_epsilon", "mechanism", "rate", "rounds", "colluding")
    return {name: document[name] for name in own}


def test_what_may_be_left_without_the_shuffler_is_of_all_questions():
    wishes = {
        name: Wish(query, 5000, 1e-6, epsilon=1.0, rounds=1, largest_local_epsilon=3.0)
        for name, query in {"a": Count(), "b": Histogram(4)}.items()
    }
    together = plan_together(wishes, 1.0)
    assert together.guarantee.local is not None and together.guarantee.local.epsilon <= 3.0
    assert together.guarantee.epsilon.upper <= 1.0


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[[question]]\nkind='mean'\ncolumn='minutes'\nlow=0\nhigh=90\nbinz=3\n", "binz"),
        ("[[question]]\nkind='mean'\ncolumn='minutes'\nlow='much'\nhigh=90\n", "low (question 1)"),
        ("[[question]]\nkind='histogram'\ncolumn='way'\ncategories=['a,b']\n", "without commas"),
        ("[[question]]\nkind='count'\ncolumn='way'\n[[question]]\nkind='count'\ncolumn='way'\n", "no two alike"),
        ("[[question]]\nname='../x'\nkind='count'\ncolumn='way'\n", "names its folder"),
        ("[[question]]\nkind='count'\ncolumn='way'\nweight=-1\n", "weight"),
        ("kind = 'mean'\n", "[[question]]"),
    ],
)
def test_a_file_of_questions_is_read_strictly(text, word, table, tmp_path):
    path = tmp_path / "q.toml"
    path.write_text(text)
    said = played(table, tmp_path / "out", path, code=2)
    assert word in said and len(said.strip().splitlines()) == 1


def test_one_budget_knows_no_wanted_error(table, asked, tmp_path):
    assert "--error" in played(table, tmp_path / "out", asked, "--error", "3", code=2)


def test_figures_stay_without_matplotlib(table, tmp_path, monkeypatch):
    """The bare package plays a survey: what is missing is the picture, and it says so."""
    monkeypatch.setattr("dpcheckin.survey.report.find_spec", lambda name: None)
    out = tmp_path / "out"
    said = played(table, out, "histogram", "--categories", ",".join(WAYS), "--column", "way")
    assert "report.html (estimate.csv and .json beside it)" in said
    assert not (out / "estimate.png").exists() and "<img" not in (out / "report.html").read_text()


def test_strings_that_were_cut_are_counted():
    asked = HeavyHitters(16, 2, alphabet="any")
    assert asked.clipped(["tea", "coffee", "coffee", "t"]) == (2, "longer than 16 bits hold")
    assert HeavyHitters(16, 2).clipped([1, 2]) == (0, "")


def test_a_planned_interval_of_quantiles_has_the_bins_inside():
    """Four bins of 25 and no noise to speak of: no interval is narrower than a bin."""
    wish = Wish(Quantiles(0, 100, 4), 10**6, 1e-6, epsilon=4.0, rounds=1)
    planned = plan_together({"a": wish}, 4.0).plans["a"].as_document()
    assert 12.5 < planned["figure_half_width"] < 12.6
