"""Bessel functions, caps of a sphere, tails and integrals against mpmath."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from dpcheckin.special import binomial, gamma, sphere


@pytest.mark.parametrize("x", [1e-6, 0.01, 0.5, 3.0, 20.0, 59.9, 60.0, 61.0, 100.0, 1e4])
def test_bessel_functions(x: float) -> None:
    reach = int(math.sqrt(2 * x * 46) + 46) + 2
    orders = sorted({0, 1, 2, 5, reach // 10, reach // 4, reach // 2, reach, 2 * reach})
    with mp.workdps(40):
        for order, value in zip(orders, gamma.ive(orders, x), strict=True):
            truth = mp.exp(-mp.mpf(x)) * mp.besseli(order, mp.mpf(x))
            if truth < mp.mpf(10) ** -300:
                assert float(value) <= 1e-299
                continue
            allowed = 2e-14 + 2e-15 * abs(float(mp.log(truth)))
            assert abs(mp.mpf(float(value)) / truth - 1) <= allowed, order


@pytest.mark.parametrize("x", [0.3, 59.0, 5e3, 1e8])
def test_bessel_functions_are_the_masses_of_a_law_with_this_variance(x: float) -> None:
    reach = math.ceil(math.sqrt(2 * x * 46) + 46)
    masses = gamma.ive(np.abs(np.arange(-reach, reach + 1)), x)
    assert float(masses.sum()) == pytest.approx(1.0, rel=1e-13)
    squares = np.arange(-reach, reach + 1, dtype=float) ** 2
    assert float(masses @ squares) == pytest.approx(x, rel=1e-13)


@pytest.mark.parametrize("bad", [math.nan, 0.0, -1.0, math.inf])
def test_bessel_functions_need_a_positive_argument(bad: float) -> None:
    with pytest.raises(ValueError):
        gamma.ive([0, 1], bad)
    with pytest.raises(ValueError):
        gamma.ive([0.5], 1.0)


def exact_cap(height: float, dimension: int) -> mp.mpf:
    t = mp.mpf(float(height))
    return mp.betainc(mp.mpf(dimension - 1) / 2, mp.mpf(1) / 2, 0, 1 - t * t, regularized=True) / 2


@pytest.mark.parametrize("dimension", [2, 3, 4, 5, 10, 50, 1000, 10**5])
def test_caps(dimension: int) -> None:
    """Measures by height, and heights whose measure is the one asked for."""
    deviations = np.array([0.0, 1e-9, 1e-3, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 20.0])
    heights = deviations / np.sqrt(dimension + deviations**2)
    measures = sphere.cap_measure(heights, dimension)
    back = sphere.cap_height(np.minimum(measures, 0.5), dimension)
    with mp.workdps(40):
        for height, measure, again in zip(heights, measures, back, strict=True):
            truth = exact_cap(height, dimension)
            if truth < mp.mpf(10) ** -290:
                continue
            shape = (1 - height * height) ** ((dimension - 3) / 2)
            density = shape / float(mp.beta(0.5, (dimension - 1) / 2))
            rounding = 2.0**-53 * height * density / float(truth)
            allowed = 3e-14 + 1e-15 * abs(float(mp.log(truth))) + rounding
            assert abs(mp.mpf(float(measure)) / truth - 1) <= allowed
            assert again == pytest.approx(height, abs=4e-15)
            moved = abs(exact_cap(again, dimension) - mp.mpf(min(float(measure), 0.5)))
            assert moved <= 1e-12 * truth + density * 2.0**-52


@pytest.mark.parametrize("dimension", [2, 3, 7, 40, 1000])
def test_many_heights_are_those_of_few(dimension: int) -> None:
    measures = np.random.default_rng(dimension).random(3000) / 2
    many = sphere.cap_height(measures, dimension)
    few = np.concatenate([sphere.cap_height(one, dimension) for one in np.split(measures, 30)])
    np.testing.assert_allclose(many, few, rtol=0, atol=1e-13)


def test_the_smallest_and_the_largest_cap() -> None:
    assert sphere.cap_height([0.0, 0.5], 3).tolist() == [1.0, 0.0]
    assert sphere.cap_height([1e-300, 1e-12, 0.5], 2)[0] == 1.0
    assert sphere.cap_measure([0.0, 1.0], 9).tolist() == pytest.approx([0.5, 0.0], rel=1e-14)
    assert 0.02 < sphere.cap_height(1e-300, 10**6) < 0.05
    for bad in (math.nan, -0.1, 1.1):
        with pytest.raises(ValueError):
            sphere.cap_height(bad, 3)
        with pytest.raises(ValueError):
            sphere.cap_measure(bad, 3)
    with pytest.raises(ValueError):
        sphere.cap_measure(0.5, 1)


def test_the_nodes_are_gauss_and_legendres() -> None:
    """Roots of the polynomial to the last digit, and weights that integrate powers exactly."""
    count = binomial.NODES.size
    with mp.workdps(40):
        for node, weight in zip(binomial.NODES, binomial.WEIGHTS, strict=True):
            x = mp.findroot(lambda y: mp.legendre(count, y), 2 * mp.mpf(float(node)) - 1)
            slope = count * mp.legendre(count - 1, x) / (1 - x * x)
            assert abs(mp.mpf(float(node)) - (1 + x) / 2) < 2.0**-53
            assert abs(mp.mpf(float(weight)) * (1 - x * x) * slope**2 - 1) < 4 * 2.0**-53


def test_logarithm_less_its_argument() -> None:
    v = np.concatenate([np.geomspace(1e-150, 1e3, 200), -np.geomspace(1e-150, 0.9999, 200)])
    with mp.workdps(400):
        # one scale at a time: the number of terms follows the largest
        for point in v:
            exact = mp.log1p(mp.mpf(float(point))) - mp.mpf(float(point))
            found = float(binomial.log1p_less(np.array([point]))[0])
            assert abs(mp.mpf(found) - exact) <= 3e-15 * abs(exact) + mp.mpf(10) ** -300
    together = binomial.log1p_less(v)
    alone = np.array([float(binomial.log1p_less(np.array([one]))[0]) for one in v])
    np.testing.assert_allclose(together, alone, rtol=3e-15)
