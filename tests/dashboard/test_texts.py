"""The plan as a command, as Python and as JSON: each runs, and all give the page's figure."""

import contextlib
import io
import json
import shlex
import subprocess
import sys
from functools import cache
from typing import Any

import pytest

from dpcheckin.accounting import Guarantee
from dpcheckin.cli import application
from dpcheckin.dashboard import answers
from dpcheckin.dashboard.form import Form, python, shell
from dpcheckin.errors import InvalidParameter, Unreachable

FORMS = [
    Form(),
    Form(population=500, rate=1 / 30, rounds=7, delta=1e-6, colluding=0.1, dropout=0.05),
    Form(population=500, rate=0.1, rounds=3, randomizer="binary"),
    Form(population=500, rate=0.1, rounds=3, randomizer="dary", arguments=(("symbols", 7),)),
    Form(population=500, rate=0.1, rounds=3, randomizer="hemisphere"),
    Form(population=500, rate=0.1, rounds=3, randomizer="privunit", arguments=(("dimension", 50),)),
    Form(population=500, rate=0.1, rounds=3, randomizer="laplace"),
    Form(population=500, rate=0.1, rounds=3, randomizer="gaussian", noise_multiplier=7.345),
    Form(population=500, rate=0.1, rounds=3, randomizer="subset", arguments=(("chosen", 3),)),
    Form(protocol="subsampled-shuffle", population=400, cohort=30, rounds=4, colluding=0.2),
    Form(protocol="shuffle", population=1_000, local_epsilon=1.0, rounds=2),
    Form(
        protocol="distributed-check-in", population=500, rate=0.1, rounds=5, randomizer="gaussian", noise_multiplier=1.5
    ),
    Form(protocol="random-check-in-fixed", population=300, slots=200, rounds=2, check_in_probability=0.5),
    Form(protocol="random-check-in-sliding", slots=200, local_epsilon=1.0),
    Form(protocol="random-check-in-averaged", population=400, slots=50, local_epsilon=1.0),
]
NAMES = [f"{form.protocol}, {form.randomizer}" for form in FORMS]


@cache
def stated(form: Form) -> dict[str, Any]:
    """What the page shows about a plan."""
    shown = answers.statement(form)
    assert "problem" not in shown, shown
    return shown


def by_command(text: str) -> float:
    """Run it through the real command tree, in this process."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        application()([*shlex.split(text)[1:], "--json"], standalone_mode=False)
    return float(json.loads(out.getvalue())["epsilon"]["upper"])


def by_python(text: str) -> float:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, "the page's Python", "exec"), {})
    return float(out.getvalue().strip().splitlines()[-1])


@pytest.mark.parametrize("form", FORMS, ids=NAMES)
def test_the_shell_command_and_the_python_give_the_figure_on_the_page(form: Form) -> None:
    shown = stated(form)
    assert by_command(shown["texts"]["shell"]) == shown["epsilon"]["value"]
    assert by_python(shown["texts"]["python"]) == shown["epsilon"]["value"]


@pytest.mark.parametrize("form", FORMS, ids=NAMES)
def test_the_json_reads_back_as_the_plan_and_its_guarantee(form: Form) -> None:
    shown = stated(form)
    content = json.loads(shown["texts"]["json"])
    assert Guarantee.from_json(content["guarantee"]).charge() == shown["epsilon"]["value"]
    again = Form.read({name: str(value) for name, value in content["plan"].items()})
    assert again.relevant == form.relevant


def test_both_run_as_programs_of_their_own() -> None:
    form = Form(population=500, rate=1 / 30, rounds=7)
    wanted = answers.statement(form)["epsilon"]["value"]
    program = "from dpcheckin.cli import main; main()"
    commands = [
        [sys.executable, "-c", program, *shlex.split(shell(form))[1:], "--json"],
        [sys.executable, "-W", "error", "-c", python(form)],
    ]
    told = [
        subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stdout for command in commands
    ]
    assert json.loads(told[0])["epsilon"]["upper"] == wanted
    assert float(told[1].strip().splitlines()[-1]) == wanted


def test_an_inverse_question_is_a_plan_command_that_gives_the_same_answer() -> None:
    form = Form(population=2_000, rate=0.05, local_epsilon=1.0, rounds=50)
    solved = answers.solve(form, "rounds", 0.2, False)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        application()([*shlex.split(solved["shell"])[1:], "--json"], standalone_mode=False)
    assert json.loads(out.getvalue())["solved"]["value"] == solved["value"]
    assert solved["epsilon"]["value"] <= 0.2


def test_an_inverse_question_about_gaussian_reports_is_a_command_too() -> None:
    few = {"population": 100, "rate": 0.1, "noise_multiplier": 1 / 7}
    text = shell(Form(randomizer="gaussian", **few), leave_out="rounds", target=1)
    assert "--noise-multiplier 1/7 " in text and "--rounds" not in text
    with pytest.raises(Unreachable):  # the command is understood; so little noise meets nothing
        by_command(text)


def test_a_quick_answer_is_safe_and_close() -> None:
    form = Form(population=2_000, rate=0.05, local_epsilon=1.0, rounds=50)
    rough, exact = (answers.solve(form, "rounds", 0.2, quick) for quick in (True, False))
    assert 0.98 * exact["value"] <= rough["value"] <= exact["value"]


@pytest.mark.parametrize("form", FORMS, ids=NAMES)
def test_the_figure_shown_at_once_is_no_smaller_than_the_certified_lower_end(form: Form) -> None:
    at_once = answers.quick(form)["epsilon"]["value"]
    content = json.loads(stated(form)["texts"]["json"])
    assert at_once >= content["guarantee"]["epsilon"]["lower"]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"rate": "2"}, "rate"),
        ({"rate": "nan"}, "rate"),
        ({"rate": "1/0"}, "rate"),
        ({"rate": "often"}, "rate"),
        ({"population": "0"}, "population"),
        ({"population": "2.5"}, "population"),
        ({"protocol": "random-check-in-averaged", "population": "0"}, "population"),
        ({"local_epsilon": "-1"}, "local_epsilon"),
        ({"rounds": "0"}, "rounds"),
        ({"rounds": "10000001"}, "rounds"),
        ({"delta": "0"}, "delta"),
        ({"delta": "1"}, "delta"),
        ({"colluding": "1"}, "colluding"),
        ({"dropout": "-0.1"}, "dropout"),
        ({"protocol": "pigeon"}, "protocol"),
        ({"randomizer": "pigeon"}, "randomizer"),
        ({"protocol": "distributed-check-in"}, "randomizer"),
        ({"protocol": "subsampled-shuffle", "cohort": "100000"}, "cohort"),
        ({"protocol": "random-check-in-fixed", "slots": "0"}, "slots"),
        ({"protocol": "random-check-in-fixed", "check_in_probability": "2"},
         "check_in_probability"),
        ({"randomizer": "gaussian", "noise_multiplier": "0"}, "noise_multiplier"),
        ({"randomizer": "dary", "symbols": "1"}, "symbols"),
        ({"randomizer": "privunit", "dimension": "0"}, "dimension"),
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_entry_names_its_field(given: dict[str, str], field: str) -> None:
    try:
        answer = answers.quick(Form.read(given))
    except InvalidParameter as problem:
        answer = answers.problem_of(problem)
    assert answer.get("field") == field, answer
    assert "\n" not in answer["problem"]
    # the page puts its own label before it, and what was typed is in it
    assert answer["problem"].endswith(answer["fault"]) and answer["fault"].startswith("= ")
    if field in given and field not in ("protocol", "randomizer"):
        assert given[field] in answer["fault"].replace(",", "")
