"""What is handed over: a page of one or two sheets, a card that its schema describes, a proof beside both."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dpcheckin as dp
from cli_in_process import run_cli
from dpcheckin.errors import InvalidParameter
from dpcheckin.handover import CARD, NOT_COVERED, SCHEMA, in_words, privacy_card
from dpcheckin.numerals import rounded_down, rounded_up

ROOT = Path(__file__).resolve().parents[2]
RUN = ("--population", "2000", "--rate", "0.05", "--local-epsilon", "2", "--delta", "1e-4")
COMMANDS = {
    "epsilon": ("epsilon", *RUN, "--rounds", "20"),
    "plan": ("plan", *RUN, "--epsilon", "0.3"),
    "trust": ("trust", *RUN, "--rounds", "20", "--minimum-batch", "60"),
    "compare": ("compare", *RUN, "--rounds", "20"),
}


@pytest.fixture(scope="module", params=COMMANDS)
def handed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("over") / "report.html"
    run_cli(*COMMANDS[request.param], "--out", str(path))
    return path


def checked(card: Path) -> dict:
    """The card, after its schema has been held against it."""
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema comes with the extra dev")
    facts = json.loads(card.read_text(encoding="utf-8"))
    schema = json.loads((card.parent / SCHEMA.name).read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(facts, schema)
    return facts


def test_a_page_says_what_holds_on_what_and_how_to_check_it(handed: Path) -> None:
    text = handed.read_text(encoding="utf-8")
    facts = json.loads(handed.with_suffix(".card.json").read_text(encoding="utf-8"))
    assert rounded_up(facts["epsilon"]) in text
    assert rounded_up(facts["trust"]["otherwise"]["epsilon"]) in text  # both trust figures
    for heading in ("What it rests on", "What it does not cover", "The run", "How to check it", "Versions"):
        assert f"<h2>{heading}</h2>" in text
    for sentence in (*facts["trust"]["holds_if"], *NOT_COVERED):
        assert sentence in text
    assert "data:image/png" in text and "<nav" not in text and "<script" not in text


def test_a_card_keeps_to_its_schema_and_says_what_the_guarantee_says(handed: Path) -> None:
    facts = checked(handed.with_suffix(".card.json"))
    if facts["run"]["rounds"] == 20:
        one = dp.CheckInRound(2000, 0.05, dp.any_pure(2.0))
        stated = dp.guarantee([(one, 20)], 1e-4)
        assert (facts["epsilon"], facts["delta"]) == (stated.epsilon.upper, 1e-4)
        assert facts["trust"]["otherwise"]["epsilon"] == stated.local.epsilon
    assert facts["adjacency"] == "replace one client" and facts["unit"].startswith("one client")
    assert set(NOT_COVERED) <= set(facts["not_covered"])


def test_the_certificate_beside_a_page_is_proved_by_the_checker(handed: Path) -> None:
    pytest.importorskip("flint", reason="the checker needs python-flint")
    proof = handed.with_suffix(".certificate.json")
    done = subprocess.run(
        [sys.executable, ROOT / "verify" / "check.py", proof], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_schema_refuses_a_card_that_promises_without_trust(handed: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema comes with the extra dev")
    facts, schema = checked(handed.with_suffix(".card.json")), json.loads(SCHEMA.read_text())
    for spoiled in ({"trust": None}, {"epsilon": -1}, {"delta": "small"}, {"not_covered": []}, {"more": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**facts, **spoiled}, schema)


def test_the_lower_bound_stands_on_the_page_of_epsilon(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    run_cli(*COMMANDS["epsilon"], "--out", str(path))
    one = dp.CheckInRound(2000, 0.05, dp.any_pure(2.0))
    assert rounded_down(dp.lower_bound([(one, 20)], 1e-4).epsilon.lower) in path.read_text(encoding="utf-8")


def test_a_guarantee_hands_itself_over(tmp_path: Path) -> None:
    one = dp.CheckInRound(2000, 0.05, dp.any_pure(2.0))
    stated = dp.guarantee([(one, 20)], 1e-4)
    stated.report(tmp_path / "mine.html", population=2000, rounds=20)
    facts = checked(tmp_path / "mine.card.json")
    assert facts["certificate"] == "mine.certificate.json" and (tmp_path / facts["certificate"]).exists()
    read = dp.Guarantee.from_json(json.dumps(stated.to_json()))
    read.report(tmp_path / "read.html")  # it knows no run any more
    assert checked(tmp_path / "read.card.json")["certificate"] is None
    assert "none: no certificate" in (tmp_path / "read.html").read_text(encoding="utf-8")


def test_what_is_not_finite_is_not_called_certified(tmp_path: Path) -> None:
    local = dp.LocalGuarantee(2.0, 0.0, float("inf"), 5)
    nothing = dp.Guarantee(dp.Bracket(0.0, float("inf")), 1e-5, dp.Adjacency.REPLACE_ONE, ("x",), (), local)
    nothing.report(tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert 'class="chip bad">no guarantee' in text and ">certified<" not in text
    assert privacy_card("run", nothing, {})["epsilon"] is None
    assert checked(tmp_path / "a.card.json")["trust"]["otherwise"]["epsilon"] is None


@pytest.mark.parametrize("name", ["report.pdf", "."])
def test_only_a_page_is_written(name: str, tmp_path: Path) -> None:
    said = run_cli(*COMMANDS["epsilon"], "--out", str(tmp_path / name), code=2)
    assert "--out" in said and "file.html" in said
    assert not list(tmp_path.iterdir())


def test_a_survey_has_a_card(tmp_path: Path) -> None:
    table = tmp_path / "a.csv"
    table.write_text("a\n" + "yes\nno\n" * 100)
    asked = ("survey", "run", "count", "--data", table, "--column", "a", "--out", tmp_path / "o", "--rounds", "1")
    run_cli(*map(str, asked))
    facts = checked(tmp_path / "o" / CARD)
    assert facts["subject"] == "survey" and facts["run"]["question"] == "count"
    assert f'href="{CARD}"' in (tmp_path / "o" / "report.html").read_text(encoding="utf-8")


@pytest.mark.browser
def test_pages_fit_on_two_sheets(handed: Path) -> None:
    """A4 as Chromium prints it."""
    api = pytest.importorskip("playwright.sync_api", reason="a browser is needed")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("no Chromium")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        sheet = browser.new_page()
        sheet.goto(handed.as_uri())
        printed = sheet.pdf(prefer_css_page_size=True)
        browser.close()
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 2


def test_titles_name_what_the_run_is() -> None:
    sweep = dp.epsilon(10_000, 0.01, 2.0, rounds=[10, 100], delta=1e-4)
    assert sweep.about == "Shuffled check-in, n = 10,000, rate 0.01, ε₀ = 2, δ = 0.0001"
    assert "rounds" not in in_words("x", {"rounds": 5}, without="rounds")


def test_parameters_are_checked_before_anything_is_computed(tmp_path: Path) -> None:
    from dpcheckin.notebook.pages import check_page

    with pytest.raises(InvalidParameter):
        check_page(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(InvalidParameter):
        check_page(tmp_path / "file" / "report.html")
    check_page(tmp_path / "new" / "folder" / "report.html")  # is made when there is something to write


def test_a_guarantee_makes_the_folder_of_its_page(tmp_path: Path) -> None:
    stated = dp.guarantee([(dp.CheckInRound(2000, 0.05, dp.any_pure(2.0)), 20)], delta=1e-4)
    stated.report(tmp_path / "for" / "them" / "report.html")
    assert "certified" in (tmp_path / "for" / "them" / "report.html").read_text(encoding="utf-8")
