"""P1: Theorem 4 never below the loss distribution, nor without its k = 0 term; Lemma 1."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcheckin.accounting import Bracket, DistributedRound, compose
from dpcheckin.accounting.engine.sampling import visible_counts
from dpcheckin.papers.p1 import bounds as p1
from dpcheckin.papers.p1.bounds import smallest_renyi


def _composed(n: int, rate: float, noise: float, rounds: int, delta: float) -> Bracket:
    return compose([(DistributedRound(n, rate, noise), rounds)]).epsilon(delta)


@settings(max_examples=12, deadline=None)
@given(st.integers(20, 5_000), st.floats(0.01, 0.6), st.floats(0.5, 4.0), st.integers(1, 300), st.floats(-8.0, -3.0))
def test_loss_distribution_never_exceeds_theorem_4(
    n: int, rate: float, noise: float, rounds: int, log_delta: float
) -> None:
    """And its bracket is ordered."""
    delta = 10.0**log_delta
    if delta < 1e-15 * rounds:
        return
    ours = _composed(n, rate, noise, rounds, delta)
    assert ours.lower <= ours.upper <= p1.theorem_4(n, rate, noise, rounds, delta) + 1e-9


def test_theorem_4_needs_its_k_0_term() -> None:
    """Without it the moment falls below one: an impossible Rényi divergence."""
    n, rate = 10, 0.05
    counts = visible_counts(n, rate)
    assert counts.probability[counts.high <= 0].sum() == pytest.approx((1 - rate) ** n)
    assert np.all(p1.theorem_4_rdp(n, rate, 3.0).epsilons >= 0.0)
    without = 1 - (1 - rate) ** n  # every remaining moment is at least one, but not by so much
    assert without * math.exp(p1.fixed_cohort_rdp(n, 1, 3.0).epsilons[0]) < 1.0


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-3), (1.0, 1e-6), (0.0, 0.05)])
def test_lemma_1_is_the_smallest_divergence(epsilon: float, delta: float) -> None:
    """No pair of two-point laws with this profile has a smaller one; some have an infinite one."""
    order = 3.0
    least = smallest_renyi(np.array([epsilon]), np.array([delta]), np.array([order]))[0, 0]
    best = math.inf
    for r in delta + np.geomspace(1e-12, 1 - delta - 1e-9, 40_001):
        q = (r - delta) * math.exp(-epsilon)
        if 0 < q < 1:
            moment = r**order * q ** (1 - order) + (1 - r) ** order * (1 - q) ** (1 - order)
            best = min(best, math.log(moment) / (order - 1))
    assert least == pytest.approx(best, rel=1e-3, abs=1e-9)
    assert least <= best + 1e-12
