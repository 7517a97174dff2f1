"""Where nobody is absent: the exact runs are exact, the package stands, and promises slightly too small do not."""

from __future__ import annotations

from itertools import permutations, product
from math import factorial

import numpy as np
import pytest
from scipy import stats

from oracles import attack_absent
from oracles.absent import crowd, designs, fight, noisy, rounds, sampled, steered, windows
from oracles.absent.fight import Tally
from oracles.absent.kinds import KINDS
from oracles.exact import windows as other_windows

Array = crowd.Array
RNG = np.random.default_rng


# --- the exact runs ---------------------------------------------------------------------------


def _by_sequences(sent: Array) -> dict[tuple[int, ...], float]:
    """The law of the multiset by running through every sequence of reports."""
    found: dict[tuple[int, ...], float] = {}
    for symbols in product(range(sent.shape[1]), repeat=len(sent)):
        key = tuple(np.bincount(symbols, minlength=sent.shape[1]).tolist())
        chance = float(np.prod([row[s] for row, s in zip(sent, symbols, strict=True)]))
        found[key] = found.get(key, 0.0) + chance
    return found


@pytest.mark.parametrize("seed", range(5))
def test_laws_of_multisets_are_those_of_all_sequences(seed: int) -> None:
    rng = RNG(seed)
    clients, symbols = int(rng.integers(1, 5)), int(rng.integers(2, 5))
    sent = rng.dirichlet(np.ones(symbols), (3, clients + 1))
    p, q = crowd.views(sent)
    at = np.exp([0.0, 0.3, 1.0])
    for i, rows in enumerate(sent):
        worlds = [_by_sequences(np.vstack([rows[j], rows[2:]])) for j in (0, 1)]
        for j, weights in enumerate((p[i], q[i])):
            counted = {tuple(h): w for h, w in zip(crowd.histograms(clients, symbols).tolist(), weights, strict=True)}
            assert counted == pytest.approx(worlds[j], abs=1e-14)
        for alpha, delta in zip(at, crowd.divided(p, q, at)[:, i], strict=True):
            both = [sum(max(a[h] - alpha * b[h], 0.0) for h in a) for a, b in (worlds, worlds[::-1])]
            assert delta == pytest.approx(max(both), abs=1e-14)


def test_rows_far_too_many_to_be_coded_as_numbers_are_found() -> None:
    assert (crowd.histograms(3, 30)[crowd.joins(2, 30)[5, 7]] == crowd.histograms(2, 30)[5] + np.eye(30)[7]).all()


@pytest.mark.parametrize("make", [*designs.PURE, *designs.FAMILIES, *designs.OWN], ids=lambda make: make.__name__)
def test_tables_are_laws_that_the_pair_covers(make: designs.Callable[[np.random.Generator], designs.Design]) -> None:
    for seed in range(25):
        design = make(RNG(seed))
        assert (design.table >= 0).all()
        assert design.table.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
        pair = fight.named(design.text)
        for alpha in np.exp([0.0, 0.1, 0.7, 2.0]):
            worst = max(np.maximum(a - alpha * b, 0).sum() for a, b in permutations(design.table, 2))
            assert worst <= float(pair.profile(alpha)) + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_the_game_of_a_lone_window_is_that_of_another_oracle(seed: int) -> None:
    rng = RNG(seed)
    table = rng.dirichlet(np.ones(2), 3)
    slots, p, alpha = int(rng.integers(1, 4)), float(rng.uniform(0.2, 1.0)), float(rng.uniform(1.0, 2.0))
    prior, sets = windows.single(windows._even(1, slots, p), slots, 1)
    # the dummy looks like any input, by relabelling the tables; the target holds two different ones
    best = 0.0
    for a, b in permutations(range(3), 2):
        tables = [table[[a, b, x]] for x in range(3)]
        worlds = [windows.likelihoods(tables, np.array([t, 2]), (prior, sets)) for t in (0, 1)]
        best = max(best, windows.game(prior, *worlds, np.array([alpha]))[0])
    assert best == pytest.approx(other_windows.adaptive_window_delta(table, slots, p, alpha), abs=1e-12)


def test_a_crowded_window_is_that_of_another_oracle() -> None:
    table = RNG(3).dirichlet(np.ones(2), 2)
    slots, others, p, alpha = 2, 2, 0.7, 1.2
    made = windows.single(windows._even(1 + others, slots, p), slots, 1 + others)
    best = 0.0
    for held in product((0, 1), repeat=others + 1):
        worlds = [windows.likelihoods([table], np.array([t, *held]), made) for t in (0, 1)]
        games = [windows.game(made[0], *order, np.array([alpha]))[0] for order in (worlds, worlds[::-1])]
        best = max(best, *games)
    assert best == pytest.approx(other_windows.window(table, slots, others, p).profile(np.array([alpha]))[0], abs=1e-12)


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_an_averaged_window_tells_what_a_shuffle_tells_unless_it_is_steered(slots: int) -> None:
    """Who went to which slot is a coin of nobody's data; it counts where slots ask differently."""
    table, held = RNG(4).dirichlet(np.ones(3), 3), np.array([2, 1])
    at = np.array([1.0, 1.3])
    made = windows.averaged(windows._even(3, slots, 1.0), slots)
    found = []
    for tables in ([table], [table, table[[0, 1, 0]], table[[0, 1, 1]]]):
        worlds = [windows.likelihoods(tables, np.array([t, *held]), made) for t in (0, 1)]
        found.append(np.maximum(windows.game(made[0], *worlds, at), windows.game(made[0], *worlds[::-1], at)))
    shuffled = crowd.divided(*crowd.views(table[[[0, 1, *held]]]), at)[:, 0]
    assert found[0] == pytest.approx(shuffled, abs=1e-14)
    assert (found[1] > found[0] + 1e-6).all()


def test_steering_is_the_game_with_two_tables() -> None:
    table, slots, alpha = designs.response(1.3, 2), 3, 1.25
    prior, sets = windows.single(windows._even(1, slots, 0.8), slots, 1)
    tables = [table[[0, 1, 0]], table[[0, 1, 1]]]
    worlds = [windows.likelihoods(tables, np.array([t, 2]), (prior, sets)) for t in (0, 1)]
    assert steered.value(1.3, slots, 0.8 / slots, alpha) == pytest.approx(
        windows.game(prior, *worlds, np.array([alpha]))[0], abs=1e-14
    )


def test_two_rounds_are_the_product_where_there_is_no_choice() -> None:
    p, q = RNG(5).dirichlet(np.ones(4), (2, 1))
    alpha = np.array([0.8, 1.0, 1.7])
    twice = [np.maximum(np.outer(p, p) - a * np.outer(q, q), 0).sum() for a in alpha]
    menu = (p, q)
    assert rounds.before(menu, rounds.last(menu))(alpha) == pytest.approx(twice, abs=1e-14)
    thrice = [np.maximum(np.kron(np.kron(p, p), p) - a * np.kron(np.kron(q, q), q), 0).sum() for a in alpha]
    assert rounds.before(menu, rounds.before(menu, rounds.last(menu)))(alpha) == pytest.approx(thrice, abs=1e-14)


def test_a_choice_after_the_first_round_is_worth_something() -> None:
    p, q = RNG(6).dirichlet(np.ones(3), (2, 2))
    menu = rounds.both_orders((p, q))
    adaptive = rounds.before(menu, rounds.last(menu))(np.array([1.3]))[0]
    fixed = max(
        np.maximum(np.outer(a, c) - 1.3 * np.outer(b, d), 0).sum()
        for a, b in zip(*menu, strict=True)
        for c, d in zip(*menu, strict=True)
    )
    assert adaptive > fixed * (1 + 1e-6)


def test_cells_of_gaussian_numbers_lose_little_and_gain_nothing() -> None:
    noise = 1.3
    edges = noisy._edges(noise, 1.0, noisy.CELLS[1])
    table = noisy._normal(edges, np.array([-1.0, 1.0]), noise)
    s = 2 / noise
    for eps in (0.0, 0.5, 1.5):
        exact = stats.norm.cdf(s / 2 - eps / s) - np.exp(eps) * stats.norm.cdf(-s / 2 - eps / s)
        cells = crowd.divided(table[:1], table[1:], np.exp([eps]))[0, 0]
        assert 0.999 * exact < cells <= exact + 1e-15
    coarse = noisy._normal(edges[::4], np.array([-1.0, 1.0]), noise)
    assert crowd.divided(coarse[:1], coarse[1:], np.ones(1)) <= crowd.divided(table[:1], table[1:], np.ones(1))


def test_likelihoods_of_groups_are_sums_over_who_sent_what() -> None:
    ratios = np.exp(RNG(7).normal(size=(3, 4, 3)))
    for first in range(4):
        logs = sampled._coefficients(ratios, first)
        for world, told in enumerate(logs):
            for run, rows in enumerate(ratios):
                kinds = [world + 1] + [0] * first + [None] * (3 - first)
                total = sum(np.prod([1.0 if k is None else row[k] for k, row in zip(order, rows, strict=True)])
                            for order in permutations(kinds))  # fmt: skip
                assert np.exp(told[run]) * factorial(first) * factorial(3 - first) == pytest.approx(total)


def test_limits_of_confidence_are_those_of_clopper_and_pearson() -> None:
    for hits, runs in ((0, 50), (7, 50), (50, 50)):
        both = stats.binomtest(hits, runs).proportion_ci(1 - 2 * sampled.RISK, "exact")
        assert (sampled.at_least(hits, runs), sampled.at_most(hits, runs)) == pytest.approx((both.low, both.high))


def test_the_limit_of_a_mean_is_kept_and_not_far_off() -> None:
    values = RNG(8).beta(0.5, 4.0, 20_000)
    assert 1 / 9 * 0.85 < sampled.mean_at_least(values) < 1 / 9


@pytest.mark.parametrize("draw", [sampled.groups, sampled.orthogonal], ids=["groups", "orthogonal"])
def test_samples_see_something_and_less_than_one_report_tells(draw: fight.Draw) -> None:
    for seed in range(3):
        rng = RNG(seed)
        setting = draw(rng, runs=1500)  # type: ignore[call-arg]
        s = 2 / float(setting.text.partition("gaussian(")[2].partition(")")[0])
        alone = stats.norm.cdf(s / 2) - stats.norm.cdf(-s / 2)
        (seen,) = setting.truth(np.zeros(1))[0]
        assert 0 <= seen < alone
        assert seen > 0 or s < 2.5


# --- the package --------------------------------------------------------------------------------

SMALL = {"full/many": 4, "uneven/many": 4, "full/own-crowd": 20, "window/averaged-crowd": 20,
         "full/gaussian-line": 24, "full/gaussian-plane": 12, "full/gaussian-groups": 2, "full/gaussian-orthogonal": 1,
         "window/steered": 6, "rounds/full": 4, "rounds/uneven": 3, "rounds/averaged": 3}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_the_package_is_not_crossed(name: str) -> None:
    tally = Tally()
    fight.campaign(name, KINDS[name].draw, 51, SMALL.get(name, 40), tally)
    assert tally.crossings == []
    assert tally.attacks >= SMALL.get(name, 40) or tally.done


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_the_package_is_not_crossed_by_many(name: str) -> None:
    tally = Tally()
    fight.campaign(name, KINDS[name].draw, 52, max(10, int(100 * KINDS[name].share)), tally)
    assert tally.crossings == []


LOOSE = (
    "full/many",
    "uneven/many",
    "full/gaussian-coarse",
    "full/laplace",
    "full/own-crowd",
    "rounds/averaged",
)  # or too slow to get close
BITING = [name for name, kind in KINDS.items() if not kind.slow and name not in LOOSE]


@pytest.mark.parametrize("name", BITING)
def test_a_promise_a_tenth_too_small_is_found(name: str) -> None:
    tally = Tally()
    for attacks in range(1, 400):
        fight.campaign(name, KINDS[name].draw, 53, attacks, tally, lambda text, at: 0.9 * fight.promised(text, at))
        if tally.crossings or tally.done:
            break
    assert tally.crossings or tally.done
    assert tally.done or "; repeat(" in tally.crossings[0]


def test_what_is_not_a_number_is_a_crossing() -> None:
    tally = Tally()
    fight.campaign("full/pure", KINDS["full/pure"].draw, 54, 1, tally, lambda text, at: np.full(len(at), np.nan))
    assert tally.crossings


def test_a_lower_bound_that_claims_too_much_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = fight.dp.lower_bound

    class Bolder:
        def __init__(self, rounds: object, delta: float) -> None:
            self.epsilon = self
            self.lower = 1.01 * honest(rounds, delta).epsilon.lower + 1e-6

    monkeypatch.setattr(fight.dp, "lower_bound", Bolder)
    tally, rng = Tally(), RNG(55)
    while tally.lower < 3:
        fight.lower_bound(rng, KINDS["full/pure"].draw(rng), tally, "")
    assert len(tally.crossings) == 3


def test_the_command_says_what_crossed(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--attacks", "60", "--kinds", "uneven/p*", "--seed", "5"]
    assert attack_absent.main(words) == 0
    assert "uneven/pure" in capsys.readouterr().out
    assert attack_absent.main([*words, "--scaled", "0.5"]) == 1
    said = capsys.readouterr().out
    assert "CROSSED uneven/pure: delta(" in said
    number = int(said.partition("repeat('uneven/pure', 5, ")[2].partition(")")[0])
    setting, tally = attack_absent.repeat("uneven/pure", 5, number)
    assert setting.text in said
    assert not tally.crossings
