"""Inverse questions: the answer meets the target, one step further does not."""

from __future__ import annotations

import math

import pytest

from dpcheckin.accounting import CheckInRound, any_pure, compose, gaussian
from dpcheckin.accounting.composition.solve import solve
from dpcheckin.errors import InvalidParameter, Unreachable


@pytest.mark.parametrize("free", ["rounds", "rate", "population", "local_epsilon"])
def test_inverse_questions(free: str) -> None:
    """The answer meets the target; one step further does not."""
    given: dict[str, float] = {
        "population": 5000, "rate": 0.05, "local_epsilon": 1.5, "rounds": 40,
    }  # fmt: skip

    def build(value: float) -> tuple[CheckInRound, int]:
        with_value = {**given, free: value}
        pair = any_pure(with_value["local_epsilon"])
        one = CheckInRound(int(with_value["population"]), with_value["rate"], pair)
        return one, int(with_value["rounds"])

    target = 0.15
    value = solve(free, build, epsilon=target, delta=1e-6)
    unit = 1.0 if free in ("rounds", "population") else 10.0 ** (math.floor(math.log10(value)) - 3)
    further = value - 1 if free == "population" else value + unit
    assert compose([build(value)]).epsilon(1e-6).upper <= target
    assert compose([build(further)]).epsilon(1e-6).upper > target


def test_noise_is_solved_for() -> None:
    """As little Gaussian noise as meets the target; one unit of the fourth digit less does not."""

    def build(value: float) -> tuple[CheckInRound, int]:
        return CheckInRound(300, 0.2, gaussian(value)), 1

    value = solve("noise_multiplier", build, epsilon=0.001, delta=1e-5)
    assert compose([build(value)]).epsilon(1e-5).upper <= 0.001
    less = value - 10.0 ** (math.floor(math.log10(value)) - 3)
    assert compose([build(less)]).epsilon(1e-5).upper > 0.001
    most = solve("noise_multiplier", lambda v: (CheckInRound(300, 1.0, gaussian(v)), 1), epsilon=0.5, delta=1e-5)
    assert 0.5 < most < 10.0


@pytest.mark.parametrize(("start", "target"), [(1.0, 0.5), (1e-9, 3.0), (1e5, 1e-3), (1e-3, 700.0), (2.0, 1.0)])
def test_a_search_asks_little_whatever_the_curve(start: float, target: float) -> None:
    """Powers, steps and jumps to infinity: the exact answer, within sixty questions."""
    for curve in (math.sqrt, float, math.log1p, lambda x: math.floor(x**0.7), _jump):
        asked: list[float] = []

        def upper(one: object, count: int, delta: float, curve=curve, asked=asked) -> float:
            asked.append(count)
            return start * curve(count)

        def build(value: float) -> tuple[CheckInRound, int]:
            return CheckInRound(10, 0.5, any_pure(1.0)), int(value)

        try:
            found = solve("rounds", build, epsilon=target, delta=1e-6, upper=upper)
        except Unreachable as problem:
            most = 10**9 if "every" in str(problem) else 1
            assert (start * curve(most) <= target) == (most > 1)
            continue
        assert start * curve(found) <= target < start * curve(found + 1)
        assert len(asked) <= 60


def _jump(count: float) -> float:
    return math.inf if count > 12_345 else 1e-3


def test_inverse_questions_without_answer() -> None:
    def build(value: float) -> tuple[CheckInRound, int]:
        return CheckInRound(10, 0.5, any_pure(8.0)), int(value)

    with pytest.raises(Unreachable, match="even rounds = 1"):
        solve("rounds", build, epsilon=0.01, delta=1e-6)
    with pytest.raises(InvalidParameter, match="free"):
        solve("colour", build, epsilon=0.01, delta=1e-6)
    with pytest.raises(Unreachable, match="cannot be met by any rate"):
        solve("rate", lambda v: (CheckInRound(10, 0.5, any_pure(8.0)), 5), epsilon=0.01, delta=1e-6)
    with pytest.raises(Unreachable, match="every rounds"):
        solve("rounds", lambda v: (CheckInRound(10, 0.0, any_pure(8.0)), 5), epsilon=1, delta=1e-6)
    with pytest.raises(Unreachable, match="cannot be met by any population"):
        solve("population", lambda v: (CheckInRound(9, 0.5, any_pure(8.0)), 5), epsilon=1, delta=1e-6)
    assert solve("rate", lambda v: (CheckInRound(10, 0.0, any_pure(1.0)), 5), epsilon=1, delta=1e-6) == 1.0
    assert solve("population", lambda v: (CheckInRound(int(v), 0.0, any_pure(1.0)), 5), epsilon=1, delta=1e-6) == 1

    def gaussian_rate(value: float) -> tuple[CheckInRound, int]:
        return CheckInRound(1000, value, gaussian(20.0)), 2

    assert solve("rate", gaussian_rate, epsilon=5.0, delta=1e-6) == 1.0
