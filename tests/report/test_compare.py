"""Comparisons: the order of bounds holds, whatever the run."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpcheckin.errors import OutsideTheorem
from dpcheckin.notebook.comparisons import setting_of
from dpcheckin.numerals import Kind
from dpcheckin.papers.entry import Setting
from dpcheckin.protocols.questions import RunQuestion
from dpcheckin.report.compare import EMPTY_SEAT, compare


def _check_order(setting: Setting) -> None:
    lines = compare(setting, frozenset({Kind.GUARANTEE, Kind.LOWER_BOUND}))
    proved = [x.epsilon for x in lines if x.kind is Kind.GUARANTEE and x.epsilon is not None]
    true_lower = [x.epsilon for x in lines if x.kind is Kind.LOWER_BOUND and x.epsilon is not None]
    for low in true_lower:
        assert low <= min(proved) * (1 + 1e-9)
    ours = next(x.epsilon for x in lines if x.name == EMPTY_SEAT)
    assert ours is not None and ours <= min(proved) * 1.01 + 1e-9


def _random_run(seed: int) -> tuple[Setting, Setting]:
    """The same random parameters for check-in and for a fixed cohort."""
    random = np.random.default_rng(seed)
    n, rate = int(10 ** random.uniform(3.0, 5.5)), float(random.uniform(0.01, 0.5))
    e0, rounds = float(random.uniform(0.2, 5.0)), int(10 ** random.uniform(0.0, 3.0))
    delta = float(10 ** random.uniform(-8.0, -3.0))
    cohort = max(2, min(n - 1, round(n * rate)))
    return (
        Setting("shuffled-check-in", n, rounds, delta, rate=rate, local_epsilon=e0),
        Setting("subsampled-shuffle", n, rounds, delta, cohort=cohort, local_epsilon=e0),
    )


@pytest.mark.parametrize("seed", range(6))
def test_order_of_bounds(seed: int) -> None:
    """Lower bound <= empty-seat guarantee <= every other sound bound (1% numerical width)."""
    for setting in _random_run(seed):
        _check_order(setting)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6, 306))
def test_order_of_bounds_for_hundreds_of_runs(seed: int) -> None:
    """The same, three hundred times."""
    for setting in _random_run(seed):
        _check_order(setting)


@pytest.mark.parametrize("noise", [3.0])
def test_order_for_gaussian_reports(noise: float) -> None:
    """Homogeneous pair <= guarantee <= check-in alone, clones."""
    run = Setting("shuffled-check-in", 5_000, 50, 1e-5, rate=0.05, noise_multiplier=noise)
    _check_order(run)
    values = {x.name: x.epsilon for x in compare(run)}
    low, ours = values["homogeneous Gaussian pair"], values[EMPTY_SEAT]
    assert low is not None and ours is not None and low < ours < 2 * low
    assert math.isfinite(values["check-in alone, Gaussian reports"] or math.inf)


@pytest.mark.parametrize("name", ["skellam", "discrete-gaussian"])
def test_sums_of_integers_are_compared(name: str) -> None:
    """Their guarantee is the run's own, beside what is published of sums; alone such reports have no pair."""
    run = {"population": 500, "rate": 0.1, "rounds": 3, "randomizer": f"{name}:4:50"}
    ours = [line for line in compare(setting_of(protocol="distributed-check-in", delta=1e-4, **run)) if line.ours]
    assert [line.epsilon for line in ours] == [RunQuestion("distributed-check-in", **run).guarantee(1e-4).epsilon.upper]
    with pytest.raises(OutsideTheorem, match="distributed check-in"):
        setting_of(protocol="shuffled-check-in", delta=1e-4, **run)


@pytest.mark.parametrize("adverse", [{"colluding": 0.2}, {"dropout": 0.2}, {"lowest_rate": 0.005}])
def test_what_no_published_bound_knows_of_silences_them_and_costs_us(adverse):
    """Of a run with colluders, lost check-ins or rates that differ only ours is stated, and as `epsilon` states it."""
    import dpcheckin as dp

    asked = (2000, 0.01, 2.0, 20, 1e-4)
    lines = {line.name: line for line in dp.compare(*asked, **adverse)}
    ours = lines["empty-seat theorem"].epsilon
    plain = {line.name: line for line in dp.compare(*asked)}["empty-seat theorem"].epsilon
    assert ours == pytest.approx(dp.epsilon(*asked, **adverse).epsilon.upper, rel=1e-9)
    assert ours > plain
    published = [line for line in lines.values() if line.source.startswith("P")]
    assert published and all(line.epsilon is None and "colluders" in line.note for line in published)


def test_what_a_protocol_does_not_take_is_refused_and_not_left_out():
    import dpcheckin as dp
    from dpcheckin.errors import InvalidParameter

    with pytest.raises(InvalidParameter, match="dropout"):
        dp.compare(2000, local_epsilon=1.0, protocol="shuffle", dropout=0.2)


def test_numbers_of_a_report_may_stand_beside_the_name_of_the_randomizer():
    import dpcheckin as dp
    from dpcheckin.errors import Superfluous

    run = {"population": 2000, "rate": 0.01, "local_epsilon": 2.0}
    named = dp.plan(epsilon=0.5, randomizer="privunit:50", **run)
    assert dp.plan(epsilon=0.5, randomizer="privunit", dimension=50, **run).value == named.value
    for other in ("any", "dary:10"):
        with pytest.raises(Superfluous, match="dimension"):
            dp.plan(epsilon=0.5, randomizer=other, dimension=50, **run)
        with pytest.raises(Superfluous, match="dimension"):
            dp.compare(**run, randomizer=other, dimension=50)


def test_a_plan_keeps_the_ratio_of_rates():
    import dpcheckin as dp

    found = dp.plan(epsilon=0.4, population=2000, rounds=20, local_epsilon=2.0, lowest_ratio=0.5)
    assert found.run.lowest_rate == pytest.approx(found.value / 2)
    stated = dp.epsilon(2000, found.value, 2.0, 20, lowest_rate=found.value / 2)
    assert 0.38 < float(stated) <= 0.4
