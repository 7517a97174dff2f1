"""Clones and strong composition against enumeration."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from dpcheckin.accounting.published import clones
from dpcheckin.accounting.published import strong_composition as strong
from dpcheckin.accounting.published.p1 import smallest_renyi
from dpcheckin.errors import OutsideTheorem


def _clones_delta(e0: float, reports: int, epsilon: float) -> float:
    """Theorem 3.2's pair, counted out."""
    r = math.exp(e0)
    p: dict[tuple[int, int], float] = {}
    q: dict[tuple[int, int], float] = {}
    for c in range(reports):
        for a in range(c + 1):
            w = binom.pmf(c, reports - 1, 1 / r) * binom.pmf(a, c, 0.5)
            for hit, share in ((1, r / (r + 1)), (0, 1 / (r + 1))):
                x, y = (a + hit, c - a + 1 - hit), (a + 1 - hit, c - a + hit)
                p[x] = p.get(x, 0.0) + w * share
                q[y] = q.get(y, 0.0) + w * share
    return sum(max(0.0, p[x] - math.exp(epsilon) * q.get(x, 0.0)) for x in p)


@pytest.mark.parametrize("reports", [1, 2, 5, 17])
@pytest.mark.parametrize("e0", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.7])
def test_exact_clones_pair(e0: float, reports: int, share: float) -> None:
    """The fast evaluation equals the enumeration."""
    ours = clones.numerical_delta(e0, reports, share * e0)
    assert ours == pytest.approx(_clones_delta(e0, reports, share * e0), abs=1e-12)


def test_closed_form_has_its_condition() -> None:
    """k = 100 and k = 10 of P1 Table 2 are outside; the message says how many are needed."""
    with pytest.raises(OutsideTheorem, match="1171"):
        clones.closed_form(2.0, 100, 1e-4)
    assert math.ceil(clones.smallest_shuffle(1e-9, 1e-4)) == 159  # more than 158 for anything


@settings(max_examples=20, deadline=None)
@given(st.floats(0.2, 3.0), st.integers(2_000, 10**5), st.floats(-9.0, -3.0))
def test_exact_pair_never_exceeds_the_closed_form(
    e0: float, reports: int, log_delta: float
) -> None:
    """Theorem 3.2 is what Theorem 3.1 bounds."""
    delta = 10.0**log_delta
    if reports < clones.smallest_shuffle(e0, delta):
        return
    assert clones.numerical(e0, reports, delta) <= clones.closed_form(e0, reports, delta) + 1e-9


def _response_delta(epsilon: float, rounds: int, target: float) -> float:
    r = math.exp(epsilon)
    total = 0.0
    for bits in product((0, 1), repeat=rounds):
        ups = sum(bits)
        p = (r / (r + 1)) ** ups * (1 / (r + 1)) ** (rounds - ups)
        q = (r / (r + 1)) ** (rounds - ups) * (1 / (r + 1)) ** ups
        total += max(0.0, p - math.exp(target) * q)
    return total


@pytest.mark.parametrize("rounds", [1, 2, 5, 9])
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_optimal_composition_is_exact(epsilon: float, rounds: int) -> None:
    """At the returned epsilon, delta of composed randomized response is exactly the slack."""
    slack = 0.01
    found = strong.optimal(epsilon, rounds, slack)
    at = _response_delta(epsilon, rounds, found)
    assert at == pytest.approx(slack, rel=1e-9) or (found == 0.0 and at <= slack)
    assert found <= strong.closed_form(epsilon, rounds, slack) + 1e-12


@settings(max_examples=60, deadline=None)
@given(st.floats(0.001, 1.0), st.integers(1, 3_000), st.floats(-9.0, -2.0))
def test_order_of_the_composition_theorems(epsilon: float, rounds: int, log_slack: float) -> None:
    """Optimal <= Kairouz et al. closed form <= classical."""
    slack = 10.0**log_slack
    best, closed = (
        strong.optimal(epsilon, rounds, slack),
        strong.closed_form(epsilon, rounds, slack),
    )
    assert best <= closed * (1 + 1e-9) <= strong.classical(epsilon, rounds, slack) * (1 + 2e-9)


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


def test_composed_clones_pay_for_every_number_of_check_ins() -> None:
    """Check-in is never cheaper than the fixed cohort of its mean size."""
    check_in = clones.composed_check_in(100_000, 0.1, 1.0, 50, 1e-6)
    fixed = clones.composed_subsample(100_000, 10_000, 1.0, 50, 1e-6)
    assert check_in > fixed
    assert clones.composed_subsample(100_000, 10_000, 1.0, 50, 1e-6, exact=True) < fixed
