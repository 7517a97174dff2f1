"""The planner in a real browser: every control, with the mouse and without."""

import json
import math
import re
import shlex
import subprocess
import sys
import time

import pytest
from playwright.sync_api import Page, expect

from dashboard.conftest import PATIENCE, Desk
from dpcheckin.accounting import CheckInRound, Kind, any_pure, compose, laplace, lower_bound
from dpcheckin.accounting.composition.solve import solve
from dpcheckin.numerals import rounded_down, rounded_up
from dpcheckin.protocols.questions import PLANNED, PROTOCOLS, randomizers_of

SMALL = "?population=2000&rate=0.05&local_epsilon=1&rounds=50"
ONE = CheckInRound(2_000, 0.05, any_pure(1.0))
P1_WHERE = "p1-thm-2-lemma-1-shuffling-conversion"
FIGURE = re.compile(r"^[\d.e+-]+$")


def certified(page: Page) -> str:
    """The figure, once it is the tight one."""
    expect(page.locator("#status")).to_have_attribute("data-state", "certified")
    return page.locator("#epsilon").inner_text()


def drawn(page: Page) -> None:
    """Wait until every line is there."""
    expect(page.locator("#progress")).to_have_attribute("data-state", "done")


def only_ours(protocol: str = "shuffled-check-in", kinds: frozenset[Kind] = frozenset(Kind)) -> str:
    """A query that leaves published lines of these kinds out, for tests that are not about them."""
    from dpcheckin.dashboard import answers

    published = [bound for bound in answers.about(protocol) if bound.kind in kinds]
    keys = "|".join(answers.key_of(bound) for bound in published)
    return f"&hide={keys.replace('+', '%2B').replace('#', '%23')}"


def test_the_figures_on_the_page_are_the_librarys_rounded_to_the_safe_side(desk: Desk) -> None:
    page = desk.open(SMALL + only_ours())
    exact = compose([(ONE, 50)]).epsilon(1e-5)
    assert certified(page) == rounded_up(exact.upper)
    least = lower_bound([(ONE, 50)], 1e-5).epsilon.lower
    assert f"less than {rounded_down(least)}" in page.locator("#caption").inner_text()
    expect(page.locator("#trusted")).to_contain_text("provided that at least 2,000 honest clients")
    expect(page.locator("#untrusted")).to_contain_text("If the shuffler colludes, what is left is")
    assert page.locator("#trusted-figure").inner_text() == rounded_up(exact.upper)


def test_every_line_can_be_switched_off_and_refuted_ones_are_dashed_and_explained(desk: Desk) -> None:
    page = desk.open(SMALL)
    drawn(page)
    lines = page.locator("#plot .line:not(.preview)")
    before = lines.count()
    kinds = page.locator("#legend .entry").evaluate_all("all => all.map(e => e.dataset.kind)")
    assert {"guarantee", "lower bound", "refuted claim"} <= set(kinds)
    # a bound that is stated for one run only is a point: it may be drawn as a line or not
    all_lines = (len(kinds) - 1, len(kinds))
    assert before in all_lines
    dashes = "all => all.map(line => getComputedStyle(line).strokeDasharray)"
    assert "none" not in page.locator("#plot .line.refuted").evaluate_all(dashes)
    certain = page.locator("#plot .line:not(.refuted):not(.lower)")
    assert set(certain.evaluate_all(dashes)) == {"none"}
    # hover explains, and so does the focus of the keyboard
    entry = page.locator(".entry", has_text="P1 approach 2")
    entry.hover()
    expect(page.locator("#tip .refuted")).to_contain_text("no such bound exists for delta > 0")
    page.mouse.move(5, 5)
    expect(page.locator("#tip")).to_be_hidden()
    page.locator(".entry", has_text="P1 approach 1").locator("input").focus()
    page.keyboard.press("Tab")  # the link to what the paper says
    assert page.evaluate("document.activeElement.href").endswith("/bounds#p1-approach-1-" + P1_WHERE)
    page.keyboard.press("Tab")
    expect(page.locator("#tip b")).to_have_text("P1 approach 2")
    page.keyboard.press("Space")
    expect(lines).to_have_count(before - 1)
    for box in page.locator("#legend .entry input").all():
        box.uncheck()
    expect(lines).to_have_count(0)
    for box in page.locator("#legend .entry input").all():
        box.check()
    drawn(page)
    assert lines.count() in all_lines


def test_a_line_is_explained_where_it_runs(desk: Desk) -> None:
    # a conjecture runs so near to a refuted line that the mouse may be over either
    page = desk.open(SMALL + only_ours(kinds=frozenset({Kind.CONJECTURE})))
    drawn(page)
    place = page.locator("#plot .line.refuted").first.evaluate(
        "line => { const p = line.getPointAtLength(line.getTotalLength() * 0.9);"
        " const box = line.ownerSVGElement.getBoundingClientRect();"
        " return [p.x + box.left, p.y + box.top] }"
    )
    page.mouse.move(*place)
    expect(page.locator("#tip")).to_contain_text("refuted claim")
    expect(page.locator("#tip .refuted")).to_contain_text("Refuted:")


def test_sliders_and_fields_move_each_other_the_figure_and_the_link(desk: Desk) -> None:
    for start, names in {
        SMALL: ["population", "rate", "local_epsilon", "rounds", "delta", "colluding", "dropout"],
        "?protocol=subsampled-shuffle&population=2000&cohort=100&rounds=5": ["cohort"],
        "?randomizer=gaussian&population=2000&rate=0.1&rounds=5&noise_multiplier=5": ["noise_multiplier"],
        "?protocol=random-check-in-fixed&population=500&slots=100&rounds=1": ["slots", "check_in_probability"],
    }.items():
        page = desk.open(start)
        certified(page)
        for name in names:
            field, slider = page.locator(f"#field-{name}"), page.locator(f"#slide-{name}")
            was, shown = field.input_value(), page.locator("#epsilon").inner_text()
            slider.focus()
            for _ in range(15):
                page.keyboard.press("ArrowLeft" if name in FALLING else "ArrowRight")
            assert field.input_value() != was
            value = field.input_value().replace(",", "")
            expect(page).to_have_url(re.compile(f"[?&]{name}={re.escape(value)}(&|$)"))
            expect(page.locator("#epsilon")).not_to_have_text(shown)
            expect(page.locator("#epsilon")).to_have_text(FIGURE)
            # and back by typing
            field.fill(was)
            page.keyboard.press("Tab")
            expect(page.locator("#epsilon")).to_have_attribute("data-stale", "false")
            expect(slider).to_have_attribute("aria-valuetext", was.replace(",", ""))
        page.close()


FALLING = {"check_in_probability"}  # stands at the right end to begin with


@pytest.mark.parametrize("protocol", PLANNED)
def test_every_protocol_has_its_fields_and_an_answer(desk: Desk, protocol: str) -> None:
    page = desk.open(SMALL + "&slots=100&cohort=100&noise_multiplier=3" + only_ours(protocol))
    page.select_option("#field-protocol", protocol)
    assert FIGURE.match(certified(page))
    visible = set(
        page.locator("#form .field:visible input:not([type=range])").evaluate_all("all => all.map(e => e.name)")
    )
    wanted = set(PROTOCOLS[protocol].fields) | {"delta"}
    noise = "noise_multiplier" if randomizers_of(protocol)[0] == "gaussian" else None
    assert visible == wanted | {noise or "local_epsilon"}
    expect(page.locator("#plot .line").first).to_be_visible()


def test_every_randomizer_and_its_own_field(desk: Desk) -> None:
    page = desk.open(SMALL + "&noise_multiplier=5&dimension=20" + only_ours())
    seen = [certified(page)]
    for name, fields in {"binary": (), "dary": ("symbols",), "hemisphere": (),
                         "privunit": ("dimension",), "laplace": (),
                         "gaussian": ("noise_multiplier",),
                         "subset": ("symbols", "chosen")}.items():  # fmt: skip
        page.select_option("#field-randomizer", name)
        seen.append(certified(page))
        for field in fields:
            expect(page.locator(f"#field-{field}")).to_be_visible()
    # two types bound binary and hemisphere alike; a randomizer of which nothing is known is worse
    worst, binary, _, hemisphere, *_ = seen
    assert binary == hemisphere
    assert len(set(seen)) == 7 and float(worst) == max(map(float, seen))


def test_the_plot_runs_along_every_parameter(desk: Desk) -> None:
    page = desk.open(SMALL + only_ours())
    figure = certified(page)
    for choice, title in {"rate": "check-in rate", "population": "population",
                          "local": "local ε", "rounds": "rounds"}.items():  # fmt: skip
        page.locator(f"#over input[value={choice}]").check()
        drawn(page)
        expect(page.locator("#plot .title").first).to_have_text(title)
        expect(page.locator("#plot .line.guarantee")).to_have_count(1)
        assert page.locator("#epsilon").inner_text() == figure
    page.locator("details.table summary", has_text="table").click()
    cells = page.locator("#table tbody tr").first.locator("td").all_inner_texts()
    assert figure in cells


def test_the_link_reproduces_the_view(desk: Desk) -> None:
    page = desk.open(SMALL + "&rate=1/30" + only_ours())
    page.fill("#field-colluding", "0.1")
    page.locator("#over input[value=population]").check()
    page.locator(".entry", has_text="proven lower bound").locator("input").uncheck()
    page.fill("#target", "0.05")
    figure = certified(page)
    page.click("#copy-link")
    link = page.evaluate("navigator.clipboard.readText()")
    again = desk.open(link.removeprefix(desk.server + "/"))
    assert certified(again) == figure
    assert again.locator("#field-rate").input_value() == "1/30"
    assert again.locator("#field-colluding").input_value() == "0.1"
    assert again.locator("#target").input_value() == "0.05"
    assert again.locator("#over input:checked").get_attribute("value") == "population"
    box = again.locator(".entry", has_text="proven lower bound").locator("input")
    assert not box.is_checked()
    again.click("#copy-link")
    assert again.evaluate("navigator.clipboard.readText()") == link


def test_the_copy_buttons_copy_what_is_shown_and_it_runs(desk: Desk) -> None:
    page = desk.open(SMALL + only_ours())
    figure = certified(page)
    copied = {}
    for name in ("shell", "python", "json"):
        page.click(f"#tab-{name}")
        page.click("#copy-text")
        copied[name] = page.evaluate("navigator.clipboard.readText()")
        assert copied[name] == page.locator("#text").inner_text()
        expect(page.locator("#said")).to_have_text("Copied")
    program = "from dpcheckin.cli import main; main()"
    command = [sys.executable, "-c", program, *shlex.split(copied["shell"])[1:]]
    told = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stdout
    assert f"({figure}, 1e-05)" in told
    told = subprocess.run([sys.executable, "-c", copied["python"]], capture_output=True, text=True, check=True).stdout
    assert f"({figure}, 1e-05)" in told
    assert rounded_up(json.loads(copied["json"])["guarantee"]["epsilon"]["upper"]) == figure


def test_a_wrong_entry_is_shown_at_its_field_and_can_be_mended(desk: Desk) -> None:
    page = desk.open(SMALL + only_ours())
    figure = certified(page)
    expect(page.locator("#plot .line.guarantee")).to_have_count(1)
    for entry, said in {
        "2": "Check-in rate = 2.0 is not allowed",
        "often": "Check-in rate = 'often' is not allowed: expected a number",
    }.items():
        page.fill("#field-rate", entry)
        expect(page.locator("#field-rate-problem")).to_contain_text(said)
        expect(page.locator("#field-rate")).to_have_attribute("aria-invalid", "true")
        expect(page.locator("#status")).to_have_attribute("data-state", "problem")
        assert page.locator("#epsilon").inner_text() == "–"
        # what was said of the plan before stays, greyed
        assert page.locator("#trusted-figure").inner_text() == figure
        assert page.locator("#text").inner_text().startswith("dpcheckin epsilon")
        expect(page.locator("#plot .line.guarantee")).to_have_count(1)
        for part in ("#plot", ".card .big >> nth=0", ".card .sentence >> nth=1", "#basis", "#text"):
            opacity = "e => Number(getComputedStyle(e).opacity)"
            assert page.locator(part).evaluate(opacity) < 0.5, part
        after = "e => getComputedStyle(e, '::after').content"
        assert "before this change" in page.locator("#trusted-title").evaluate(after)
    page.fill("#field-rate", "0.05")
    assert certified(page) == figure
    expect(page.locator("#field-rate-problem")).to_be_hidden()
    expect(page.locator("#field-rate")).not_to_have_attribute("aria-invalid", "true")
    for part in ("#plot", ".card .big >> nth=0", "#text"):
        assert page.locator(part).evaluate("e => getComputedStyle(e).opacity") == "1"
    # nobody absent, whatever the randomizer: that has an answer too
    page.fill("#field-rate", "1")
    page.select_option("#field-randomizer", "laplace")
    wanted = compose([(CheckInRound(2_000, 1.0, laplace(1.0)), 50)]).epsilon(1e-5).upper
    assert certified(page) == rounded_up(wanted)


def test_a_thousand_million_clients(desk: Desk) -> None:
    page = desk.open(SMALL + only_ours())
    certified(page)
    page.fill("#field-population", "1,000,000,000")
    expect(page.locator("#slide-population")).to_have_js_property("value", "600")
    page.keyboard.press("Tab")
    field = page.locator("#field-population")
    assert field.input_value() == "1,000,000,000"
    assert field.evaluate("e => e.scrollWidth <= e.clientWidth")  # all of it can be read
    wanted = compose([(CheckInRound(10**9, 0.05, any_pure(1.0)), 50)]).epsilon(1e-5)
    assert certified(page) == rounded_up(wanted.upper)
    drawn(page)
    expect(page).to_have_url(re.compile("population=1000000000"))


def test_a_click_on_the_plot_asks_what_meets_that_epsilon(desk: Desk) -> None:
    page = desk.open(SMALL + only_ours())
    drawn(page)
    box = page.locator("#plot").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 300, box["y"] + 150)
    expect(page.locator("#solved")).to_contain_text("then ε ≤")
    expect(page.locator("#solved")).not_to_contain_text("still looking")
    target = float(page.locator("#target").input_value())
    wanted = solve("rounds", lambda value: (ONE, int(value)), epsilon=target, delta=1e-5)
    expect(page.locator("#solved strong")).to_have_text(f"rounds ≤ {int(wanted):,}")
    expect(page.locator("#plot .aimed")).to_have_count(1)
    page.click("#use")
    assert page.locator("#field-rounds").input_value() == f"{int(wanted):,}"
    assert float(certified(page)) <= target * 1.0001
    page.fill("#target", "never")
    page.click("#ask")
    expect(page.locator("#target-problem")).to_contain_text("Target ε = 'never' is not allowed")


def test_everything_can_be_done_without_a_mouse(desk: Desk) -> None:
    page = desk.open(SMALL + only_ours())
    drawn(page)
    reached = []
    for _ in range(160):
        page.keyboard.press("Tab")
        name = page.evaluate(
            "(() => { const e = document.activeElement;"
            " return e.id || e.name || e.dataset.line || e.className || e.tagName })()"
        )
        if name in ("BODY", "HTML"):
            break
        reached.append(name)
    for wanted in ("show-runs", "copy-link", "theme", "field-protocol", "field-population",
                   "slide-population", "field-rate", "slide-rate", "field-randomizer",
                   "slide-local_epsilon", "slide-rounds", "slide-delta", "slide-colluding",
                   "slide-dropout", "plot", "target", "ask", "tab-shell", "text",
                   "copy-text"):  # fmt: skip
        assert wanted in reached, (wanted, reached)
    # a ring shows where one is
    page.locator("#plot").focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    assert page.locator("#plot").evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.locator("#solved")).to_contain_text("rounds ≤")
    aimed = float(page.locator("#target").input_value())
    assert math.isclose(aimed, float(certified(page)) * 1.05**3, rel_tol=0.02)
    page.locator("#tab-shell").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#tab-python")).to_be_focused()
    expect(page.locator("#text")).to_contain_text("import dpcheckin as dp")
    page.locator("#field-protocol").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("#field-cohort")).to_be_visible()
    page.locator("#show-runs").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#runs")).to_be_visible()


def test_a_steady_hand_on_a_slider_sees_the_figure_move(desk: Desk) -> None:
    page = desk.open(SMALL + only_ours())
    certified(page)
    page.locator("#slide-rounds").focus()
    seen, press, end = set(), 0, time.monotonic() + PATIENCE / 1000
    while len(seen) <= 3 and time.monotonic() < end:  # without ever resting
        page.keyboard.press("ArrowRight" if press % 200 < 100 else "ArrowLeft")
        seen.add(page.locator("#epsilon").inner_text())
        press += 1
    assert len(seen) > 3


def test_while_a_slider_moves_there_is_always_a_certified_figure(desk: Desk) -> None:
    """What is shown before the tight figure is a guarantee too: never below the tight one."""
    page = desk.open(SMALL + only_ours())
    certified(page)
    # what the page says in between lasts for less than a busy machine takes to look: note all of it
    page.evaluate(
        "() => { window.said = [];"
        " const [status, figure] = ['#status', '#epsilon'].map((e) => document.querySelector(e));"
        " new MutationObserver(() => said.push([status.textContent, figure.textContent]))"
        ".observe(status, { childList: true, characterData: true, subtree: true }) }"
    )
    page.locator("#slide-rounds").focus()
    for _ in range(40):
        page.keyboard.press("ArrowRight")
    tight = float(certified(page))
    shown = [figure for status, figure in page.evaluate("said") if "tightening" in status]
    assert shown and all(float(figure) > 0 for figure in shown)
    rounds = int(page.locator("#field-rounds").input_value().replace(",", ""))
    assert tight >= compose([(ONE, rounds)]).epsilon(1e-5).lower
    assert rounds > 50


ACTING = ("#exports [data-as=png]", "#exports [data-as=csv]", "#tradeoff-exports [data-as=svg]",
          "#keep", "#ask", "#mix-add", "#copy-text")  # fmt: skip


def test_nothing_acts_on_a_plan_without_an_answer(desk: Desk) -> None:
    page = desk.open(SMALL + only_ours())
    expect(page.locator("#tradeoff-panel")).to_have_attribute("data-state", "done")
    for button in ACTING:
        expect(page.locator(button)).to_be_enabled()
    # not for a moment, either: everything is off before the server has seen the entry
    enabled = page.locator("#field-population").evaluate(
        "(field, acting) => { field.value = 'xx'; field.dispatchEvent(new Event('input'));"
        " return acting.filter((e) => !document.querySelector(e).disabled) }",
        [button for button in ACTING if ">>" not in button],
    )
    assert enabled == []
    expect(page.locator("#field-population-problem")).to_contain_text("Population = 'xx'")
    for button in ACTING:
        expect(page.locator(button)).to_be_disabled()
    box = page.locator("#plot").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 300, box["y"] + 150)  # aims, but asks nothing
    expect(page.locator("#solved")).not_to_contain_text("asking")
    page.locator("#mix-add").evaluate("button => button.click()")
    expect(page.locator("#mix-list li")).to_have_count(0)
    page.fill("#field-population", "2000")
    for button in ACTING:
        expect(page.locator(button)).to_be_enabled()


def test_a_part_that_is_no_plan_is_shown_as_it_was_typed(desk: Desk) -> None:
    part = "population%3Dxx%26rate%3D1%252F30%26rounds%3D6000"
    page = desk.open(SMALL + only_ours() + f"&parts={part}")
    expect(page.locator("#mix-list li")).to_contain_text("6,000 × n xx, rate 1/30")
    expect(page.locator("#mix-said")).to_contain_text("population = 'xx' is not allowed")


@pytest.mark.parametrize("plan", ["rate=0", "rate=0&over=rate&rounds=3", "population=1e9&delta=1e-4&local_epsilon=0.1"])
def test_a_figure_of_zero_has_its_place_on_a_logarithmic_axis(desk: Desk, plan: str) -> None:
    """The desk complains if the browser does."""
    page = desk.open(f"?population=2000&rate=0.05&local_epsilon=1&rounds=50&{plan}" + only_ours())
    assert certified(page) == "0"
    drawn(page)
    place = page.locator("#plot .here").evaluate("e => [e.cx.baseVal.value, e.cy.baseVal.value]")
    assert all(math.isfinite(x) for x in place)
    foot = page.locator("#plot .frame").evaluate("e => e.y1.baseVal.value")
    assert place[1] == pytest.approx(foot)


def test_one_round_is_no_rounds(desk: Desk) -> None:
    page = desk.open("?population=2000&rate=5%25&local_epsilon=1&rounds=1" + only_ours())
    certified(page)
    expect(page.locator("#caption")).to_contain_text("over 1 round;")
    expect(page.locator("#plot .here")).to_have_count(1)  # at 5%, which is a number


def test_the_first_screen_says_the_readmes_figure(desk: Desk) -> None:
    page = desk.open("?x" + only_ours())
    assert page.locator("#field-rate").input_value() == "1/30"
    assert certified(page) == "0.6089"
    expect(page.locator("#text")).to_contain_text("--rate 1/30")
    expect(page.locator("#text")).to_contain_text("--delta 1e-5")


def test_the_lower_bound_is_seen_over_the_guarantee_and_says_how_near_it_is(desk: Desk) -> None:
    page = desk.open(SMALL + only_ours())
    drawn(page)
    order = page.locator("#plot .line").evaluate_all("all => all.map(e => e.dataset.line)")
    assert order.index("lower bound") > order.index("guarantee")
    line = page.locator("#plot .line.lower")
    assert line.evaluate("e => getComputedStyle(e).strokeDasharray") != "none"
    entry = page.locator(".entry", has_text="proven lower bound")
    exact = compose([(ONE, 50)]).epsilon(1e-5).upper
    apart = 100 * (1 - lower_bound([(ONE, 50)], 1e-5).epsilon.lower / exact)
    expect(entry).to_contain_text(f"{rounded_up(apart, 2)}% below the guarantee")
    expect(page.locator(".entry", has_text="faded")).to_have_count(0)


def test_an_answer_about_a_target_follows_the_axis(desk: Desk) -> None:
    page = desk.open(SMALL + only_ours())
    certified(page)
    page.fill("#target", "0.2")
    page.click("#ask")
    expect(page.locator("#solved strong")).to_contain_text("rounds ≤")
    page.locator("#over input[value=rate]").check()
    expect(page.locator("#solved strong")).to_contain_text("check-in rate ≤")


def test_the_form_stays_in_sight_on_a_wide_screen(desk: Desk) -> None:
    page = desk.open(SMALL + only_ours())
    expect(page.locator("#tradeoff-panel")).to_have_attribute("data-state", "done")
    page.evaluate("scrollTo(0, 450)")
    assert page.evaluate("scrollY") == 450
    assert page.locator("#form").evaluate("e => e.getBoundingClientRect().top") >= 0
