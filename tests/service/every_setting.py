"""The blocks of settings on a page of the documentation."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def blocks_of(page: str) -> list[str]:
    """All blocks of TOML on a page, with the line break before their first line."""
    return re.findall(r"```toml(\n.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.S)
