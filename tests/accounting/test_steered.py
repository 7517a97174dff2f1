"""Reports that are chosen after others were seen: windows and sequences in random order, against exact play."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest

from dpcheckin.accounting import WindowRound, any_pure, binary_response, compose, dary_response, gaussian, lower_bound
from dpcheckin.accounting.engine.typed.laws import AtomLaw
from dpcheckin.accounting.engine.typed.sums import typed_upper
from dpcheckin.accounting.pairs.marking import marked_seats, spare
from dpcheckin.accounting.pairs.pure_types import worst_alone
from dpcheckin.accounting.pairs.steered import one_type
from dpcheckin.accounting.rounds.averaged import AveragedRound


def steered(epsilon: float, alpha: float, steps: int, threshold: float) -> float:
    """The most that E(S - threshold)+ can be if each of the centred reports is chosen between A and B at the time."""
    e = math.exp(epsilon)
    laws = [
        [((e - alpha) / e, e / (e + 1)), (1 - alpha * e, 1 / (e + 1))],
        [(e - alpha, 1 / (e + 1)), ((1 - alpha * e) / e, e / (e + 1))],
    ]
    values = [x + alpha - 1 for law in laws for x, _ in law]

    @cache
    def value(counts: tuple[int, ...]) -> float:
        if sum(counts) == steps:
            return max(sum(c * v for c, v in zip(counts, values, strict=True)) - threshold, 0.0)
        best = 0.0
        for first in (0, 2):
            mean = 0.0
            for i in (first, first + 1):
                after = (*counts[:i], counts[i] + 1, *counts[i + 1 :])
                mean += laws[first // 2][i - first][1] * value(after)
            best = max(best, mean)
        return best

    return value((0, 0, 0, 0))


@pytest.mark.parametrize("epsilon", [1.5, 2.0, 3.0])
@pytest.mark.parametrize("steps", [6, 16])
def test_steering_between_two_types_gains_no_more_than_the_one(epsilon: float, steps: int) -> None:
    pair, close = binary_response(epsilon), 0.0
    window = compose([(WindowRound(steps, pair), 1)])
    types = one_type(pair)
    assert types is not None
    for e in (0.0, 0.1, 0.3, 0.6):
        played = steered(epsilon, math.exp(e), steps, steps * math.expm1(e)) / steps
        promised = window.delta(e).upper
        assert played <= promised * (1 + 1e-9)
        close = max(close, played / promised)
    assert close > 0.6
    # with half of its noise the one type would not lie above both
    alone = [one for one in types(0.0) if len(one.laws) == 1]
    assert alone and all(one.smoothing > 0.0 for one in alone)


def adaptive(rng: np.random.Generator, depth: int, values: int, e0: float) -> dict[tuple[int, ...], np.ndarray]:
    """A randomizer of two outputs for everything that may have been seen before."""
    made = {}
    for length in range(depth):
        for seen in itertools.product((0, 1), repeat=length):
            low = rng.uniform(1 / (e0 + 1), e0 / (e0 + 1), values)
            low = np.where(rng.random(values) < 0.7, rng.choice([1 / (e0 + 1), e0 / (e0 + 1)], values), low)
            made[seen] = np.stack([low, 1 - low], axis=1)
    return made


def sequence(channel: dict[tuple[int, ...], np.ndarray], clients: list[int]) -> np.ndarray:
    """Probabilities of all that may be seen of clients in random order."""
    orders, n = list(itertools.permutations(clients)), len(clients)
    found = []
    for seen in itertools.product((0, 1), repeat=n):
        chances = [math.prod(channel[seen[:j]][x, seen[j]] for j, x in enumerate(order)) for order in orders]
        found.append(math.fsum(chances) / len(orders))
    return np.array(found)


def test_no_adaptive_sequence_in_random_order_loses_more() -> None:
    """Every marking of every such sequence, by complete enumeration; a lean a fifth too small is crossed."""
    rng, close = np.random.default_rng(8), 0.0
    for _ in range(150):
        n, epsilon = int(rng.integers(2, 5)), float(rng.uniform(0.3, 2.0))
        pair, channel = any_pure(epsilon), adaptive(rng, n, 4, math.exp(epsilon))
        others = rng.integers(0, 4, n - 1).tolist()
        first, second = (sequence(channel, [x, *others]) for x in (0, 1))
        beta = float(rng.uniform(0.1, 0.85)) * spare(pair, n)
        seats = marked_seats(pair, n, 1.0, (1.0 - beta) ** n)
        assert seats is not None
        for e in (0.0, 0.3 * epsilon, 0.7 * epsilon):
            rise, alpha = math.expm1(e), math.exp(e)
            kappa = beta / spare(pair, n)
            left = float(pair.profile(1.0 + (1.0 - kappa) * rise)) / (1.0 - beta)
            (worst,) = worst_alone(pair.hits, 0.0, rise)
            bound = typed_upper(seats, worst, rise) + (1.0 - beta) ** n * min(left, 1.0)
            for p, q in ((first, second), (second, first)):
                truth = float(np.maximum(p - alpha * q, 0.0).sum())
                assert truth <= bound * (1 + 1e-9)
                close = max(close, truth / bound)
    assert close > 0.4


def smoothed(law: tuple[np.ndarray, np.ndarray], scale: float, at: np.ndarray) -> np.ndarray:
    away = law[0][None, :] - at[:, None]
    return (np.maximum(away, 0.0) + 0.5 * scale * np.exp(-np.abs(away) / scale)) @ law[1]


@pytest.mark.parametrize("epsilon", [1.0, 1.3, 3.0])
@pytest.mark.parametrize("shares", [((1.0, 0.3), (0.5, 0.3), (0.1, 0.4)), ((1.0, 0.001), (0.02, 0.5), (0.01, 0.499))])
def test_contracted_reports_lie_below_the_law_that_stands_for_them(
    epsilon: float, shares: tuple[tuple[float, float], ...]
) -> None:
    """Whichever type is chosen at every chance to stand; a fifth less noise is noticed."""
    types, e = one_type(any_pure(epsilon), shares, 500), math.exp(epsilon)
    assert types is not None
    forged = 0
    for rise in (0.0, 0.03, 0.1):
        alpha = 1.0 + rise
        reports = [
            (np.array([(e - alpha) / e, 1 - alpha * e]) + rise, np.array([e, 1]) / (e + 1)),
            (np.array([e - alpha, (1 - alpha * e) / e]) + rise, np.array([1, e]) / (e + 1)),
            (np.array([e - alpha, 1 - alpha * e, (1 - alpha) / e]) + rise, np.array([1, 1, e]) / (e + 2)),
        ]
        for one in types(rise):
            assert one.smoothing > 0.0
            (law,) = one.laws
            assert isinstance(law, AtomLaw)
            at = np.linspace(-1.3 * alpha * e, 1.3 * e, 3001)
            for share, holds in ((1.0, True), (0.8, False)):
                noise = share * one.smoothing
                most = sum(p * np.max([smoothed((w * x, m), noise, at) for x, m in reports], axis=0) for w, p in shares)
                above = smoothed((law.values, law.masses), noise, at)
                if holds:
                    assert (most <= above + 1e-12).all()
                else:
                    forged += bool((most > above + 1e-12).any())
    assert forged or epsilon > 2.0


def test_where_a_report_hardly_ever_stands_alone_little_noise_is_enough() -> None:
    """Noise for whole reports drowned a hundred clients to a slot: what stands rarely has the worst law instead."""
    shares = ((1.0, 1e-9), (0.012, 0.5), (0.01, 0.5))
    types = one_type(any_pure(1.0), shares, 1_000)
    assert types is not None
    assert 0.0 < types(0.0)[0].smoothing < 0.03


@pytest.mark.parametrize(("rounds", "goal"), [(1, 0.0386), (5, 0.0915)])
def test_averaged_windows_compose(rounds: int, goal: float) -> None:
    """One cost 0.053, and five of them 5.0."""
    run = [(AveragedRound(10_000, 100, any_pure(1.0), counted=True), rounds)]
    stated = compose(run).epsilon(1e-6).upper
    assert lower_bound(run, 1e-6).epsilon.lower <= stated <= goal


def test_a_part_of_an_averaged_window_costs_less_and_gaussian_reports_are_covered() -> None:
    for pair in (dary_response(1.0, 4), gaussian(4.0)):
        figures = [
            compose([(AveragedRound(5_000, 100, pair, passed), 1)]).epsilon(1e-6).upper for passed in (10, 50, None)
        ]
        assert 0 < figures[0] < figures[1] < figures[2] < 0.06


@pytest.mark.parametrize(
    ("epsilon", "others", "most"),
    [
        (1.5, 999, 1.15),
        (2.0, 999, 1.15),
        (4.0, 999, 1.15),
        (1.0, 99_999, 1.06),
        (2.0, 99_999, 1.05),
        (1.0, 9_999, 1.23),
    ],
)
def test_windows_with_the_crowd(epsilon: float, others: int, most: float) -> None:
    one = WindowRound(1000, any_pure(epsilon), others=others)
    low = lower_bound([(one, 1)], 1e-6).epsilon.lower
    assert low <= compose([(one, 1)]).epsilon(1e-6).upper <= most * low
