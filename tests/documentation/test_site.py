"""The site builds with warnings as errors, holds every page, and fetches nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from documentation.blocks import PAGES, ROOT


def test_every_page_is_in_the_site(site: Path) -> None:
    for page in PAGES:
        if page.parent not in (ROOT, ROOT / "docs" / "preprint"):  # which is a paper
            place = page.relative_to(ROOT / "docs").with_suffix(".html")
            assert (site / place).is_file(), f"{place}: give it a place in mkdocs.yml"


FETCHING = re.compile(
    r"<(?:script|img|iframe|source|object)\b[^>]*(?:src|data)=[\"']?(?:https?:)?//[^>]*>"
    r"|<link\b(?=[^>]*rel=[\"']?(?:stylesheet|preconnect|preload|icon))"
    r"[^>]*href=[\"']?(?:https?:)?//[^>]*>"
    r"|(?:@import|url\()\s*[\"']?(?:https?:)?//[^)]*"
)


def test_no_page_fetches_anything_from_elsewhere(site: Path) -> None:
    """Scripts, styles, pictures and fonts come from the site itself; links may lead out."""
    for part in [*site.rglob("*.html"), *site.rglob("*.css")]:
        assert not FETCHING.findall(part.read_text(encoding="utf-8")), part.name


@pytest.mark.parametrize(
    "foreign",
    [
        '<script src="https://unpkg.com/x.js">',
        '<link href="https://fonts.gstatic.com" rel="preconnect" crossorigin>',
        "<img alt='x' src='//elsewhere/x.png'>",
        "@import 'https://fonts.example/x.css'",
        "src: url(https://fonts.example/x.woff2)",
    ],
)
def test_foreign_parts_would_be_noticed(foreign: str) -> None:
    assert FETCHING.search(foreign)
    assert not FETCHING.search('<a href="https://arxiv.org/abs/2206.03151v2">P1</a>')


def test_the_navigation_names_everything_once() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    entries = re.findall(r"^ *- (.+?):(?: (\S+\.(?:md|ipynb)))?$", text, re.MULTILINE)
    titles = [title.lower() for title, _ in entries]
    pages = [page for _, page in entries if page]
    assert len(pages) > 25
    assert len(set(titles)) == len(titles) and len(set(pages)) == len(pages)


def test_the_home_page_explains_before_it_shows() -> None:
    home = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    first = home.index("\n## ")
    assert home.index("**A client flips a coin**") < home.index("**A shuffler**") < first
    assert first < home.index("](images/planner.png)")
    assert len(home[:first].split()) < 330  # one screen
