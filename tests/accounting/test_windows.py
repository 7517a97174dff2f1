"""The window bound: brute force with adaptive channels, the page's figures, random allocation."""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np
import pytest

from dpcheckin.accounting import LocalPair, WindowRound, any_pure, compose, gaussian, lower_bound
from dpcheckin.accounting.engine.seats import Seats
from dpcheckin.accounting.rounds.windows import PosteriorRound
from dpcheckin.errors import InvalidParameter
from dpcheckin.papers.p2 import bounds as p2
from oracles.homogeneous_lattice import subsample_epsilon
from oracles.window_runs import window_law

EPSILONS = (0.0, 0.05, 0.2, 0.5, 1.0)


def _channel(random: np.random.Generator, e0: float, outs: int) -> np.ndarray:
    """A random channel of four inputs with local epsilon e0, often extremal."""
    rows = np.where(random.integers(0, 2, (4, outs)) == 1, math.exp(e0), 1.0)
    matrix = rows * random.dirichlet(np.ones(outs))
    matrix /= matrix.sum(axis=1, keepdims=True)
    while (matrix.max(axis=0) / matrix.min(axis=0)).max() > math.exp(e0) * (1 + 1e-12):
        matrix = 0.9 * matrix + 0.1 * matrix.mean(axis=0)
    return matrix


def _adaptive_run(random: np.random.Generator, e0: float, m: int, p: float, outs: int) -> tuple[np.ndarray, np.ndarray]:
    """Laws of the whole run for target values a and b; channels depend on the past."""
    held = random.integers(0, 4, m)  # what the slots would hold otherwise, a and b included
    accepted = np.where(random.random(m) < 0.5, 1.0, random.random(m))
    channels: dict[tuple[int, ...], np.ndarray] = {}
    laws = np.zeros((2, outs**m))
    for index, seen in enumerate(product(range(outs), repeat=m)):
        reference, ratios = 1.0, np.full(2, 1 - np.sum(p * accepted / m))
        for i in range(m):
            matrix = channels.setdefault(seen[:i], _channel(random, e0, outs))
            other = matrix[held[i], seen[i]]
            reference *= other
            ratios += p * accepted[i] / m * matrix[:2, seen[i]] / other
        laws[:, index] = reference * ratios
    return laws[0], laws[1]


@pytest.mark.parametrize(("m", "p"), [(1, 1.0), (2, 1.0), (3, 0.5), (4, 1.0), (3, 0.7)])
@pytest.mark.parametrize("e0", [0.5, 1.0, 2.0])
def test_never_crossed_by_adaptive_runs(m: int, p: float, e0: float) -> None:
    """Forty random runs each, both directions, five epsilons."""
    random = np.random.default_rng([m, int(10 * p), int(10 * e0)])
    round_ = compose([(WindowRound(m, any_pure(e0), p), 1)])
    bounds = {e: round_.delta(e).upper for e in EPSILONS}
    for _ in range(40):
        first, second = _adaptive_run(random, e0, m, p, int(random.integers(2, 4)))
        assert first.sum() == pytest.approx(1.0) and second.sum() == pytest.approx(1.0)
        for e, bound in bounds.items():
            assert np.maximum(first - math.exp(e) * second, 0).sum() <= bound + 1e-10
            assert np.maximum(second - math.exp(e) * first, 0).sum() <= bound + 1e-10


def test_one_slot_is_the_local_randomizer() -> None:
    """m = 1, p = 1: nothing hides the report, and the bound says exactly that."""
    one = compose([(WindowRound(1, any_pure(1.0)), 1)])
    for e in (0.0, 0.4):
        local = (math.e - math.exp(e)) / (math.e + 1)
        assert one.delta(e).upper == pytest.approx(local, rel=1e-6)


@pytest.mark.parametrize(("e0", "expected"), [(0.5, 0.0627), (1.0, 0.1356), (2.0, 0.3732)])
def test_a_thousand_slots(e0: float, expected: float) -> None:
    """The page's table; less than half of Theorem 3.2."""
    ours = compose([(WindowRound(1000, any_pure(e0)), 1)]).epsilon(1e-6).upper
    assert ours == pytest.approx(expected, rel=2e-3)
    assert ours < 0.5 * p2.fixed_window(1000, 1.0, e0, 1e-6).epsilon


def test_fewer_slots_seen_fewer_check_ins_less_loss() -> None:
    """Monotone in what has elapsed and in the check-in probability."""

    def epsilon(**changes: object) -> float:
        window = WindowRound(200, any_pure(1.0), **changes)  # type: ignore[arg-type]
        return compose([(window, 1)]).epsilon(1e-5).upper

    assert epsilon(elapsed=50) < epsilon(elapsed=150) < epsilon() * (1 + 1e-9)
    assert epsilon(check_in_probability=0.25) < epsilon(check_in_probability=0.5) < epsilon()
    with pytest.raises(InvalidParameter, match="elapsed"):
        WindowRound(5, any_pure(1.0), elapsed=6)


def test_gaussian_windows_lie_between_their_bounds() -> None:
    """Homogeneous pair below, the unamplified report above."""
    ours = compose([(WindowRound(100, gaussian(4.0)), 1)]).epsilon(1e-6)
    low = subsample_epsilon(100, 100, 4.0, 1, 1e-6).lower
    assert low <= ours.upper < 0.5 * 0.5 * math.sqrt(2 * math.log(1.25e6))


def _crowded_run(
    random: np.random.Generator, e0: float, m: int, p: float, others: int
) -> tuple[np.ndarray, np.ndarray]:
    """Laws of the run for target values a and b: everybody's slots and the server's picks."""
    outs = int(random.integers(2, 4))
    matrix, values = _channel(random, e0, outs), random.integers(0, 4, others).tolist()
    dummies = [int(random.integers(0, 4))] * m
    return window_law(matrix, 0, values, dummies, p), window_law(matrix, 1, values, dummies, p)


@pytest.mark.parametrize(("m", "p", "others"), [(2, 1.0, 4), (2, 0.6, 4), (3, 1.0, 4)])
def test_other_clients_in_the_slots_are_counted_soundly(m: int, p: float, others: int) -> None:
    """With a large chance of bad luck the crowd is believed in: still never crossed."""
    random = np.random.default_rng([m, others])
    for e0, unlucky in ((1.0, 0.02), (2.0, 0.2), (2.0, 0.5)):
        ((curve, _),) = WindowRound(m, any_pure(e0), p, others=others).curves(unlucky)
        bounds = {e: curve.upper_at(e) for e in EPSILONS}
        for _ in range(20):
            first, second = _crowded_run(random, e0, m, p, others)
            assert first.sum() == pytest.approx(1.0)
            for e, bound in bounds.items():
                assert np.maximum(first - math.exp(e) * second, 0).sum() <= bound + 1e-10


@pytest.mark.parametrize("pair", [any_pure(1.5), gaussian(2.0)], ids=["pure", "Gaussian"])
def test_shares_against_a_simulated_sum(pair: LocalPair) -> None:
    """E(mu + sum of share * (Z* - mu) / m)+ drawn from the potentials, five standard errors."""
    random, m, e = np.random.default_rng(5), 6, 0.3
    alpha, shares = math.exp(e), ((1.0, 0.5), (0.5, 0.3), (0.2, 0.2))
    # Z* by inverting its distribution function, from the slopes of its two potentials
    t = np.concatenate([[0.0], np.geomspace(1e-4, 400.0, 40_000)])
    up = pair.profile(alpha + t)
    down = alpha * pair.profile((1 + t) / alpha)
    above = np.append(-np.diff(up) / np.diff(t), 0.0)  # P(Z* > t)
    below = np.append(-np.diff(down) / np.diff(t), 0.0)  # P(Z* < -t)
    u = random.random((400_000, m))
    z = np.zeros_like(u)
    high, low = u < above[0], u > 1 - below[0]
    z[high] = np.interp(-u[high], -above, t)
    z[low] = -np.interp(-(1 - u[low]), -below, t)
    w = random.choice([w for w, _ in shares], p=[p for _, p in shares], size=u.shape)
    sums = np.maximum((1 - alpha) + np.sum(w * (z - (1 - alpha)), axis=1) / m, 0.0)
    seats = [(1.0, Seats(m, pair, 0.0, float(m), 1.0, 0.0, shares=shares))]
    bound = pair.curve(seats, 1.0, 1e-12).upper_at(e)
    error = 5 * float(np.std(sums)) / math.sqrt(sums.size)
    assert float(np.mean(sums)) - error <= bound <= float(np.mean(sums)) + error + 0.01 * bound


def test_a_crowd_helps_and_stays_above_the_lower_bound() -> None:
    """More others, less loss; never below the exact pair of datasets."""
    found = []
    for others in (None, 10, 999, 9_999, 99_999):
        window = WindowRound(1000, any_pure(1.0), others=others)
        found.append(compose([(window, 1)]).epsilon(1e-6).upper)
        low = lower_bound([(window, 1)], 1e-6)
        assert low.epsilon.lower <= found[-1]
    assert all(more <= fewer * (1 + 1e-5) for fewer, more in pairwise(found))
    assert found[3] < 0.25 * found[0]
    with pytest.raises(InvalidParameter, match="others"):
        WindowRound(5, any_pure(1.0), others=-1)


@pytest.mark.parametrize("windows", [1, 2])
def test_epsilon_and_delta_of_averaged_windows_are_one_curve(windows: int) -> None:
    """At an epsilon below the certified one delta is larger than asked for."""
    run = compose([(PosteriorRound((0.001,) * 1000, any_pure(1.0)), windows)])
    epsilon = run.epsilon(1e-6)
    assert run.delta(0.9 * epsilon.lower).upper > 1e-6
    assert run.delta(1.1 * epsilon.upper).upper <= 1e-6


@pytest.mark.slow
def test_random_allocation_is_the_homogeneous_pair() -> None:
    """`PLD_accounting` brackets the add/remove epsilon; our pair at that distance is inside."""
    theirs = pytest.importorskip("PLD_accounting", reason="pip install PLD_accounting==2.0")
    high, low = theirs.gaussian_allocation_epsilon_range(delta=1e-6, sigma=2.0, num_steps=100)
    ours = subsample_epsilon(100, 100, 2.0, 1, 1e-6, sensitivity=1.0)
    assert low * 0.999 <= ours.upper and ours.lower <= high * 1.001
