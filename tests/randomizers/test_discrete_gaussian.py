"""Discrete Gaussian noise: its law, how nearly it adds up, and its price beside Skellam's."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy import special

from dpcheckin.accounting import DiscreteGaussianRound, DistributedRound, SkellamRound, compose
from dpcheckin.errors import InvalidParameter, OutsideTheorem
from dpcheckin.protocols import DistributedCheckIn
from dpcheckin.randomizers import DiscreteGaussianVector, Gaussian, SeededSource, SkellamVector
from dpcheckin.randomizers.integers import discrete_gaussian_noise, gaussian_reach, gaussian_table


def _masses(variance, last):
    return np.exp(-(np.arange(-last, last + 1) ** 2) / (2.0 * variance))


@pytest.mark.parametrize("variance", [10.0, 123.456])
def test_the_table_is_the_law(variance):
    """Against high-precision arithmetic, to 2^-110 at every entry."""
    high, low, last = gaussian_table(variance)
    with mpmath.workdps(60):
        v = mpmath.mpf(variance)
        total = mpmath.nsum(lambda j: mpmath.exp(-(j**2) / (2 * v)), [-mpmath.inf, mpmath.inf])
        running, far = mpmath.mpf(0), mpmath.mpf(0)
        for j in range(-3 * last, 0):
            term = mpmath.exp(-(mpmath.mpf(j) ** 2) / (2 * v)) / total
            running += term
            if -last <= j:
                entry = j + last
                found = mpmath.mpf((int(high[entry]) << 62) + int(low[entry])) / 2**124
                assert abs(found - running) < mpmath.mpf(2) ** -98
            else:
                far += term
        assert far < mpmath.mpf(2) ** -100  # what the table cuts off on one side


def test_noise_has_its_moments():
    """200,000 draws: mean and variance within six deviations."""
    drawn = discrete_gaussian_noise(400.0, 200_000, SeededSource(3))
    assert drawn.dtype == np.int64 and abs(drawn).max() <= gaussian_reach(400.0)
    assert abs(drawn.mean()) < 6 * 20 / math.sqrt(200_000)
    assert abs(drawn.var() - 400.0) < 6 * 400 * math.sqrt(2 / 200_000)


@pytest.mark.parametrize("variance", [0.5, 0.7, 1.0])
def test_a_sum_is_as_near_as_is_charged(variance):
    """Three reports, convolved exactly, at variances where the distance can still be seen."""
    last = 60
    one = _masses(variance, last)
    one /= one.sum()
    summed = np.convolve(np.convolve(one, one), one)
    whole = _masses(3 * variance, 3 * last)
    whole /= whole.sum()
    distance = 0.5 * np.abs(summed - whole).sum()
    charged = 5.0 * math.exp(-(math.pi**2) * variance) * 3
    assert distance <= charged
    assert variance > 0.6 or distance > charged / 100  # the comparison means something


def test_the_divergence_of_a_shift_is_that_of_the_normal_law():
    """At most a d²/(2v), which is what is charged (Canonne, Kamath, Steinke, Proposition 5)."""
    one = DiscreteGaussianRound(100, 0.1, 10.0, l1=3.0, l2=3.0)
    last = 200
    logs = -(np.arange(-last, last + 1) ** 2) / 20.0
    logs -= special.logsumexp(logs)
    p, q = logs[3:], logs[:-3]
    for order in (2.0, 5.0, 9.0):
        exact = float(special.logsumexp(order * p + (1 - order) * q)) / (order - 1)
        bound = float(one.of_noise(np.array([order]), 10.0)[0])
        assert exact <= bound * (1 + 1e-9) and bound == order * 9 / 20


def test_its_price_lies_between_gaussian_and_skellam():
    """No smaller than the normal law's by loss distributions, no larger than Skellam's."""
    plans = [
        DistributedCheckIn(5000, 0.1, 20, kind)
        for kind in (Gaussian(1.0), DiscreteGaussianVector(1.0, 300), SkellamVector(1.0, 300))
    ]
    normal, discrete, skellam = (plan.epsilon(1e-5).upper for plan in plans)
    assert normal < discrete <= skellam < 1.1 * discrete
    one = plans[1].accounting_round()
    assert type(one) is DiscreteGaussianRound and type(plans[2].accounting_round()) is SkellamRound
    assert one.drawing_error >= 5000 * 300 * 2.0**-98
    assert isinstance(plans[0].accounting_round(), DistributedRound)
    stated = plans[1].guarantee(1e-5)
    assert "discrete Gaussian" in stated.basis[0] and stated.local.epsilon > stated.epsilon.upper
    mixed = compose([(one, 2), (plans[0].accounting_round(), 1)]).epsilon(1e-5).upper
    assert mixed > normal / 20


def test_reports_are_integers_that_add_up():
    randomizer = DiscreteGaussianVector(0.5, 4, clip=2.0)
    values = np.tile([1.0, -0.5, 0.25, 0.0], (400, 1))
    reports = randomizer.randomize(values, SeededSource(1))
    assert reports.dtype == np.int64 and reports.min() >= 0 and reports.max() < 2**32
    mean = randomizer.sum_estimates(reports) / 400
    assert np.abs(mean - values[0]).max() < 6 * 0.5 * 2.0 / 20
    with pytest.raises(OutsideTheorem, match="distributed check-in"):
        _ = randomizer.pair
    with pytest.raises(InvalidParameter, match="steps"):
        DiscreteGaussianVector(0.5, 4, steps=4)
