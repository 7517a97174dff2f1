"""The site builds with warnings as errors, holds every page, and fetches nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from documentation.blocks import PAGES, ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; a warning of any kind fails the build."""
    out = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(out)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return out


def test_every_page_is_in_the_site(site: Path) -> None:
    for page in PAGES:
        if page.parent != ROOT:
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
