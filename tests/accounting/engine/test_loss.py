"""Loss distributions: convex curves, and mass that does not add up."""

from __future__ import annotations

import numpy as np
import pytest

from dpcheckin.accounting.engine import loss
from dpcheckin.errors import NumericalFailure


def test_convex_minorant() -> None:
    x = np.array([0.0, 1.0, 2.0, 3.0])
    y = np.array([3.0, 2.5, 1.0, 0.5])
    assert loss.convex_minorant(x, y) == pytest.approx([3.0, 2.0, 1.0, 0.5])
    assert loss.convex_minorant(x, x**2) == pytest.approx(x**2)


def test_too_much_mass_is_noticed() -> None:
    broken = loss.LossDistribution(0.1, np.array([0.9]), np.array([0.9]), 0.0)
    with pytest.raises(NumericalFailure, match="mass at zero"):
        broken.masses()


def test_curves_reach_losses_whose_exponentials_underflow() -> None:
    """Against the definition, term by term: losses up to 3,000, where e^-loss is zero."""
    step, random = 2.5, np.random.default_rng(4)
    masses = random.random(1200) / 1200
    found = loss.curve_of_masses(masses, step)
    losses = step * np.arange(1, masses.size + 1)
    for i in (0, 1, 119, 120, 121, 600, 1198, 1199, 1200):
        over = losses > i * step
        exact = float(np.sum(masses[over] * -np.expm1(i * step - losses[over])))
        assert found[i] == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize(
    ("count", "step"), [(1, 1.0), (10, 3.0), (50, 40.0), (3_000, 0.5), (20_000, 0.01), (9_000, 1e-9)]
)
def test_the_curve_of_masses_is_their_sum(count: int, step: float) -> None:
    """However wide the steps are: sums that share their exponentials are those that do not."""
    masses = np.random.default_rng(3).exponential(size=count) * np.exp(-0.3 * np.arange(count) * step)
    found = loss.curve_of_masses(masses, step)
    for i in (0, count // 3, count - 1):
        gaps = np.arange(1, count - i + 1) * step  # of the losses (i + 1) step, (i + 2) step, ... to i step
        assert found[i] == pytest.approx(float(masses[i:] @ -np.expm1(-gaps)), rel=1e-11)
    assert found[count] == 0.0
