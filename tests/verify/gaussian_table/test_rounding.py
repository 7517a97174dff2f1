"""Option values are certified: mpmath's lies between the bounds, and the bounds are close."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from dpcheckin.special.normal import ndtr
from gaussian_types import rounding

STRIKES = np.concatenate([np.geomspace(1e-6, 1e6, 61), [-2.0, -1e-9, 0.0, 1.0]])
SPREADS = [0.02, 0.3, 1.0, 2.1]


def exact_call(strike: float, spread: float) -> mp.mpf:
    """E(Y - k)₊ with forty digits."""
    k, w = mp.mpf(float(strike)), mp.mpf(float(spread))
    if k <= 0:
        return 1 - k
    d = mp.log(k) / w + w / 2
    return mp.ncdf(w - d) - k * mp.ncdf(-d)


def exact_put(strike: float, spread: float) -> mp.mpf:
    """E(k - Y)₊ with forty digits."""
    k, w = mp.mpf(float(strike)), mp.mpf(float(spread))
    if k <= 0:
        return mp.mpf(0)
    d = mp.log(k) / w + w / 2
    return k * mp.ncdf(d) - mp.ncdf(d - w)


@pytest.mark.parametrize("spread", SPREADS)
def test_calls_and_puts_lie_between_their_bounds(spread: float) -> None:
    """And the bounds are within 1e-10 of each other, far below the slack of any claim."""
    with mp.workdps(60):
        calls = [exact_call(k, spread) for k in STRIKES]
        puts = [exact_put(k, spread) for k in STRIKES]
        for low, high, truth in (
            (rounding.call_lower, rounding.call_upper, calls),
            (rounding.put_lower, rounding.put_upper, puts),
        ):
            below, above = low(STRIKES, spread), high(STRIKES, spread)
            for b, a, value in zip(below, above, truth, strict=True):
                assert mp.mpf(float(b)) <= value <= mp.mpf(float(a))
            assert np.all(above - below <= 1e-10 * (1 + np.abs(STRIKES)))


@pytest.mark.parametrize(("lowest", "highest", "allowed"), [(-14, 8, 1e-13), (-37, -14, 1e-12)])
def test_the_library_is_as_exact_as_the_module_says(lowest: float, highest: float, allowed: float) -> None:
    """The relative error of the normal distribution function, from the far left tail to 1."""
    rng = np.random.default_rng(5)
    points = np.concatenate([[lowest, highest], rng.uniform(lowest, highest, 400)])
    with mp.workdps(30):
        for point, value in zip(points, ndtr(points), strict=True):
            truth = mp.ncdf(mp.mpf(float(point)))
            assert abs(mp.mpf(float(value)) / truth - 1) < allowed


@pytest.mark.parametrize("spread", [0.3, 1.0, 2.0])
def test_the_density_bound_is_above_the_density_and_attained(spread: float) -> None:
    """On random intervals, against a dense sample."""
    rng = np.random.default_rng(1)
    low = rng.lognormal(-0.5, 1.0, 200) * rng.choice([1.0, 0.0, -1.0], 200)
    high = low + rng.lognormal(-2.0, 1.0, 200)
    inside = low + (high - low) * np.linspace(0, 1, 2001)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        d = np.log(inside) / spread + spread / 2
        density = np.exp(-d * d / 2) / (inside * spread * np.sqrt(2 * np.pi))
    highest = np.where(inside > 0, density, 0.0).max(0)
    bound = rounding.density_upper(low, high, spread)
    assert np.all(bound >= highest)
    assert np.all(bound <= highest * 1.01 + 1e-12)


def test_masses_of_slices() -> None:
    """Against mpmath, in both tails and with shifts."""
    edges = np.linspace(-9.0, 9.0, 76)
    for shift in (-1.7, 0.0, 0.4, 3.0):
        found = rounding.normal_masses(edges, shift)
        with mp.workdps(60):
            for mass, left, right in zip(found, edges[:-1], edges[1:], strict=True):
                truth = mp.ncdf(mp.mpf(float(right)) - shift) - mp.ncdf(mp.mpf(float(left)) - shift)
                assert abs(mp.mpf(float(mass)) / truth - 1) < rounding.SUMS
