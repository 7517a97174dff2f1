"""The Rényi curve of the theorem: looser than the loss distribution, and for pure reports only."""

from __future__ import annotations

import pytest

from dpcheckin.accounting import CheckInRound, any_pure, compose, gaussian
from dpcheckin.accounting.bridge import epsilon_by_renyi
from dpcheckin.errors import OutsideTheorem


def test_renyi_is_looser_but_near() -> None:
    run = [(CheckInRound(60_000, 0.1, any_pure(2.0)), 6800)]
    exact = compose(run).epsilon(1e-5)
    renyi = epsilon_by_renyi(run, 1e-5)
    assert exact.lower <= renyi <= 1.2 * exact.upper


def test_renyi_needs_a_pure_randomizer() -> None:
    with pytest.raises(OutsideTheorem, match="Renyi"):
        epsilon_by_renyi([(CheckInRound(100, 0.1, gaussian(2.0)), 1)], 1e-5)
