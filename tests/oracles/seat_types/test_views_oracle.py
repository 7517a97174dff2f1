"""Views of clients at different values: by hand, by the older oracles, by integration."""

from __future__ import annotations

from itertools import permutations, product
from math import exp, pi

import numpy as np
import pytest
from scipy import integrate, stats

from oracles.exact import randomizers as exact_randomizers
from oracles.exact import shuffles
from oracles.seat_types import cells, randomizers, views

ALPHAS = np.exp([0.0, 0.05, 0.3, 0.9])


# What the analyzer sees


def test_two_clients_by_hand() -> None:
    """n = 2, binary response: nobody, one of two reports, or both in either order."""
    e, g, alpha = 3.0, 0.4, 1.2
    a, b = np.array([0.75, 0.25]), np.array([0.25, 0.75])
    for x in (a, b):
        one = g * (1 - g) * np.maximum((a + x) - alpha * (b + x), 0.0).sum()
        alike = np.maximum((a - alpha * b) * x, 0.0).sum()
        mixed = max((a[0] - alpha * b[0]) * x[1] + (a[1] - alpha * b[1]) * x[0], 0.0)
        rows = randomizers.dary_rows(e, 2, [0, 1, 0 if x is a else 1])
        found = views.check_in(rows, g)
        assert found.delta(alpha) == pytest.approx(one + g**2 * (alike + mixed), rel=1e-13)
        assert views.cohort(rows, 1).delta(alpha) == pytest.approx(one / (2 * g * (1 - g)))


def test_views_are_what_sequences_of_reports_show() -> None:
    """Every outcome of every client, forgetting who sent what."""
    rng = np.random.default_rng(3)
    rows = randomizers.random_rows(rng, 4, 3, zeros=0.2)
    rates = [0.3, 0.6, 0.9]
    pair = views.check_in(rows, rates)
    seen: dict[tuple[int, ...], list[float]] = {}
    for sent in product(range(-1, 3), repeat=3):
        outcome = tuple(sorted(sent))
        for end in (0, 1):
            laws = rows[[end, 2, 3]]
            chance = 1.0
            for law, rate, symbol in zip(laws, rates, sent, strict=True):
                chance *= 1 - rate if symbol < 0 else rate * law[symbol]
            seen.setdefault(outcome, [0.0, 0.0])[end] += chance
    both = np.array(list(seen.values()))
    for alpha in ALPHAS:
        assert pair.delta(alpha) == pytest.approx(np.maximum(both[:, 0] - alpha * both[:, 1], 0.0).sum(), rel=1e-12)


@pytest.mark.parametrize("symbols", [2, 3])
def test_views_agree_with_the_enumeration_of_all_crowds(symbols: int) -> None:
    """The largest over all data sets, for coins, cohorts and colluders."""
    matrix = exact_randomizers.dary(1.1, symbols)
    inputs = range(symbols)
    crowds = [matrix[[a, b, *rest]] for a, b in permutations(inputs, 2) for rest in product(inputs, repeat=2)]
    for family, view in (
        (shuffles.check_in(matrix, 3, [0.3]), lambda rows: views.check_in(rows, 0.3)),
        (shuffles.subsample(matrix, 3, 2), lambda rows: views.cohort(rows, 2)),
        (shuffles.subsample(matrix, 5, 3, 2), lambda rows: views.cohort(rows, 3, 2)),
    ):
        found = [max(view(rows).delta(alpha) for rows in crowds) for alpha in ALPHAS]
        assert found == pytest.approx(family.profile(ALPHAS), rel=1e-12)


def test_two_rounds_of_one_pair_are_its_product() -> None:
    rng = np.random.default_rng(5)
    first = views.check_in(randomizers.random_rows(rng, 3, 3), 0.4)
    second = views.cohort(randomizers.random_rows(rng, 4, 2), 2)
    product_pair = views.Pair(np.outer(first.p, second.p).ravel(), np.outer(first.q, second.q).ravel())
    for alpha in ALPHAS:
        found = views.two_rounds([first], [second], alpha)
        assert found == pytest.approx(product_pair.delta(alpha), rel=1e-12)


# Randomizers


def test_half_circles_have_the_reports_of_the_older_oracle() -> None:
    rng = np.random.default_rng(1)
    positions = rng.integers(0, 40, 5)
    new = randomizers.circle_rows(exp(1.3), positions.tolist(), 40)
    old = exact_randomizers.hemisphere_on_circle(1.3, positions * 9.0)
    for alpha in ALPHAS:
        new_delta = views.check_in(new, 0.5).delta(alpha)
        assert new_delta == pytest.approx(views.check_in(old, 0.5).delta(alpha), rel=1e-9)


def test_three_directions_in_a_plane_are_three_on_the_circle() -> None:
    """The sphere's regions shrink to arcs when the angles add up."""
    positions = [0, 5, 12]
    between = [2 * pi * d / 40 for d in (5, 12, 7)]
    sphere = randomizers.sphere_rows(3.0, between, [0, 1, 2])
    circle = randomizers.circle_rows(3.0, positions, 40)
    for alpha in ALPHAS:
        assert views.cohort(sphere, 2).delta(alpha) == pytest.approx(views.cohort(circle, 2).delta(alpha), rel=1e-9)


def test_regions_of_the_sphere_by_counting_random_points() -> None:
    rng = np.random.default_rng(8)
    at = rng.normal(size=(3, 4))
    at /= np.linalg.norm(at, axis=1, keepdims=True)
    between = np.arccos([at[0] @ at[1], at[0] @ at[2], at[1] @ at[2]]).tolist()
    rows = randomizers.sphere_rows(1.0 + 1e-9, between, [0, 1, 2])
    inside = rng.normal(size=(200_000, 4)) @ at.T > 0
    for column, pattern in zip(rows[0], [(1, 1, 1), (0, 0, 0), (1, 1, 0), (0, 0, 1)], strict=False):
        share = (inside == np.array(pattern, bool)).all(axis=1).mean()
        assert column == pytest.approx(share, abs=4e-3)


def test_cells_come_near_the_truth_of_gaussian_reports() -> None:
    """n = 2, all three clients' points different, by numerical integration over the line."""
    a, b, x, g, alpha = 0.5, -0.5, 0.1, 0.5, 1.1

    def pdf(y: np.ndarray, m: float) -> np.ndarray:
        return stats.norm.pdf(y, m)

    y = np.linspace(-7, 7, 1401)
    h = y[1] - y[0]
    signed = pdf(y, a) - alpha * pdf(y, b)
    one = g * (1 - g) * np.maximum(signed + (1 - alpha) * pdf(y, x), 0.0).sum() * h
    pairs = np.multiply.outer(signed, pdf(y, x))
    two = g**2 * np.maximum(pairs + pairs.T, 0.0).sum() * h * h / 2
    rows = cells.line_rows(np.array([a, b, x]), np.linspace(-4, 4, 79))
    found = views.check_in(rows, g).delta(alpha)
    assert found <= (one + two) * (1 + 1e-5)
    assert found == pytest.approx(one + two, rel=2e-3)


def test_laplace_cells_come_near_the_truth() -> None:
    """A cohort of one of two: ((a + x) - alpha (b + x))/2 integrated."""
    e0, alpha, at = 1.5, 1.1, (1.0, 0.0, 0.4)

    def signed(y: float) -> float:
        a, b, x = (e0 / 2 * exp(-e0 * abs(y - m)) for m in at)
        return max(a + x - alpha * (b + x), 0.0) / 2

    true = sum(integrate.quad(signed, *ends, limit=200)[0] for ends in ((-20, 0), (0, 1), (1, 20)))
    found = views.cohort(cells.laplace_rows(e0, at, 60), 1).delta(alpha)
    assert found <= true * (1 + 1e-7)
    assert found == pytest.approx(true, rel=1e-3)
