"""Overlaps of caps: other formulas, other arithmetic, samples, and the certificate itself."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import special, stats

from dpcheckin.special import cap_overlaps
from dpcheckin.special.cap_overlaps import height_bounds, overlap, overlap_of_caps, widest_angle


def by_slices(dimension: int, height: float, angle: float) -> mp.mpf:
    """Slice by <u, a> = x: what is left is a cap of a sphere of one dimension less."""
    d, t, theta = mp.mpf(dimension), mp.mpf(height), mp.mpf(angle)

    def cap(w: mp.mpf) -> mp.mpf:
        if w >= 1:
            return mp.mpf(0)
        if w <= -1:
            return mp.mpf(1)
        half = mp.betainc((d - 2) / 2, mp.mpf("0.5"), 0, 1 - w * w, regularized=True) / 2
        return half if w >= 0 else 1 - half

    def slice_at(x: mp.mpf) -> mp.mpf:
        r = mp.sqrt(1 - x * x)
        beyond = (t - x * mp.cos(theta)) / (r * mp.sin(theta))
        return (1 - x * x) ** ((d - 3) / 2) * cap(beyond)

    width = 1 / mp.sqrt(d)
    ends = [min(t + k * width, mp.mpf(1)) for k in (0, 1, 2, 3, 5, 8, 12)]
    # where a slice begins or ceases to meet the other cap
    edges = [mp.cos(theta - mp.acos(t)), mp.cos(theta + mp.acos(t))]
    places = sorted({*ends, *(x for x in edges if t < x < ends[-1])})
    return mp.quad(slice_at, places) / mp.beta(mp.mpf("0.5"), (d - 1) / 2)


@pytest.mark.parametrize(
    ("dimension", "height", "degrees"),
    [
        (4, 0.3, 100.0),
        (4, 0.05, 175.0),
        (7, 0.6, 60.0),
        (20, 0.18, 131.6),
        (20, 0.02, 96.0),
        (100, 0.15, 123.0),
        (2410, 0.016, 132.0),
        (2410, 0.0081, 104.0),
        (100_000, 0.0025, 114.0),
        (100_000, 0.0048, 20.0),
    ],
)
def test_bounds_hold_against_another_formula(dimension: int, height: float, degrees: float) -> None:
    with mp.workdps(25):
        exact = by_slices(dimension, height, math.radians(degrees))
        found = overlap(dimension, height, math.radians(degrees))
        assert found.lower <= exact <= found.upper
    assert found.upper - found.lower <= 1e-10 * found.upper + 1e-14


@pytest.mark.parametrize("nodes", [3, 5, 8])
def test_the_error_bound_covers_a_rule_too_coarse(nodes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With few nodes the quadrature is visibly wrong, and the bounds must say so."""
    fine = {}
    places = [(5, 0.4, 1.0), (50, 0.1, 2.0), (3000, 0.02, 2.2), (3000, 0.001, 1.7)]
    for place in places:
        fine[place] = overlap(*place)
    rule = np.polynomial.legendre.leggauss(nodes)
    monkeypatch.setattr(cap_overlaps, "_NODES", nodes)
    monkeypatch.setattr(cap_overlaps, "_gauss", lambda: rule)
    widths = []
    for place in places:
        rough = overlap(*place)
        assert rough.lower <= fine[place].lower and fine[place].upper <= rough.upper
        widths.append((rough.upper - rough.lower) / fine[place].upper)
    assert max(widths) > 1e-9


def test_a_circle_has_arcs() -> None:
    for height, angle in ((0.1, 0.5), (0.5, 2.0), (0.9, 0.3), (0.99, 3.0)):
        arc = max(math.acos(height) - angle / 2, 0.0) / math.pi
        found = overlap(2, height, angle)
        assert found.lower <= arc * (1 + 1e-15) and arc * (1 - 1e-15) <= found.upper
        assert found.upper - found.lower < 1e-11


@pytest.mark.parametrize("dimension", [2, 3, 4, 11, 1000])
def test_at_angle_zero_the_overlap_is_the_cap(dimension: int) -> None:
    for height in (0.02, 0.3, 0.8):
        cap = 0.5 * special.betainc((dimension - 1) / 2, 0.5, 1 - height**2)
        found = overlap(dimension, height, 0.0)
        assert found.lower == pytest.approx(cap, rel=1e-9) == found.upper


@pytest.mark.parametrize(("dimension", "height"), [(3, 0.4), (8, 0.25)])
def test_samples_fall_where_they_should(dimension: int, height: float) -> None:
    rng, size = np.random.default_rng(1), 400_000
    points = rng.normal(size=(size, dimension))
    points /= np.linalg.norm(points, axis=1)[:, None]
    for angle in (0.7, 1.6, 2.1):
        other = math.cos(angle) * points[:, 0] + math.sin(angle) * points[:, 1]
        seen = int(np.sum((points[:, 0] >= height) & (other >= height)))
        found = overlap(dimension, height, angle)
        assert stats.binomtest(seen, size, found.upper).pvalue > 1e-6


def test_many_dimensions_are_a_normal_plane() -> None:
    """u sqrt(d) is nearly normal: orthant probabilities of two correlated normals."""
    d, t, angle = 10**5, 0.0048, math.radians(115.0)
    z = t * math.sqrt(d)
    correlation = [[1.0, math.cos(angle)], [math.cos(angle), 1.0]]
    normal = stats.multivariate_normal(cov=correlation).cdf([-z, -z])
    assert overlap(d, t, angle).upper == pytest.approx(normal, rel=2e-3)


@pytest.mark.parametrize("dimension", [2, 3, 50, 2410, 100_000])
@pytest.mark.parametrize("measure", [1e-12, 1e-5, 0.003, 0.2, 0.4999])
def test_heights_of_measures_and_back(dimension: int, measure: float) -> None:
    height = height_bounds(dimension, measure)
    assert height is not None
    assert 0 < height.lower <= height.upper
    assert height.upper - height.lower <= 1e-7 * height.upper
    assert overlap(dimension, height.lower, 0.0).lower >= measure
    assert overlap(dimension, height.upper, 0.0).upper <= measure
    apart = overlap_of_caps(dimension, measure, math.pi)
    assert apart is not None and apart.lower == apart.upper == 0.0


def test_half_the_sphere_is_no_cap() -> None:
    assert height_bounds(10, 0.5) is None
    assert overlap_of_caps(10, 0.5, 1.0) is None


@pytest.mark.parametrize("weight", [0.05, 0.6, 0.98, 1.0])
def test_no_other_angle_is_wider(weight: float) -> None:
    for dimension, height in ((3, 0.3), (20, 0.2), (2410, 0.02)):

        def lost(angle: float, d: int = dimension, t: float = height) -> float:
            return overlap(d, t, angle).upper + weight * overlap(d, t, math.pi - angle / 2).upper

        best = widest_angle(dimension, height, weight)
        assert 2 * math.pi / 3 <= best <= math.pi
        others = np.linspace(1.6, math.pi, 300)
        assert lost(best) <= min(lost(x) for x in others) + 1e-14


def test_caps_too_small_to_meet_are_a_third_of_a_turn_apart() -> None:
    assert widest_angle(10, 0.6, 0.9) == pytest.approx(2 * math.pi / 3)
    assert overlap(10, 0.6, 2 * math.pi / 3).upper == 0.0
