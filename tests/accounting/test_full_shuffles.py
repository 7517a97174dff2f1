"""Rounds from which perhaps nobody stays away: the lemma, the engine on it, and figures against the truth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpcheckin.accounting import (
    CheckInRound,
    ShuffleRound,
    SubsampleRound,
    any_pure,
    approximate,
    binary_response,
    compose,
    dary_response,
    from_atoms,
    gaussian,
    guarantee,
    hadamard_response,
    laplace,
    lower_bound,
    subset_selection,
    unary_encoding,
)
from dpcheckin.accounting.engine.typed.laws import AtomLaw, Types
from dpcheckin.accounting.engine.typed.sums import typed_upper
from dpcheckin.accounting.pairs.marking import marked_seats, spare
from dpcheckin.special.normal import ndtr
from oracles.brute_force import as_pair, both_directions, check_in_law, shuffle_law

Floats = NDArray[np.float64]


def random_matrix(rng: np.random.Generator, values: int, reports: int, e0: float) -> Floats:
    """Rows with pairwise ratios of at most e0, some of them exactly that."""
    while True:
        rows = np.where(rng.random((values, reports)) < 0.5, 1.0, e0) * rng.uniform(0.05, 1.0, reports)
        rows = np.where(rng.random((values, reports)) < 0.2, math.sqrt(e0) * rows.min(axis=0), rows)
        rows /= rows.sum(axis=1, keepdims=True)
        if (rows.max(axis=0) / rows.min(axis=0)).max() < e0 * 1.6:
            return rows


def centred(rows: Floats, alpha: float, i: int = 0, j: int = 1, x: int = 2) -> tuple[Floats, Floats]:
    """Values and masses of X = Z - (1 - alpha) for a client at x."""
    return (rows[i] - alpha * rows[j]) / rows[x] + alpha - 1.0, rows[x]


def call(values: Floats, masses: Floats, at: Floats) -> Floats:
    return np.maximum(values[None, :] - at[:, None], 0.0) @ masses


def shared(rows: Floats, share: float, rng: np.random.Generator) -> tuple[float, float, Floats]:
    """A law G below all rows, beta and the least kappa for it."""
    least = rows.min(axis=0)
    law = least / least.sum() if rng.random() < 0.5 else rows[0]
    most = float((rows / law).min())
    return share * most, share, law


def below(rows: Floats, beta: float, kappa: float, law: Floats, alpha: float) -> float:
    """By how much an unmarked report's potential exceeds the thinned and stretched one's, at most."""
    left = (rows - beta * law) / (1.0 - beta)
    values, masses = centred(left, alpha)
    wide, plain = centred(rows, alpha)
    rho = (1.0 - kappa) / (1.0 - beta)
    wide, plain = np.append(wide / (1.0 - kappa), 0.0), np.append(rho * plain, 1.0 - rho)
    at = np.concatenate([values, wide])
    return float(np.max(call(values, masses, at) - call(wide, plain, at)))


def test_unmarked_reports_lie_below_stretched_and_thinned_ones() -> None:
    """The lemma of section 4 for random randomizers; and kappa a fifth too small is noticed."""
    rng = np.random.default_rng(5)
    forged = 0
    for _ in range(1500):
        rows = random_matrix(rng, 3, int(rng.integers(2, 7)), float(np.exp(rng.uniform(0.1, 2.5))))
        beta, kappa, law = shared(rows, float(rng.uniform(0.02, 0.95)), rng)
        alpha = float(np.exp(rng.uniform(0.0, 1.0)))
        assert below(rows, beta, kappa, law, alpha) <= 1e-12
        if 0.8 * kappa >= beta:
            forged += below(rows, beta, 0.8 * kappa, law, alpha) > 1e-9
    assert forged > 100


def profile(rows: Floats, alpha: float) -> float:
    pairs = [(i, j) for i in range(len(rows)) for j in range(len(rows)) if i != j]
    return max(float(np.maximum(rows[i] - alpha * rows[j], 0.0).sum()) for i, j in pairs)


@pytest.mark.parametrize("rate", [1.0, 0.9])
def test_no_full_shuffle_of_a_few_loses_more(rate: float) -> None:
    """Any randomizer of an epsilon, any marking, complete enumeration: sums with the pair's worst law."""
    rng, close = np.random.default_rng(11), 0.0
    for _ in range(120):
        n = int(rng.integers(2, 6))
        rows = random_matrix(rng, int(rng.integers(2, 4)), int(rng.integers(2, 4)), float(np.exp(rng.uniform(0.2, 2))))
        epsilon = max(math.log((rows.max(axis=0) / rows.min(axis=0)).max()), 0.05)
        pair, share = any_pure(epsilon), float(rng.uniform(0.1, 0.85))
        beta = share * spare(pair, n)
        seats = marked_seats(pair, n, rate, (rate * (1.0 - beta)) ** n)
        assert seats is not None
        others = rng.integers(0, len(rows), n - 1).tolist()
        first, second = as_pair(*(check_in_law(rows, [x, *others], rate) for x in (0, 1)))
        for e in (0.0, 0.3 * epsilon, 0.7 * epsilon):
            rise = math.expm1(e)
            law = AtomLaw.of(
                (math.expm1(epsilon), pair.hit),
                (-math.exp(e) * math.expm1(epsilon), pair.hit),
                (rise, math.expm1(epsilon) * pair.hit),
            )
            # the part without a marked report costs the profile of what is left
            kappa = beta / spare(pair, n)
            left = float(pair.profile(1.0 + (1.0 - kappa) * rise)) / (1.0 - beta)
            bound = typed_upper(seats, Types((law,), law), rise) + (rate * (1.0 - beta)) ** n * min(left, 1.0)
            truth = max(both_directions(first, second, e))
            assert truth <= bound * (1 + 1e-9)
            close = max(close, truth / bound)
    assert close > 0.4


def coarse(s: float, cells: int, values: list[float]) -> Floats:
    """Gaussian reports on a line, of which only the cell is seen: what is lost is less, but hardly."""
    inner = np.linspace(-2.5, 2.5, cells - 1)
    edges = np.concatenate([[-np.inf], inner, [np.inf]])
    return np.array([np.diff(ndtr(edges - s * x / 2)) for x in values])


@pytest.mark.parametrize(
    ("pair", "n"),
    [(gaussian(8.0), 40), (gaussian(3.0), 60), (laplace(0.5), 40), (unary_encoding(0.5, 4), 40),
     (hadamard_response(0.5, 4), 40), (subset_selection(0.5, 4, 2), 40), (approximate(0.5, 1e-6), 40),
     (from_atoms([1.5, 1.0, 0.5], [0.3, 0.4, 0.3]), 40)],
)  # fmt: skip
def test_promises_of_randomizers_once_refused(pair: Any, n: int) -> None:
    """Between what the others at one value make certain and what one report gives away."""
    for delta in (1e-2, 1e-4):
        for one in (ShuffleRound(n, pair), CheckInRound(n, 1.0, pair), SubsampleRound(n, n, pair)):
            stated = compose([(one, 1)]).epsilon(delta).upper
            assert lower_bound([(one, 1)], delta).epsilon.lower <= stated <= pair.epsilon_within(delta) * (1 + 1e-9)
    assert compose([(ShuffleRound(n, pair), 1)]).epsilon(0.01).upper < 0.9 * pair.epsilon_within(0.01)


@pytest.mark.parametrize("values", [[1.0, -1.0, -1.0], [1.0, -1.0, 0.0], [1.0, -1.0, 1.0]])
def test_no_full_shuffle_of_gaussian_reports_loses_more(values: list[float]) -> None:
    """Ninety clients in two groups, their reports told apart by two cells only, counted exactly."""
    s, n = 0.5, 90
    rows = coarse(s, 2, values)
    promised = compose([(ShuffleRound(n, gaussian(2 / s)), 1)])
    for e in (0.0, 0.02, 0.1):
        for group in (0, 30, 89):
            others = [2] * group + [1] * (n - 1 - group)
            laws = as_pair(*(shuffle_law(rows, [x, *others]) for x in (0, 1)))
            assert max(both_directions(*laws, e)) <= promised.delta(e).upper


def test_rates_near_one_cost_no_more_than_nobody_absent() -> None:
    """Once 4.67 at rate 0.999: now between the rate where absence is certain enough and a full shuffle."""
    figures = [
        compose([(CheckInRound(1000, rate, gaussian(2.0)), 1)]).epsilon(1e-6).upper for rate in (0.975, 0.99, 0.999, 1)
    ]
    assert figures == sorted(figures)
    assert figures[-1] <= 0.195


@pytest.mark.parametrize(
    ("sigma", "n", "rounds", "delta", "goal"),
    [(9.48, 60_000, 1, 1 / 60_000, 0.0016), (2.0, 60_000, 100, 1e-5, 0.185), (1.0, 60_000, 10, 1e-5, 0.96),
     (2.0, 1_000, 1, 1e-6, 0.195)],
)  # fmt: skip
def test_full_shuffle_of_gaussian_reports(sigma: float, n: int, rounds: int, delta: float, goal: float) -> None:
    run = [(ShuffleRound(n, gaussian(sigma)), rounds)]
    stated = guarantee(run, delta).epsilon.upper
    assert lower_bound(run, delta).epsilon.lower <= stated <= goal


@pytest.mark.parametrize(
    ("pair", "n", "rounds", "delta", "most"),
    [(any_pure(1.3), 20_000, 30, 1e-6, 1.03), (any_pure(0.5), 100_000, 100, 1e-8, 1.03),
     (binary_response(2.5), 20_000, 30, 1e-6, 1.03), (binary_response(4.0), 10_000, 100, 1e-6, 1.13),
     (dary_response(2.0, 10), 20_000, 10, 1e-6, 1.03)],
)  # fmt: skip
def test_full_shuffles_meet_their_lower_bounds(pair: Any, n: int, rounds: int, delta: float, most: float) -> None:
    run = [(ShuffleRound(n, pair), rounds)]
    low, high = lower_bound(run, delta).epsilon.lower, compose(run).epsilon(delta).upper
    assert low <= high <= most * low
