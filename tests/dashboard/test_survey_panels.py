"""The survey panels: their answers are the library's, in the server and in a real browser."""

import json
import shlex
import urllib.request
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from cli_in_process import run_cli
from dashboard.conftest import Desk
from dashboard.test_look import tidy_soon
from dpcheckin.dashboard import survey
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import rounded_up
from dpcheckin.survey import Count, Wish, plan_survey
from dpcheckin.survey.questions import KINDS

SMALL = {"kind": "count", "population": "400", "delta": "1e-4"}


def asked(**more: str) -> survey.SurveyForm:
    return survey.SurveyForm.read({**SMALL, **more})


def test_the_plan_is_the_planners_and_the_command_gives_it_again() -> None:
    answer = survey.survey_plan(asked())
    plan = plan_survey(Wish(Count(), 400, 1e-4, epsilon=1.0, rounds=1, rate=1.0))
    assert answer["error"]["value"] == plan.error
    assert answer["epsilon"] == rounded_up(plan.guarantee.epsilon.upper)
    assert answer["local"] == rounded_up(plan.guarantee.local.epsilon)
    assert answer["influence"] == [[str(c), rounded_up(plan.survey.influence(c))] for c in (1, 10, 100)]
    again = json.loads(run_cli(*shlex.split(answer["shell"])[1:], "--json"))
    assert again["error"] == plan.error and again["population"] == 400


def test_points_of_the_line_are_plans_and_the_centre_is_below_them() -> None:
    form = asked()
    for axis in ("epsilon", "population"):
        places = form.abscissas(axis)
        assert places == sorted(places) and float(getattr(form.options, axis)) in places
    ours = survey.survey_error_at(form, "epsilon", 0.5)
    centre = survey.survey_central_at(form, "epsilon", 0.5)
    plan = plan_survey(Wish(Count(), 400, 1e-4, epsilon=0.5, rounds=1, rate=1.0))
    assert ours["y"] == plan.error and ours["by"] == "dary"
    assert 0 < centre["y"] < ours["y"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_question_has_its_fields(kind: str) -> None:
    form = survey.SurveyForm.read({"kind": kind, "rounds": ""})
    assert form.options.query(kind).kind == kind
    assert form.shell().startswith(f"dpcheckin survey plan {kind} --")
    centre = survey.survey_central_at(form, "epsilon", 1.0)
    assert ("y" in centre) == (kind in survey.CENTRAL)


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"kind": "poem"}, "kind"),
        ({"population": "many"}, "population"),
        ({"population": ""}, "population"),
        ({"population": "2.5"}, "population"),
        ({"epsilon": "nan"}, "epsilon"),
        ({"epsilon": "-1"}, "epsilon"),
        ({"delta": "2"}, "delta"),
        ({"kind": "histogram", "categories": "@/etc/hostname"}, "categories"),
        ({"kind": "histogram", "categories": "1"}, "categories"),
        ({"kind": "histogram", "categories": "a," * 9000}, "categories"),
        ({"kind": "mean", "low": "3", "high": "2"}, "low"),
    ],
)
def test_wrong_entries_are_refused_by_name(more: dict[str, str], field: str) -> None:
    with pytest.raises(InvalidParameter) as problem:
        asked(**more)
    assert problem.value.name == field


def test_a_plot_has_two_axes_only() -> None:
    with pytest.raises(InvalidParameter, match="over"):
        asked().abscissas("delta")


def test_the_server_answers_and_refuses(server: str) -> None:
    def get(path: str, **query: str) -> str:
        with urllib.request.urlopen(f"{server}{path}?{urlencode(query)}", timeout=600) as response:
            return response.read().decode()

    assert set(json.loads(get("/api/survey/describe"))["kinds"]) == set(KINDS)
    refused = json.loads(get("/api/survey/plan", **{**SMALL, "population": "x"}))
    assert refused["field"] == "population" and "population" in refused["problem"]
    assert "problem" in json.loads(get("/api/survey/error", **SMALL, over="delta"))


def test_the_panels_show_the_plan_and_draw_the_error(desk: Desk) -> None:
    page = desk.open("?" + urlencode({"view": "survey", "survey": urlencode(SMALL)}))
    expect(page.locator("#survey-progress")).to_have_attribute("data-state", "done")
    plan = survey.survey_plan(asked())
    assert page.locator("#survey-figure").inner_text() == plan["error"]["text"]
    assert page.locator("#survey-epsilon").inner_text() == plan["epsilon"]
    assert page.locator("#survey-local").inner_text() == plan["local"]
    expect(page.locator("#survey-facts")).to_contain_text(plan["randomizer"])
    expect(page.locator("#survey-influence")).to_contain_text(f"10: {plan['influence'][1][1]}")
    assert page.locator("#survey-plot .line").count() == 2
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(200)
        tidy_soon(page)
    page.fill("#survey-field-epsilon", "-1")
    expect(page.locator("#survey-field-epsilon-problem")).to_contain_text("Certified ε = -1")
    page.fill("#survey-field-epsilon", "2")
    expect(page.locator("#survey-status")).to_have_attribute("data-state", "certified")
    assert "epsilon%3D2" in page.url
    page.select_option("#survey-kind", "mean")
    expect(page.locator("#survey-field-low")).to_be_visible()
    page.click("#show-planner")
    expect(page.locator("#survey")).to_be_hidden()
