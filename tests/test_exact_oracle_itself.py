"""The exact enumeration is judged by hand-made figures and by plainer, slower enumerations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations, combinations_with_replacement, product
from math import comb, exp, log

import numpy as np
import pytest

from oracles.exact import randomizers
from oracles.exact.families import Array, Family, adaptive_delta, adaptive_epsilon, hockey_stick
from oracles.exact.shuffles import check_in, local, shuffle, subsample
from oracles.exact.windows import adaptive_window_delta, window

ABSENT = -1


def _matrix(rng: np.random.Generator, inputs: int, symbols: int, zeros: bool = False) -> Array:
    rows = rng.dirichlet(np.ones(symbols), size=inputs)
    if zeros:
        rows[0, 0] = 0.0
    return rows / rows.sum(axis=1, keepdims=True)


def _plain_profiles(
    matrix: Array, clients: int, taking_part: dict[tuple[int, ...], float], alpha: float
) -> list[float]:
    """Every client's every report, one by one, given how likely each set of participants is."""
    symbols = range(matrix.shape[1])
    found = []
    for others in combinations_with_replacement(range(len(matrix)), clients - 1):
        laws = []
        for target in range(len(matrix)):
            data, law = (target, *others), defaultdict(float)
            for present, chance in taking_part.items():
                for reports in product(symbols, repeat=len(present)):
                    weight = chance
                    for who, report in zip(present, reports, strict=True):
                        weight *= matrix[data[who], report]
                    law[tuple(sorted(reports))] += weight
            laws.append(law)
        for a, b in product(range(len(matrix)), repeat=2):
            if a != b:
                seen = set(laws[a]) | set(laws[b])
                found.append(sum(max(laws[a][s] - alpha * laws[b][s], 0.0) for s in seen))
    return sorted(found)


def _profiles(family: Family, alpha: float) -> list[float]:
    return sorted(hockey_stick(family.p, family.q, np.array([alpha]))[:, 0])


def _subsets(clients: int) -> Iterator[tuple[int, ...]]:
    for size in range(clients + 1):
        yield from combinations(range(clients), size)


@pytest.mark.parametrize("alpha", [1.0, 1.7])
@pytest.mark.parametrize("clients", [1, 2, 3])
def test_counting_histograms_is_the_same_as_writing_everything_out(clients, alpha) -> None:
    """Every candidate pair has the profile of the plain enumeration."""
    rng = np.random.default_rng(clients)
    matrix, rate = _matrix(rng, 3, 3, zeros=True), 0.3
    coins = {s: rate ** len(s) * (1 - rate) ** (clients - len(s)) for s in _subsets(clients)}
    plain = _plain_profiles(matrix, clients, coins, alpha)
    assert np.allclose(plain, _profiles(check_in(matrix, clients, [rate]), alpha), atol=1e-14)
    everybody = {tuple(range(clients)): 1.0}
    plain = _plain_profiles(matrix, clients, everybody, alpha)
    assert np.allclose(plain, _profiles(shuffle(matrix, clients), alpha), atol=1e-14)
    for cohort in range(1, clients + 1):
        fixed = {s: 1 / comb(clients, cohort) for s in _subsets(clients) if len(s) == cohort}
        plain = _plain_profiles(matrix, clients, fixed, alpha)
        assert np.allclose(plain, _profiles(subsample(matrix, clients, cohort), alpha), atol=1e-14)


def test_colluders_in_a_cohort_are_seen_and_leave_the_rest() -> None:
    """Five clients, two colluding, cohort of three: a mixture over how many honest are in it."""
    matrix = _matrix(np.random.default_rng(5), 2, 3)
    honest = {s: comb(2, 3 - len(s)) / comb(5, 3) if 1 <= len(s) <= 3 else 0.0 for s in _subsets(3)}
    assert sum(honest.values()) == pytest.approx(1.0)
    plain = _plain_profiles(matrix, 3, honest, 1.3)
    assert np.allclose(plain, _profiles(subsample(matrix, 5, 3, colluders=2), 1.3), atol=1e-14)


def test_uneven_rates_reach_the_published_counterexample() -> None:
    """Target at 0.2, others at 0.02: 3-ary, epsilon_0 = 2, n = 5, epsilon = 1 loses 0.087."""
    family = check_in(randomizers.dary(2.0, 3), 5, [0.02, 0.2])
    assert adaptive_delta([family], [exp(1.0)])[0] == pytest.approx(0.087, abs=5e-4)


def test_a_lone_client_is_local() -> None:
    matrix = _matrix(np.random.default_rng(2), 2, 3)
    alphas = np.array([0.5, 1.0, 1.5])
    assert np.allclose(check_in(matrix, 1, [0.4]).profile(alphas), local(matrix, 0.4).profile(alphas))


def test_data_in_the_clear() -> None:
    """Two clients at rate 0.8 who send their data: seen in one of two rounds with 0.96."""
    family = check_in(np.eye(2), 2, [0.8])
    assert adaptive_delta([family], [1.0, 1e6]) == pytest.approx([0.8, 0.8])
    assert adaptive_delta([family, family], [1.0, 1e6]) == pytest.approx([0.96, 0.96])
    assert adaptive_epsilon([family, family], 0.95) == float("inf")


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.9])
def test_binary_response_twice_by_hand(epsilon) -> None:
    """Only two true reports have a positive loss: (e^2 - e^eps) / (e + 1)^2."""
    e = exp(1.0)
    family = local(randomizers.dary(1.0, 2), 1.0)
    by_hand = (e**2 - exp(epsilon)) / (e + 1) ** 2
    assert adaptive_delta([family, family], [exp(epsilon)])[0] == pytest.approx(by_hand, rel=1e-12)


def test_leaking_response_by_hand() -> None:
    """delta(0) = 0.2 + 0.8 (e - 1)/(e + 1)."""
    leaky = randomizers.leaky(randomizers.dary(1.0, 2), 0.2, np.eye(2))
    by_hand = 0.2 + 0.8 * (exp(1.0) - 1) / (exp(1.0) + 1)
    assert adaptive_delta([local(leaky, 1.0)], [1.0])[0] == pytest.approx(by_hand, rel=1e-12)


def test_two_shuffled_binary_responses_by_hand() -> None:
    """n = 2, others at b: the histogram (2 of a) has e/(e+1)^2 against 1/(e+1)^2, and so on."""
    e = exp(1.0)
    p = np.array([e, 1 + e * e, e]) / (e + 1) ** 2  # both say a, one each, both say b
    q = np.array([1, 2 * e, e * e]) / (e + 1) ** 2
    family = shuffle(randomizers.dary(1.0, 2), 2)
    for alpha in (1.0, 1.2, 2.0):
        by_hand = np.maximum(p - alpha * q, 0).sum(), np.maximum(q - alpha * p, 0).sum()
        assert family.profile(np.array([alpha]))[0] == pytest.approx(max(by_hand), rel=1e-12)


def _plain_value(run: list[Family], u: float, v: float) -> float:
    """The recursion of the module's first paragraph, word for word."""
    if not run:
        return max(u - v, 0.0)
    return max(
        sum(_plain_value(run[1:], u * a, v * b) for a, b in zip(p, q, strict=True))
        for p, q in zip(run[0].p, run[0].q, strict=True)
    )


@pytest.mark.parametrize("seed", range(12))
def test_an_adaptive_run_is_the_plain_recursion(seed) -> None:
    """Dropping beaten candidates and interpolating between kinks changes nothing."""
    rng = np.random.default_rng(seed)
    first = check_in(_matrix(rng, 2, 2, zeros=seed % 3 == 0), 2, [0.3])
    second = local(_matrix(rng, 3, 3, zeros=seed % 4 == 0), 0.7)
    third = window(_matrix(rng, 2, 2), 1, 1, 0.6)
    for alpha in (0.6, 1.0, 1.2, 2.5):
        for run in ([first, first], [first, second], [second, third], [third, second, first]):
            plain = _plain_value(run, 1.0, alpha)
            assert adaptive_delta(run, [alpha])[0] == pytest.approx(plain, rel=1e-10, abs=1e-14)


def test_a_candidate_that_is_larger_only_between_grid_points_is_kept() -> None:
    """One slot taken with probability 0.17, twice: two equal reports by hand."""
    e, p = exp(0.97), 0.17
    told = ((1 - p) + p * e) / (e + 1)  # the dummy holds b, the target a, the report says a
    untold = 1 / (e + 1)
    family = window(randomizers.dary(0.97, 2), 1, 0, p)
    by_hand = told**2 - exp(0.45) * untold**2
    assert adaptive_delta([family, family], [exp(0.45)])[0] >= by_hand * (1 - 1e-12) > 0.004


def test_an_epsilon_is_where_the_profile_reaches_delta() -> None:
    family = check_in(randomizers.dary(1.5, 3), 4, [0.5])
    for run in ([family], [family, family]):
        epsilon = adaptive_epsilon(run, 0.02)
        assert adaptive_delta(run, [exp(epsilon)])[0] == pytest.approx(0.02, rel=1e-9)


def test_a_window_written_out() -> None:
    """Two slots, two other clients: choices, acceptances and reports, one by one."""
    matrix, p, slots = _matrix(np.random.default_rng(8), 2, 2), 0.7, 2
    pairs = []
    for others in combinations_with_replacement(range(2), 2):
        for dummy in range(2):
            laws = [_plain_window(matrix, (a, *others), dummy, p, slots) for a in range(2)]
            pairs += [(laws[0], laws[1]), (laws[1], laws[0])]
    for alpha in (0.8, 1.0, 1.1):
        plain = sorted(float(np.maximum(a - alpha * b, 0).sum()) for a, b in pairs)
        assert np.allclose(plain, _profiles(window(matrix, slots, 2, p), alpha), atol=1e-14)
        early = sorted(float(np.maximum(a.sum(axis=1) - alpha * b.sum(axis=1), 0).sum()) for a, b in pairs)
        assert np.allclose(early, _profiles(window(matrix, slots, 2, p, 1), alpha), atol=1e-14)


def _plain_window(matrix: Array, data: tuple[int, ...], dummy: int, p: float, slots: int) -> Array:
    law = np.zeros((matrix.shape[1],) * slots)
    for choice in product([ABSENT, *range(slots)], repeat=len(data)):
        chance = np.prod([1 - p if c == ABSENT else p / slots for c in choice])
        waiting = [[i for i, c in enumerate(choice) if c == slot] for slot in range(slots)]
        for accepted in product(*[w or [None] for w in waiting]):
            share = np.prod([1 / max(len(w), 1) for w in waiting])
            rows = [matrix[dummy if who is None else data[who]] for who in accepted]
            law += chance * share * np.multiply.outer(rows[0], rows[1])
    return law


def test_slots_that_see_the_past_reveal_at_least_as_much() -> None:
    """One slot has no past; more slots only gain; part of a window is part of it."""
    matrix = _matrix(np.random.default_rng(4), 3, 3, zeros=True)
    for alpha in (0.7, 1.0, 1.4):
        blind = [window(matrix, m, 0, 0.6).profile(np.array([alpha]))[0] for m in (1, 2, 3)]
        seeing = [adaptive_window_delta(matrix, m, 0.6, alpha) for m in (1, 2, 3)]
        assert seeing[0] == pytest.approx(blind[0], rel=1e-12)
        assert all(s >= b - 1e-14 for s, b in zip(seeing, blind, strict=True))
        assert adaptive_window_delta(matrix, 3, 0.6, alpha, 1) == pytest.approx(
            window(matrix, 3, 0, 0.6, 1).profile(np.array([alpha]))[0], rel=1e-12
        )


def test_moments_of_binary_response() -> None:
    """Order 2 and order 30, in closed form; infinite where one side has mass of its own."""
    e = exp(1.3)
    family = local(randomizers.dary(1.3, 2), 1.0)
    for order in (2.0, 30.0):
        moment = (e**order + e ** (1 - order)) / (e + 1)
        assert family.renyi(order) == pytest.approx(log(moment) / (order - 1), rel=1e-12)
    assert local(np.eye(2), 1.0).renyi(2.0) == float("inf")


@pytest.mark.parametrize("inputs", [2, 3, 4])
def test_extreme_pure_randomizers_are_pure(inputs) -> None:
    rng = np.random.default_rng(inputs)
    for _ in range(20):
        matrix = randomizers.extreme_pure(rng, 0.8, inputs)
        assert np.allclose(matrix.sum(axis=1), 1.0)
        assert np.log(matrix.max(axis=0) / matrix.min(axis=0)).max() <= 0.8 + 1e-9


def test_opposite_hemispheres_are_binary_response() -> None:
    alphas = np.exp(np.linspace(-1, 1, 21))
    arcs = randomizers.hemisphere_on_circle(0.9, np.array([10.0, 190.0]))
    binary = local(randomizers.dary(0.9, 2), 1.0)
    assert np.allclose(local(arcs, 1.0).profile(alphas), binary.profile(alphas))
    three = randomizers.hemisphere_on_circle(0.9, np.array([0.0, 180.0, 77.0]))
    assert np.allclose(three.sum(axis=1), 1.0)


def test_cells_lose_and_spreading_reveals() -> None:
    """Laplace and Gaussian: cells below the truth, spread cells above it, near for fine ones."""
    from scipy.stats import norm

    alphas = np.exp(np.linspace(0.0, 0.99, 12))
    cells, revealing = randomizers.laplace_cells(1.0, 40)
    truth = 1.0 - np.exp((np.log(alphas) - 1.0) / 2)
    below = local(cells[:2], 1.0).profile(alphas)
    above = local(revealing, 1.0).profile(alphas)
    assert (below <= truth + 1e-12).all()
    assert (truth <= above + 1e-12).all()
    assert np.allclose(below, above, atol=2e-3)
    cells, revealing = randomizers.gaussian_cells(2.0, 300)
    at = np.log(alphas)
    truth = norm.cdf(0.5 - at) - alphas * norm.cdf(-0.5 - at)
    below = local(cells[:2], 1.0).profile(alphas)
    above = local(revealing, 1.0).profile(alphas)
    assert (below <= truth + 1e-12).all()
    assert (truth <= above + 1e-12).all()
    assert np.allclose(below, above, atol=2e-3)


@pytest.mark.parametrize("seed", range(6))
def test_the_envelope_of_a_matrix_has_its_largest_profile(seed) -> None:
    matrix = _matrix(np.random.default_rng(seed), 3, 3, zeros=seed % 2 == 0)
    pair = randomizers.envelope_pair(matrix)
    alphas = np.exp(np.linspace(-3, 3, 200))
    together = Family(pair[:1], pair[1:]).profile(alphas)
    assert np.allclose(together, local(matrix, 1.0).profile(alphas), atol=1e-9)
