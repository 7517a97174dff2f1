"""The proof for Laplace reports: true by plain integration, and refused where it is forged."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize

from dpcheckin.accounting.engine.typed.nested_laws import NestedLaw
from dpcheckin.accounting.pairs.laplace import STRETCH, TILT_STEP, VIOLATION, LaplaceClaim, LaplaceTypes
from dpcheckin.accounting.pairs.potentials import Array, Places, positive_part, reports_at

Law = tuple[Array, Array]


def _density(y: Array, at: float) -> Array:
    return 0.5 * np.exp(-np.abs(y - at))


def _report(length: float, a: float, b: float, x: float, alpha: float) -> Law:
    """Z under R(x), cut into cells of y and merged: a law below the true one, as near as may be."""
    y = np.unique(np.concatenate([np.linspace(0.0, length, 4001), [a, b, x]]))

    def below(at: float) -> Array:
        tail = 0.5 * np.exp(-np.abs(y - at))
        whole = np.where(y < at, tail, 1.0 - tail)
        return np.diff(np.concatenate([[0.0], whole, [1.0]]))

    mass = below(x)
    return (below(a) - alpha * below(b)) / mass, mass


def _smooth(law: Law, at: Array, scale: float) -> Array:
    """E G(Z - u), G the positive part of a number with Laplace noise."""
    gap = law[0][None, :] - at[:, None]
    noisy = np.maximum(gap, 0.0) + scale / 2 * np.exp(-np.abs(gap) / scale)
    return np.asarray(noisy @ law[1])


def _of(law: NestedLaw, alpha: float) -> Law:
    values = np.concatenate([piece.values for piece in law.pieces])
    return values + 1.0 - alpha, np.concatenate([piece.masses for piece in law.pieces])


def _lacking(report: Law, first: Law, second: Law, at: Array, scale: float) -> float:
    """How much the best mixture of two types lacks of a report's smoothed potential."""
    above = np.stack([_smooth(first, at, scale), _smooth(second, at, scale)], axis=1)
    found = optimize.linprog(
        [0, 0, 1],
        A_ub=np.hstack([-above, -np.ones((at.size, 1))]),
        b_ub=-_smooth(report, at, scale),
        A_eq=[[1, 1, 0]],
        b_eq=[1],
        bounds=[(0, 1), (0, 1), (None, None)],
    )
    return float(found.x[2])


@pytest.mark.parametrize("length", [0.3, 1.0, 2.2, 4.0, 5.5])
def test_every_report_lies_below_a_mixture_of_the_types(length: float) -> None:
    rng, types = np.random.default_rng(round(10 * length)), LaplaceTypes(length)
    for rise in (0.0, 0.013, 0.08, min(0.3 * math.expm1(length), 20.0)):
        (found,) = types(rise)
        alpha = 1.0 + rise
        first, second = (_of(law, alpha) for law in found.laws)  # type: ignore[arg-type]
        top = float(np.abs(second[0]).max())
        at = np.sort(np.concatenate([rng.uniform(-top, top, 60), rng.normal(size=40)]))
        for _ in range(12):
            a, b, x = rng.uniform(0.0, length, 3)
            if rng.random() < 0.7:
                a, b, x = rng.permutation([0.0, length, x])
            report = _report(length, a, b, x, alpha)
            assert _lacking(report, first, second, at, found.smoothing) <= found.violation + 1e-9


def test_the_types_need_their_noise() -> None:
    types = LaplaceTypes(2.0)
    (found,) = types(0.0)
    first, second = (_of(law, 1.0) for law in found.laws)  # type: ignore[arg-type]
    at = np.linspace(-3.0, 3.0, 121)
    middle = _report(2.0, 0.0, 2.0, 1.0, 1.0)
    assert _lacking(middle, first, second, at, 0.02 * found.smoothing) > 0.05


@pytest.mark.parametrize("length", [0.1, 0.5, 1.0, 2.0, 4.0, 6.0, 8.0])
def test_noise_forged_a_fifth_too_small_is_refused(length: float) -> None:
    claim = LaplaceTypes(length).claim
    scale = claim.smoothing(0)
    assert scale is not None
    assert claim.holds(0, scale)
    assert not claim.holds(0, 0.8 * scale)


def test_types_that_are_not_wider_are_refused() -> None:
    points = LaplaceTypes(2.0).claim.points
    for stretch, proved in ((STRETCH, True), (0.0, False)):
        claim = LaplaceClaim(2.0, points, stretch)
        assert any(claim.holds(0, 0.5 * times) for times in (2.0, 3.0, 4.0)) is proved


def test_a_longer_interval_is_refused() -> None:
    # the types of 2.0 against the reports of an interval 1% longer
    points = LaplaceTypes(2.0).claim.points
    short, long = LaplaceClaim(2.0, points), LaplaceClaim(2.02, points)
    for index in (0, 1):
        tilt = long.tilt(index)
        short.tilt(index)
        object.__setattr__(tilt, "first", short.tilt(index).first)
        object.__setattr__(tilt, "second", short.tilt(index).second)
    assert not any(long.holds(0, scale) for scale in (0.9, 1.0, 1.5, 3.0))


def test_positive_parts_are_integrals() -> None:
    rng = np.random.default_rng(3)
    y = np.linspace(-40.0, 45.0, 1_700_001)
    for _ in range(20):
        length = rng.uniform(0.2, 4.0)
        p, (left, middle, right) = rng.uniform(0.0, length), rng.normal(size=3)
        exact = np.maximum(left * _density(y, 0) + middle * _density(y, p) + right * _density(y, length), 0.0).sum() * (
            y[1] - y[0]
        )
        (found,) = positive_part(length, np.array([p]), *(np.array([one]) for one in (left, middle, right)))
        assert found == pytest.approx(exact, abs=1e-8)


def test_places_between_are_covered() -> None:
    """The rows of two neighbours bound every place between them, in all three families."""
    rng = np.random.default_rng(4)
    for length in (0.4, 2.0, 5.0):
        places = Places.of(length, 0.1, 0.5, 0.8)
        for alpha in (1.0, 1.4):
            t = np.sort(np.append(rng.uniform(-alpha * math.exp(length), math.exp(length), 80), 0))
            rows = reports_at(places, alpha, t).reshape(3, places.nodes.size, t.size)
            sign = np.where(t >= 0, 1.0, -1.0)
            for k in range(places.nodes.size - 1):
                low, high = places.nodes[k : k + 2]
                p = rng.uniform(low, high)
                share = (p - low) / (high - low)
                turned = math.sinh(p - low) / (math.sinh(p - low) + math.sinh(high - p))
                at = np.array([p])
                inner = positive_part(length, at, sign, -sign * t, -alpha * sign)
                second = positive_part(length, at, sign, -alpha * sign, -sign * t)
                first = positive_part(length, at, -alpha * sign, sign, -sign * t)
                for row, truth, part in zip(rows, (inner, second, first), (turned, share, share), strict=True):
                    above = (1 - part) * row[k] + part * row[k + 1]
                    assert (truth <= above + 1e-12).all()


def test_every_tilt_is_proved_by_its_two_ends() -> None:
    claim = LaplaceTypes(1.5).claim
    for index in range(int(math.tanh(0.75) / TILT_STEP)):
        scale = claim.smoothing(index)
        assert scale is not None
        assert claim.holds(index, scale)
    assert VIOLATION <= 1e-12
