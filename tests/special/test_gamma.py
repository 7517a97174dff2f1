"""Logarithms of gamma and beta functions against mpmath."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from dpcheckin.special.binomial import stirling_error
from dpcheckin.special.gamma import log_beta, log_gamma, log_sum


def test_stirlings_error() -> None:
    x = np.concatenate([np.arange(1.0, 40.0), np.geomspace(16.0, 1e15, 100)])
    with mp.workdps(60):
        for point, value in zip(x, stirling_error(x), strict=True):
            n = mp.mpf(float(point))
            exact = mp.loggamma(n + 1) - (n + mp.mpf(1) / 2) * mp.log(n) + n - mp.log(2 * mp.pi) / 2
            assert abs(mp.mpf(float(value)) - exact) < 1e-16


@pytest.mark.parametrize("a", [1e-3, 0.5, 1.0, 3.7, 15.9, 16.0, 50.0, 1e3, 1e6, 1e11, 3.3e11])
def test_log_beta(a: float) -> None:
    with mp.workdps(60):
        for b in (0.5, 1.0, 2.5, 15.9, 16.0, 40.0, 499.5, 5e4, 1e7, 1e9 + 0.5, 1e11, 1.7e11, 1e12):
            x, y = mp.mpf(a), mp.mpf(b)
            exact = mp.loggamma(x) + mp.loggamma(y) - mp.loggamma(x + y)
            for found in (log_beta(a, b), log_beta(b, a)):
                assert abs(mp.mpf(found) - exact) <= 2e-14 + 1e-15 * abs(exact)


def test_log_gamma() -> None:
    x = np.concatenate([np.geomspace(1e-10, 1e10, 200), np.arange(1.0, 30.0)]).reshape(-1, 1)
    with mp.workdps(40):
        for point, value in zip(x.ravel(), log_gamma(x).ravel(), strict=True):
            exact = mp.loggamma(mp.mpf(float(point)))
            assert abs(mp.mpf(float(value)) - exact) <= 1e-15 * max(1, abs(exact))
    assert log_gamma(x).shape == x.shape


@pytest.mark.parametrize("bad", [0.0, -1.5, math.nan])
def test_what_has_no_logarithm_raises(bad: float) -> None:
    with pytest.raises(ValueError):
        log_gamma([1.0, bad])
    with pytest.raises(ValueError):
        log_beta(bad, 1.0)


def test_log_sums() -> None:
    assert log_sum([-1e4, -1e4], [1.0, 3.0]) == pytest.approx(-1e4 + math.log(4), rel=1e-15)
    assert log_sum([900.0, 1e9], [2.0, 0.0]) == pytest.approx(900 + math.log(2), rel=1e-15)
    assert log_sum([-math.inf, 0.0]) == 0.0
    assert log_sum([1.0], [0.0]) == -math.inf
    assert log_sum([math.inf, 0.0]) == math.inf
    assert math.isnan(log_sum([math.nan, 0.0]))
