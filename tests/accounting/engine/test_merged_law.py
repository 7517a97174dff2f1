"""Reports merged into a law on a lattice, and the masses of a sum: nothing is ever gained."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpcheckin.accounting import CheckInRound, binary_response, gaussian, laplace, lower_bound
from dpcheckin.accounting.engine.lower.lattice import LowerLattice
from dpcheckin.accounting.engine.lower.merged_law import merged_law
from dpcheckin.accounting.engine.seats import Seats
from dpcheckin.special.normal import gaussian_profile


@pytest.mark.parametrize("s", [0.3, 1.0, 1.7, 2.5, 3.3])
@pytest.mark.parametrize("step", [0.02, 0.3, 0.9])
def test_a_merged_report_lies_below_the_report_in_convex_order(s: float, step: float) -> None:
    """Both have mean one; its potential is nowhere larger, at nodes and in between."""
    (real,) = gaussian(2 / s).directions
    assert real.tails is not None
    law = merged_law(real.tails, step, 3_000)
    values = law.step * (np.arange(law.masses.size) - law.bottom)
    assert law.masses.sum() == pytest.approx(1.0, abs=1e-12)
    assert law.masses @ values == pytest.approx(0.0, abs=1e-12)
    places = np.concatenate([np.linspace(-0.999, 3.0, 200), values[-1] * np.linspace(0.01, 1, 50)])
    merged = np.maximum(values[None, :] - places[:, None], 0.0) @ law.masses
    ratio = 1 + places
    # E(W - w)+ of a log-normal of mean one
    down = stats.norm.cdf((-np.log(ratio) - s * s / 2) / s)
    exact = stats.norm.cdf((-np.log(ratio) + s * s / 2) / s) - ratio * down
    assert np.all(merged <= exact * (1 + 1e-9) + 1e-12)
    assert gaussian_profile(s, ratio[-1:])[0] == pytest.approx(exact[-1], rel=1e-6)
    if step < 0.1 and s <= 1.0:  # and little is lost
        assert law.variance >= 0.98 * math.expm1(s * s)


@pytest.mark.parametrize("step", [0.70, 0.7313514618517807, 0.75])
def test_a_step_that_jumps_to_and_fro_is_found_all_the_same(step: float) -> None:
    """Noise 1.14 among 700,000 reports: nothing was left of the law, and no lower bound."""
    (real,) = gaussian(1.1416492987316955).directions
    assert real.tails is not None
    law = merged_law(real.tails, step, 1 << 17)
    values = law.step * (np.arange(law.masses.size) - law.bottom)
    assert law.masses @ values == pytest.approx(0.0, abs=1e-9)
    assert 0.98 < law.variance / math.expm1((2 / 1.1416492987316955) ** 2) < 1.0


def test_masses_of_a_sum_are_those_of_a_binomial_from_below() -> None:
    n, rate, e0 = 60, 0.3, 2.0  # log 2: ratios 2 and 1/2 are on one lattice
    pair = binary_response(math.log(e0))
    seats = Seats(n, pair, 0.0, float(n), rate, 1 - rate)
    lattice = LowerLattice(seats, pair.directions[0])
    forward, backward = lattice.atoms(forward=True), lattice.atoms(forward=False)
    counts = np.arange(n + 1)
    curve = np.zeros((2, 40))
    alphas = np.exp(np.arange(40) * 0.02)
    for k, chance in zip(counts, stats.binom.pmf(counts, n, rate), strict=True):
        hits = np.arange(k + 1)
        mass = chance * stats.binom.pmf(hits, k, 1 / (e0 + 1))
        ratio = (n - k + e0 * hits + (k - hits) / e0) / n
        curve[0] += np.maximum(ratio[None, :] - alphas[:, None], 0.0) @ mass
        curve[1] += np.maximum(1 - alphas[:, None] * ratio[None, :], 0.0) @ mass
    for found, exact in zip((forward, backward), curve, strict=True):
        values = found.curve(0.02, 40)
        assert np.all(values <= exact * (1 + 1e-12))
        assert values == pytest.approx(exact, rel=1e-6, abs=1e-14)


@pytest.mark.parametrize("e0", [1.0, 1e-2, 1e-5])
def test_reports_next_to_nothing_need_no_larger_lattice(e0: float) -> None:
    """Their ratios all lie next to one: nodes down to a ratio of zero would be as many as 1/e0."""
    (real,) = laplace(e0).directions
    assert real.tails is not None
    lowest, step = 1.0 - real.smallest_ratio, 0.02 * e0
    law = merged_law(real.tails, step, math.ceil((real.largest_ratio - 1.0) / step), lowest)
    assert law.masses.size < 250
    values = law.step * (np.arange(law.masses.size) - law.bottom)
    places = np.linspace(-1.2 * lowest, 1.2 * lowest, 101)
    merged = np.maximum(values[None, :] - places[:, None], 0.0) @ law.masses
    exact = np.where(places < -lowest, -places, real.above(1.0 + np.maximum(places, -lowest)))
    assert np.all(merged <= exact + 1e-9 * e0)


def test_the_lower_bound_of_weak_reports_is_there_at_once() -> None:
    assert lower_bound((CheckInRound(10, 0.5, laplace(1e-3)), 5), 1e-6).epsilon.lower > 1e-3
    assert lower_bound((CheckInRound(1000, 0.1, laplace(1e-7)), 2), 1e-6).epsilon.lower >= 0.0  # took gigabytes
