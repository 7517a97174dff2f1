"""The test of the operator's view: silent when nothing leaks, loud when something does."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpcheckin.errors import InvalidParameter
from flower_observations import Observation, _ranks, detectable_shift, examine


def log(chance, *, nodes=6, rounds=60, delay=0.0, wider=0.0, bytes_more=0, errors=0.0, rate=0.4):
    """An operator's log: heavy-tailed times, nodes of different speed, and a drift."""
    seen = []
    for node in range(nodes):
        speed = chance.uniform(0.5, 2.0)
        for number in range(rounds):
            in_ = bool(chance.random() < rate)
            seconds = speed * np.exp(chance.normal(0, 0.3)) + 0.01 * number
            seconds += delay * in_ + wider * in_ * chance.normal()
            seen.append(
                Observation(
                    node=str(node),
                    round=number,
                    size=1200 + node + bytes_more * in_,
                    seconds=float(seconds),
                    error=bool(chance.random() < 0.01 + errors * in_),
                    checked_in=in_,
                )
            )
    return seen


def test_under_the_null_the_level_is_kept():
    """200 honest logs at level 0.05: false alarms stay near 5%."""
    chance = np.random.default_rng(1)
    alarms = sum(examine(log(chance, rounds=20), level=0.05, permutations=999).leaks for _ in range(200))
    assert alarms <= 20, f"{alarms} of 200; more than 20 has probability 1e-3 at a true 5%"


@pytest.mark.parametrize(
    "leak,feature",
    [({"delay": 0.5}, "seconds"), ({"wider": 2.0}, "spread"), ({"bytes_more": 1}, "size"), ({"errors": 0.2}, "error")],
)
def test_a_leak_is_found_where_it_is(leak, feature):
    verdict = examine(log(np.random.default_rng(2), **leak))
    assert verdict.leaks and verdict.p_values[feature] < 0.0025


def test_equal_sizes_say_nothing():
    assert examine(log(np.random.default_rng(3))).p_values["size"] == 1.0


def test_power_is_as_stated():
    """A delay of the stated size is found about as often as stated, one of a tenth hardly ever."""
    seen = log(np.random.default_rng(4), nodes=4, rounds=50)
    delay = detectable_shift(seen, power=0.9)
    assert 0.02 < delay < 1.0

    def found(size):
        chance, hits = np.random.default_rng(5), 0
        for _ in range(40):
            fresh = [
                Observation(o.node, o.round, o.size, o.seconds + size * in_, o.error, in_)
                for o, in_ in zip(seen, chance.random(len(seen)) < 0.4, strict=True)
            ]
            hits += examine(fresh, permutations=1999).leaks
        return hits / 40

    assert found(delay) >= 0.75 and found(delay / 10) <= 0.2


def test_a_log_without_both_kinds_is_refused():
    seen = [Observation("1", r, 10, 1.0, False, True) for r in range(5)]
    with pytest.raises(InvalidParameter, match="observations"):
        examine(seen)
    with pytest.raises(InvalidParameter, match="level"):
        examine(seen, level=0.0)


def test_equal_values_share_their_rank():
    chance = np.random.default_rng(3)
    for values in (chance.integers(0, 5, 40).astype(float), chance.normal(size=30), np.ones(4)):
        np.testing.assert_array_equal(_ranks(values), stats.rankdata(values))
