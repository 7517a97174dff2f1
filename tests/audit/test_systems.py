"""The systems under audit are the package's own code, and the attack on them is the right one."""

import math

import numpy as np
import pytest
from scipy import stats

from dpcheckin.audit import Budget, Neighbours, PerClient, Simulated, check_plan, check_report, examine
from dpcheckin.audit.simulated import CoinByCoin, heads
from dpcheckin.audit.statistics import AllOrNone, FrontAgainstBack, LikelihoodRatio, Place
from dpcheckin.audit.systems import gathered
from dpcheckin.errors import InvalidParameter
from dpcheckin.protocols import CentralDpSgd, DistributedCheckIn, FullShuffle, ShuffledCheckIn, SubsampledShuffle
from dpcheckin.randomizers import (
    CategoryRandomizer,
    DaryResponse,
    DiscreteGaussianVector,
    IntegerVector,
    Randomizer,
    SecureSource,
    SeededSource,
    SkellamVector,
    SubsetSelection,
    VectorRandomizer,
    registry,
)
from dpcheckin.service.shuffler.chance import SecureChance

THREE = DaryResponse(1.5, 3)
PAIR = Neighbours(others=2, first=0, second=1)
PLANS = [ShuffledCheckIn(12, 0.3, 2, THREE), SubsampledShuffle(12, 4, 2, THREE)]


@pytest.mark.parametrize(
    ("system", "plan"),
    [(CoinByCoin, PLANS[0]), (Simulated, PLANS[0]), (Simulated, PLANS[1]), (CoinByCoin, FullShuffle(6, 2, THREE))],
    ids=["coin by coin", "check-in", "subsample", "full"],
)
def test_the_fast_paths_release_batches_with_the_law_of_the_per_client_path(system, plan) -> None:
    """Sizes of batches and counts of a symbol agree by chi-square, in both rounds and datasets."""
    data = Neighbours.worst(THREE)
    for which in (0, 1):
        fast = system(plan).play(data, which, (3,), 3000)
        slow = PerClient(plan).play(data, which, (4,), 500)
        for one, other in zip(fast, slow, strict=True):
            for seen in (lambda b: b.sizes, lambda b: b.total((b.reports == 0).astype(float))):
                counts = [np.bincount(seen(b).astype(int), minlength=13) for b in (one, other)]
                kept = np.array(counts)[:, np.sum(counts, axis=0) >= 20]
                if kept.shape[1] > 1:
                    assert stats.chi2_contingency(kept).pvalue > 1e-4


@pytest.mark.parametrize("rate", [0.02, 0.2, 0.6])
def test_heads_are_independent_coins_whichever_way_they_are_found(rate: float) -> None:
    """All patterns of four neighbouring coins have their product probabilities, by chi-square."""
    coins = 400_000
    shown = np.zeros(coins, dtype=int)
    shown[heads(np.random.default_rng(5), coins, rate)] = 1
    patterns = shown.reshape(-1, 4) @ [8, 4, 2, 1]
    ones = np.array([bin(p).count("1") for p in range(16)])
    expected = rate**ones * (1 - rate) ** (4 - ones) * (coins // 4)
    seen = np.bincount(patterns, minlength=16)
    often = expected >= 5
    merged = [np.append(x[often], x[~often].sum()) for x in (seen, expected)]
    kept = merged[1] > 0
    assert stats.chisquare(merged[0][kept], merged[1][kept]).pvalue > 1e-4


def test_rounds_have_coins_of_their_own() -> None:
    """Who checks in to the first round says nothing about the second, on every path."""
    plan = ShuffledCheckIn(2, 0.5, 2, DaryResponse(30.0, 3))
    data = Neighbours(others=2, first=0, second=1)
    for system in (CoinByCoin(plan), Simulated(plan)):
        first, second = system.play(data, 0, (6,), 4000)
        there = [b.total((b.reports == 0).astype(float)) > 0 for b in (first, second)]
        table = [[np.sum((there[0] == a) & (there[1] == b)) for a in (0, 1)] for b in (0, 1)]
        assert stats.chi2_contingency(table).pvalue > 1e-4
        assert abs(there[0].mean() - 0.5) < 5 * 0.5 / math.sqrt(4000)


@pytest.mark.parametrize("system", [Simulated, PerClient, CoinByCoin])
def test_a_batch_is_in_an_order_that_says_nothing(system) -> None:
    """The target holds 0, all others 1, hardly any noise: its report is in every place alike."""
    plan = FullShuffle(5, 1, DaryResponse(20.0, 2))
    (batches,) = system(plan).play(Neighbours(others=1, first=0, second=1), 0, (9,), 3000)
    places = np.flatnonzero(batches.reports == 0) % 5
    assert places.size > 2990
    assert stats.chisquare(np.bincount(places, minlength=5)).pvalue > 1e-4


def test_the_simulated_system_asks_the_plan_and_the_shuffler_and_fast_coins_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Cohorts are the plan's, with a target of its own in every run; orders are the shuffler's."""
    plan, asked = ShuffledCheckIn(6, 0.5, 2, THREE), []
    cohort, permutation = ShuffledCheckIn.cohort, SecureChance.permutation

    def watched(plan, seed, round_index):
        drawn = cohort(plan, seed, round_index)
        asked.append((seed, round_index, drawn.clients))
        return drawn

    orders = []
    monkeypatch.setattr(ShuffledCheckIn, "cohort", watched)
    monkeypatch.setattr(SecureChance, "permutation", lambda self, n: orders.append(permutation(self, n)) or orders[-1])
    released = Simulated(plan).play(Neighbours.worst(THREE), 0, (4,), 50)
    assert len(asked) == len(orders) == 100
    assert {t for _, t, _ in asked} == {0, 1}
    sizes = {(seed, t): len(clients) for seed, t, clients in asked}
    runs = list(dict.fromkeys(seed for seed, _, _ in asked))
    assert [b.sizes.tolist() for b in released] == [[sizes[s, t] for s in runs] for t in (0, 1)]
    assert {seed % 6 for seed in runs} == set(range(6))
    assert sorted(len(o) for o in orders) == sorted(sizes.values())
    CoinByCoin(plan).play(Neighbours.worst(THREE), 0, (4,), 50)
    assert len(asked) == len(orders) == 100


def test_the_target_of_a_run_takes_client_0s_name_and_place() -> None:
    system = Simulated(ShuffledCheckIn(6, 0.5, 1, THREE))
    for run in range(40):
        drawn = set(system.plan.cohort(run, 0).clients.tolist())
        shown = system.participants(run, 0).tolist()
        assert shown == sorted(shown)
        assert (0 in shown) == (run % 6 in drawn)
        assert len(shown) == len(drawn)
        assert set(shown) - {0, run % 6} == drawn - {0, run % 6}


def test_equal_seeds_give_both_neighbours_the_same_coins_and_noise() -> None:
    plan = ShuffledCheckIn(30, 0.2, 3, THREE)
    first, second = Simulated(plan).play_both(Neighbours.worst(THREE), (1,), 400)
    for one, other in zip(first, second, strict=True):
        assert (one.sizes == other.sizes).all()
        assert np.count_nonzero(one.reports != other.reports) <= np.count_nonzero(one.sizes)


def exact_ratios(plan, symbols):
    """Likelihood ratios of sorted batches by adding up everything that can happen (small n)."""
    from itertools import product

    e0, n = math.exp(plan.randomizer.local_epsilon), plan.population
    data = Neighbours.worst(plan.randomizer)
    table = {}
    for which in (0, 1):
        own = data.second if which else data.first
        for who in product((0, 1), repeat=n):
            coin = math.prod(plan.rate if w else 1 - plan.rate for w in who)
            for outs in product(range(symbols), repeat=sum(who)):
                values = [own if i == 0 else data.others for i in range(n) if who[i]]
                chance = math.prod(
                    (e0 if o == v else 1) / (e0 + symbols - 1) for o, v in zip(outs, values, strict=True)
                )
                key = tuple(sorted(outs))
                table.setdefault(key, [0.0, 0.0])[which] += coin * chance
    return table


@pytest.mark.parametrize("symbols", [2, 3, 4])
def test_the_attack_is_the_exact_likelihood_ratio(symbols: int) -> None:
    plan = ShuffledCheckIn(4, 0.35, 1, DaryResponse(1.2, symbols))
    data = Neighbours.worst(plan.randomizer)
    attack = LikelihoodRatio(plan.randomizer, data, plan.population)
    for batch, (p, q) in exact_ratios(plan, symbols).items():
        score = attack.scores(gathered([[np.array(batch, dtype=np.int64)]]))[0]
        assert score == pytest.approx(math.log(p / q), abs=1e-8)


AUDITED = [
    registry.usual(kind, **({"dimension": 4} if "dimension" in registry.parameters(kind) else {}))
    for kind in registry.kinds().values()
    if kind.log_ratio is not Randomizer.log_ratio
]


def test_every_randomizer_of_symbols_or_vectors_is_audited() -> None:
    """All but those whose only price is that of a sum, which are attacked there."""
    left = {name for name, kind in registry.kinds().items() if issubclass(kind, CategoryRandomizer | VectorRandomizer)}
    assert left - {one.name for one in AUDITED} == {"skellam", "discrete-gaussian"}


@pytest.mark.parametrize(
    "randomizer", [*AUDITED, DaryResponse(1.0, 2), SubsetSelection(1.0, 12, 6)], ids=lambda r: r.describe()
)
def test_a_likelihood_ratio_has_mean_one_under_its_denominator(randomizer) -> None:
    """E[dR(a)/dR(b)] = 1 under b and E[its inverse] = 1 under a, for reports really drawn."""
    data = Neighbours.worst(randomizer)
    runs = 200_000
    for value, other in ((data.first, data.second), (data.second, data.first)):
        one = Neighbours(other, other, other)
        values = one.values(np.ones(runs, dtype=np.int64), 0, 0)
        reports = randomizer.randomize(values, SeededSource(4))
        ratios = np.exp(randomizer.log_ratio(reports, value, other))
        assert ratios.mean() == pytest.approx(1.0, abs=5 * ratios.std() / math.sqrt(runs))


@pytest.mark.parametrize("kind", [SkellamVector, DiscreteGaussianVector])
def test_sums_of_noisy_integers_are_attacked(kind: type[IntegerVector]) -> None:
    """With hardly any noise an attack shows most of what there is to see."""
    plan = DistributedCheckIn(4, 0.5, 1, kind(0.5, 1))
    finding = examine(check_plan(plan, 0.05), Budget(pairs=3_000), seed=1, workers=1)
    assert not finding.refuted and finding.lower > 0.5


def test_the_seeded_randomizer_that_is_audited_has_the_law_of_the_secure_one() -> None:
    values = np.full(40_000, 2)
    seen = [np.bincount(THREE.randomize(values, source), minlength=3) for source in (SeededSource(8), SecureSource())]
    assert stats.chi2_contingency(seen).pvalue > 1e-8


@pytest.mark.parametrize(
    "statistic",
    [Place(THREE, PAIR, 0), Place(THREE, PAIR, -1), FrontAgainstBack(THREE, PAIR)],
    ids=lambda statistic: statistic.name,
)
def test_order_statistics_see_the_order_of_arrival_and_little_in_a_shuffled_one(statistic) -> None:
    """How many deviations apart the neighbours' scores are; one place in twelve is the target's."""
    plan = FullShuffle(12, 1, DaryResponse(6.0, 3))
    arrivals = {"first report": 1, "last report": -1, "front against back": 1}[statistic.name]
    chance = np.random.default_rng(2)

    def tell(order) -> float:
        both = []
        for which in (0, 1):
            values = np.array([which] + [2] * 11)[::arrivals]
            runs = [plan.randomizer.randomize(values, SeededSource((which, r))) for r in range(300)]
            both.append(statistic.scores(gathered([[order(run)] for run in runs])))
        return float(both[0].mean() - both[1].mean()) / (math.hypot(*map(np.std, both)) or 1.0)

    assert abs(tell(lambda reports: reports)) > 3
    assert abs(tell(chance.permutation)) < 1


def test_cohorts_that_repeat_are_told_by_the_exact_likelihood_ratio() -> None:
    """In every round or in none: two rounds of three clients by adding up all that can happen."""
    from itertools import product

    e0, rate, n = 1.1, 0.4, 3
    laws: list[dict] = [{}, {}]
    for which, law in enumerate(laws):
        values = [which, 2, 2]
        for who in product((0, 1), repeat=n):
            coin = math.prod(rate if w else 1 - rate for w in who)
            there = [v for v, w in zip(values, who, strict=True) if w]
            for outs in product(product(range(3), repeat=len(there)), repeat=2):
                chance = coin
                for batch in outs:
                    for o, v in zip(batch, there, strict=True):
                        chance *= (math.exp(e0) if o == v else 1) / (math.exp(e0) + 2)
                key = tuple(tuple(sorted(batch)) for batch in outs)
                law[key] = law.get(key, 0.0) + chance
    attack = AllOrNone(DaryResponse(e0, 3), PAIR, n)
    for batches, p in laws[0].items():
        arrays = [np.array(batch, dtype=np.int64) for batch in batches]
        score = attack.scores(gathered([arrays]))[0]
        assert score == pytest.approx(math.log(p / laws[1][batches]), abs=1e-8)


def test_plans_that_no_attack_is_known_for_are_refused() -> None:
    from dpcheckin.randomizers import DitheredLevels

    with pytest.raises(InvalidParameter, match=r"randomizer.*neighbours"):
        check_report(DitheredLevels(1.0, 4), 1e-3)
    with pytest.raises(InvalidParameter, match="nothing to audit"):
        check_plan(CentralDpSgd(10, 0.1, 2, 1.0), 1e-3)
    with pytest.raises(InvalidParameter, match="delta"):
        check_plan(PLANS[0], 0.0)
