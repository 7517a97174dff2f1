"""The figures the accountant is held to: theory rows, tightness, large fleets, orderings."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worst_law import worst_law

from dpcheckin.accounting import (
    CheckInRound,
    Round,
    ShuffleRound,
    SubsampleRound,
    any_pure,
    compose,
    dary_response,
    gaussian,
    laplace,
    lower_bound,
)

ROWS = [
    (10**4, 1e-2, 2.0, 100, 1e-4, 0.06950, 0.0684),
    (10**4, 1e-3, 2.0, 100, 1e-4, 0.01903, 0.0177),
    (10**4, 1e-2, 8.0, 100, 1e-4, 2.7628, 2.755),
    (10**4, 1e-3, 8.0, 100, 1e-4, 0.92401, 0.922),
    (6 * 10**4, 1 / 30, 2.0, 6000, 1e-5, 0.60890, 0.608),
]


@pytest.mark.parametrize(("n", "rate", "local", "rounds", "delta", "upper", "lower"), ROWS)
def test_composed_rows(
    n: int, rate: float, local: float, rounds: int, delta: float, upper: float, lower: float
) -> None:
    """Guarantees to 0.1%, lower bounds at least as good as known, and the gap between them."""
    run = [(CheckInRound(n, rate, any_pure(local)), rounds)]
    got = compose(run).epsilon(delta)
    assert got.upper == pytest.approx(upper, rel=1e-3)
    before = compose([(CheckInRound(n, rate, worst_law(any_pure(local))), rounds)]).epsilon(delta)
    assert before.relative_width < 1e-3
    assert got.upper <= before.upper
    least = lower_bound(run, delta).epsilon.lower
    assert lower <= least <= got.upper
    assert got.upper / least <= (1.10 if local == 2.0 else 1.01)


def test_numerical_width_of_the_long_run() -> None:
    run = compose([(CheckInRound(60_000, 1 / 30, worst_law(any_pure(2.0))), 6000)])
    assert run.epsilon(1e-5).relative_width <= 1e-4
    typed = compose([(CheckInRound(60_000, 1 / 30, any_pure(2.0)), 6000)]).epsilon(1e-5)
    assert typed.upper <= 0.6096
    assert typed.relative_width <= 2e-3  # the theorem's gap included


def test_the_run_of_the_first_paper() -> None:
    run = compose([(CheckInRound(60_000, 0.1, any_pure(2.0)), 6800)])
    assert run.epsilon(1 / 60_000).upper == pytest.approx(1.1504, abs=0.002)


@pytest.mark.parametrize("symbols", [3, 10])
def test_response_meets_its_own_lower_bound(symbols: int) -> None:
    run = [(CheckInRound(60_000, 1 / 30, dary_response(2.0, symbols)), 6000)]
    assert compose(run).epsilon(1e-5).upper / lower_bound(run, 1e-5).epsilon.lower <= 1.02


@pytest.mark.parametrize(
    ("n", "rate", "rounds", "value", "slack"), [(60_000, 0.1, 6800, 0.656, 1e-3), (10_000, 0.05, 200, 0.1745, 3e-4)]
)
def test_gaussian_check_in(n: int, rate: float, rounds: int, value: float, slack: float) -> None:
    run = [(CheckInRound(n, rate, gaussian(2.0).without_types()), rounds)]
    got = compose(run).epsilon(1e-5)
    assert got.upper == pytest.approx(value, abs=slack)
    assert lower_bound(run, 1e-5).epsilon.lower <= got.upper


def gdp_epsilon(mu: float, delta: float) -> float:
    from scipy import optimize
    from scipy.stats import norm

    def excess(e: float) -> float:
        return float(norm.cdf(mu / 2 - e / mu) - math.exp(e) * norm.cdf(-mu / 2 - e / mu)) - delta

    return float(optimize.brentq(excess, 0.0, 60.0, xtol=1e-14))


@pytest.mark.parametrize("pair", [worst_law(any_pure(1.0)), gaussian(4.0).without_types()])
def test_many_clients_approach_the_gaussian_limit(pair: object) -> None:
    """mu^2 = 2 * rate * E[(W-1)+^2] * rounds / n; the guarantee falls towards that curve."""
    ratios = []
    for n in (10**4, 10**5, 10**6):
        one = CheckInRound(n, 0.1, pair)  # type: ignore[arg-type]
        rounds = n // 1000
        mu = math.sqrt(2 * 0.1 * one.pair.second_moment * rounds / n)
        ratios.append(compose([(one, rounds)]).epsilon(1e-6).upper / gdp_epsilon(mu, 1e-6))
    assert 0.999 < ratios[-1] < 1.01
    assert abs(ratios[-1] - 1) <= abs(ratios[0] - 1) + 1e-3


rounds_of_any_kind = st.builds(
    lambda n, kind, rate, local: _a_round(n, kind, rate, local),
    st.sampled_from([1, 2, 3, 17, 400, 30_000]),
    st.sampled_from(["check-in", "subsample", "shuffle"]),
    st.sampled_from([1e-6, 0.003, 0.1, 0.7]),
    st.sampled_from([0.05, 0.7, 2.0, 6.0]),
)


def _a_round(n: int, kind: str, rate: float, local: float) -> Round:
    pair = any_pure(local)
    if kind == "check-in":
        return CheckInRound(n, rate, pair)
    if kind == "subsample":
        return SubsampleRound(n, max(1, int(n * rate)), pair)
    return ShuffleRound(n, pair)


@settings(max_examples=20, deadline=None)
@given(rounds_of_any_kind, st.sampled_from([1, 2, 30]), st.sampled_from([1e-2, 1e-6, 1e-12]))
def test_order(one: Round, count: int, delta: float) -> None:
    """lower bound <= numerical lower <= upper <= local; more rounds cost more, more delta less."""
    run = [(one, count)]
    got = compose(run).epsilon(delta)
    assert lower_bound(run, delta).epsilon.lower <= got.upper * (1 + 1e-9) + 1e-12
    assert got.lower <= got.upper <= count * one.pair.local_epsilon
    assert compose([(one, count + 1)]).epsilon(delta).upper >= got.lower
    assert compose(run).epsilon(min(10 * delta, 0.5)).lower <= got.upper
    back = compose(run).delta(got.upper)
    assert back.lower <= delta * (1 + 1e-6)


@settings(max_examples=8, deadline=None)
@given(st.sampled_from([3, 50, 2000, 10**6]), st.sampled_from([0.01, 0.3]), st.sampled_from([1.0, 4.0]))
def test_more_clients_and_lower_rates_help(n: int, rate: float, local: float) -> None:
    pair = any_pure(local)
    here = compose([(CheckInRound(n, rate, pair), 20)]).epsilon(1e-6)
    more = compose([(CheckInRound(2 * n, rate, pair), 20)]).epsilon(1e-6)
    rarer = compose([(CheckInRound(n, rate / 2, pair), 20)]).epsilon(1e-6)
    assert more.lower <= here.upper
    assert rarer.lower <= here.upper


def test_far_corners_answer_or_refuse() -> None:
    for n in (1, 2, 10**9):
        for rate in (0.0, 1e-9, 1.0):
            for local in (0.01, 20.0):
                for delta in (1e-2, 1e-15):
                    got = compose([(CheckInRound(n, rate, any_pure(local)), 3)]).epsilon(delta)
                    assert 0.0 <= got.lower <= got.upper <= 3 * local


def test_a_vanishing_rate_is_still_charged() -> None:
    got = compose([(CheckInRound(2, 1e-300, any_pure(1.0)), 1)]).delta(0.0)
    assert 0.0 == got.lower < got.upper <= 1e-300


def test_a_million_rounds_at_tiny_delta() -> None:
    got = compose([(CheckInRound(10**5, 0.01, any_pure(2.0)), 10**6)]).epsilon(1e-15)
    assert got.relative_width < 4e-3


def test_more_is_never_claimed_for_a_special_randomizer_than_for_any() -> None:
    for pair in (dary_response(2.0, 5), laplace(2.0)):
        special = compose([(CheckInRound(5000, 0.05, pair), 50)]).epsilon(1e-6)
        general = compose([(CheckInRound(5000, 0.05, any_pure(2.0)), 50)]).epsilon(1e-6)
        assert special.upper <= general.upper
