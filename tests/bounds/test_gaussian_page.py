"""The table of docs/gaussian-reports.md is what the commands print (its blocks run elsewhere)."""

from __future__ import annotations

import pytest
from dpcheckin.accounting.gaussian_published import check_in_alone, clones_check_in, p4_theorem_3

RUN = (10_000, 0.05, 2.0, 200, 1e-5)


def test_the_other_rows() -> None:
    """Check-in alone, clones and P4's claim."""
    assert check_in_alone(*RUN).upper == pytest.approx(5.42, abs=0.01)
    assert clones_check_in(*RUN) == pytest.approx(994, abs=1)
    assert p4_theorem_3(*RUN) == pytest.approx(1.58, abs=0.01)
