"""Strong composition against enumeration."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcheckin.papers.others import strong_composition as strong


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
    best, closed = (strong.optimal(epsilon, rounds, slack), strong.closed_form(epsilon, rounds, slack))
    assert best <= closed * (1 + 1e-9) <= strong.classical(epsilon, rounds, slack) * (1 + 2e-9)
