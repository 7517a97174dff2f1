"""Runs of millions of rounds and more: figures above what is known of them, or one clear line."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpcheckin.accounting import (
    CheckInRound,
    LocalRound,
    ShuffleRound,
    SubsampleRound,
    WindowRound,
    any_pure,
    binary_response,
    compose,
    dary_response,
    gaussian,
    guarantee,
    laplace,
    lower_bound,
)
from dpcheckin.accounting.composition.account import epsilon_by_rounds
from dpcheckin.accounting.engine import compose as engine
from dpcheckin.accounting.rounds.base import Round
from dpcheckin.errors import DpCheckinError
from oracles.long_runs import epsilon_of, laws_of_a_shuffle, laws_of_check_in

DELTA = 1e-6


def mean_loss(e0: float, rounds: int) -> float:
    """Of binary reports that are seen: within a few deviations epsilon is that, in closed form."""
    return rounds * e0 * math.tanh(e0 / 2)


@pytest.mark.parametrize(
    ("one", "rounds", "least", "most"),
    [
        (ShuffleRound(10**6, binary_response(4.0)), 3 * 10**7, 974.0, 1850.0),
        (CheckInRound(10, 0.5, any_pure(4.0)), 10**8, 1.06e8, 1.1e8),
        pytest.param(CheckInRound(10**6, 0.999999, binary_response(0.69)), 10**9, 352.5, 460.0, marks=pytest.mark.slow),
        (LocalRound(binary_response(2.0)), 10**8, mean_loss(2.0, 10**8), 1.5242e8),
        (LocalRound(binary_response(12.0)), 10**7, mean_loss(12.0, 10**7), 1.2e8),
        (LocalRound(binary_response(20.0)), 6 * 10**6, mean_loss(20.0, 6 * 10**6), 1.2e8),
        pytest.param(
            LocalRound(binary_response(0.01)), 10**9, mean_loss(0.01, 10**9), 51_600.0, marks=pytest.mark.slow
        ),
    ],
)
def test_long_runs_were_once_stated_as_one(one: Round, rounds: int, least: float, most: float) -> None:
    """Epsilon came out as 1 where the grid of a stage overflowed."""
    stated = guarantee([(one, rounds)], DELTA)
    assert least < stated.epsilon.upper <= most
    assert stated.local is not None
    assert stated.epsilon.upper <= stated.local.epsilon < math.inf


def test_long_runs_of_normal_reports_are_one_report() -> None:
    """A hundred million reports with noise 1,000 are one with noise 0.1: epsilon from mpmath."""
    truth = 294.171786257645
    found = compose([(LocalRound(gaussian(1000.0)), 10**8)]).epsilon(DELTA)
    assert 0.98 * truth < found.lower <= truth <= found.upper < 1.000001 * truth


def test_profiles_reach_losses_whose_exponentials_overflow() -> None:
    run = compose([(CheckInRound(10, 0.5, any_pure(4.0)), 10_000)])
    profile = run.profile(DELTA)
    assert run.epsilon(DELTA).upper <= profile.epsilons[-1] < 1.001 * run.epsilon(DELTA).upper
    assert np.all(np.diff(profile.deltas) <= 0.0)
    assert profile.deltas[0] > 0.99 > 1.01 * DELTA > profile.deltas[-1]


def test_long_runs_rise_with_every_doubling() -> None:
    counts = [10**6 * 2**i for i in range(1, 4)]
    found = epsilon_by_rounds(CheckInRound(10**6, 0.01, any_pure(1.0)), counts, DELTA)
    for before, after in zip(found, list(found)[1:], strict=False):
        assert before.upper < after.upper < 1.6 * before.upper
        assert after.lower > 0.98 * after.upper


ROUNDS = [
    *(CheckInRound(n, 0.5, pair) for n in (1, 2, 10) for pair in (any_pure(1.0), gaussian(1.0))),
    CheckInRound(10**6, 0.01, binary_response(1.0)),
    CheckInRound(10**9, 1e-3, dary_response(2.0, 10)),
    CheckInRound(10**5, 0.01, gaussian(2.0)),
    ShuffleRound(2, binary_response(0.5)),
    ShuffleRound(10**6, any_pure(8.0)),
    SubsampleRound(10**4, 100, any_pure(2.0)),
    *(LocalRound(pair, 0.3) for pair in (binary_response(0.1), gaussian(1.0), laplace(1.0))),
    WindowRound(10, any_pure(1.0), others=9),
    WindowRound(1000, any_pure(0.5), others=10**5),
    WindowRound(100, gaussian(2.0), others=10**4),
]


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [3 * 10**6, 3 * 10**7, 10**8, 10**9])
@pytest.mark.parametrize("one", ROUNDS, ids=lambda one: f"{type(one).__name__} {one.pair.label}")
def test_long_runs_have_a_figure_above_their_lower_bound_or_one_line(one: Round, rounds: int) -> None:
    try:
        stated = guarantee([(one, rounds)], DELTA)
    except DpCheckinError as refusal:
        assert "\n" not in str(refusal)
        return
    assert lower_bound([(one, rounds)], DELTA).epsilon.lower <= stated.epsilon.upper < math.inf
    assert stated.local is not None and stated.epsilon.upper <= stated.local.epsilon


@pytest.mark.parametrize("rounds", [2, 30, 1_000, 300_000])
@pytest.mark.parametrize("e0", [0.05, 1.0, 6.0])
def test_binary_reports_that_are_seen_are_a_binomial_law(rounds: int, e0: float) -> None:
    """Losses are e0 times the difference of truths and lies; no grid widens that."""
    delta = 1e-3 if rounds == 2 else DELTA
    found = compose([(LocalRound(binary_response(e0)), rounds)]).epsilon(delta)
    truths = np.arange(rounds + 1)
    losses = e0 * (2.0 * truths - rounds)

    def true(epsilon: float) -> float:
        kept = losses > epsilon
        masses = stats.binom.pmf(truths[kept], rounds, 1 / (1 + math.exp(-e0)))
        return float(masses @ -np.expm1(epsilon - losses[kept]))

    assert true(found.upper) <= delta * (1 + 1e-7)
    assert true(found.lower * (1 - 1e-9)) >= delta * (1 - 1e-7) or found.lower == 0.0
    assert found.upper <= found.lower * (1 + 1e-6) + 1e-9


def test_frequencies_of_which_nothing_is_left_need_not_be_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same figure as with all of them, and not one that forgot what they may be worth."""
    run = [(CheckInRound(10**5, 0.01, any_pure(2.0)), 20_000), (CheckInRound(10**5, 1e-6, any_pure(6.0)), 5)]
    few = compose(run).epsilon(DELTA)
    monkeypatch.setattr(engine, "NOTHING", 1e18)
    every = compose(run).epsilon(DELTA)
    assert few.upper == pytest.approx(every.upper, rel=1e-9)
    assert few.lower == pytest.approx(every.lower, rel=1e-9)
    monkeypatch.setattr(engine, "NOTHING", 1e-3)  # nearly all are only bounded: a wider bracket, or none
    try:
        rough = compose(run).epsilon(DELTA)
    except DpCheckinError:
        return
    assert rough.upper >= every.upper * (1 - 1e-9)
    assert rough.lower <= every.lower * (1 + 1e-9)


def _binary(e0: float) -> list[list[float]]:
    truth = 1 / (1 + math.exp(-e0))
    return [[truth, 1 - truth], [1 - truth, truth]]


@pytest.mark.parametrize(
    ("clients", "rate", "e0", "rounds"),
    [
        (2, 0.5, 2.0, 10**6),
        (4, 0.01, 0.5, 10**7),
        pytest.param(3, 0.5, 4.0, 10**8, marks=pytest.mark.slow),
        pytest.param(5, 0.1, 1.0, 10**9, marks=pytest.mark.slow),
    ],
)
def test_long_runs_of_few_clients_are_bracketed_by_inversion(clients: int, rate: float, e0: float, rounds: int) -> None:
    """All others at either value: the exact law of one round, and no grid for all of them."""
    true = max(epsilon_of(*laws_of_check_in(_binary(e0), x, clients, rate), rounds, DELTA) for x in (0, 1))
    one = CheckInRound(clients, rate, binary_response(e0))
    assert guarantee((one, rounds), DELTA).epsilon.upper >= true * (1 - 1e-9)
    assert 0.94 * true <= lower_bound((one, rounds), DELTA).epsilon.lower <= true * (1 + 1e-9)


@pytest.mark.parametrize(
    ("clients", "e0", "rounds"), [(10**4, 2.0, 10**6), pytest.param(10**6, 4.0, 3 * 10**7, marks=pytest.mark.slow)]
)
def test_long_runs_of_many_clients_are_bracketed_by_inversion(clients: int, e0: float, rounds: int) -> None:
    true = epsilon_of(*laws_of_a_shuffle(1 / (1 + math.exp(-e0)), clients), rounds, DELTA)
    one = ShuffleRound(clients, binary_response(e0))
    assert true * (1 - 1e-9) <= guarantee((one, rounds), DELTA).epsilon.upper <= 1.1 * true
    assert 0.98 * true <= lower_bound((one, rounds), DELTA).epsilon.lower <= true * (1 + 1e-9)
