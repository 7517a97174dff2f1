"""Rates that differ between clients: never below the enumerated truth, close to what equal low rates lose."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpcheckin.accounting import (
    CheckInRound,
    any_pure,
    binary_response,
    compose,
    dary_response,
    gaussian,
    laplace,
    lower_bound,
)
from dpcheckin.accounting.engine.seats import Seats
from dpcheckin.accounting.pairs.marking import Crowds
from oracles import brute_force as bf


def binary(epsilon: float) -> np.ndarray:
    p = math.exp(epsilon) / (math.exp(epsilon) + 1)
    return np.array([[p, 1 - p], [1 - p, p]])


def ternary(epsilon: float) -> np.ndarray:
    rows = np.ones((3, 3)) + np.expm1(epsilon) * np.eye(3)
    return rows / rows.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("pair", "matrix"), [(binary_response, binary), (lambda e: dary_response(e, 3), ternary)])
@pytest.mark.parametrize("high", [0.4, 0.9, 1.0])
def test_no_rates_in_the_interval_lose_more(pair: Any, matrix: Any, high: float) -> None:
    rng, close = np.random.default_rng(3), 0.0
    for _ in range(40):
        n, epsilon = int(rng.integers(2, 7)), float(rng.uniform(0.2, 2.5))
        low = high * float(rng.uniform(0.1, 1.0))
        rows = matrix(epsilon)
        rates = rng.choice([low, high, 0.5 * (low + high)], n).tolist()
        others = rng.integers(0, len(rows), n - 1).tolist()
        laws = bf.as_pair(*(bf.check_in_law(rows, [x, *others], rates) for x in (0, 1)))
        promised = compose([(CheckInRound(n, high, pair(epsilon), lowest_rate=low), 1)])
        for e in (0.0, 0.3 * epsilon, 0.7 * epsilon):
            truth = max(bf.both_directions(*laws, e))
            bound = promised.delta(e).upper
            assert truth <= bound * (1 + 1e-9)
            close = max(close, truth / bound)
    assert close > 0.6


def test_crowds_of_random_size_are_sound_one_size_for_all_larger_ones() -> None:
    """Eighty clients, all others at the lowest rate: exactly counted; half of the crowd by itself is too few."""
    n, low, high, epsilon = 80, 0.25, 0.5, 1.0
    rows, pair = binary(epsilon), binary_response(epsilon)
    one = CheckInRound(n, high, pair, lowest_rate=low)
    rates = [high, *[low] * (n - 1)]
    caught = 0
    for value in (0, 1):
        laws = bf.as_pair(*(bf.check_in_law(rows, [x, *[value] * (n - 1)], rates) for x in (0, 1)))
        for e in (0.0, 0.05, 0.15):
            truth = max(bf.both_directions(*laws, e))
            assert truth <= compose([(one, 1)]).delta(e).upper <= 1.6 * truth
            # a crowd that is taken for a fifth larger than it surely is
            seats = [(1.0, Seats(n, pair, 0.0, float(n), high, 1 - high))]
            forged = Crowds(pair, [(1.0, int(1.2 * n))], high, seats).curve(1e-6, 1e-12, None, enough=False)
            caught += truth > forged.upper_at(e)
    assert caught


@pytest.mark.parametrize(
    ("pair", "most"),
    [(any_pure(2.0), 1.05), (binary_response(1.0), 1.05), (laplace(1.0), 1.05), (dary_response(2.0, 10), 1.05),
     (gaussian(2.0), 1.10)],
)  # fmt: skip
@pytest.mark.parametrize(("low", "high", "rounds"), [(0.025, 0.05, 100), (0.5, 1.0, 10)])
def test_uneven_rates_meet_their_lower_bound(pair: Any, most: float, low: float, high: float, rounds: int) -> None:
    """The others at the lowest rate lose nearly as much as is promised of all rates between."""
    run = [(CheckInRound(10_000, high, pair, lowest_rate=low), rounds)]
    least, stated = lower_bound(run, 1e-6).epsilon.lower, compose(run).epsilon(1e-6).upper
    assert least <= stated <= most * least


def test_the_lower_bound_of_uneven_rates_is_not_above_the_enumerated_truth() -> None:
    n, low, high, epsilon = 60, 0.2, 0.6, 1.5
    one = CheckInRound(n, high, binary_response(epsilon), lowest_rate=low)
    rates = [high, *[low] * (n - 1)]
    for delta in (0.05, 0.01, 1e-4):
        least = lower_bound([(one, 1)], delta).epsilon.lower
        worst = []
        for value in (0, 1):
            laws = bf.as_pair(*(bf.check_in_law(binary(epsilon), [x, *[value] * (n - 1)], rates) for x in (0, 1)))
            worst.append(max(bf.both_directions(*laws, least)))
        assert delta <= max(worst) * (1 + 1e-9)
        equal = lower_bound([(CheckInRound(n, high, binary_response(epsilon)), 1)], delta).epsilon.lower
        assert least > equal
