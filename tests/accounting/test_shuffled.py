"""Shuffled rounds: their conditions, unequal clients, colluders, and a crowd of one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpcheckin.accounting import (
    Bracket,
    CheckInRound,
    LocalRound,
    Round,
    ShuffleRound,
    SubsampleRound,
    any_pure,
    approximate,
    compose,
    dary_response,
    from_profile,
    gaussian,
    laplace,
)


def one_round(one: Round, epsilon: float) -> Bracket:
    return compose([(one, 1)]).delta(epsilon)


@pytest.mark.parametrize("pair", [gaussian(2.0), laplace(1.0), approximate(1.0, 1e-6)])
def test_full_shuffles_are_the_limit_of_all_that_leave_somebody_out(pair: Any) -> None:
    full = one_round(ShuffleRound(300, pair), 0.1).upper
    for one in (CheckInRound(300, 1.0, pair), SubsampleRound(300, 300, pair)):
        assert one_round(one, 0.1).upper == full
    for one in (CheckInRound(300, 0.9999, pair), SubsampleRound(300, 299, pair)):
        assert one_round(one, 0.1).upper <= full * 1.02
    assert 0 < full < one_round(CheckInRound(300, 1.0, pair, dropout=0.1), 0.1).upper


def test_a_given_profile_is_as_good_as_the_named_one() -> None:
    named = laplace(1.0).without_types()
    given = from_profile(named.profile, local_epsilon=1.0)
    first, second = (one_round(CheckInRound(500, 0.1, pair), 0.05) for pair in (named, given))
    assert first.upper == pytest.approx(second.upper, rel=1e-9)


def test_uneven_rates() -> None:
    """Sound where a plain rate is not: the example of clients dropping out at different rates."""
    pair = dary_response(2.0, 3)
    assert one_round(CheckInRound(5, 0.2, pair), 1.0).upper < 0.087
    uneven = CheckInRound(5, 0.2, pair, lowest_rate=0.02)
    assert one_round(uneven, 1.0).upper >= 0.087
    dropping = CheckInRound(5, 0.2, pair, dropout=0.9)
    assert one_round(dropping, 1.0).upper == pytest.approx(one_round(uneven, 1.0).upper)
    assert any("between" in said for said in uneven.assumptions())


def test_colluders_shrink_the_crowd() -> None:
    pair = any_pure(2.0)
    with_colluders = one_round(CheckInRound(1000, 0.1, pair, colluding=0.25), 0.1)
    assert with_colluders.upper == pytest.approx(one_round(CheckInRound(750, 0.1, pair), 0.1).upper)
    fixed = one_round(SubsampleRound(1000, 100, pair, colluding=0.25), 0.1).upper
    assert one_round(SubsampleRound(750, 60, pair), 0.1).upper < fixed
    assert fixed < one_round(SubsampleRound(750, 95, pair), 0.1).upper
    assert ShuffleRound(1000, pair, colluding=0.5).honest == 500
    tiny = SubsampleRound(6, 5, approximate(1.0, 1e-3), colluding=0.5)
    assert one_round(tiny, 0.5).upper >= one_round(SubsampleRound(6, 5, any_pure(1.0)), 0.5).lower


def test_one_client_has_only_its_local_guarantee() -> None:
    for pair in (any_pure(1.0), gaussian(2.0)):
        one = one_round(CheckInRound(1, 0.3, pair), 0.2).upper
        assert one == pytest.approx(0.3 * float(pair.profile(np.array([math.exp(0.2)]))[0]))


def test_heavy_tails_fall_back_to_what_holds_without_shuffling() -> None:
    local = compose([(LocalRound(gaussian(0.2), 0.01), 3)]).epsilon(1e-6)
    got = compose([(CheckInRound(10**6, 0.01, gaussian(0.2)), 3)]).epsilon(1e-6)
    assert got.upper <= local.upper * 1.02
