"""The exact decision whether a smoothing scale is enough, and the scales of the theory."""

from __future__ import annotations

from itertools import product
from math import pi

import numpy as np
import pytest
from mpmath import mp, mpf

from oracles.seat_types import seats, smoothing
from oracles.seat_types.gaussian_smoothing import Scale
from oracles.seat_types.laws import Law


@pytest.mark.parametrize(
    ("local_epsilon", "at_zero", "at_a_hundredth"),
    [
        (1.0, 2.1712, 2.3232),
        (1.5, 1.9412, 1.9962),
        (2.0, 2.4157, 2.4637),
        (3.0, 4.6082, 4.676),
        (4.0, 9.7723, 9.8994),
        (6.0, 50.7451, 51.3423),
    ],
)
def test_scales_of_the_table(local_epsilon: float, at_zero: float, at_a_hundredth: float) -> None:
    for epsilon, printed in ((0.0, at_zero), (0.01, at_a_hundredth)):
        found = smoothing.scale_for_c(local_epsilon, epsilon)
        assert found == pytest.approx(printed, abs=6e-5 + 2e-6 * printed)


@pytest.mark.parametrize(("local_epsilon", "printed"), [(0.3, 0.078), (0.5, 0.266), (0.6, 0.522), (0.69, 3.61)])
def test_scales_below_log_two(local_epsilon: float, printed: float) -> None:
    """C below A and B mixed: one per cent above the printed scale is enough, two below are not."""
    weight, gap = smoothing.best_weight(local_epsilon, 1.01 * printed)
    assert 0.0 < weight < 1.0
    assert gap > 0.0
    assert smoothing.best_weight(local_epsilon, 0.98 * printed)[1] < 0.0


def test_no_scale_for_large_epsilon() -> None:
    assert smoothing.scale_for_c(2.0, 0.6, 1e-3) == pytest.approx(18.3, abs=0.2)
    assert smoothing.scale_for_c(2.0, 1.4, 1e-3) == float("inf")


@pytest.mark.parametrize("local_epsilon", [1.0, 2.0, 4.0])
def test_a_scale_a_fifth_too_small_is_found_out(local_epsilon: float) -> None:
    """And one just above the smallest is accepted; the crossing is real, seen by evaluation."""
    with mp.workdps(smoothing.DIGITS):
        e, alpha = mp.exp(mpf(local_epsilon)), mp.exp(mpf("0.01"))
        a, b, c = (smoothing.exact_seat(name, e, alpha) for name in "ABC")
    smallest = smoothing.scale_for_c(local_epsilon, 0.01)
    for law in (a, b):
        assert smoothing.smoothing_is_enough(law, c, smallest * 1.001)
        assert smoothing.smoothing_is_enough(law, c, smallest * 3.0)
    assert not all(smoothing.smoothing_is_enough(law, c, 0.8 * smallest) for law in (a, b))
    assert not all(smoothing.smoothing_is_enough(law, c, 0.999 * smallest) for law in (a, b))
    gauge = seats.smoothed_part(0.8 * smallest)
    floats = [Law(*(np.array([float(v[i]) for v in law]) for i in (0, 1))) for law in (a, b, c)]
    at = np.linspace(-8 * smallest, 8 * smallest, 4001)
    smoothed = [(law.masses @ gauge(law.values[:, None] - at[None, :])) for law in floats]
    assert min((smoothed[2] - smoothed[0]).min(), (smoothed[2] - smoothed[1]).min()) < -1e-6


def test_d_lies_below_a_and_b_where_it_is_claimed() -> None:
    """D below half A, half B for 1 <= alpha <= e; and N below A."""
    with mp.workdps(smoothing.DIGITS):
        for e0, share in product(("0.05", "0.3", "0.7", "2", "5"), ("0", "0.01", "0.3", "0.8", "1")):
            e, alpha = mp.exp(mpf(e0)), mp.exp(mpf(e0) * mpf(share))
            a, b, d, n = (smoothing.exact_seat(name, e, alpha) for name in "ABDN")
            half = smoothing.mixed([(mpf(1) / 2, a), (mpf(1) / 2, b)])
            assert smoothing.is_below(d, half)
            assert smoothing.is_below(n, a)
            assert not smoothing.is_below(half, d)


def test_potentials_must_be_compared_where_the_larger_law_has_atoms() -> None:
    """At the smaller law's own atoms an order seems to hold that does not."""
    small = [(mpf(-1), mpf("0.5")), (mpf(1), mpf("0.5"))]
    large = [(mpf(0), mpf(1))]
    for at, _ in small:
        assert sum(m * max(z - at, 0) for z, m in small) <= max(-at, 0)
    assert not smoothing.is_below(small, large)
    assert smoothing.is_below(large, small)


@pytest.mark.parametrize(
    ("s", "alpha", "tau", "p", "q"),
    [(0.5, 1.0, 0.715, 0.5, 1.0), (1.0, 1.0, 2.064, 0.625, 0.875), (1.0, 1.1, 2.162, 0.625, 0.875)],
)
def test_gaussian_scales_of_the_theory(s: float, alpha: float, tau: float, p: float, q: float) -> None:
    """Two per cent above the printed scale stands at its worst triples, a fifth below does not."""
    weight, gap = Scale(s, alpha, 1.02 * tau).best(p * pi, q * pi)
    assert 0.2 < weight < 0.8
    assert gap > -1e-7
    assert Scale(s, alpha, 0.8 * tau).best(p * pi, q * pi)[1] < -1e-4


def test_gaussian_types_are_the_corners_of_the_triangle_of_arcs() -> None:
    claim = Scale(1.0, 1.05, 2.5)
    assert claim.best(0.0, pi) == pytest.approx((0.0, 0.0), abs=1e-6)
    assert claim.best(pi, pi) == pytest.approx((1.0, 0.0), abs=1e-6)
