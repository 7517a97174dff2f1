import tracemalloc

import numpy as np
import pytest
from scipy import stats

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
from dpcheckin.protocols.plan import distinct_clients
from dpcheckin.randomizers import Gaussian, PrivUnit

RANDOMIZER = PrivUnit(2.0, 10)
FALSE_ALARM = 1e-7


def counts(plan, rounds, population):
    seen = np.zeros(population)
    for i in range(rounds):
        seen[plan.cohort(7, i).clients] += 1
    return seen


@pytest.mark.parametrize("count", [0, 1, 3, 50, 99, 100])
def test_subsets_have_the_right_size_and_no_repeats(count):
    draw = np.random.default_rng(0)
    for population in (100, 100_000):
        chosen = distinct_clients(draw, population, count)
        assert len(set(chosen.tolist())) == count and (chosen < population).all()


def test_subsets_are_uniform_over_pairs():
    """All pairs of a population of 50 are equally likely, in either way of drawing."""
    draw = np.random.default_rng(1)
    for population in (6, 50):
        tally = np.zeros((population, population))
        for _ in range(30_000):
            a, b = distinct_clients(draw, population, 2)
            tally[a, b] += 1
        pairs = tally[~np.eye(population, dtype=bool)]
        assert stats.chisquare(pairs).pvalue > FALSE_ALARM


def test_check_in_is_an_independent_coin_each():
    """Cohort sizes are binomial and every client appears at the rate."""
    plan = ShuffledCheckIn(200, 0.3, 3000, RANDOMIZER)
    sizes = [len(plan.cohort(3, i).clients) for i in range(3000)]
    cut = np.clip(sizes, 45, 75)
    law = stats.binom(200, 0.3)
    expected = np.array([law.cdf(45), *law.pmf(range(46, 75)), law.sf(74)]) * 3000
    assert stats.chisquare(np.bincount(cut - 45, minlength=31), expected).pvalue > FALSE_ALARM
    seen = counts(plan, 3000, 200)
    deviation = (seen - 900) / np.sqrt(3000 * 0.21)
    assert np.abs(deviation).max() < stats.norm.isf(FALSE_ALARM / 400)


def test_rates_in_an_interval_and_dropouts():
    """Client i's rate rises evenly from the lowest to the highest, times those not lost."""
    plan = ShuffledCheckIn(50, 0.4, 8000, RANDOMIZER, lowest_rate=0.1, dropout=0.25)
    expected = 0.75 * np.linspace(0.1, 0.4, 50)
    deviation = counts(plan, 8000, 50) / 8000 - expected
    deviation /= np.sqrt(expected * (1 - expected) / 8000)
    assert np.abs(deviation).max() < stats.norm.isf(FALSE_ALARM / 100)


def test_fixed_and_full_cohorts():
    assert len(SubsampledShuffle(100, 30, 5, RANDOMIZER).cohort(0, 1).clients) == 30
    assert len(FullShuffle(100, 5, RANDOMIZER).cohort(0, 1).clients) == 100


@pytest.mark.parametrize(
    "plan",
    [
        ShuffledCheckIn(1000, 0.1, 5, RANDOMIZER),
        SubsampledShuffle(1000, 100, 5, RANDOMIZER),
        LocalOnly(1000, 0.1, 5, RANDOMIZER),
        DistributedCheckIn(1000, 0.1, 5, Gaussian(1.0)),
        CentralDpSgd(1000, 0.1, 5, 1.0),
        RandomCheckIns(1000, 50, RANDOMIZER, Window.AVERAGED),
    ],
    ids=lambda p: type(p).__name__,
)
def test_cohorts_depend_only_on_seed_and_round(plan):
    one, again = plan.cohort(5, 3), plan.cohort(5, 3)
    assert np.array_equal(one.clients, again.clients)
    assert not np.array_equal(one.clients, plan.cohort(6, 3).clients)
    assert not np.array_equal(one.clients, plan.cohort(5, 4).clients)


def test_ten_million_clients_cost_the_memory_of_a_thousand():
    """A round at rate 1e-4 of 10⁷ clients allocates well under a megabyte."""
    plan = ShuffledCheckIn(10_000_000, 1e-4, 10, RANDOMIZER)
    plan.cohort(0, 0)
    tracemalloc.start()
    sizes = [len(plan.cohort(0, i).clients) for i in range(5)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 500_000 and 800 < np.mean(sizes) < 1200


def test_fixed_window_asks_one_client_a_slot_and_fills_with_dummies():
    plan = RandomCheckIns(300, 200, RANDOMIZER, Window.FIXED, minibatch=4)
    assert plan.rounds == 50
    asked, dummies = [], 0
    for i in range(plan.rounds):
        cohort = plan.cohort(1, i)
        assert len(cohort.clients) + cohort.dummies == 4 and cohort.divisor == 4
        asked += cohort.clients.tolist()
        dummies += cohort.dummies
    assert len(asked) == len(set(asked))  # nobody reports twice
    assert dummies == (plan.loads(1) == 0).sum()
    assert abs(dummies - 200 * (1 - 1 / 200) ** 300) < 40  # P2 Prop. 3.4


def test_averaged_window_uses_everybody_once():
    plan = RandomCheckIns(300, 40, RANDOMIZER, Window.AVERAGED)
    everybody = np.concatenate([plan.cohort(2, i).clients for i in range(plan.rounds)])
    assert np.array_equal(np.sort(everybody), np.arange(300))


def test_sliding_window_asks_only_clients_whose_window_covers_the_slot():
    plan = RandomCheckIns(300, 40, RANDOMIZER, Window.SLIDING)
    assert plan.rounds == 261
    for i in range(plan.rounds):
        slot = i + 39
        assert all(slot - 39 <= c <= slot for c in plan.cohort(3, i).clients)


@pytest.mark.parametrize(
    "make,name",
    [
        (lambda: ShuffledCheckIn(0, 0.1, 5, RANDOMIZER), "population"),
        (lambda: ShuffledCheckIn(10, 1.1, 5, RANDOMIZER), "rate"),
        (lambda: ShuffledCheckIn(10, float("nan"), 5, RANDOMIZER), "rate"),
        (lambda: ShuffledCheckIn(10, 0.1, -1, RANDOMIZER), "rounds"),
        (lambda: ShuffledCheckIn(10, 0.1, 5, RANDOMIZER, lowest_rate=0.2), "lowest_rate"),
        (lambda: SubsampledShuffle(10, 11, 5, RANDOMIZER), "cohort_size"),
        (lambda: DistributedCheckIn(10, 0.1, 5, RANDOMIZER), "randomizer"),
        (lambda: RandomCheckIns(100, 10, RANDOMIZER, minibatch=3), "minibatch"),
        (lambda: RandomCheckIns(9, 10, RANDOMIZER, Window.SLIDING), "slots"),
        (lambda: CentralDpSgd(10, 0.1, 5, 0.0), "noise_multiplier"),
    ],
)
def test_bad_plans_are_refused_by_name(make, name):
    with pytest.raises(InvalidParameter, match=name):
        make()
