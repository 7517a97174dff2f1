"""Potentials against mpmath: reports from above, types from below, both closely."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from scipy.special import ndtr

from gaussian_types.gram import Triple
from gaussian_types.potential import report_potential, type_potentials
from gaussian_types.rounding import Array

TRIPLES = [
    Triple(True, 0.3, -0.2, 0.8),
    Triple(False, 0.3, -0.2, 0.8),
    Triple(True, 0.02, -0.05, 1.0),
    Triple(False, 0.7, -0.6, 0.9),
    Triple(True, 0.9, 0.1, 0.15),
    Triple(False, 1.2, -0.4, 1.5),
]
POINTS = np.array([-40.0, -3.0, -1.1, -0.2, 0.05, 0.4, 0.9, 2.5, 30.0])
TILTS = np.array([0.0, 0.125, 0.3125])


def double_integral(triple: Triple, tilt: float, point: float) -> float:
    """The plain definition: the positive part of three densities, summed over the plane."""
    side, altitude = np.linspace(-9, 9, 901), np.linspace(-9, 10, 951)
    y = np.meshgrid(side, altitude, indexing="ij")
    apex, end, x = (0.0, triple.height), (triple.end, 0.0), (triple.base, 0.0)
    a, b = (apex, end) if triple.apex_is_a else (end, apex)

    def density(centre: tuple[float, float]) -> Array:
        squares = (y[0] - centre[0]) ** 2 + (y[1] - centre[1]) ** 2
        return np.asarray(np.exp(-squares / 2) / (2 * np.pi))

    value = (1 - tilt) * density(a) - (1 + tilt) * density(b) - point * density(x)
    kept = np.maximum(value if point > 0 else -value, 0.0)
    return float(kept.sum() * 4e-4)


@pytest.mark.parametrize("triple", TRIPLES)
def test_reports_against_a_double_integral(triple: Triple) -> None:
    """Never above the bound, and close to it."""
    points, tilts = np.array([-1.1, 0.4]), np.array([0.0, 0.125])
    bound = report_potential(triple, tilts, points, 0.2)
    for i, tilt in enumerate(tilts):
        for j, point in enumerate(points):
            truth = double_integral(triple, float(tilt), float(point))
            assert truth - 1e-5 <= bound[i, j] <= truth + 2e-3


def normal_sum(nodes: int) -> tuple[Array, Array]:
    """Nodes and weights of the trapezoidal rule for a standard normal variable."""
    z = np.linspace(-12, 12, nodes)
    return z, np.exp(-z * z / 2) / np.sqrt(2 * np.pi) * (24 / (nodes - 1))


def single_integral(triple: Triple, tilt: float, point: float) -> float:
    """The closed form over the altitude, summed finely over the side, in plain floating point."""
    v, weights = normal_sum(2001)
    c, d, w = 1 - tilt, 1 + tilt, triple.height
    end = np.exp(triple.end * v - triple.end**2 / 2)
    base = point * np.exp(triple.base * v - triple.base**2 / 2)
    # the positive part of ±(apex·Y - strike)
    apex, strike = (c, d * end + base) if triple.apex_is_a else (d, c * end - base)
    is_call = (point > 0) == triple.apex_is_a
    k = np.maximum(strike / apex, 1e-290)
    q = np.log(k) / w + w / 2
    if is_call:
        values = np.where(strike > 0, ndtr(w - q) - k * ndtr(-q), 1 - strike / apex)
    else:
        values = np.where(strike > 0, k * ndtr(q) - ndtr(q - w), 0.0)
    return float(apex * np.sum(weights * values))


@pytest.mark.parametrize("triple", TRIPLES)
def test_reports_are_bounded_closely_everywhere(triple: Triple) -> None:
    """Never below a fine quadrature, within 1% of the scale, and finer slices come closer."""
    truth = np.array([[single_integral(triple, b, t) for t in POINTS] for b in TILTS])
    coarse = report_potential(triple, TILTS, POINTS, 0.3)
    fine = report_potential(triple, TILTS, POINTS, 0.12)
    assert np.all(coarse >= truth - 1e-13)
    assert np.all(fine >= truth - 1e-13)
    assert np.all(coarse <= truth * 1.25 + 2e-3)
    assert np.all(fine - truth <= (coarse - truth) * 1.001 + 1e-12)


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.0])
def test_the_interpolated_types_lie_below_the_types(scale: float) -> None:
    """At random tilts and points between the nodes, by quadrature of the definition."""
    tilts, points = np.array([0.0, 0.05, 0.11]), np.array([-3.0, -1.4, -0.6, -0.1, 0.2, 0.7, 1.6])
    first, second = type_potentials(scale, tilts, points)
    z, mass = normal_sum(20001)
    w = np.exp(scale * z - scale**2 / 2)
    rng = np.random.default_rng(3)
    for _ in range(300):
        i, j = rng.integers(len(tilts) - 1), rng.integers(len(points) - 1)
        p, q = rng.random(2)
        tilt = (1 - p) * tilts[i] + p * tilts[i + 1]
        point = (1 - q) * points[j] + q * points[j + 1]
        shares = np.outer([1 - p, p], [1 - q, q])
        for nodes, law in ((first, (1 - tilt) - (1 + tilt) * w), (second, (1 - tilt) * w - (1 + tilt))):
            # Potentials below 0 are the lower ones: make all four corners upper ones.
            shift = np.where(points < 0, 1.0, 0.0) * (-2 * tilts[:, None] - points)
            upper = nodes + shift
            bound = np.sum(shares * upper[i : i + 2, j : j + 2])
            truth = np.sum(mass * np.maximum(law - point, 0.0))
            assert bound <= truth + 1e-6 * (1 + np.abs(law).max() * 1e-12)


def test_types_are_exact_at_the_nodes_of_a_fine_grid() -> None:
    """With steps going to nothing the corrections vanish."""
    tilts, points = np.array([0.0, 1e-6]), 0.3 + np.array([0.0, 1e-6])
    first, second = type_potentials(1.0, tilts, points)
    with mp.workdps(30):
        k = mp.mpf(points[0]) + 1
        d = mp.log(k) + mp.mpf(1) / 2
        b = mp.ncdf(1 - d) - k * mp.ncdf(-d)
        k = 1 - mp.mpf(points[0])
        d = mp.log(k) + mp.mpf(1) / 2
        a = k * mp.ncdf(d) - mp.ncdf(d - 1)
    assert 0 <= float(a) - first[0, 0] < 1e-10
    assert 0 <= float(b) - second[0, 0] < 1e-10
