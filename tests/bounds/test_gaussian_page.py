"""The table of docs/gaussian-reports.md is what the commands print (its blocks run elsewhere)."""

from __future__ import annotations

import pytest

from dpcheckin.accounting.published.check_in_alone import gaussian_epsilon
from dpcheckin.accounting.published.clones import gaussian_check_in
from dpcheckin.accounting.published.p4 import theorem_3

RUN = (10_000, 0.05, 2.0, 200, 1e-5)


def test_the_other_rows() -> None:
    """Check-in alone, clones and P4's claim."""
    assert gaussian_epsilon(*RUN).upper == pytest.approx(5.42, abs=0.01)
    assert gaussian_check_in(*RUN) == pytest.approx(994, abs=1)
    assert theorem_3(*RUN) == pytest.approx(1.58, abs=0.01)
