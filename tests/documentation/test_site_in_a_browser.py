"""Every page of the site in a real browser, wide and narrow: nothing runs out of the page, every
formula is rendered, every link leads somewhere and nothing complains."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from documentation.blocks import ROOT

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
WIDTHS = (1440, 390)
PATIENCE = 300_000  # milliseconds; a busy machine is no failure
NEVER_SIDEWAYS = ("cli.html",)  # elsewhere a line of a program may be longer than a phone is wide
LOOK = (Path(__file__).parent / "look.js").read_text(encoding="utf-8").strip()


@pytest.fixture(scope="module")
def page() -> Iterator[sync_api.Page]:
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if path is None:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS, timeout=PATIENCE)
        opened = browser.new_page()
        opened.set_default_timeout(PATIENCE)
        yield opened
        browser.close()


def broken(links: list[str], site: Path, ids: dict[Path, set[str]]) -> list[str]:
    """Links within the site whose file or place is not there."""
    bad = []
    for link in links:
        parts = urlsplit(link)
        if parts.scheme != "file":
            continue
        file = Path(unquote(parts.path))
        place = unquote(parts.fragment)
        there = file.is_relative_to(site) and file.is_file()
        if not there or (place and place not in ids.get(file, {place})):
            bad.append(link)
    return bad


def test_every_page_wide_and_narrow(site: Path, page: sync_api.Page) -> None:
    complaints: list[str] = []
    page.on("console", lambda said: said.type == "error" and complaints.append(said.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    found: dict[str, object] = {}
    ids: dict[Path, set[str]] = {}
    links: dict[Path, list[str]] = {}
    files = sorted(file for file in site.rglob("*.html") if file.name != "404.html")
    for file in files:
        page.set_viewport_size({"width": WIDTHS[0], "height": 900})
        page.goto(file.as_uri())
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            seen = page.evaluate(f"({LOOK})()")
            name = f"{file.relative_to(site)} at {width}"
            for what in ("overflow", "formulas", "torn", "sideways"):
                if seen[what] and (what != "sideways" or file.name in NEVER_SIDEWAYS):
                    found[f"{name}: {what}"] = seen[what]
        ids[file], links[file] = set(seen["ids"]), seen["links"]
    for file, all_links in links.items():
        if bad := broken(all_links, site, ids):
            found[f"{file.relative_to(site)}: links"] = bad
    assert len(files) > 25
    assert (found, complaints) == ({}, [])


def test_what_is_wrong_would_be_noticed(tmp_path: Path, page: sync_api.Page) -> None:
    wrong = tmp_path / "wrong.html"
    wrong.write_text(
        "<!doctype html><meta charset=utf-8><div class=md-content><article>"
        "<pre style='overflow:auto;width:200px'>a line that is much too long for its box</pre>"
        "<p style='width:3000px' id=wide>H_α and e^{x}</p><p>$x$</p><p><code>a_b</code></p>"
        "<table style='width:80px;display:block'><tr><td style='word-break:break-all'>"
        "extraordinary</td></tr></table><a href='gone.html'>x</a><a href='#wide'>y</a>"
        "</article></div>"
    )
    page.set_viewport_size({"width": 390, "height": 900})
    page.goto(wrong.as_uri())
    seen = page.evaluate(f"({LOOK})()")
    assert any("wide" in text for text in seen["overflow"])
    assert seen["sideways"] == ["a line that is much too long for its box"]
    assert len(seen["formulas"]) == 2  # what stands in code is no formula
    assert seen["torn"] == ["extraordinary"]
    assert broken(seen["links"], tmp_path, {wrong: set(seen["ids"])}) == [(tmp_path / "gone.html").as_uri()]


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 600


def test_search_works_where_a_page_is_opened_as_a_file(site: Path, page: sync_api.Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    for place in ("index.html", "tutorials/survey.html"):
        page.goto((site / place).as_uri())
        page.click(".md-search__input")
        page.keyboard.type("colluding clients")
        page.wait_for_selector(".md-search-result__link")
        found = page.locator(".md-search-result__link").first.get_attribute("href") or ""
        assert found.startswith("file:") and (site / Path(urlsplit(found).path).name).is_file()
