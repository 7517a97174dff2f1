"""Further panels of the planner: files of the plot, a kept plan, mixed runs, an attacker."""

import csv
import io
import json

import pytest
from playwright.sync_api import Page, expect

from dashboard.conftest import Desk
from dashboard.test_page import SMALL, certified, drawn, only_ours
from dpcheckin.accounting import (
    CheckInRound,
    any_pure,
    binary_response,
    compose,
    guarantee,
    tradeoff,
)
from dpcheckin.accounting.statements import rounded_up
from dpcheckin.dashboard import panels
from dpcheckin.dashboard.form import Form

SMALL_FORM = Form(population=2_000, rate=0.05, local_epsilon=1.0, rounds=50)
ONE = CheckInRound(2_000, 0.05, any_pure(1.0))


def saved(page: Page, kind: str) -> bytes:
    with page.expect_download() as download:
        page.click(f"#exports [data-as={kind}]")
    assert download.value.suggested_filename == f"dpcheckin-epsilon-against-rounds.{kind}"
    return download.value.path().read_bytes()


def test_the_plot_is_saved_as_four_kinds_of_files(desk: Desk) -> None:
    page = desk.open(SMALL + only_ours())
    figure = certified(page)
    drawn(page)
    rows = list(csv.DictReader(io.StringIO(saved(page, "csv").decode())))
    (here,) = [r for r in rows if r["bound"] == "guarantee" and float(r["rounds"]) == 50]
    assert here["epsilon_rounded_safely"] == figure
    assert float(here["epsilon"]) == compose([(ONE, 50)]).epsilon(1e-5).upper
    content = json.loads(saved(page, "json"))
    assert content["plan"]["population"] == "2000"
    assert content["statement"]["epsilon"]["text"] == figure
    assert {line["name"] for line in content["lines"]} == {"guarantee", "proven lower bound"}
    picture = saved(page, "svg").decode()
    assert picture.startswith("<svg") and "no guarantee can lie here" in picture
    assert "class=" not in picture and "stroke-width=" in picture  # it carries its looks itself
    assert saved(page, "png").startswith(b"\x89PNG")


def test_a_kept_plan_is_laid_over_the_next_and_is_in_the_link(desk: Desk) -> None:
    page = desk.open(SMALL + only_ours())
    drawn(page)
    page.click("#keep")
    page.fill("#field-rate", "0.1")
    drawn(page)
    expect(page.locator("#plot .line.beside")).to_have_count(1)
    expect(page.locator("#beside")).to_contain_text("rate 0.05")
    again = desk.open(page.url.removeprefix(desk.server + "/"))
    drawn(again)
    expect(again.locator("#plot .line.beside")).to_have_count(1)
    again.click("#keep")
    expect(again.locator("#plot .line.beside")).to_have_count(0)
    expect(again.locator("#beside")).to_be_hidden()


def test_rounds_of_several_kinds_make_one_run(desk: Desk) -> None:
    page = desk.open(SMALL + only_ours())
    certified(page)
    page.click("#mix-add")
    page.select_option("#field-randomizer", "binary")
    page.fill("#field-rounds", "7")
    page.click("#mix-add")
    other = CheckInRound(2_000, 0.05, binary_response(1.0))
    wanted = guarantee([(ONE, 50), (other, 7)], 1e-5)
    expect(page.locator("#mix-epsilon")).to_have_text(rounded_up(wanted.epsilon.upper))
    expect(page.locator("#mix-said")).to_contain_text("over 57 rounds")
    expect(page.locator("#mix-list li")).to_have_count(2)
    page.locator("#mix-list button").first.click()
    expect(page.locator("#mix-list li")).to_have_count(1)
    expect(page.locator("#mix-list")).to_contain_text("7 × Shuffled check-in")
    page.locator("#mix-list button").click()
    expect(page.locator("#mix-figure")).to_be_hidden()


def test_the_panel_tells_what_an_attacker_can_find(desk: Desk) -> None:
    page = desk.open(SMALL + only_ours())
    expect(page.locator("#tradeoff-panel")).to_have_attribute("data-state", "done")
    expect(page.locator("#tradeoff-words")).to_contain_text("at 0.1% false positives: at most")
    expect(page.locator("#tradeoff .line.guarantee")).to_have_count(1)
    expect(page.locator("#tradeoff-key li")).to_have_text(
        ["at most, certified", "best known attack", "guessing"]
    )


def test_every_published_bound_has_its_place_on_their_page(desk: Desk) -> None:
    page = desk.open("bounds")
    expect(page.locator("article#p1-approach-2-p1-thm-2-lemma-1-subsampled-shuffling-conversion")
           ).to_contain_text("no such bound exists for delta > 0")  # fmt: skip
    assert page.locator("article .erratum").count() > 5


def test_the_trade_off_is_the_librarys_rounded_up() -> None:
    found = panels.trade_off(SMALL_FORM)
    curve = tradeoff([(ONE, 50)], 1e-5)
    for point, known in zip(found["points"], found["known"], strict=True):
        caught = curve.true_positives(point["x"] / 100)
        assert 100 * caught.upper == pytest.approx(point["y"], abs=1e-9)
        assert float(point["text"].rstrip("%")) >= 100 * caught.upper - 1e-9
        assert known["y"] <= point["y"] and point["y"] >= point["x"] - 1e-9
    assert "0.1% false positives" in found["words"]


def test_protocols_without_a_curve_say_so() -> None:
    assert "no trade-off" in panels.trade_off(Form(protocol="random-check-in-averaged"))["problem"]
