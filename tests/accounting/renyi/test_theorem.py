"""The Rényi curve of the theorem: looser than the loss distribution, above every pair, Gaussian reports included."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpcheckin.accounting import CheckInRound, DistributedRound, any_pure, compose, gaussian, laplace
from dpcheckin.accounting.bridge import epsilon_by_renyi, renyi_curve
from dpcheckin.accounting.pairs.local import ThreeAtoms
from dpcheckin.errors import OutsideTheorem
from dpcheckin.papers.p4.bounds import check_in_rdp


def test_renyi_is_looser_but_near() -> None:
    run = [(CheckInRound(60_000, 0.1, any_pure(2.0)), 6800)]
    exact = compose(run).epsilon(1e-5)
    renyi = epsilon_by_renyi(run, 1e-5)
    assert exact.lower <= renyi <= 1.1 * exact.upper


@pytest.mark.parametrize("rate", [0.3, 0.9])
def test_one_client_with_gaussian_reports_in_closed_form(rate: float) -> None:
    """Nobody hides it: 1 - rate + rate exp(a (a-1) s^2 / 2), from above and near, orders below 2 too."""
    orders = np.array([1.25, 1.5, 2.0, 4.0, 9.0])
    exact = np.log1p(rate * np.expm1(orders * (orders - 1.0) / 2.0)) / (orders - 1.0)
    found = renyi_curve(CheckInRound(1, rate, gaussian(2.0)), orders.tolist())
    assert np.all(exact <= found) and np.all(found <= 1.001 * exact)


def test_gaussian_reports_lie_above_their_homogeneous_pair() -> None:
    """P4's recurrence for everybody else on one value; small orders are near it, no order below."""
    orders = list(range(2, 33))
    low = check_in_rdp(2_000, 0.1, 3.0, 32, sensitivity=2.0).epsilons
    found = renyi_curve(CheckInRound(2_000, 0.1, gaussian(3.0)), [float(a) for a in orders])
    assert np.all(found >= low) and np.all(found[:3] <= 1.5 * low[:3])


def test_the_profile_of_one_report_gives_its_moments() -> None:
    """One client with a three-atom report: the sum over its atoms, which no integral has seen."""
    pair, e0 = any_pure(1.5), math.exp(1.5)
    found = renyi_curve(CheckInRound(1, 0.4, pair), [1.5, 2.0, 7.0, 60.0])
    for order, epsilon in zip((1.5, 2.0, 7.0, 60.0), found, strict=True):
        moment = 0.6 + 0.4 * pair.hit * (e0**order + e0 ** (1.0 - order))
        assert math.log(moment) / (order - 1) <= epsilon <= 1.001 * math.log(moment) / (order - 1)


def test_what_has_no_finite_curve_is_refused() -> None:
    """A local delta is mass without counterpart; sums have a curve of their own."""
    with_delta = ThreeAtoms("leaky", 1.0, 0.99 / (math.e + 1), 0.0, local_delta=0.01)
    for one in (CheckInRound(100, 0.1, with_delta), DistributedRound(100, 0.1, 2.0)):
        with pytest.raises(OutsideTheorem, match=r"R[eé]nyi"):
            epsilon_by_renyi([(one, 1)], 1e-5)
    assert renyi_curve(CheckInRound(100, 0.1, laplace(1.0)), [2.0])[0] > 0.0
