"""The page of bounds is what the catalogue says."""

from __future__ import annotations

from pathlib import Path

from dpcheckin.papers.bounds_page import page


def test_the_page_of_bounds_is_up_to_date() -> None:
    """docs/bounds.md is what the catalogue says."""
    written = (Path(__file__).parents[2] / "docs" / "bounds.md").read_text(encoding="utf-8")
    assert written == page()
