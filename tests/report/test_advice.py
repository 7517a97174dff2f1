"""Advice: every randomizer really has the error it was tuned to, and the order is by epsilon."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers import LdpSgd, PrivUnit
from dpcheckin.report.advice import _tuned, advise


@pytest.mark.parametrize("family", [LdpSgd, PrivUnit])
def test_tuning_meets_the_error(family: type) -> None:
    """Within a relative 1e-9 from below."""
    tuned = _tuned(family, 500.0, 50)
    assert tuned is not None
    vector = np.eye(1, 50)
    assert tuned.total_variance(vector)[0] == pytest.approx(500.0, rel=1e-6)


def test_privunit_beats_the_hemisphere_and_the_order_is_right() -> None:
    """Same error, smaller epsilon; hopeless families are listed last with a reason."""
    lines = advise(400.0, 100, 5_000, 0.1, 10, 1e-5)
    epsilons = [x.epsilon for x in lines if x.epsilon is not None]
    assert epsilons == sorted(epsilons) and len(epsilons) >= 2
    by_name = {x.randomizer.split(" ")[0].split(",")[0]: x.epsilon for x in lines}
    assert by_name["PrivUnit"] <= by_name["LDP-SGD"]
    hopeless = advise(1.0, 100, 5_000, 0.1, 10, 1e-5)
    assert any(x.epsilon is None and x.note for x in hopeless)
    with pytest.raises(InvalidParameter, match="variance"):
        advise(math.nan, 100, 5_000, 0.1, 10, 1e-5)
