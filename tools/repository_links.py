"""The site is the folder docs/ alone: what a page links in the rest of the repository is named there instead."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1] / "docs"
LINK = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+)([^)#\s]+)\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """`[text](../tests/one.py)` becomes the text and the name of the file."""
    here = (DOCS / page.file.src_uri).parent

    def named(link: re.Match[str]) -> str:
        place = (here / link[2] / link[3]).resolve()
        return link[0] if place.is_relative_to(DOCS) or not place.exists() else f"{link[1]} (`{link[3]}`)"

    return LINK.sub(named, markdown)
