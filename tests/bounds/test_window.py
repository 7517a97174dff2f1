"""The window bound: brute force with adaptive channels, the page's figures, random allocation."""

from __future__ import annotations

import doctest
import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from dpcheckin.accounting import any_pure, compose, gaussian
from dpcheckin.accounting import random_check_ins as p2
from dpcheckin.accounting.homogeneous_pair import subsample_epsilon
from dpcheckin.accounting.window import WindowRound
from dpcheckin.errors import InvalidParameter

EPSILONS = (0.0, 0.05, 0.2, 0.5, 1.0)


def _channel(random: np.random.Generator, e0: float, outs: int) -> np.ndarray:
    """A random channel of four inputs with local epsilon e0, often extremal."""
    rows = np.where(random.integers(0, 2, (4, outs)) == 1, math.exp(e0), 1.0)
    matrix = rows * random.dirichlet(np.ones(outs))
    matrix /= matrix.sum(axis=1, keepdims=True)
    while (matrix.max(axis=0) / matrix.min(axis=0)).max() > math.exp(e0) * (1 + 1e-12):
        matrix = 0.9 * matrix + 0.1 * matrix.mean(axis=0)
    return matrix


def _adaptive_run(
    random: np.random.Generator, e0: float, m: int, p: float, outs: int
) -> tuple[np.ndarray, np.ndarray]:
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


@pytest.mark.parametrize(("e0", "expected"), [(0.5, 0.0627), (1.0, 0.1487), (2.0, 0.3971)])
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


def test_the_page_runs() -> None:
    """docs/random-check-ins.md."""
    page = Path(__file__).parents[2] / "docs" / "random-check-ins.md"
    failures, run = doctest.testfile(str(page), module_relative=False)
    assert (failures, run > 0) == (0, True)


@pytest.mark.slow
def test_random_allocation_is_the_homogeneous_pair() -> None:
    """`PLD_accounting` brackets the add/remove epsilon; our pair at that distance is inside."""
    theirs = pytest.importorskip("PLD_accounting", reason="pip install PLD_accounting==2.0")
    high, low = theirs.gaussian_allocation_epsilon_range(delta=1e-6, sigma=2.0, num_steps=100)
    ours = subsample_epsilon(100, 100, 2.0, 1, 1e-6, sensitivity=1.0)
    assert low * 0.999 <= ours.upper and ours.lower <= high * 1.001
