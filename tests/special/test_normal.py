"""The normal law against mpmath: every promise of its docstrings, far tails and odd arguments."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
import scipy.special

from dpcheckin.special import normal
from dpcheckin.special.normal import gaussian_profile_at, log_ndtr, ndtr, ndtri

UNIT = 2.0**-53


def points(low: float, high: float, count: int, seed: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    near = np.concatenate([rng.uniform(-3, 3, count), -np.geomspace(1e-300, 1.0, 40)])
    return np.concatenate([[low, high, 0.0], rng.uniform(low, high, count), near])


def test_the_coefficients_are_those_of_a_chebyshev_series() -> None:
    """(z + 5) exp(z²/2) Φ(-z), interpolated with fifty digits."""
    with mp.workdps(50):
        count = 64
        nodes = [mp.cos(mp.pi * (2 * j + 1) / (2 * count)) for j in range(count)]
        values = []
        for t in nodes:
            z = 5 * (1 + t) / (1 - t)
            # mpmath's own complementary error function, scaled
            values.append((z + 5) * mp.exp(z * z / 2) * mp.erfc(z / mp.sqrt(2)) / 2)
        powers = [mp.mpf(0)] * 25
        for n in range(25):
            c = mp.fsum(v * mp.chebyt(n, t) for v, t in zip(values, nodes, strict=True))
            c *= mp.mpf(2 if n else 1) / count
            for i, factor in enumerate(reversed(mp.taylor(lambda x, n=n: mp.chebyt(n, x), 0, n))):
                powers[n - i] += c * factor
        found = normal._TAIL.ravel()
        for ours, exact in zip(found, powers, strict=True):
            assert abs(mp.mpf(float(ours)) - exact) <= 4 * UNIT * max(abs(exact), mp.mpf("1e-5"))


def test_ndtr_is_as_exact_as_it_says() -> None:
    x = points(-38.4, 9.0, 600)
    with mp.workdps(40):
        for point, value in zip(x, ndtr(x), strict=True):
            truth = mp.ncdf(mp.mpf(float(point)))
            if point <= 0:
                allowed = (point * point + 30) * UNIT * truth + mp.mpf(2) ** -1073
            else:
                allowed = 4e-15 * (1 - truth) + UNIT
            assert abs(mp.mpf(float(value)) - truth) <= allowed, point


def test_log_ndtr_is_as_exact_as_it_says() -> None:
    x = np.concatenate([points(-200.0, 37.0, 600), -np.geomspace(200.0, 1e4, 20)])
    with mp.workdps(40):
        for point, value in zip(x, log_ndtr(x), strict=True):
            exact = mp.mpf(float(point))
            if point <= 0:
                truth = mp.log(mp.ncdf(exact))
                allowed = 4e-15 + 2 * UNIT * abs(truth)
            else:
                truth = mp.log1p(-mp.ncdf(-exact))
                allowed = (point * point + 30) * UNIT * abs(truth)
            assert abs(mp.mpf(float(value)) - truth) <= allowed, point


def test_log_ndtr_where_nothing_else_reaches() -> None:
    """-x²/2 - log(-x √2π), the first term of the expansion, is exact to 1/x² there."""
    x = -np.geomspace(1e9, 1e150, 40)
    expected = -0.5 * x * x - np.log(-x * math.sqrt(2 * math.pi))
    np.testing.assert_allclose(log_ndtr(x), expected, rtol=4 * UNIT)


def test_ndtri_is_as_exact_as_it_says() -> None:
    """Φ of what is found, in forty digits, is off by no more than the density allows."""
    rng = np.random.default_rng(8)
    p = np.concatenate(
        [rng.random(600), np.geomspace(5e-324, 0.5, 200), 0.5 - np.geomspace(1e-16, 0.1, 40),
         1.0 - np.geomspace(2.0**-53, 0.5, 40)]
    )  # fmt: skip
    with mp.workdps(40):
        for level, value in zip(p, ndtri(p), strict=True):
            x = mp.mpf(float(value))
            off = (mp.ncdf(x) - mp.mpf(float(level))) / mp.npdf(x)
            assert abs(off) <= 4e-15 * max(1, abs(x)), level


@pytest.mark.filterwarnings("error")
def test_ends_and_what_is_no_number() -> None:
    odd = [math.nan, math.inf, -math.inf, 1e200, -1e200]
    assert np.isnan(ndtr(odd)[0])
    assert ndtr(odd)[1:].tolist() == [1.0, 0.0, 1.0, 0.0]
    assert np.isnan(log_ndtr(odd)[0])
    assert log_ndtr(odd)[1:].tolist() == [0.0, -math.inf, 0.0, -math.inf]
    assert ndtri([0.0, 1.0]).tolist() == [-math.inf, math.inf]
    assert np.isnan(ndtri([math.nan, -0.1, 1.1])).all()
    assert ndtr([]).shape == log_ndtr([]).shape == ndtri([]).shape == (0,)
    assert ndtr(np.zeros((2, 3))).shape == (2, 3)
    assert float(ndtr(0.0)) == pytest.approx(0.5, rel=1e-15)


def test_long_rows_are_the_short_ones() -> None:
    """Rows are computed in blocks: no place of a long one may depend on its neighbours."""
    x = np.linspace(-30.0, 8.0, 3 * 8192 + 5)
    whole = log_ndtr(x)
    for part in (slice(0, 10), slice(8190, 8200), slice(-7, None)):
        np.testing.assert_allclose(whole[part], log_ndtr(x[part]), rtol=1e-14)
    np.testing.assert_allclose(ndtr(x), scipy.special.ndtr(x), rtol=3e-13)


@pytest.mark.parametrize("distance", [1e-6, 1e-3, 0.03, 0.0999, 0.1, 0.11, 0.4, 1.0, 3.0, 12.0])
def test_gaussian_profiles_keep_their_digits_far_out(distance: float) -> None:
    """A profile that is too small by 1e-10 is below what curves are widened by."""
    places = np.concatenate([np.linspace(-30.0, 36.0, 45), points(-8.0, 36.0, 20)[3:23]])
    logs = np.concatenate([places * distance, places * distance + distance**2 / 2])
    with mp.workdps(60):
        for log, value in zip(logs, gaussian_profile_at(distance, logs), strict=True):
            d, x = mp.mpf(distance), mp.mpf(float(log))
            exact = mp.ncdf(d / 2 - x / d) - mp.exp(x) * mp.ncdf(-d / 2 - x / d)
            if exact > 1e-290:
                assert abs(mp.mpf(float(value)) - exact) <= 1e-12 * exact, (distance, log)
