"""Limits: buckets, budgets and declared lengths."""

from __future__ import annotations

import pytest

from dpcheckin.service.web.limits import Buckets, Budget
from dpcheckin.service.web.requests import declared_length
from service.shuffler_world import Clock


def test_a_bucket_refills_at_its_rate_and_never_beyond_its_size() -> None:
    clock = Clock(0.0)
    buckets = Buckets(rate=2.0, burst=3, clock=clock)
    assert [buckets.take(b"a") for _ in range(4)] == [True, True, True, False]
    assert buckets.take(b"b")
    clock.now += 0.5
    assert [buckets.take(b"a") for _ in range(2)] == [True, False]
    clock.now += 1000
    assert [buckets.take(b"a") for _ in range(4)] == [True, True, True, False]
    clock.now -= 50
    assert not buckets.take(b"a")  # a clock set back gives nothing


def test_forgotten_buckets_are_full_and_memory_is_bounded() -> None:
    buckets = Buckets(rate=0.001, burst=1, clock=Clock(0.0), remembered=3)
    for key in (b"a", b"b", b"c", b"d"):
        assert buckets.take(key)
    assert len(buckets._level) == 3
    assert not buckets.take(b"d")
    assert buckets.take(b"a")


def test_a_budget_is_taken_and_given_back() -> None:
    budget = Budget(10)
    assert budget.take(7)
    assert not budget.take(4)
    budget.give_back(7)
    assert budget.take(10)


@pytest.mark.parametrize(("value", "expected"), [(b"12", 12), (b"-1", None), (b"x", None), (b"9" * 30, None)])
def test_a_declared_length_is_a_number_or_nothing(value: bytes, expected: int | None) -> None:
    assert declared_length({"headers": [(b"content-length", value)]}) == expected
    assert declared_length({"headers": []}) is None
