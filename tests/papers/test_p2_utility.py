"""P2's dummies and risk bounds."""

from __future__ import annotations

import math
from itertools import product

import pytest

from dpcheckin.errors import OutsideTheorem
from dpcheckin.papers.convex_task import ConvexTask
from dpcheckin.papers.p2 import utility


def test_dummy_updates() -> None:
    """Propositions 3.4 and 4.4, against simulation-free counting; the printed 3.4 is absurd."""
    n, m, p0 = 6, 3, 0.7
    exact = sum(
        math.prod(p0 / m if c < m else 1 - p0 for c in choice) * sum(1 for slot in range(m) if slot not in choice)
        for choice in product(range(m + 1), repeat=n)
    )
    assert utility.fixed_window_dummies(n, m, p0) == pytest.approx(exact)
    assert (m * (1 - p0 / m)) ** n > m  # as printed: more dummies than slots
    assert utility.sliding_window_dummies(100, 10) <= 91 / math.e


def test_risk_bounds_move_the_right_way() -> None:
    """More clients, fewer dimensions, less noise: smaller risk."""
    task = ConvexTask(10, diameter=1.0)
    assert utility.averaged_risk(task, 10_000, 400, 1.0) > utility.averaged_risk(task, 10_000, 400, 0.1)
    wider = ConvexTask(40, diameter=1.0)
    assert utility.fixed_window_risk(task, 10_000, 400, 1.0) < utility.fixed_window_risk(wider, 10_000, 400, 1.0)
    smooth = utility.averaged_smooth_risk(task, 10_000, 400, 1.0)
    assert smooth > utility.averaged_smooth_risk(task, 20_000, 400, 1.0)
    with pytest.raises(OutsideTheorem):
        utility.fixed_window_risk(task, 10, 400, 1.0)
