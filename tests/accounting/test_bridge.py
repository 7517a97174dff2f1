"""Our rounds inside dp-accounting's own accountant."""

from __future__ import annotations

import dp_accounting
import pytest

from dpcheckin.accounting import (
    CheckInRound,
    SampledGaussianRound,
    ShuffleRound,
    SkellamRound,
    any_pure,
    averaged_window,
    compose,
    from_atoms,
)
from dpcheckin.accounting.bridge import CheckInEvent, CheckInPLDAccountant, event_distribution
from dpcheckin.errors import OutsideTheorem


def test_composed_by_dp_accounting() -> None:
    one = CheckInRound(1000, 0.1, any_pure(2.0))
    accountant = CheckInPLDAccountant(value_discretization_interval=1e-3)
    accountant.compose(CheckInEvent(one), 50)
    ours = compose([(one, 50)]).epsilon(1e-6)
    theirs = accountant.get_epsilon(1e-6)
    assert ours.lower <= theirs
    assert theirs == pytest.approx(ours.upper, rel=0.02)


def test_mixed_with_another_event() -> None:
    one = CheckInRound(1000, 0.1, any_pure(2.0))
    accountant = CheckInPLDAccountant(value_discretization_interval=1e-3)
    accountant.compose(CheckInEvent(one), 10)
    alone = accountant.get_epsilon(1e-6)
    accountant.compose(dp_accounting.NoOpDpEvent())
    assert accountant.get_epsilon(1e-6) == pytest.approx(alone)
    assert accountant.supports(CheckInEvent(one))


def test_distribution_is_dominating() -> None:
    one = CheckInRound(200, 0.3, any_pure(1.0))
    pld = event_distribution(one, interval=1e-3)
    for epsilon in (0.0, 0.05, 0.2):
        lower = compose([(one, 1)]).delta(epsilon).lower
        assert pld.get_delta_for_epsilon(epsilon) >= lower * (1 - 1e-9)


def test_what_a_round_reserves_is_charged_in_every_event() -> None:
    """Loads that are worse than the window's cap have a probability that nothing hides."""
    window = averaged_window(10_000, 100, any_pure(1.0), load_delta=1e-7)
    assert window.reserved >= 1e-7
    accountant = CheckInPLDAccountant(value_discretization_interval=1e-3)
    accountant.compose(CheckInEvent(window), 3)
    assert accountant.get_delta(50.0) >= 2.9 * window.reserved
    assert accountant.get_epsilon(1e-5) >= compose([(window, 3)]).epsilon(1e-5).lower


@pytest.mark.parametrize("one", [SampledGaussianRound(0.1, 1.0), SkellamRound(1000, 0.1, 100.0, 8.0, 4.0)])
def test_rounds_about_other_neighbours_or_without_distribution_are_refused(one) -> None:
    with pytest.raises(OutsideTheorem):
        event_distribution(one)


def test_a_round_that_gives_inputs_away_has_a_distribution() -> None:
    """Nearly all mass at infinity: composing that with nothing once warned."""
    one = ShuffleRound(6, from_atoms([0.0, 1.0], [0.95, 0.05]))
    assert event_distribution(one, 1e-3).get_delta_for_epsilon(5.0) >= compose(one).delta(5.0).lower
