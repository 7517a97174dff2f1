"""docs/errata.md runs: every counterexample is checked."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "errata.md"


def test_every_counterexample_on_the_page_holds() -> None:
    """At least thirty statements, none of them failing."""
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failures, run = doctest.testfile(str(PAGE), module_relative=False, optionflags=options)
    assert run >= 30
    assert failures == 0
