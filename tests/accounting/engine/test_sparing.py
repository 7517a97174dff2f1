"""Gaussian curves leave out what does not count: nothing gets smaller, and little larger."""

from __future__ import annotations

import numpy as np
import pytest

from dpcheckin.accounting import CheckInRound, gaussian
from dpcheckin.accounting.engine.typed.curve import TypedCurve, TypesFirstCurve
from dpcheckin.accounting.pairs.gaussian import Crowd, LogNormalReports


def curve_of(population: int, rate: float, noise: float) -> TypesFirstCurve:
    found = CheckInRound(population, rate, gaussian(noise)).curve(1e-9)
    assert isinstance(found, TypesFirstCurve)
    return found


@pytest.mark.parametrize(
    ("population", "rate", "noise"), [(40_000, 0.1, 1.6), (3_000_000, 0.002, 1.05), (300, 0.3, 1.9)]
)
def test_a_spared_curve_is_between_the_lower_bound_and_the_whole_one(
    population: int, rate: float, noise: float
) -> None:
    """It is hardly above what all values of both bounds give where a composition looks."""
    spared = curve_of(population, rate, noise)
    step, points = spared.spread / 12, 100
    above = spared.upper(step, points)
    whole = TypedCurve.upper(spared, step, points)
    assert np.all(above >= spared.lower(step, points))
    assert np.all(above[:36] <= whole[:36] * 1.002)
    assert np.all(above <= whole * 1.05)


def test_where_reports_are_few_the_worst_law_counts() -> None:
    """The noise of the types weighs more than the worst law does."""
    few, many = curve_of(30, 0.3, 1.02), curve_of(1_000_000, 0.3, 1.02)
    near = np.array([0.0, 0.5, 1.0, 2.0, 3.0])
    for curve, worst_is_smaller in ((few, True), (many, False)):
        places = (curve.spread * near).tolist()
        smaller = [curve.worst.upper_at(x) < curve._completed(x) for x in places]
        assert any(smaller) == worst_is_smaller
        assert all(curve.upper_at(x) <= curve.worst.upper_at(x) for x in places)


@pytest.mark.parametrize("tolerance", [1e-8, 1e-12])
def test_beyond_the_reach_there_is_no_more_than_was_asked_for(tolerance: float) -> None:
    curve = curve_of(50_000, 0.1, 1.5)
    assert curve.upper_at(curve.reach(tolerance)) <= 2 * tolerance
    assert curve.reach(tolerance) <= 2 * TypedCurve.reach(curve, tolerance)


def test_laws_that_share_pieces_are_transformed_alike() -> None:
    """The worst law has the lower pieces of one type and the upper ones of the other."""
    laws = LogNormalReports(1.5, Crowd(4_000.0, 40_000.0))
    points = laws.points(0.01)
    first, second, alone = laws.first(0.01, points), laws.second(points), laws.worst(0.01, points)
    shared = alone.sharing(first, second)
    pieces = {id(piece) for law in (first, second) for piece in law.pieces}
    assert sum(id(piece) in pieces for piece in shared.pieces) >= len(alone.pieces) - 3
    theta = 0.5 / laws.deviation
    period = 4096 * alone.step
    for _ in range(2):  # the second time from what is known
        assert np.array_equal(shared.transform(theta, period, 50)[0], alone.transform(theta, period, 50)[0])
    for threshold in (0.0, 3.0, 40.0):
        exact = float(laws._above(np.array([threshold]))[0])
        assert second.excess(threshold) == pytest.approx(exact, rel=0.25)
