"""Vectors in fixed point with Skellam noise: unbiased, of the stated variance, never too long."""

import numpy as np
import pytest

from dpcheckin.errors import InvalidParameter, OutsideTheorem
from dpcheckin.randomizers import SecureSource, SeededSource, SkellamVector
from randomizers.checks import assert_mean, assert_same_law


@pytest.mark.parametrize("source", [SeededSource(5), SecureSource()], ids=["seeded", "secure"])
def test_estimates_are_unbiased_with_the_stated_variance(source):
    """A vector inside the ball and one that is clipped; coarse steps, so that rounding counts."""
    randomizer = SkellamVector(0.5, dimension=3, clip=2.0, steps=4)
    for row in (np.array([0.3, -0.7, 1.1]), np.array([3.0, 0.0, 4.0])):
        kept = row * min(1.0, 2.0 / float(np.linalg.norm(row)))
        values = np.tile(row, (20_000, 1))
        estimates = randomizer.estimate(randomizer.randomize(values, source))
        assert_mean(estimates, kept)
        energy = ((estimates - kept) ** 2).sum(axis=1)
        assert_mean(energy, randomizer.total_variance(row[None])[0])


def test_a_modular_sum_is_the_sum_of_the_estimates():
    """Negative coordinates wrap around and come back; so does a sum of many."""
    randomizer, source = SkellamVector(1.0, dimension=4), SeededSource(1)
    reports = randomizer.randomize(-np.ones((500, 4)), source)
    assert reports.min() >= 0 and reports.max() < 2**32
    total = randomizer.sum_estimates(reports)
    assert np.allclose(total, randomizer.estimate(reports).sum(axis=0))
    assert randomizer.most_reports() > 500


def test_no_rounded_vector_is_longer_than_accounting_assumes():
    """Rounding is repeated until the integers fit: also where plain rounding often would not."""
    randomizer, source = SkellamVector(1.0, dimension=400, steps=2), SeededSource(2)
    values = np.random.Generator(np.random.PCG64(3)).standard_normal((200, 400))
    rows = randomizer.rounded(values, source)
    assert ((rows * rows).sum(axis=1) <= randomizer.largest_square).all()
    assert randomizer.l2_sensitivity**2 >= 4 * randomizer.largest_square


def test_the_sum_drawn_at_once_has_the_spread_of_summed_reports():
    randomizer, clients = SkellamVector(0.7, dimension=2, steps=8), 30
    values = np.tile([0.31, 0.17], (clients, 1))
    source = SeededSource(4)
    each = np.array(
        [randomizer.sum_estimates(randomizer.randomize(values, source))[0] - clients * 0.31 for _ in range(2000)]
    )
    drawn = randomizer.summed(np.linalg.norm(values, axis=1), 2, source)
    assert np.allclose(drawn.weights, 1.0)
    at_once = drawn.noise_deviation * source.normal((2000,))
    assert_same_law(each, at_once)


def test_bad_input_is_refused():
    for change in ({"noise_multiplier": 0.0}, {"dimension": 0}, {"steps": 0}, {"clip": -1.0}):
        with pytest.raises(InvalidParameter, match=next(iter(change))):
            SkellamVector(**{"noise_multiplier": 1.0, "dimension": 2, **change})
    with pytest.raises(InvalidParameter, match="values"):
        SkellamVector(1.0, 2).randomize(np.array([[np.nan, 0.0]]), SeededSource(0))
    with pytest.raises(OutsideTheorem, match="distributed"):
        _ = SkellamVector(1.0, 2).pair
