"""Clones against enumeration."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from dpcheckin.accounting import CheckInRound, any_pure, compose
from dpcheckin.accounting.composition.clones import numerical, numerical_delta
from dpcheckin.errors import OutsideTheorem
from dpcheckin.papers.others import clones


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
    ours = numerical_delta(e0, reports, share * e0)
    assert ours == pytest.approx(_clones_delta(e0, reports, share * e0), abs=1e-12)


def test_closed_form_has_its_condition() -> None:
    """k = 100 and k = 10 of P1 Table 2 are outside; the message says how many are needed."""
    with pytest.raises(OutsideTheorem, match="1,171"):
        clones.closed_form(2.0, 100, 1e-4)
    assert math.ceil(clones.smallest_shuffle(1e-9, 1e-4)) == 159  # more than 158 for anything


@settings(max_examples=20, deadline=None)
@given(st.floats(0.2, 3.0), st.integers(2_000, 10**5), st.floats(-9.0, -3.0))
def test_exact_pair_never_exceeds_the_closed_form(e0: float, reports: int, log_delta: float) -> None:
    """Theorem 3.2 is what Theorem 3.1 bounds."""
    delta = 10.0**log_delta
    if reports < clones.smallest_shuffle(e0, delta):
        return
    assert numerical(e0, reports, delta) <= clones.closed_form(e0, reports, delta) + 1e-9


def test_composed_clones_pay_for_every_number_of_check_ins() -> None:
    """Check-in is never cheaper than the fixed cohort of its mean size."""
    check_in = clones.composed_check_in(100_000, 0.1, 1.0, 50, 1e-6)
    fixed = clones.composed_subsample(100_000, 10_000, 1.0, 50, 1e-6)
    assert check_in > fixed
    assert clones.composed_subsample(100_000, 10_000, 1.0, 50, 1e-6, exact=True) < fixed


@pytest.mark.parametrize(("population", "rate", "e0"), [(3, 0.4, 1.0), (9, 0.7, 2.0)])
def test_exact_clones_at_every_number_of_check_ins(population: int, rate: float, e0: float) -> None:
    """Each number of check-ins by enumeration, its curve after sampling, averaged."""

    def truth(epsilon: float) -> float:
        total = 0.0
        for k in range(1, population + 1):
            share = k / population
            inner = math.log1p(math.expm1(epsilon) / share)
            total += binom.pmf(k, population, rate) * share * max(_clones_delta(e0, k, inner), 0.0)
        return total

    delta = 0.3 * truth(0.0)
    found = clones.exact_check_in(population, rate, e0, 1, delta)
    assert truth(found) <= delta <= truth(0.98 * found)
    assert found < clones.exact_check_in(population, rate, e0, 2, delta) <= 2 * e0


def test_exact_clones_are_between_the_empty_seat_and_the_closed_form() -> None:
    """P0's run: the closed form says 254, which is not what clones give."""
    run = (60_000, 0.1, 2.0, 6_800, 1 / 60_000)
    ours = compose([(CheckInRound(60_000, 0.1, any_pure(2.0)), 6_800)]).epsilon(1 / 60_000).upper
    assert ours < clones.exact_check_in(*run) < 1.725
    assert clones.composed_check_in(*run) > 250
