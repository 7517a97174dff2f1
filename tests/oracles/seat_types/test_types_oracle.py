"""Seats, types and the largest value over counts: the oracles themselves."""

from __future__ import annotations

from itertools import product
from math import comb, exp

import numpy as np
import pytest
from scipy import integrate, stats

from oracles.seat_types import many, randomizers, search, seats, theorem, views
from oracles.seat_types.laws import (
    PURE_TYPES,
    Law,
    copies,
    local_profile,
    plus,
    pure_ratio,
    seat_of,
    star,
    type_a,
    type_b,
    type_c,
)

ALPHAS = np.exp([0.0, 0.05, 0.3, 0.9])


# Seats


def test_the_labelled_view_is_the_truth_when_the_others_agree() -> None:
    rng = np.random.default_rng(4)
    for n in (2, 3, 4):
        rows = randomizers.random_rows(rng, 3, 3)
        crowd = rows[[0, 1, *[2] * (n - 1)]]
        for alpha in ALPHAS:
            seat = seat_of(*rows, alpha)
            whole = 0.3**n * views.cohort(crowd, n).delta(alpha)
            labelled = seats.check_in([seat] * (n - 1), 0.3, alpha) + whole
            assert views.check_in(crowd, 0.3).delta(alpha) == pytest.approx(labelled, abs=1e-14)
            assert many.check_in(seat, n, 0.3, alpha) == pytest.approx(labelled, abs=1e-14)
            for k in range(1, n):
                true = views.cohort(crowd, k).delta(alpha)
                assert seats.cohort([seat] * (n - 1), k, alpha) == pytest.approx(true, abs=1e-14)
                assert many.cohort(seat, n, k, alpha) == pytest.approx(true, abs=1e-14)


def test_the_labelled_view_shows_more_when_the_others_differ() -> None:
    alpha = exp(0.4)
    rows = randomizers.dary_rows(exp(2.0), 3, [0, 1, 0, 1, 2])
    labelled = seats.cohort([seat_of(rows[0], rows[1], x, alpha) for x in rows[2:]], 2, alpha)
    assert views.cohort(rows, 2).delta(alpha) / labelled == pytest.approx(0.7359, abs=1e-4)


def test_merging_atoms_only_lowers() -> None:
    rng = np.random.default_rng(6)
    whole = Law(rng.normal(size=5000), rng.dirichlet(np.ones(5000)))
    few = seats.merged(whole, 200)
    assert len(few.values) <= 200
    assert few.mean == pytest.approx(whole.mean, abs=1e-12)
    at = np.linspace(-3, 3, 61)
    assert (few.potential(at) <= whole.potential(at) + 1e-14).all()
    assert (few.potential(at) >= whole.potential(at) - 1e-3).all()


def test_copies_and_lattices_agree() -> None:
    one = type_c(exp(1.2), 1.05)
    twice = plus(one, one)
    assert copies(one, 2).potential(ALPHAS) == pytest.approx(twice.potential(ALPHAS), abs=1e-14)
    exact = float(copies(one, 20).potential(np.array([0.5]))[0])
    assert many._lattice_excess(one, 20, -0.5) == pytest.approx(exact, rel=many.LATTICE_ERROR)


def test_smoothed_part_is_the_expectation_over_the_noise() -> None:
    tau, v = 0.7, 0.4
    noise = integrate.quad(lambda t: max(v + t, 0.0) * exp(-abs(t) / tau) / (2 * tau), -v, 40, points=[0.0])[0]
    assert float(seats.smoothed_part(tau)(np.array([v]))[0]) == pytest.approx(noise, rel=1e-9)


# Types and the theorem


def test_types_have_the_atoms_printed_in_the_theory() -> None:
    e, alpha = 5.0, 1.3
    printed = {
        "A": {(e - alpha) / e: e / (e + 1), 1 - alpha * e: 1 / (e + 1)},
        "B": {e - alpha: 1 / (e + 1), (1 - alpha * e) / e: e / (e + 1)},
        "C": {e - alpha: 1 / (e + 2), 1 - alpha * e: 1 / (e + 2), (1 - alpha) / e: e / (e + 2)},
        "D": {e * (1 - alpha): 1 / (2 * e + 1), (e - alpha) / e: e / (2 * e + 1), (1 - alpha * e) / e: e / (2 * e + 1)},
        "N": {(1 - alpha) / e: e / (e + 1), e * (1 - alpha): 1 / (e + 1)},
    }
    for name, atoms in printed.items():
        law = PURE_TYPES[name](e, alpha)
        found = dict(zip(law.values.tolist(), law.masses.tolist(), strict=True))
        for value, mass in atoms.items():
            nearest = min(found, key=lambda v, at=value: abs(v - at))
            assert nearest == pytest.approx(value, abs=1e-12)
            assert found[nearest] == pytest.approx(mass, abs=1e-12)
        assert law.mean == pytest.approx(1 - alpha, abs=1e-12)


def test_types_lie_below_the_star() -> None:
    for e0, share in product((0.2, 0.69, 2.0, 4.0), (0.0, 0.1, 0.7)):
        e, alpha = exp(e0), exp(share * e0)
        above = star(pure_ratio(e), alpha)
        assert above.mean == pytest.approx(1 - alpha, abs=1e-12)
        for make in PURE_TYPES.values():
            law = make(e, alpha)
            assert (law.potential(above.values) <= above.potential(above.values) + 1e-12).all()


def test_random_columns_are_mixtures_of_the_five_types() -> None:
    """Three inputs of any pure randomizer: its seat lies below a mixture of A, B and C."""
    from scipy.optimize import linprog

    rng = np.random.default_rng(9)
    for _ in range(60):
        if rng.random() < 0.5:
            rows = randomizers.random_rows(rng, 3, int(rng.integers(2, 7)))
            e = exp(randomizers.pure_epsilon(rows))
        else:
            e = float(rng.uniform(1.2, 20.0))
            rows = randomizers.designed_pure(rng, e, 3)
        alpha = float(e ** rng.uniform(0.0, 0.9))
        seat = seat_of(*rows, alpha)
        types = [type_a(e, alpha), type_b(e, alpha), type_c(e, alpha)]
        kinks = np.unique(np.concatenate([t.values for t in types]))
        above = np.array([t.potential(kinks) for t in types]).T
        found = linprog(
            np.zeros(3), A_ub=-above, b_ub=-(seat.potential(kinks) - 1e-11),
            A_eq=np.ones((1, 3)), b_eq=[1.0],
        )  # fmt: skip
        assert found.status == 0


def test_the_largest_over_counts_by_hand_for_two_clients() -> None:
    """One seat of a type, one of Z*; nobody or one of the two reports."""
    e, g, alpha = 4.0, 0.3, 1.2
    above = star(pure_ratio(e), alpha)
    types = [type_a(e, alpha), type_b(e, alpha)]
    parts = [float(law.potential(np.array([alpha - 1.0]))[0]) for law in (*types, above)]
    by_hand = g * (1 - g) * (max(parts[:2]) + parts[2]) / 2
    found = theorem.Seating(2, types, above, alpha).largest(rate=g)
    assert found.value == pytest.approx(by_hand, rel=1e-13)
    assert theorem.bound(2, g, types, above, alpha, 0.5) == pytest.approx(by_hand + g**2 * 0.5)


def test_seating_agrees_with_sums_over_subsets() -> None:
    """The same figure by listing subsets of seats one by one."""
    e, alpha = exp(1.4), 1.1
    types = [type_a(e, alpha), type_b(e, alpha), type_c(e, alpha)]
    above = star(pure_ratio(e), alpha)
    for gauge in (seats.positive_part, seats.smoothed_part(0.8)):
        seating = theorem.Seating(4, types, above, alpha, gauge)
        sums = seats.subset_sums([types[0], types[0], types[2], above])
        parts = [float(s.masses @ gauge(s.values + (4 - k) * (1 - alpha)))
                 for k, s in enumerate(sums)]  # fmt: skip
        by_coins = sum(0.4**k * 0.6 ** (4 - k) * parts[k] for k in range(4)) / 4
        assert seating.check_in((2, 0, 1), 0.4) == pytest.approx(by_coins, rel=1e-12)
        by_size = parts[2] / (4 * comb(4, 2))
        assert seating.cohort((2, 0, 1), 2) == pytest.approx(by_size, rel=1e-12)


def test_one_type_that_is_the_star_gives_the_bound_without_types() -> None:
    """n i.i.d. seats of Z*: the explicit pair of three atoms."""
    e, n, g, alpha = exp(1.0), 5, 0.4, 1.15
    above = star(pure_ratio(e), alpha)
    found = theorem.Seating(n, [above], above, alpha).largest(rate=g).value
    hit = g / (e + 1)
    cells_of = np.array([hit, hit, 1 - g, g - 2 * hit])
    total = 0.0
    for a, b, absent in product(range(n + 1), repeat=3):
        rest = n - a - b - absent
        if rest < 0 or absent == 0:
            continue
        chance = stats.multinomial.pmf([a, b, absent, rest], n, cells_of)
        total += chance * max((absent + e * a + b) - alpha * (absent + a + e * b), 0.0) / n
    assert found == pytest.approx(total, rel=1e-12)


def test_the_largest_is_not_always_at_equal_types() -> None:
    e, alpha = exp(1.0), 1.1
    types = [type_a(e, alpha), type_b(e, alpha), type_c(e, alpha)]
    found = theorem.Seating(4, types, star(pure_ratio(e), alpha), alpha).largest(rate=0.4)
    assert found.counts == (0, 2, 1)


def test_the_brute_force_curve_is_convex_and_below_one() -> None:
    """Unsmoothed it needs no hull: mirrored and joined to (0, 1) every dot is a corner."""
    e, n, g = exp(1.2), 4, 0.4
    alphas = np.exp(np.linspace(0.0, 1.19, 12))
    values = np.array([
        theorem.bound(
            n, g, [type_a(e, x), type_b(e, x)], star(pure_ratio(e), x), x,
            local_profile(pure_ratio(e), x),
        )
        for x in alphas
    ])  # fmt: skip
    at, both = theorem.mirrored(alphas, values)
    hull = theorem.lower_hull(at, both)
    lower = np.interp(at, list(hull), list(hull.values()))
    assert lower == pytest.approx(both, abs=1e-12)
    assert both[0] < 1.0


def test_a_dent_upwards_is_cut_off_by_the_hull() -> None:
    hull = theorem.lower_hull(np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.4, 0.0]))
    assert list(hull) == [0.0, 1.0, 3.0]


@pytest.mark.parametrize(
    ("kept", "value", "size", "local_epsilon", "epsilon"),
    [("A", 1, 2, 2.0, 0.2), ("B", 0, 5, 2.0, 1.0), ("AB", 2, 3, 3.0, 1.5), ("C", 1, 3, 1.0, 0.5)],
)
def test_a_wrong_set_of_types_is_crossed_by_real_data(
    kept: str, value: int, size: int, local_epsilon: float, epsilon: float
) -> None:
    """The oracle can tell if a type is missing: others at the missing one's value show it.

    The bound compared with has no seat of Z*, which might make up for what is missing.
    """
    n, e, alpha = 6, exp(local_epsilon), exp(epsilon)
    rows = randomizers.dary_rows(e, max(value + 1, 2), [0, 1, *[value] * (n - 1)])
    types = [PURE_TYPES[name](e, alpha) for name in kept]
    wrong = max(
        seats.cohort([t for t, j in zip(types, counts, strict=True) for _ in range(j)], size, alpha)
        for counts in theorem.compositions(n - 1, len(types))
    )
    assert views.cohort(rows, size).delta(alpha) > 1.5 * wrong


@pytest.mark.parametrize("kind", list(search.KINDS))
def test_a_short_search_breaks_nothing(kind: str) -> None:
    climb = search.Climb(kind)
    for number in range(8):
        climb.case(np.random.default_rng([99, number]), 5)
    assert climb.attacks.total() == 48
    assert climb.crossed == 0
    assert max(ratio for ratio, _ in climb.truth.values()) > 0.5
