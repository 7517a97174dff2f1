"""Local hashing, dithered levels and trees: unbiased, as private as they say."""

import math

import numpy as np
import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers import DitheredLevels, LocalHashing, SecureSource, SeededSource, TreeResponse
from randomizers.checks import assert_frequencies, assert_mean


def test_two_values_share_a_bucket_as_often_as_they_should():
    """Over many functions, for values that differ little, much, or in the upper half only."""
    one = LocalHashing(1.0, 16, functions=20_000)
    every = np.arange(one.functions)
    for a, b in ((5, 6), (0, 2**40), (2**63, 2**63 + 2**33), (123456, 987654321)):
        first = one.hashed(np.full(one.functions, a, np.uint64), every)
        second = one.hashed(np.full(one.functions, b, np.uint64), every)
        together = np.bincount(first * 16 + second, minlength=256)
        assert_frequencies(together, np.full(256, 1 / 256))


@pytest.mark.parametrize("source", [SeededSource(1), SecureSource()], ids=["seeded", "secure"])
def test_a_report_tells_the_bucket_as_dary_response_does(source):
    one = LocalHashing(2.0, 8, functions=5)
    reports = one.randomize(np.full(20_000, 77, dtype=np.uint64), source)
    assert one.well_formed(reports).all()
    own = one.hashed(np.full(5, 77, np.uint64), np.arange(5))
    hits = reports[:, 1] == own[reports[:, 0]]
    assert_frequencies(np.array([hits.sum(), (~hits).sum()]), [one.own_support, 1 - one.own_support])


def test_functions_are_the_same_on_every_machine():
    """Frozen: a client and an analyzer of different versions must agree."""
    one = LocalHashing(1.0, 1024, functions=4, salt="a")
    found = one.hashed(np.array([1, 2**40, 2**64 - 1], np.uint64), 3)
    assert found.tolist() == FROZEN


FROZEN = [241, 809, 945]


def test_supports_count_reports_in_the_buckets_of_a_value():
    one = LocalHashing(3.0, 64, functions=16)
    values = np.repeat(np.array([10, 20, 30], np.uint64), [500, 300, 200])
    tables = one.tables(one.randomize(values, SeededSource(2)))
    support = one.support(tables, np.array([10, 20, 30, 40], np.uint64))
    estimates = (support - 1000 / 64) / (one.own_support - 1 / 64)
    assert np.abs(estimates - [500, 300, 200, 0]).max() < 90


@pytest.mark.parametrize("buckets", [3, 1, 2**25])
def test_buckets_are_a_power_of_two(buckets):
    with pytest.raises(InvalidParameter, match="buckets"):
        LocalHashing(1.0, buckets)


@pytest.mark.parametrize("steps", [1, 3, 10])
@pytest.mark.parametrize("value", [0.0, 0.37, 1.0])
def test_levels_are_unbiased_with_the_stated_variance(steps, value):
    one = DitheredLevels(2.0, steps)
    reports = one.randomize(np.full(60_000, value), SeededSource((4, steps)))
    estimates = one.estimate(reports)
    assert_mean(estimates[:, None], value)
    place = steps * value % 1
    noise = one.noise_variance(value, value**2, place * (1 - place))
    assert_mean(((estimates - value) ** 2)[:, None], noise)
    stated = one.response_variance(reports) + one.rounding_variance
    assert stated == pytest.approx(noise, rel=0.05)


def test_no_estimate_is_further_from_another_than_the_range():
    one = DitheredLevels(1.0, 4)
    every = np.array([[d, y] for d in (0, 255) for y in range(5)])
    estimates = one.estimate(every)
    assert estimates.max() - estimates.min() == pytest.approx(one.range, rel=1e-12)


@pytest.mark.parametrize("values", [[-0.1], [1.1], [math.nan]])
def test_levels_refuse_what_is_not_between_zero_and_one(values):
    with pytest.raises(InvalidParameter, match="values"):
        DitheredLevels(1.0, 4).randomize(np.array(values), SeededSource(0))


def test_a_tree_names_the_node_above_the_leaf():
    one = TreeResponse(50.0, leaves=10, branching=3)
    assert one.sizes == (2, 4, 10)
    reports = one.randomize(np.full(600, 8), SeededSource(1))
    assert one.well_formed(reports).all()
    for level, node in ((0, 0), (1, 2), (2, 8)):
        found = reports[reports[:, 0] == level, 1]
        assert 120 < len(found) < 280
        if one.levels[level].report_format.limits == (one.sizes[level],):  # d-ary response: all but surely true
            assert (found == node).all()


def test_the_pair_of_a_tree_is_the_worst_of_its_exact_law():
    one = TreeResponse(1.0, leaves=6, branching=3)
    levels = len(one.sizes)
    law = []
    for leaf in (0, 5):  # differ on every level
        parts = []
        for level, width in zip(one.levels, one.widths, strict=True):
            reports = np.arange(level.report_format.limits[0])
            own = np.array([level.support(reports[i : i + 1])[leaf // width] for i in reports])
            weights = np.where(own > 0, math.e, 1.0)
            parts.append(weights / weights.sum() / levels)
        law.append(np.concatenate(parts))
    for alpha in (0.5, 1.0, 1.6):
        worst = float(np.maximum(law[0] - alpha * law[1], 0).sum())
        assert float(one.pair.profile(alpha)) == pytest.approx(worst, abs=1e-12)


def test_reports_about_no_level_are_found():
    one = TreeResponse(1.0, leaves=64, branching=8)
    assert one.well_formed(np.array([[0, 8], [2, 0], [-1, 0], [0, 0]])).tolist()[-1]
    assert not one.well_formed(np.array([[0, 99], [2, 0], [-1, 0], [1, 4096]])).any()
