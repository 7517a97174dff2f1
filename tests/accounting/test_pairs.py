"""Local pairs: profiles are profiles, with all their digits."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.special import betainc

from dpcheckin.accounting import (
    LocalRound,
    any_pure,
    approximate,
    binary_response,
    compose,
    dary_response,
    from_atoms,
    from_profile,
    gaussian,
    hemisphere,
    laplace,
    privunit,
)
from dpcheckin.accounting.engine.curves import UPPER_SLACK
from dpcheckin.accounting.pairs.cap import privunit_parameters

ALL_PAIRS = [
    any_pure(1.0),
    binary_response(0.5),
    hemisphere(2.0),
    dary_response(1.0, 7),
    privunit(4.0, 300),
    gaussian(2.0),
    laplace(1.5),
    approximate(1.0, 1e-4),
    from_atoms([2.0, 0.5, 1.0], [0.2, 0.4, 0.4]),
]


@pytest.mark.parametrize("pair", ALL_PAIRS, ids=lambda pair: pair.name)
def test_profiles_are_profiles(pair: Any) -> None:
    """Convex, decreasing, closed under swapping, one at zero and the local delta at infinity."""
    alphas = np.exp(np.linspace(-6, 6, 241))
    h = pair.profile(alphas)
    slopes = np.diff(h) / np.diff(alphas)
    assert np.all(slopes <= 1e-12)
    assert np.all(np.diff(slopes) >= -1e-9)
    assert h == pytest.approx(1 - alphas + alphas * pair.profile(1 / alphas), abs=1e-9)
    assert float(pair.profile(np.zeros(1))[0]) == pytest.approx(1.0)
    assert float(pair.profile(np.array([1e9]))[0]) == pytest.approx(pair.local_delta, abs=1e-9)
    if pair.pure:
        top = math.exp(pair.local_epsilon)
        assert float(pair.profile(np.array([top]))[0]) == pytest.approx(0.0, abs=1e-12)
    assert pair.label and pair.second_moment > 0


def test_second_moment_is_the_integral_of_the_profile() -> None:
    for pair in (any_pure(1.0), gaussian(3.0), laplace(1.0)):
        x = np.linspace(1, 400, 400_001)
        area = float(np.sum(pair.profile(x)) * (x[1] - x[0]))
        assert pair.second_moment == pytest.approx(2 * area, rel=5e-3)


def test_privunit_law() -> None:
    p, q, t = privunit_parameters(4.0, 300)
    assert 0 < q <= 0.5 < p < 1 and t >= 0
    assert p * (1 - q) / (q * (1 - p)) == pytest.approx(math.exp(4.0))
    pair = privunit(4.0, 300)
    assert pair.hit == pytest.approx(q * (1 - p) / (1 - q))
    assert pair.hit * (math.exp(4.0) + 1) + pair.neutral == pytest.approx(1.0)
    assert pair.second_moment < any_pure(4.0).second_moment


@pytest.mark.parametrize(("local", "dimension"), [(0.1, 2), (1.0, 3), (4.0, 300), (8.0, 10_000)])
def test_privunit_takes_the_cap_of_the_largest_scale(local: float, dimension: int) -> None:
    """Of all heights: the mean cosine, summed from the law of a coordinate, falls on both sides."""
    _, _, best = privunit_parameters(local, dimension)
    power, heights = (dimension - 1) / 2, best * np.array([0.9, 0.999, 1.0, 1.001, 1.1])
    q = 0.5 * betainc(power, 0.5, 1 - heights**2)
    scales = (1 - heights**2) ** power / (1 + math.expm1(local) * q)
    assert scales[0] < scales[1] < scales[2] > scales[3] > scales[4]


@pytest.mark.parametrize("noise", [0.3, 2.0, 19.9, 20.1, 200.0, 1e4, 1e6])
def test_a_gaussian_profile_has_all_its_digits(noise: float) -> None:
    """Fewer than curves are widened by: much noise makes it a difference of equal numbers."""
    pair, far = gaussian(noise), np.array([-11.0, -7.5, -3.0, -1e-3, 0.0, 0.5, 4.0, 29.9, 31.0])
    alphas = np.exp(-far * pair.s)
    with mpmath.workdps(50):
        s = mpmath.mpf(pair.s)
        for alpha, found in zip(map(mpmath.mpf, alphas), pair.profile(alphas), strict=True):
            middle = -mpmath.log(alpha) / s
            truth = mpmath.ncdf(middle + s / 2) - alpha * mpmath.ncdf(middle - s / 2)
            assert abs(found / truth - 1) < 0.5 * (UPPER_SLACK - 1)


def test_what_is_left_of_a_profile_at_its_end_is_charged() -> None:
    """Half a unit of 1e-12 beyond local_epsilon is a delta like any other."""
    e0, left = math.exp(1.0), 5e-13

    def function(alpha: np.ndarray) -> np.ndarray:
        return np.maximum(e0 - alpha, 0.0) / (e0 + 1) * (1 - left) + np.maximum(1 - alpha * e0, 0.0) / (e0 + 1) + left

    pair = from_profile(function, local_epsilon=1.0)
    assert left <= pair.local_delta <= left * (1 + 1e-3)
    assert compose([(LocalRound(pair), 3)]).delta(3.5).upper >= 3 * left * 0.99
    exact = from_profile(
        lambda a: (np.maximum(e0 - a, 0.0) + np.maximum(1 - a * e0, 0.0)) / (e0 + 1), local_epsilon=1.0
    )
    assert exact.pure
