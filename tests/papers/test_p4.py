"""Shuffle-Gaussian Rényi curves: three routes to each number."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcheckin.errors import InvalidParameter
from dpcheckin.papers.p4.bounds import check_in_rdp, full_shuffle_rdp, subsample_rdp
from oracles.partitions import partitions, shuffle_gaussian_rdp


def _exact(population: int, shift: float, order: int, rate: float) -> mpmath.mpf:
    """The moment by repeated squaring of the truncated series with 60 digits."""
    with mpmath.workdps(60):
        s, g = mpmath.mpf(shift), mpmath.mpf(rate)
        term = [
            ((1 - g) + g * mpmath.e ** (mpmath.mpf(k * k - k) * s * s / 2)) / mpmath.factorial(k)
            for k in range(order + 1)
        ]

        def times(a: list, b: list) -> list:
            return [mpmath.fsum(a[i] * b[m - i] for i in range(m + 1)) for m in range(order + 1)]

        power, result, left = term, None, population
        while left:
            if left & 1:
                result = power if result is None else times(result, power)
            power, left = times(power, power), left >> 1
        moment = mpmath.factorial(order) / mpmath.mpf(population) ** order * result[order]
        return mpmath.log(moment) / (order - 1)


def test_partition_oracle_counts_partitions() -> None:
    """p(10) = 42 and p(30) = 5604."""
    assert sum(1 for _ in partitions(10)) == 42
    assert sum(1 for _ in partitions(30)) == 5604


@pytest.mark.parametrize("population", [1, 2, 3, 7, 40, 60_000])
def test_all_orders_agree_with_the_published_algorithm(population: int) -> None:
    """Orders 2..18, populations below and above the order."""
    curve = full_shuffle_rdp(population, 1.7, 18, sensitivity=1.0)
    oracle = [shuffle_gaussian_rdp(population, order, 1 / 1.7) for order in range(2, 19)]
    # the oracle subtracts factorials of the population: 1e-9 is what double precision leaves it
    np.testing.assert_allclose(curve.epsilons, oracle, rtol=2e-8, atol=1e-9)


@pytest.mark.parametrize("order", [10, 30])
@pytest.mark.parametrize(
    ("population", "noise", "rate"),
    [(60_000, 9.48, 1.0), (1_000, 1.0, 0.05), (7, 1.0, 0.5), (10_000, 2.5, 0.1), (20, 0.8, 1.0)],
)
def test_nine_digits_against_sixty_digit_arithmetic(population: int, noise: float, rate: float, order: int) -> None:
    """Relative 1e-9 (in fact 1e-12), although the moment may be 1 + 1e-6."""
    ours = check_in_rdp(population, rate, noise, order, sensitivity=1.0).epsilons[-1]
    exact = _exact(population, 1 / noise, order, rate)
    assert abs(ours / exact - 1) < 1e-12


def test_p4_table_1_to_all_printed_digits() -> None:
    """Orders up to 30 give the printed row, orders up to 400 the figures of the design notes."""
    printed = ["0.22820", "0.22820", "0.22821", "0.22821", "0.22821", "0.22822", "0.22822"]
    for largest, expected in ((30, printed), (400, ["0.01009", "0.01013", "0.01017", "0.01020"])):
        curve = full_shuffle_rdp(60_000, 9.48, largest, sensitivity=1.0)
        ours = [f"{curve.times(t).epsilon(1 / 60_000).epsilon:.5f}" for t in range(1, len(expected) + 1)]
        assert ours == expected


def test_subsample_is_the_mixture_of_reports_and_empty_seats() -> None:
    """E[(1 - q + q mean)^order] by direct integration for one report."""
    order, n, noise = 5, 4, 1.3
    x = np.linspace(-14, 14, 400_001)
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    ratio = 1 - 1 / n + np.exp(x / noise - 1 / (2 * noise**2)) / n
    exact = math.log(np.trapezoid(density * ratio**order, x)) / (order - 1)
    ours = subsample_rdp(n, 1, noise, order, sensitivity=1.0).epsilons[-1]
    assert ours == pytest.approx(exact, rel=1e-8)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 300), st.floats(0.3, 8.0), st.floats(0.01, 1.0))
def test_conjecture_1_and_corollary_1(population: int, noise: float, rate: float) -> None:
    """The divergence shrinks with the population, grows with the order, never beats no shuffle."""
    one = check_in_rdp(population, rate, noise, 12).epsilons
    more = check_in_rdp(population + 1, rate, noise, 12).epsilons
    assert np.all(more <= one * (1 + 1e-12))
    assert np.all(np.diff(one) >= -1e-12 * one[1:])
    orders = np.arange(2, 13)
    assert np.all(one <= orders * 4 / (2 * noise**2) * (1 + 1e-12))


def test_bad_input_is_named() -> None:
    """One line, the parameter and what is allowed."""
    with pytest.raises(InvalidParameter, match=r"rate = 1\.5"):
        check_in_rdp(10, 1.5, 1.0, 5)
    with pytest.raises(InvalidParameter, match="noise_multiplier"):
        full_shuffle_rdp(10, math.nan, 5)
    with pytest.raises(InvalidParameter, match="cohort"):
        subsample_rdp(10, 11, 1.0, 5)
