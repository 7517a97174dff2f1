"""Every client as the target in turn: the same runs as one by one, and a bound that holds."""

import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from dpcheckin.audit import Budget, Check, Neighbours, Simulated, check_plan, examine
from dpcheckin.audit.choice import Event
from dpcheckin.audit.evidence import (
    Capital,
    Counts,
    Stakes,
    epsilon_grid,
    log_evidence,
    log_growth_by_play,
    lower_epsilon,
    needed_capital,
)
from dpcheckin.audit.mutants import SENT_TWICE
from dpcheckin.audit.simulated import fast_system
from dpcheckin.audit.statistics import LikelihoodRatio
from dpcheckin.audit.turns import NAME, Turns, play_in_turns
from dpcheckin.errors import DpCheckinError, InvalidParameter
from dpcheckin.protocols import FullShuffle, ShuffledCheckIn
from dpcheckin.randomizers import DaryResponse, Gaussian


@dataclass(frozen=True, slots=True)
class Another(Neighbours):
    """The same neighbours, with some other client as the target."""

    target: int = 0

    def values(self, clients, which, round_index):
        own = self.second if which else self.first
        return np.where(clients == self.target, own, self.others)


@pytest.mark.parametrize(
    "plan",
    [
        ShuffledCheckIn(7, 0.4, 1, DaryResponse(1.3, 3)),
        ShuffledCheckIn(7, 0.2, 3, DaryResponse(1.3, 4)),
        ShuffledCheckIn(6, 0.6, 2, DaryResponse(2.0, 2)),
        FullShuffle(5, 1, DaryResponse(2.0, 2)),
        FullShuffle(5, 2, DaryResponse(1.0, 3)),
    ],
    ids=lambda plan: f"{plan.describe()}, {plan.rounds} rounds, {plan.randomizer.symbols} symbols",
)
@pytest.mark.parametrize(("above", "width"), [(True, 0.3), (False, 2.0)])
@pytest.mark.parametrize("played_by", [Simulated, fast_system], ids=["shipped code", "fast coins"])
def test_turns_are_the_runs_in_which_each_client_is_the_target(plan, above, width, played_by) -> None:
    """Played one target at a time by the ordinary path, the mean degrees of a play are the same."""
    data, system = Neighbours.worst(plan.randomizer), played_by(plan)
    event = Event(NAME, 0.1, above, True, width)
    turns = play_in_turns(system, data, (3, 1), 60)
    attack = LikelihoodRatio(plan.randomizer, data, plan.population)
    sums = [np.zeros(60), np.zeros(60)]
    for target in range(plan.population):
        other = Another(data.others, data.first, data.second, target)
        for total, released in zip(sums, system.play_both(other, (3, 1), 60), strict=True):
            total += event.slope(attack.scores(released))
    for side, total in zip(turns, sums, strict=True):
        means = side.mean(event.slope(side.values))
        assert means == pytest.approx(total / plan.population, abs=1e-7)
    assert np.std(sums[0] - sums[1]) > 0


def test_plays_are_joined_and_cut_in_order() -> None:
    plan = ShuffledCheckIn(7, 0.4, 2, DaryResponse(1.3, 3))
    parts = [play_in_turns(fast_system(plan), Neighbours.worst(plan.randomizer), (1, b), 5)[0] for b in (0, 1)]
    both = Turns.joined(parts)
    degrees = [np.tanh(part.values) for part in parts]
    apart = np.concatenate([p.mean(d) for p, d in zip(parts, degrees, strict=True)])
    assert both.mean(np.tanh(both.values)) == pytest.approx(apart)
    assert both.head(3).mean(np.tanh(both.head(3).values)) == pytest.approx(apart[:3])


def test_a_coarse_play_keeps_weights_and_mean_scores() -> None:
    plan = ShuffledCheckIn(300, 0.2, 30, DaryResponse(2.0, 3))
    fine, _ = play_in_turns(fast_system(plan), Neighbours.worst(plan.randomizer), (1, 0), 20)
    coarse = fine.coarse()
    assert coarse.values.size < fine.values.size / 5
    assert coarse.mean(np.ones_like(coarse.values)) == pytest.approx(np.ones(20))
    assert coarse.mean(coarse.values) == pytest.approx(fine.mean(fine.values))
    spread = np.std(fine.values[:20])
    event = Event(NAME, 0.0, True, True, float(spread))
    means = [turns.mean(event.slope(turns.values)) for turns in (fine, coarse)]
    assert means[1] == pytest.approx(means[0], abs=0.01)


def test_the_carried_capital_is_the_counted_one_for_plain_events() -> None:
    generator = np.random.default_rng(3)
    first, second = generator.random((2, 1003)) < np.array([[0.5], [0.2]])
    stakes, delta = Stakes.around(0.05), 0.01
    grid = epsilon_grid(0.7, 0.0)
    halves = [
        Capital.won(grid, stakes, delta, first[part].astype(float), second[part].astype(float))
        for part in (slice(0, 400), slice(400, None))
    ]
    carried = halves[0] + halves[1]
    counted = Counts.of(first.astype(int), second.astype(int), 1)
    for epsilon in (0.0, 0.35, 0.7):
        assert carried.log_evidence(epsilon, stakes) == pytest.approx(log_evidence(counted, epsilon, delta, stakes))
        assert carried.variance(epsilon) == pytest.approx(counted.variance(epsilon))
    exact = lower_epsilon(counted, delta, 0.99, stakes)
    shown = carried.lower_epsilon(needed_capital(0.99), stakes)
    assert exact - np.diff(grid).max() <= shown <= exact
    again = Capital.from_json(carried.to_json())
    assert again.lower_epsilon(needed_capital(0.99), stakes) == shown
    assert carried.log_evidence(99.0, stakes) == -math.inf


def test_a_stake_that_could_lose_all_is_worth_nothing() -> None:
    one = np.ones(3)
    assert log_growth_by_play(np.array([0.0, 2.0]), 0.1, 0.5, one, one)[1] == -math.inf


def test_degrees_outside_0_and_1_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="degrees"):
        bad = np.array([0.5, 1.5])
        Capital.won(epsilon_grid(1.0, 0.0), Stakes.around(0.1), 0.1, bad, bad / 2)


def exact_epsilon(population: int, local_epsilon: float, delta: float) -> float:
    """Of a full shuffle of binary responses, the larger of the two directions; by enumeration."""
    lie = 1 / (1 + math.exp(local_epsilon))
    others = stats.binom.pmf(np.arange(population), population - 1, lie)

    def law(p: float) -> np.ndarray:
        return np.append(others * (1 - p), 0.0) + np.append(0.0, others * p)

    one, other = law(1 - lie), law(lie)

    def worst(epsilon: float) -> float:
        ways = ((one, other), (other, one))
        return max(np.maximum(p - math.exp(epsilon) * q, 0).sum() for p, q in ways) - delta

    return float(brentq(worst, 0.0, local_epsilon))


def true_claim(confidence: float) -> Check:
    """A claim that is exactly true for the pair of datasets that is played: the hardest one."""
    plan = FullShuffle(12, 1, DaryResponse(2.0, 2))
    epsilon = exact_epsilon(12, 2.0, 0.05)
    return check_plan(plan, 0.05, confidence, epsilon=epsilon, turns=True)


def alarms(check: Check, repetitions: int) -> int:
    return sum(examine(check, Budget(pairs=1500), seed=s, stop_when_refuted=True).refuted for s in range(repetitions))


def test_false_alarms_in_turns_on_a_claim_that_is_exactly_true() -> None:
    # 5% of 25 is 1.25; more than 6 would happen by chance once in two thousand
    assert alarms(true_claim(0.95), 25) <= 6


@pytest.mark.slow
def test_false_alarms_in_turns_are_at_most_one_per_cent() -> None:
    # 1% of 1000 is 10; more than 20 would happen by chance once in a thousand
    assert alarms(true_claim(0.99), 1000) <= 20


def test_the_bound_comes_near_the_truth_from_below() -> None:
    check = true_claim(0.99)
    found = examine(check, Budget(pairs=20_000), seed=1)
    assert found.event.statistic == NAME
    assert 0.8 * check.epsilon <= found.lower <= check.epsilon
    assert found.clopper_pearson is None
    assert found.cpu_seconds > 0
    assert "every client as the target in turn" in str(found)


def test_turns_show_more_than_single_targets_from_as_many_plays() -> None:
    plan = ShuffledCheckIn(100, 0.1, 1, DaryResponse(2.0, 2))
    by_turns = check_plan(plan, 1e-3, turns=True, fast=True)
    lower = [examine(check, Budget(pairs=40_000), seed=2).lower for check in (replace(by_turns, turns=False), by_turns)]
    assert lower[0] < lower[1] <= by_turns.epsilon
    assert lower[1] >= 0.6 * by_turns.epsilon


def test_an_audit_in_turns_goes_on_where_it_stopped(tmp_path: Path) -> None:
    check, state = true_claim(0.99), tmp_path / "state.json"
    first = examine(check, Budget(pairs=3_000), seed=3, state_path=state)
    longer = examine(check, Budget(pairs=2_000), state_path=state, resume=True)
    assert longer.pairs == first.pairs + 2_000
    assert longer.event == first.event
    assert longer.cpu_seconds > first.cpu_seconds


def test_a_cohort_that_names_a_client_twice_is_no_play_in_turns() -> None:
    plan = ShuffledCheckIn(5, 0.8, 1, DaryResponse(1.0, 3))
    with SENT_TWICE.applied(), pytest.raises(DpCheckinError, match="twice"):
        play_in_turns(Simulated(plan), Neighbours.worst(plan.randomizer), (1, 0), 20)


def test_only_symbols_on_our_own_systems_take_turns() -> None:
    plan = ShuffledCheckIn(9, 0.3, 1, Gaussian(1.0))
    check = check_plan(plan, 0.01, epsilon=1.0, turns=True)
    assert not check.turns
    with pytest.raises(InvalidParameter, match="turns"):
        replace(check, turns=True)
