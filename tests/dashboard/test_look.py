"""How the page looks: light and dark, wide and narrow, with contrast; and pictures to look at."""

import contextlib
import re
import time
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from dashboard.conftest import PATIENCE, Desk
from dashboard.log import write_run
from dashboard.test_page import SMALL, certified, drawn, only_ours

PICTURES = Path(__file__).resolve().parents[2] / "build" / "screenshots"

MEASURE = (Path(__file__).parent / "measure.js").read_text(encoding="utf-8").strip()


def picture(page: Page, name: str) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}.png", full_page=True)


def tidy_soon(page: Page) -> None:
    """Tidy once the page has been laid out anew, however long a busy machine takes for that."""
    end = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < end:
        with contextlib.suppress(AssertionError):
            return tidy(page)
        page.wait_for_timeout(200)
    tidy(page)


def tidy(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.evaluate(f"({MEASURE}).overlaps()") == []
    for plot in page.locator("svg.plot[id]:visible").all():
        assert plot.evaluate(f"svg => ({MEASURE}).texts(svg)") == []


def readable(page: Page) -> None:
    ratios = page.evaluate(f"({MEASURE}).contrast()")
    assert len(ratios) > 20
    assert [pair for pair in ratios if pair[1] < 4.5] == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_the_planner_is_readable_and_nothing_overlaps(desk: Desk, phone: bool, dark: bool) -> None:
    page = desk.open(SMALL, phone=phone, dark=dark)
    certified(page)
    drawn(page)
    picture(page, f"planner-{'phone' if phone else 'desktop'}{'-dark' if dark else ''}")
    tidy(page)
    readable(page)
    page.locator("#elsewhere summary").click()
    page.fill("#field-rate", "2")  # the colours of what is wrong count too
    expect(page.locator("#field-rate-problem")).to_be_visible()
    tidy(page)
    readable(page)


def test_nothing_overlaps_in_between(desk: Desk) -> None:
    page = desk.open(SMALL + only_ours())
    drawn(page)
    for width in (320, 600, 861, 1024, 1920):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_timeout(200)
        tidy_soon(page)


def test_the_measures_notice_what_they_are_for(desk: Desk) -> None:
    """Spoil the page on purpose: pale text, a label pushed onto another, ticks on one heap."""
    page = desk.open(SMALL + only_ours())
    drawn(page)
    page.evaluate("document.querySelector('#caption').style.color = '#999'")
    with pytest.raises(AssertionError, match="at δ"):
        readable(page)
    page.evaluate("document.querySelector('#plot text').setAttribute('x', 500)")
    page.evaluate("document.querySelectorAll('#plot text')[1].setAttribute('x', 500)")
    with pytest.raises(AssertionError):
        tidy(page)
    page.reload()
    drawn(page)
    page.evaluate("document.querySelector('#ask').style.marginLeft = '-90px'")
    with pytest.raises(AssertionError, match="ask"):
        tidy(page)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_a_finished_run(desk: Desk, phone: bool, dark: bool) -> None:
    page = desk.open("?view=runs&run=finished", phone=phone, dark=dark)
    expect(page.locator("#run-state")).to_have_text("finished")
    expect(page.locator("#run-facts")).to_contain_text("≤ 2.094")
    expect(page.locator("#run-statement")).to_contain_text("The run is (2.1, 1e-05)")
    for plot in ("#run-accuracy", "#run-check-ins"):
        expect(page.locator(f"{plot} .dot")).to_have_count(40)
    picture(page, f"run-{'phone' if phone else 'desktop'}{'-dark' if dark else ''}")
    tidy(page)
    readable(page)


def test_a_run_that_goes_on_is_seen_live(desk: Desk, runs: Path) -> None:
    page = desk.open("?view=runs&run=going-on")
    expect(page.locator("#run-state")).to_have_text("going on")
    before = page.locator("#run-accuracy .dot").count()
    page.evaluate("window.sameDocument = true")
    write_run(runs / "going-on", before + 3, finished=False)
    expect(page.locator("#run-accuracy .dot")).to_have_count(before + 3)
    expect(page.locator("#run-check-ins .dot")).to_have_count(before + 3)
    expect(page.locator("#run-facts")).to_contain_text(f"{10 * (before + 3)}")
    assert page.evaluate("window.sameDocument")
    # another run by keyboard, and the link follows
    page.locator("#runs-list input[value='going-on']").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("#run-name")).to_have_text("finished")
    assert "run=finished" in page.url


def test_the_theme_follows_the_system_until_it_is_switched(desk: Desk) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    page = desk.open(SMALL, dark=True)
    dark = page.evaluate(colour)
    page.emulate_media(color_scheme="light")
    light = page.evaluate(colour)
    assert light != dark
    for label, wanted in (("light", light), ("dark", dark)):
        page.click("#theme")
        expect(page.locator("#theme")).to_have_text(f"Theme: {label}")
        assert page.evaluate(colour) == wanted
    page.reload()
    assert page.evaluate(colour) == dark  # it is remembered
    page.click("#theme")
    assert page.evaluate(colour) == light


def test_every_input_is_in_sight_on_a_small_screen(desk: Desk) -> None:
    page = desk.open(SMALL + only_ours())
    certified(page)
    bottom = "Math.max(...[...document.querySelectorAll('#form :is(input, select)')].map(e => {})).toFixed(0)"
    assert float(page.evaluate(bottom.format("e.getBoundingClientRect().bottom"))) <= 900
    assert page.evaluate("(f => f.scrollHeight - f.clientHeight)(document.querySelector('#form'))") <= 1


def test_a_plan_prints_on_two_sheets_without_what_is_there_to_click(desk: Desk) -> None:
    page = desk.open(SMALL)
    certified(page)
    drawn(page)
    printed = page.pdf(prefer_css_page_size=True)
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 2
    page.emulate_media(media="print")
    assert page.locator("button:visible, nav:visible, input[type=range]:visible").count() == 0
    for name in ("#epsilon", "#field-population", "#field-rate", "#plot", ".cards"):
        expect(page.locator(name).first).to_be_visible()
