"""The attack's own figures: enumeration by batches, seats on a lattice, caps, local privacy."""

from __future__ import annotations

import numpy as np
import pytest

from oracles import brute_force
from oracles.attacks import caps, hemispheres, kinds, lattice, many_clients, noisy, pure, seats, shuffles
from oracles.attacks.arenas import Shuffled
from oracles.attacks.crowds import Crowd


def _rows(rng: np.random.Generator, data_sets: int, n: int, symbols: int) -> np.ndarray:
    rows = rng.exponential(size=(data_sets, n + 1, symbols))
    rows[0, 1, 0] = 0.0
    return rows / rows.sum(axis=2, keepdims=True)


@pytest.mark.parametrize(("n", "symbols"), [(1, 3), (2, 4), (4, 2), (3, 3)])
def test_batches_agree_with_enumeration_one_by_one(n: int, symbols: int) -> None:
    rng = np.random.default_rng(n)
    rows, rates = _rows(rng, 5, n, symbols), rng.uniform(0.1, 0.9, n)
    epsilons = np.array([0.0, 0.3, 1.1])
    together = shuffles.check_in(rows, rates).deltas(np.exp(epsilons))
    for i, matrix in enumerate(rows):
        others = list(range(2, n + 1))
        ends = [brute_force.check_in_law(matrix, [end, *others], rates) for end in (0, 1)]
        for j, epsilon in enumerate(epsilons):
            alone = max(brute_force.both_directions(*brute_force.as_pair(*ends), epsilon))
            assert together[j, i] == pytest.approx(alone, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(("size", "colluders"), [(1, 0), (2, 0), (3, 0), (2, 2)])
def test_cohorts_by_batches_agree_too(size: int, colluders: int) -> None:
    rows = _rows(np.random.default_rng(8), 4, 3, 3)
    together = shuffles.cohort(rows, size, colluders).deltas(np.array([1.0, 1.7]))
    for i, matrix in enumerate(rows):
        ends = [brute_force.subsample_law(matrix, [end, 2, 3], size, colluders) for end in (0, 1)]
        for j, epsilon in enumerate(np.log([1.0, 1.7])):
            alone = max(brute_force.both_directions(*brute_force.as_pair(*ends), epsilon))
            assert together[j, i] == pytest.approx(alone, rel=1e-12, abs=1e-15)


PURE = [
    hemispheres.Binary(4, 0.8, 4),
    hemispheres.Circle(4, 1.7, 5),
    hemispheres.Sphere(4, 0.3, 3),
    pure.Designs(4, 2.5, 4, 2),
    pure.Vertices(4, 1.1, 4),
    pure.Inner(4, 0.7, 4, 5),
    pure.Response(4, 3.0, 4),
    caps.CapsOnCircle(4, 2.0, 4),
    caps.CapsOnSphere(4, 1.0, 3),
    noisy.Laplace(4, 1.4, 4, along=9),
]


@pytest.mark.parametrize("crowd", PURE, ids=lambda crowd: type(crowd).__name__)
def test_pure_crowds_are_as_private_as_they_say(crowd: Crowd) -> None:
    rng = np.random.default_rng(5)
    genes = crowd.draw(rng, 40)
    for _ in range(6):
        rows = crowd.rows(genes)
        assert rows.shape[:2] == (40, 5)
        np.testing.assert_allclose(rows.sum(axis=2), 1.0, rtol=1e-12)
        assert (rows.max(axis=1) <= np.exp(crowd.level) * rows.min(axis=1) * (1 + 1e-9)).all()
        genes = crowd.change(rng, genes)


@pytest.mark.parametrize("crowd", [noisy.Leaky(4, 0.9, 4, 2, 0.07), noisy.Rough(4, 0.9, 4, 5, 0.07)])
def test_leaky_crowds_have_the_delta_they_say(crowd: Crowd) -> None:
    rows = crowd.rows(crowd.draw(np.random.default_rng(6), 200))
    np.testing.assert_allclose(rows.sum(axis=2), 1.0, rtol=1e-12)
    above = np.maximum(rows[:, :, None] - np.exp(0.9) * rows[:, None], 0.0).sum(axis=3)
    assert 0.06 < above.max() <= 0.07 + 1e-12


@pytest.mark.parametrize("across", [1, 3])
def test_gaussian_points_stay_in_the_ball(across: int) -> None:
    crowd, rng = noisy.Gaussian(3, 1.5, 4, 5, across), np.random.default_rng(7)
    genes = crowd.draw(rng, 100)
    for _ in range(5):
        assert np.linalg.norm(genes.points, axis=2).max() <= 1.0 + 1e-12
        np.testing.assert_allclose(crowd.rows(genes).sum(axis=2), 1.0, rtol=1e-12)
        genes = crowd.change(rng, genes)


def test_half_spheres_share_what_their_angle_leaves() -> None:
    apart = np.array([0.0, 0.1, 0.25, 0.4, 0.5])
    both = caps.shared(np.stack([np.zeros(5), apart], axis=1), 0.5)[:, 3]
    np.testing.assert_allclose(both, 0.5 - apart, atol=1e-5)


def test_small_caps_have_their_measure_and_do_not_meet_far_apart() -> None:
    found = caps.shared(np.array([[0.0, 0.0], [0.0, 0.5], [0.2, 0.35]]), 0.2)
    np.testing.assert_allclose(found[:, 1] + found[:, 3], 0.2, atol=1e-6)
    np.testing.assert_allclose(found[:2, 3], [0.2, 0.0], atol=1e-6)
    rng = np.random.default_rng(9)
    at = rng.normal(size=(400_000, 3))
    at /= np.linalg.norm(at, axis=1, keepdims=True)
    turns = 2 * np.pi * np.array([0.2, 0.35])
    inside = at[:, :2] @ np.array([np.cos(turns), np.sin(turns)]) > 0.6
    assert found[2, 3] == pytest.approx(inside.all(axis=1).mean(), abs=1.5e-3)


@pytest.mark.parametrize("who", [(0, 0, 0, 0), (0, 1, 1, 2)])
def test_the_lattice_agrees_with_every_atom(who: tuple[int, ...]) -> None:
    crowd = noisy.Gaussian(5, 0.9, 3, 9, 1)
    genes = crowd.draw(np.random.default_rng(3), 2)
    genes.who[:] = who
    alphas = np.array([1.0, 1.2])
    rate = 0.3
    fine = lattice.OnLattice(crowd, rate).truths(genes, alphas)
    every = seats.Enumerated(crowd, rate).truths(genes, alphas)
    assert (fine <= every * (1 + 1e-4)).all()  # whose atoms are merged where there are many
    # the lattice leaves out that everybody reports, unless all are alike
    assert (fine >= 0.97 * every - 0.4 * rate**5).all()
    if len(set(who)) == 1:
        true = Shuffled(crowd, rate).truths(genes, alphas)
        assert (every <= true * (1 + 1e-9)).all() and (every >= true * (1 - 1e-4)).all()
        assert (fine <= true * (1 + 1e-9)).all() and (fine >= 0.97 * true).all()


def test_rounding_on_the_lattice_is_not_taken_for_truth() -> None:
    """Laplace reports at an epsilon where delta is below 1e-16 (binary response: 1.17e-17)."""
    crowd = noisy.Laplace(30, 3.006319630943759, 2, along=200)
    genes = crowd.draw(np.random.default_rng(3), 1)
    genes.points[0, :, 0] = 1.0, -1.0
    genes.who[:] = 1
    arena = lattice.OnLattice(crowd, 0.2603441460814121)
    assert arena.truths(genes, np.exp([2.307472788830065]))[0, 0] <= 1.17e-17


def test_many_clients_alike_are_enumerated() -> None:
    crowd = pure.Response(30, 1.4, 3)
    genes = crowd.draw(np.random.default_rng(4), 4)
    genes.who[:] = genes.who[:, :1]
    alphas = np.array([1.0, 1.1])
    for arena in (many_clients.Alike(crowd, 0.4), many_clients.Alike(crowd, 0.4, 7)):
        true = Shuffled(crowd, 0.4, arena.cohort).truths(genes, alphas)
        np.testing.assert_allclose(arena.truths(genes, alphas), true, rtol=1e-9)


@pytest.mark.parametrize("crowd", [pure.Response(6, 1.4, 3), hemispheres.Binary(6, 0.4, 3)])
def test_groups_of_clients_have_the_seats_of_each_alone(crowd: Crowd) -> None:
    genes = crowd.draw(np.random.default_rng(14), 6)
    alphas, rate = np.array([1.0, 1.1]), 0.3
    one_by_one = seats.Enumerated(crowd, rate)
    apart = one_by_one.truths(genes, alphas) - rate**6 * 0.7
    together = many_clients.Groups(crowd, rate).truths(genes, alphas)
    assert (together <= one_by_one.truths(genes, alphas) * (1 + 1e-6)).all()
    assert (together >= apart * (1 - 1e-3)).all()


def test_labelled_seats_are_above_the_truth_and_equal_for_equal_clients() -> None:
    crowd = pure.Designs(4, 1.2, 4, 1)
    genes = crowd.draw(np.random.default_rng(4), 30)
    alphas = np.array([1.0, 1.3])
    labelled = seats.Enumerated(crowd, 0.6).truths(genes, alphas)
    true = Shuffled(crowd, 0.6).truths(genes, alphas)
    alike = (genes.who == genes.who[:, :1]).all(axis=1)
    assert 5 < alike.sum() < 28
    np.testing.assert_allclose(labelled[:, alike], true[:, alike], rtol=1e-9, atol=1e-15)
    assert (labelled >= true * (1 - 1e-9) - 1e-15).all() and (labelled > true * 1.001).any()


@pytest.mark.parametrize("name", kinds.KINDS)
def test_every_kind_draws_rounds_that_fit_their_data(name: str) -> None:
    rng = np.random.default_rng(12)
    for _ in range(5):
        arena = kinds.KINDS[name].draw(rng)
        assert arena.crowd.n >= 2 and arena.expected > 0 and arena.scale > 0
        assert str(arena.crowd.n) in arena.text or "colluding" in arena.text
        assert arena.near(rng).crowd.n == arena.crowd.n
