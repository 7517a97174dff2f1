import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy import stats

from dpcheckin.accounting import (
    CheckInRound,
    Guarantee,
    SubsampleRound,
    WindowRound,
    any_pure,
    compose,
    dary_response,
    gaussian,
    hemisphere,
    lower_bound,
)
from dpcheckin.errors import InvalidParameter
from dpcheckin.protocols import (
    CentralDpSgd,
    DistributedCheckIn,
    FullShuffle,
    LocalOnly,
    RandomCheckIns,
    ShuffledCheckIn,
    SubsampledShuffle,
    Window,
)
from dpcheckin.protocols.comparators import local_epsilon
from dpcheckin.randomizers import Gaussian, LdpSgd, PrivUnit

LDP = LdpSgd(1.0, 50)
PLANS = [
    ShuffledCheckIn(2000, 0.1, 30, LDP),
    SubsampledShuffle(2000, 200, 30, LDP),
    FullShuffle(2000, 3, LDP),
    RandomCheckIns(2000, 500, LDP),
    RandomCheckIns(2000, 100, LDP, Window.AVERAGED),
    RandomCheckIns(2000, 500, LDP, Window.SLIDING),
    DistributedCheckIn(2000, 0.1, 30, Gaussian(2.0)),
    LocalOnly(2000, 0.1, 30, LDP),
    CentralDpSgd(2000, 0.1, 30, 2.0),
]


def name(plan):
    return f"{type(plan).__name__}-{getattr(plan, 'window', '')}"


@pytest.mark.parametrize("plan", PLANS, ids=name)
def test_every_plan_states_a_guarantee_with_its_reasons(plan):
    """Finite, positive, never falling with the rounds; the sentence carries basis and reasons."""
    stated = plan.guarantee(1e-5)
    assert 0 < stated.epsilon.lower <= stated.epsilon.upper < math.inf
    assert stated.epsilon == plan.epsilon(1e-5)
    assert stated.basis and stated.assumptions and str(stated)
    half = plan.epsilon(1e-5, max(1, plan.rounds // 2))
    assert half.upper <= stated.epsilon.upper * (1 + 1e-9)
    assert plan.epsilon(1e-5, 0).upper == 0.0


@pytest.mark.parametrize("plan", PLANS, ids=name)
def test_a_statement_names_those_whose_collusion_it_fears(plan):
    """A window has slots and a sum two aggregators: only shuffles speak of a shuffler."""
    fears = {
        RandomCheckIns: "it is known who reported when",
        DistributedCheckIn: "the two aggregators work together",
        CentralDpSgd: None,
        LocalOnly: None,
    }.get(type(plan), "the shuffler colludes")
    said = plan.guarantee(1e-5)
    holds, left = said.sentences()
    assert "shuffler colludes" not in holds
    assert (left is None) == (fears is None)
    if left is not None:
        assert left.startswith(f"If {fears}, what is left is (")
        assert str(said) == f"{holds} {left}"
    assert Guarantee.from_json(said.to_json()) == said


def test_plans_of_the_shuffling_theorem_equal_the_accounting_of_their_rounds():
    one = CheckInRound(2000, 0.1, hemisphere(1.0))
    assert PLANS[0].epsilon(1e-5) == compose([(one, 30)]).epsilon(1e-5)
    one = SubsampleRound(2000, 200, hemisphere(1.0))
    assert PLANS[1].epsilon(1e-5, 7) == compose([(one, 7)]).epsilon(1e-5)


def test_rounds_within_a_budget_are_the_most_that_fit():
    plan = ShuffledCheckIn(2000, 0.1, 500, LDP)
    rounds = plan.rounds_within(0.5, 1e-5)
    assert plan.epsilon(1e-5, rounds).upper <= 0.5 < plan.epsilon(1e-5, rounds + 1).upper
    assert plan.rounds_within(1e9, 1e-5) == 500 and plan.rounds_within(0.0, 1e-5) == 0
    with pytest.raises(InvalidParameter, match="epsilon"):
        plan.rounds_within(math.nan, 1e-5)


@dataclass(frozen=True)
class _Asked(ShuffledCheckIn):
    """Counts how often it is asked what it costs."""

    asked: ClassVar[list[int]] = []

    def spent(self, delta, rounds):
        self.asked.append(rounds)
        return super().spent(delta, rounds)


@pytest.mark.parametrize("epsilon", [0.03, 0.3, 1.0, 1.6])
def test_the_rounds_of_a_budget_are_found_with_few_questions(epsilon):
    plan = _Asked(60_000, 0.1, 16_384, PrivUnit(3.0, 1000))
    plan.asked.clear()
    rounds = plan.rounds_within(epsilon, 1e-5)
    assert plan.epsilon(1e-5, rounds).upper <= epsilon < plan.epsilon(1e-5, rounds + 1).upper
    assert len(plan.asked) <= 10  # halving takes 14 and two


def test_random_check_ins_beat_the_closed_form():
    """With a crowd in the slots, a sixth of Theorem 3.2; above the exact pair of datasets."""
    plan = RandomCheckIns(2000, 1000, LDP)
    closed = math.expm1(1.0) * math.sqrt(2 * math.e * math.log(1e5) / 1000)
    closed += math.e * math.expm1(1.0) ** 2 / 2000
    low = lower_bound([(WindowRound(1000, LDP.pair, others=1999), 1)], 1e-5).epsilon.lower
    assert low < plan.epsilon(1e-5).upper < closed / 6


def test_random_check_ins_refuse_what_is_not_proved():
    with pytest.raises(InvalidParameter, match="check_in_probability"):
        RandomCheckIns(2000, 500, Gaussian(4.0), Window.AVERAGED, 0.5)
    # so little noise that no draw says nothing: what a report gives away by itself
    loud = RandomCheckIns(2000, 500, Gaussian(0.3), Window.AVERAGED).guarantee(1e-5)
    assert loud.epsilon.upper == pytest.approx(Gaussian(0.3).pair.epsilon_within(1e-5), rel=1e-6)


def test_averaged_windows_take_gaussian_reports():
    """Between what any shuffle of them must cost and what one report costs by itself."""
    plan = RandomCheckIns(10_000, 100, Gaussian(4.0), Window.AVERAGED)
    stated = plan.guarantee(1e-5)
    alone = Gaussian(4.0).pair.epsilon_within(1e-5)
    assert 0 < stated.epsilon.upper < alone / 2
    assert "random order" in stated.basis[0] and stated.local.epsilon >= alone * (1 - 1e-9)
    assert "clients do not collude" in stated.assumptions
    larger = RandomCheckIns(100_000, 100, Gaussian(4.0), Window.AVERAGED)
    assert larger.epsilon(1e-5).upper < stated.epsilon.upper
    assert plan.epsilon(1e-5, 3).upper < stated.epsilon.upper  # a part costs less than all
    twice = RandomCheckIns(10_000, 100, Gaussian(4.0), Window.AVERAGED, repetitions=2).guarantee(1e-5)
    assert stated.epsilon.upper < twice.epsilon.upper < 2 * stated.epsilon.upper


def test_full_shuffle_of_gaussian_reports_is_priced():
    """Draws that say nothing stand for empty seats: somewhat more than if a few clients stayed away."""
    full = FullShuffle(2000, 3, Gaussian(2.0)).guarantee(1e-5)
    nearly = ShuffledCheckIn(population=2000, rate=0.99, rounds=3, randomizer=Gaussian(2.0)).guarantee(1e-5)
    assert nearly.epsilon.upper < full.epsilon.upper < 1.15 * nearly.epsilon.upper
    assert any("say nothing" in reason for reason in full.basis)


def brute_local(pair, reports, delta):
    """Composition by enumerating how many reports point each way."""
    e, total = pair.local_epsilon, []
    p_up, p_down = math.exp(e) * pair.hit, pair.hit
    for ups in range(reports + 1):
        for downs in range(reports - ups + 1):
            same = reports - ups - downs
            mass = stats.multinomial.pmf([ups, downs, same], reports, [p_up, p_down, pair.neutral])
            total.append(((ups - downs) * e, mass))
    losses, masses = np.array(total).T

    def excess(epsilon):
        return float((masses * np.maximum(0, 1 - np.exp(epsilon - losses))).sum())

    low, high = 0.0, reports * e
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > delta else (low, middle)
    return high


@pytest.mark.parametrize("pair", [any_pure(0.7), dary_response(1.5, 4)])
@pytest.mark.parametrize("reports", [1, 5, 20])
def test_local_composition_against_enumeration(pair, reports):
    true = brute_local(pair, reports, 1e-4)
    found = local_epsilon(pair, reports, 1e-4)
    assert found.lower <= true * (1 + 1e-5) and true * (1 - 1e-7) <= found.upper
    assert found.upper == pytest.approx(true, rel=1e-5)


def test_local_gaussian_composition_against_the_closed_form():
    """T normal reports 2/σ apart are one pair 2√T/σ apart (Balle and Wang's formula)."""
    epsilon = local_epsilon(gaussian(3.0), 9, 1e-6).upper
    mu = 2 * 3 / 3.0
    delta = stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)
    assert delta == pytest.approx(1e-6, rel=1e-3)


def test_comparators_refuse_deltas_their_library_gets_wrong():
    with pytest.raises(InvalidParameter, match="delta"):
        LocalOnly(2000, 0.1, 30, PrivUnit(2.0, 100)).epsilon(1e-12)


def test_the_shuffler_is_worth_a_lot():
    """The same reports, seen with names, cost many times as much."""
    randomizer = PrivUnit(2.0, 100)
    shuffled = ShuffledCheckIn(10_000, 0.1, 20, randomizer).epsilon(1e-5).upper
    assert LocalOnly(10_000, 0.1, 20, randomizer).epsilon(1e-5).lower > 20 * shuffled
