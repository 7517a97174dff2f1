"""Further panels of the planner: files of the plot, a kept plan, mixed runs, an attacker."""

import contextlib
import csv
import io
import json
import shlex
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Page, expect

from dashboard.conftest import Desk
from dashboard.test_look import MEASURE
from dashboard.test_page import SMALL, certified, drawn, only_ours
from dpcheckin.accounting import CheckInRound, any_pure, binary_response, compose, guarantee, tradeoff
from dpcheckin.cli import application
from dpcheckin.dashboard import answers
from dpcheckin.dashboard.form import Form
from dpcheckin.numerals import rounded_up

SMALL_FORM = Form(population=2_000, rate=0.05, local_epsilon=1.0, rounds=50)
SVG = "{http://www.w3.org/2000/svg}"
ONE = CheckInRound(2_000, 0.05, any_pure(1.0))


def saved(page: Page, kind: str) -> bytes:
    return saved_by(page, f"#exports [data-as={kind}]", f"dpcheckin-epsilon-against-rounds.{kind}")


def saved_by(page: Page, button: str, name: str) -> bytes:
    with page.expect_download() as download:
        page.click(button)
    assert download.value.suggested_filename == name
    return download.value.path().read_bytes()


def words_of(picture: bytes) -> str:
    """All that an SVG says, line by line."""
    root = ElementTree.fromstring(picture)
    return "\n".join("".join(e.itertext()) for e in root.iter(f"{SVG}text"))


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


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_saved_picture_is_understood_without_the_page(desk: Desk, dark: bool) -> None:
    """Title, plan, figure and every line, in light colours and of one size, on a phone too."""
    page = desk.open(SMALL + "&rate=1/30&colluding=0.1", phone=dark, dark=dark)
    figure = certified(page)
    drawn(page)
    picture = saved(page, "svg")
    words = words_of(picture)
    assert words.startswith("ε against rounds at δ = 10⁻⁵\nShuffled check-in · population 2,000")
    for part in ("check-in rate 1/30", "any pure randomizer", "local ε 1", "rounds 50", "δ 1e-5",
                 "colluding 0.1", f"This plan: ε ≤ {figure}, certified", "nobody can promise less",
                 "below the guarantee", "refuted claim", "Published bounds know neither",
                 "dpcheckin 0."):  # fmt: skip
        assert part in words.replace("\n", " "), part
    drawn_lines = page.locator("#plot .line").evaluate_all("all => all.map(e => e.dataset.line)")
    named = {key: key.partition(" [")[0] for key in drawn_lines if key != "lower bound"}
    for name in (*named.values(), "proven lower bound"):
        assert f"{name}:" in words.replace("\n", " "), name
    root = ElementTree.fromstring(picture)
    assert root.get("width") == "960"
    assert b"rgba(" not in picture and b"color(" not in picture  # for whatever shows it
    ground = root.find(f"{SVG}rect")
    assert ground is not None and ground.get("fill") == "rgb(255, 255, 255)"
    png = saved(page, "png")
    assert int.from_bytes(png[16:20], "big") == 1920
    # nothing is written over anything else, nor past the edge
    page.set_viewport_size({"width": 1100, "height": 900})
    page.evaluate("svg => { document.body.innerHTML = `<div class='panel'>${svg}</div>` }", picture.decode())
    assert page.locator("svg").evaluate(f"svg => ({MEASURE}).texts(svg)") == []


def test_a_file_is_whole_or_not_to_be_had(desk: Desk) -> None:
    """Until every line is there the buttons wait; then every line has all of its points."""
    page = desk.open(SMALL)
    certified(page)
    drawn(page)
    enabled_early = page.evaluate(
        "() => { const field = document.querySelector('#field-rounds');"
        " const buttons = [...document.querySelectorAll('#exports [data-as]')];"
        " const seen = [];"
        " new MutationObserver(() => document.querySelector('#progress').dataset.state === 'busy'"
        " && seen.push(...buttons.filter((b) => !b.disabled)))"
        ".observe(document.body, { subtree: true, childList: true, attributes: true });"
        " window.seenEarly = seen;"
        " field.value = '60'; field.dispatchEvent(new Event('input'));"
        " return buttons.filter((b) => !b.disabled).length }"
    )
    assert enabled_early == 0
    rows = list(csv.DictReader(io.StringIO(saved(page, "csv").decode())))  # the click waits
    assert page.evaluate("seenEarly.length") == 0
    count = {r["bound"]: 0 for r in rows}
    for row in rows:
        count[row["bound"]] += 1
    shown = page.locator("#legend .entry:not([data-empty=true])").count()
    assert len(count) == shown
    assert count["guarantee"] == count["proven lower bound"] >= 13
    assert "60" in {r["rounds"] for r in rows}
    lines = {line["name"]: line for line in json.loads(saved(page, "json"))["lines"]}
    absent = [line for line in lines.values() if not line["points"]]
    assert absent and all(line["missing"] for line in absent)  # and why


def test_the_json_of_a_plan_is_what_the_command_says(desk: Desk) -> None:
    page = desk.open(SMALL + only_ours())
    certified(page)
    page.click("#tab-json")
    content = json.loads(page.locator("#text").inner_text())
    command = "epsilon --population 2000 --rate 0.05 --local-epsilon 1 --rounds 50 --json"
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        application()(shlex.split(command), standalone_mode=False)
    assert content["guarantee"] == json.loads(out.getvalue())
    assert content["guarantee"]["lower_bound"]["epsilon"] > 0


def test_the_curves_of_an_attacker_are_saved(desk: Desk) -> None:
    page = desk.open(SMALL + only_ours())
    expect(page.locator("#tradeoff-panel")).to_have_attribute("data-state", "done")
    name = "dpcheckin-true-against-false-positives"
    text = saved_by(page, "#tradeoff-exports [data-as=csv]", f"{name}.csv").decode()
    rows = [r for r in csv.DictReader(io.StringIO(text)) if r["bound"] == "guarantee"]
    (here,) = [r for r in rows if float(r["false_positives_percent"]) == pytest.approx(0.1)]
    assert f"at most {float(here['true_positives_percent']):.3g}"[:12] in page.locator("#tradeoff-words").inner_text()
    words = words_of(saved_by(page, "#tradeoff-exports [data-as=svg]", f"{name}.svg"))
    for part in ("population 2,000", "true positives, %", "best known attack", "a guess"):
        assert part in words
    assert saved_by(page, "#tradeoff-exports [data-as=png]", f"{name}.png").startswith(b"\x89PNG")


def test_a_kept_plan_is_laid_over_the_next_and_is_in_the_link(desk: Desk) -> None:
    page = desk.open(SMALL + only_ours())
    drawn(page)
    page.click("#keep")
    page.fill("#field-rate", "0.1")
    drawn(page)
    expect(page.locator("#plot .line.beside")).to_have_count(1)
    expect(page.locator("#beside")).to_contain_text("rate 0.05")
    expect(page.locator("#plot .region")).to_have_text("no guarantee of this plan can lie here")
    again = desk.open(page.url.removeprefix(desk.server + "/"))
    drawn(again)
    expect(again.locator("#plot .line.beside")).to_have_count(1)
    again.click("#keep")
    expect(again.locator("#plot .line.beside")).to_have_count(0)
    expect(again.locator("#beside")).to_be_hidden()


def test_what_is_kept_is_said_at_once(desk: Desk) -> None:
    """Before anything has been computed anew: the server is not asked in this test."""
    page = desk.open(SMALL + only_ours())
    drawn(page)
    page.route("**/api/**", lambda route: None)  # never answered
    page.click("#keep")
    expect(page.locator("#keep")).to_have_text("Drop the kept plan", timeout=5_000)
    page.fill("#field-rate", "0.1")
    expect(page.locator("#beside")).to_contain_text("Dotted", timeout=5_000)
    expect(page.locator("#beside")).to_contain_text("rate 0.05", timeout=5_000)
    expect(page.locator("#keep")).to_be_enabled(timeout=5_000)  # dropping needs no answer
    page.click("#keep")
    expect(page.locator("#beside")).to_be_hidden(timeout=5_000)
    page.unroute_all()


def test_a_mixed_run_has_no_figure_until_it_is_computed(desk: Desk) -> None:
    page = desk.open(SMALL + only_ours())
    certified(page)
    page.click("#mix-add")
    expect(page.locator("#mix-epsilon")).to_have_text(page.locator("#epsilon").inner_text())
    page.route("**/api/mixed**", lambda route: None)  # never answered
    page.click("#mix-add")
    expect(page.locator("#mix-list li")).to_have_count(2)
    assert page.locator("#mix-epsilon").inner_text() == "…"
    page.unroute_all()


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
        ["guarantee", "best known attack (proven lower bound)", "a guess"]
    )
    # one vocabulary: sentence, axes and tip
    titles = page.locator("#tradeoff .title").all_text_contents()
    assert titles == ["false positives, %", "true positives, %"]
    page.locator("#tradeoff").scroll_into_view_if_needed()
    box = page.locator("#tradeoff").bounding_box()
    line = page.locator("#tradeoff .line.guarantee")
    middle = line.evaluate("e => { const p = e.getPointAtLength(e.getTotalLength() / 2); return [p.x, p.y] }")
    assert box is not None
    page.mouse.move(box["x"] + middle[0], box["y"] + middle[1])
    expect(page.locator("#tradeoff-tip")).to_contain_text("true positives")
    expect(page.locator("#tradeoff-tip")).to_contain_text("false positives")


def test_every_published_bound_has_its_place_on_their_page(desk: Desk) -> None:
    page = desk.open("bounds")
    expect(page.locator("article#p1-approach-2-p1-thm-2-lemma-1-subsampled-shuffling-conversion")
           ).to_contain_text("no such bound exists for delta > 0")  # fmt: skip
    assert page.locator("article .erratum").count() > 5


def test_the_trade_off_is_the_librarys_rounded_up() -> None:
    found = answers.trade_off(SMALL_FORM)
    curve = tradeoff([(ONE, 50)], 1e-5)
    for point, known in zip(found["points"], found["known"], strict=True):
        caught = curve.true_positives(point["x"] / 100)
        assert 100 * caught.upper == pytest.approx(point["y"], abs=1e-9)
        assert float(point["text"].rstrip("%")) >= 100 * caught.upper - 1e-9
        assert known["y"] <= point["y"] and point["y"] >= point["x"] - 1e-9
    assert "0.1% false positives" in found["words"]


def test_protocols_without_a_curve_say_so() -> None:
    assert "no trade-off" in answers.trade_off(Form(protocol="distributed-check-in", randomizer="gaussian"))["problem"]
