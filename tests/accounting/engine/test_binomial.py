"""Binomial probabilities against 40 digits."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcheckin.special.binomial import pmf


def _exact(k: int, n: int, p: float) -> mpmath.mpf:
    with mpmath.workdps(40):
        log = mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1)
        return mpmath.exp(log + k * mpmath.log(p) + (n - k) * mpmath.log1p(-mpmath.mpf(p)))


@given(
    n=st.integers(1, 3 * 10**9),
    p=st.one_of(
        st.floats(1e-9, 1 - 1e-9),
        st.floats(-20.0, -0.1).map(lambda x: float(np.exp(x))),
        st.floats(-20.0, -0.1).map(lambda x: -float(np.expm1(x))),
    ),
    deviations=st.floats(-12.0, 12.0),
)
@settings(max_examples=300, deadline=None)
def test_twelve_digits_as_far_out_as_accounting_looks(n: int, p: float, deviations: float) -> None:
    k = round(n * p + deviations * max((n * p * (1 - p)) ** 0.5, 1.0))
    k = min(max(k, 0), n)
    exact = _exact(k, n, p)
    if exact > mpmath.mpf("1e-37"):
        assert abs(float(pmf(k, n, p)) / exact - 1) < 1e-12


def test_what_cannot_happen_has_probability_zero() -> None:
    assert pmf([-1, 0.5, 4], 3, 0.3).tolist() == [0.0, 0.0, 0.0]
    assert pmf([0, 3], 3, 0.0).tolist() == [1.0, 0.0]
    assert pmf([0, 3], 3, 1.0).tolist() == [0.0, 1.0]


def test_trials_may_vary_and_masses_sum_to_one() -> None:
    table = pmf(np.arange(30)[None, :], np.arange(1, 29)[:, None], 0.37)
    assert table.sum(axis=1) == pytest.approx(np.ones(28), rel=1e-14)
