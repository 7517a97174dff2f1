"""Types of (epsilon, delta)-LDP reports: what delta adds to a potential, and to a guarantee."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize

from dpcheckin.accounting import (
    CheckInRound,
    SubsampleRound,
    any_pure,
    approximate,
    compose,
    from_atoms,
    from_profile,
    lower_bound,
)
from dpcheckin.accounting.pairs import pure_types as pure
from dpcheckin.errors import InvalidParameter
from oracles.seat_types.laws import Array
from oracles.seat_types.randomizers import leaky_rows, local_delta, random_rows, vertex_pure


def _potential(values: Array, masses: Array, at: Array) -> Array:
    return np.asarray(np.maximum(values[None, :] - at[:, None], 0.0) @ masses)


def _shortage(rows: Array, e: float, alpha: float) -> float:
    """How much the best mixture of A, B and C lacks of the potential of three reports.

    The difference of two potentials is least at an atom of the larger one, so the types' atoms are
    the only places; the weights are found by a linear program.
    """
    a, b, x = rows
    types = [
        (np.array([(e - alpha) / e, 1 - alpha * e]), np.array([e, 1]) / (e + 1)),
        (np.array([e - alpha, (1 - alpha * e) / e]), np.array([1, e]) / (e + 1)),
        (np.array([e - alpha, 1 - alpha * e, (1 - alpha) / e]), np.array([1, 1, e]) / (e + 2)),
    ]
    at = np.unique(np.concatenate([values for values, _ in types]))
    above = np.stack([_potential(*law, at) for law in types], axis=1)
    report = np.maximum(a[None, :] - alpha * b - at[:, None] * x, 0.0).sum(axis=1)
    # least v with above @ w + v >= report, w on the simplex
    found = optimize.linprog(
        [0, 0, 0, 1], A_ub=np.hstack([-above, -np.ones((at.size, 1))]), b_ub=-report, A_eq=[[1, 1, 1, 0]], b_eq=[1]
    )
    return float(found.x[3])


def _triples(rng: np.random.Generator, e: float) -> Array:
    """Three laws: nearly pure ones, or any with reports that some of them never make."""
    if rng.random() < 0.5:
        return leaky_rows(rng, vertex_pure(rng, e, 3), 10.0 ** rng.uniform(-6, -1))
    return random_rows(rng, 3, int(rng.integers(2, 7)), zeros=rng.choice([0.0, 0.3, 0.5]))


def test_no_report_exceeds_the_types_by_more_than_the_violation() -> None:
    rng, closest = np.random.default_rng(5), 0.0
    for _ in range(400):
        epsilon = float(rng.choice([0.2, 0.7, 1.5, 3.0]))
        e = math.exp(epsilon)
        rows = _triples(rng, e)
        delta = local_delta(rows, epsilon)
        if not 0.0 < delta < 1.0:
            continue
        for alpha in (1.0, 1 + 0.1 * (e - 1), 1 + 0.6 * (e - 1)):
            types = pure.with_delta(pure.any_pure(epsilon), epsilon, delta)(alpha - 1.0)
            if types is not None:
                lacks = _shortage(rows, e, alpha)
                assert lacks <= types.violation + 1e-12
                closest = max(closest, lacks / types.violation)
    assert closest > 0.3  # so that a violation forged to a third would be found


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 4.0])
def test_a_small_delta_costs_little(epsilon: float) -> None:
    pair = approximate(epsilon, 1e-10)
    for one, plain in (
        (CheckInRound(20_000, 0.05, pair), CheckInRound(20_000, 0.05, pair.without_types())),
        (SubsampleRound(20_000, 900, pair), SubsampleRound(20_000, 900, pair.without_types())),
    ):
        upper, before = (compose([(r, 100)]).epsilon(1e-6).upper for r in (one, plain))
        least = lower_bound([(one, 100)], 1e-6).epsilon.lower
        assert least <= upper < 1.02 * least
        assert upper < before


def test_a_large_delta_leaves_the_worst_law() -> None:
    # seats that hold the types pay more for delta than those that hold the worst law
    pair = approximate(4.0, 1e-5)
    one, plain = (CheckInRound(500, 0.1, p) for p in (pair, pair.without_types()))
    for delta in (1.2e-6, 5e-6):
        upper = compose([(one, 1)]).epsilon(delta).upper
        assert upper <= compose([(plain, 1)]).epsilon(delta).upper * (1 + 1e-9)


def test_what_delta_adds_is_at_least_the_part_that_nothing_hides() -> None:
    for epsilon in (0.1, 1.0, 5.0):
        for rise in (0.0, 0.05):
            types = pure.with_delta(pure.any_pure(epsilon), epsilon, 1e-3)(rise)
            assert types is not None
            assert 2e-3 * (1 + rise) < types.violation


@pytest.mark.parametrize("epsilon", [0.4, 2.0, 3.0])
def test_a_law_of_extreme_ratios_has_the_types_of_any_pure_one(epsilon: float) -> None:
    e = math.exp(epsilon)
    own = from_atoms([e, 1 / e], [1 / (e + 1), e / (e + 1)])
    assert own.typed
    plain, known = own.without_types(), any_pure(epsilon)
    assert not plain.typed
    upper, before, named = (
        compose([(CheckInRound(20_000, 0.05, pair), 100)]).epsilon(1e-6).upper for pair in (own, plain, known)
    )
    assert upper == pytest.approx(named, rel=1e-6)
    assert upper < 0.98 * before


def test_a_profile_is_not_believed_to_end_before_it_does() -> None:
    with pytest.raises(InvalidParameter, match="local_epsilon"):
        from_profile(any_pure(3.0).profile, local_epsilon=1.0)
    with pytest.raises(InvalidParameter, match="local_epsilon"):
        from_profile(approximate(1.0, 1e-6).profile, local_epsilon=1.0)
    fitting = from_profile(approximate(1.0, 1e-6).profile, local_epsilon=1.0, local_delta=1e-6)
    assert fitting.typed


def test_a_law_of_mild_ratios_has_no_types() -> None:
    mild = from_atoms([0.5, 1.0, 2.0], [0.2, 0.7, 0.1])
    assert not mild.typed
