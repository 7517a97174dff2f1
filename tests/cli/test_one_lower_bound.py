"""What is called a proven lower bound is one figure, wherever a run is asked about."""

from __future__ import annotations

import json

import pytest

import dpcheckin as dp
from cli_in_process import run_cli
from dpcheckin.dashboard.answers import least
from dpcheckin.dashboard.form import Form
from dpcheckin.numerals import rounded_down

RUN = {"population": "10000", "rate": "0.01", "local_epsilon": "2", "rounds": "100"}
TYPED = [word for name, value in RUN.items() for word in (f"--{name.replace('_', '-')}", value)]


@pytest.mark.parametrize("delta", ["1e-4", "1e-2"])
def test_command_compare_planner_and_notebook_agree(delta: str) -> None:
    """At 1e-2 the lower end of the guarantee's own bracket is another figure in four digits."""
    run = (dp.CheckInRound(10_000, 0.01, dp.any_pure(2.0)), 100)
    bound = dp.lower_bound([run], float(delta))
    figure = rounded_down(bound.epsilon.lower)
    said = run_cli("epsilon", *TYPED, "--delta", delta)
    (row,) = (line for line in said.splitlines() if "proven lower bound" in line)
    assert figure in row.split()
    asked = json.loads(run_cli("epsilon", *TYPED, "--delta", delta, "--json"))
    assert asked["lower_bound"]["epsilon"] == bound.epsilon.lower
    assert least(Form.read({**RUN, "delta": delta}))["lower"]["text"] == figure
    assert figure in bound._repr_html_()
    lines = json.loads(run_cli("compare", *TYPED, "--delta", delta, "--json"))
    ours = [line["epsilon"] for line in lines if line["kind"] == "lower bound"]
    assert bound.epsilon.lower in ours


def test_the_lower_end_of_a_bracket_is_no_lower_bound() -> None:
    """It is in the JSON; people are not shown a second figure under another name."""
    stated = dp.guarantee([(dp.CheckInRound(10_000, 0.01, dp.any_pure(2.0)), 100)], 1e-4)
    assert "at least 0" not in stated._repr_html_()
    assert stated.to_json()["epsilon"]["lower"] == stated.epsilon.lower
    said = run_cli("epsilon", *TYPED, "--no-lower-bound")
    assert "lower" not in said and "numerically" not in said
    assert "lower_bound" not in json.loads(run_cli("epsilon", *TYPED, "--no-lower-bound", "--json"))


def test_a_mixed_run_says_in_which_rounds_each_crowd_has_to_be_there() -> None:
    many, few = (dp.CheckInRound(n, 0.01, dp.any_pure(1.0)) for n in (2000, 1500))
    text = str(dp.guarantee([(many, 9), (few, 1)], 1e-5))
    assert "at least 2,000 honest clients are eligible in 9 rounds;" in text
    assert "at least 1,500 honest clients are eligible in 1 round" in text
    assert "every round" not in text
    assert "eligible in every round" in str(dp.guarantee([(many, 9)], 1e-5))


@pytest.mark.parametrize("population", [2e3, 2000])
def test_a_count_may_be_a_float(population: float) -> None:
    asked = {"rate": 0.05, "local_epsilon": 1.0, "rounds": 3}
    assert dp.epsilon(population=population, **asked) == dp.epsilon(2000, **asked)
    one = dp.CheckInRound(population, 0.05, dp.any_pure(1.0))  # type: ignore[arg-type]
    assert (one.population, type(one.population)) == (2000, int)
