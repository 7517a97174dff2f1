"""Quick figures are guarantees too: never below the truth, and not far above it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcheckin.accounting import (
    CheckInRound,
    DistributedRound,
    Round,
    ShuffleRound,
    SubsampleRound,
    WindowRound,
    any_pure,
    binary_response,
    compose,
    gaussian,
    laplace,
    lower_bound,
)
from dpcheckin.accounting.composition.preview import CoarseRounds, coarse_epsilon, rough_epsilon
from dpcheckin.errors import InvalidParameter


@pytest.mark.parametrize(
    ("one", "rounds", "looser"),
    [
        (CheckInRound(60_000, 1 / 30, any_pure(2.0)), 6_000, 1.01),
        (CheckInRound(10**9, 0.001, any_pure(4.0)), 10_000, 1.01),
        (CheckInRound(10, 0.3, any_pure(3.0)), 10, 1.01),
        (CheckInRound(10_000, 0.0422, any_pure(2.0)), 100, 1.01),
        (CheckInRound(10**6, 0.01, any_pure(2.0), colluding=0.1, dropout=0.2), 1_000, 1.01),
        (SubsampleRound(10_000, 500, any_pure(2.0), colluding=0.1), 100, 1.02),
        (ShuffleRound(100_000, any_pure(2.0)), 1, 1.01),
        (CheckInRound(60_000, 0.1, laplace(2.0).without_types()), 1_000, 1.02),
        (CheckInRound(60_000, 0.1, gaussian(2.0).without_types()), 1_000, 1.02),
        # typed sums of noisy reports take longer: the quick figure is that of the worst law
        (CheckInRound(60_000, 0.1, laplace(2.0)), 1_000, 1.37),
        (CheckInRound(60_000, 0.1, gaussian(2.0)), 1_000, 1.33),
    ],
    ids=repr,
)
def test_a_quick_figure_lies_just_above_what_the_theorem_gives(one: Round, rounds: int, looser: float) -> None:
    exact = compose([(one, rounds)]).epsilon(1e-5)
    quick = coarse_epsilon(one, rounds, 1e-5)
    assert exact.lower <= quick <= looser * exact.upper


@given(
    population=st.integers(2, 3_000),
    rate=st.floats(1e-3, 0.95),
    local_epsilon=st.floats(0.05, 5.0),
    rounds=st.integers(1, 200),
    log_delta=st.floats(-10.0, -2.0),
)
@settings(max_examples=30, deadline=None)
def test_it_is_never_below_the_certified_lower_end(
    population: int, rate: float, local_epsilon: float, rounds: int, log_delta: float
) -> None:
    one, delta = CheckInRound(population, rate, any_pure(local_epsilon)), 10.0**log_delta
    quick = coarse_epsilon(one, rounds, delta)
    assert quick >= compose([(one, rounds)]).epsilon(delta).lower


def test_many_numbers_of_rounds_from_one_curve_rise_and_are_sound() -> None:
    one = CheckInRound(10_000, 0.02, any_pure(1.5))
    counts = [0, 1, 10, 100, 1_000]
    rounds = CoarseRounds(one, most=1_000, smallest=1e-7)
    together = [rounds.epsilon(count, 1e-6) for count in counts]
    assert together[0] == 0.0
    assert together == sorted(together)
    for count, found in zip(counts[1:], together[1:], strict=True):
        assert found >= compose([(one, count)]).epsilon(1e-6).lower


def test_it_refuses_what_the_theorem_does_not_cover() -> None:
    with pytest.raises(InvalidParameter, match="count = 11"):
        CoarseRounds(ShuffleRound(1_000, any_pure(1.0)), 10, 1e-5).epsilon(11, 1e-5)
    with pytest.raises(InvalidParameter, match="delta = 1e-06"):
        CoarseRounds(ShuffleRound(1_000, any_pure(1.0)), 10, 1e-5).epsilon(10, 1e-6)


# --- sums, and the figure that comes first ---------------------------------------------------


@pytest.mark.parametrize(
    ("population", "rate", "noise", "rounds", "delta"),
    [(801, 0.014, 1.5, 1_046, 1e-6), (10**9, 0.01, 3.0, 241, 2e-6), (33, 1e-3, 6.0, 20, 1e-7)],
)
def test_quick_sums_lie_just_above_the_certified_figure(population, rate, noise, rounds, delta):
    one = DistributedRound(population, rate, noise)
    fast = CoarseRounds(one, 10_000, 1e-8).epsilon(rounds, delta)
    sure = compose([(one, rounds)]).epsilon(delta)
    assert sure.lower <= fast and sure.upper * 0.999 <= fast <= sure.upper * 1.02


ROUGH = [
    (CheckInRound(60_000, 0.03, any_pure(2.0)), 100),
    (CheckInRound(60_000, 0.5, laplace(2.0)), 100),
    (CheckInRound(10_000, 0.05, gaussian(3.0)), 50),
    (CheckInRound(2_000, 0.1, laplace(1.0), colluding=0.2, dropout=0.3), 10),
    (SubsampleRound(5_000, 300, binary_response(2.0), colluding=0.3), 20),
    (SubsampleRound(400, 30, gaussian(3.0), colluding=0.3), 5),
    (WindowRound(100, any_pure(2.0), others=5_000), 3),
    (WindowRound(100, gaussian(3.0), others=5_000), 3),
    (WindowRound(50, any_pure(1.0), check_in_probability=0.5), 3),
    (ShuffleRound(1_000, any_pure(1.0)), 4),
]


@pytest.mark.parametrize(("one", "rounds"), ROUGH, ids=lambda x: type(x).__name__)
def test_the_figure_that_comes_first_is_not_below_what_is_proved_impossible(one, rounds):
    """And where the rest of the theorem is the same, not below the certified one either."""
    rough = rough_epsilon(one, rounds, 1e-6)
    assert rough >= lower_bound([(one, rounds)], 1e-6).epsilon.lower > 0.0
    if not isinstance(one, WindowRound):
        assert rough >= compose([(one, rounds)]).epsilon(1e-6).lower


def test_crowded_windows_are_priced_by_their_crowd():
    """What the whole law of the loads gives and what the emptiest slot gives meet for crowds."""
    one = WindowRound(40, any_pure(0.3), others=10**8)
    sure = compose([(one, 800)]).epsilon(1e-8).upper
    assert sure <= rough_epsilon(one, 800, 1e-8) <= 1.02 * sure < 1e-5


def test_a_composition_that_spreads_too_far_is_put_on_a_wider_grid():
    one = WindowRound(4, gaussian(7.834), others=21_639_888)
    rounds = CoarseRounds(one, most=10_000, smallest=1e-9)
    assert 0.0 <= rounds.epsilon(2_123, 1.47e-9) <= rounds.epsilon(2_200, 1.47e-9)
