"""Roots within brackets and minima within bounds."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from dpcheckin.special.roots import minimum, root, switch, whole_switch

FUNCTIONS: list[tuple[Callable[[float], float], float, float, float]] = [
    (lambda x: math.exp(-5 * x) - 1e-6, 0.0, 8.0, math.log(1e6) / 5),
    (lambda x: x**9 - 1e-5, 0.0, 3.0, 10 ** (-5 / 9)),
    (lambda x: math.log(x), 1e-9, 50.0, 1.0),
    (lambda x: 1.0 if x > 0.3 else -1.0, 0.0, 1.0, 0.3),
    (lambda x: x - 1e-200, 0.0, 1.0, 1e-200),
    (lambda x: 2.0 - x, 2.0, 5.0, 2.0),
]


@pytest.mark.parametrize(("function", "low", "high", "place"), FUNCTIONS)
def test_roots_are_found_to_the_tolerance_asked_for(
    function: Callable[[float], float], low: float, high: float, place: float
) -> None:
    assert root(function, low, high) == pytest.approx(place, rel=4e-15)
    assert root(function, high, low) == pytest.approx(place, rel=4e-15)
    assert root(function, low, high, relative=1e-6) == pytest.approx(place, rel=1e-6)


def test_a_root_needs_a_sign_change_and_numbers() -> None:
    with pytest.raises(ValueError, match="no sign change"):
        root(lambda x: x * x + 1, -1.0, 1.0)
    with pytest.raises(ValueError, match="not a number"):
        root(lambda x: math.nan, 0.0, 1.0)
    with pytest.raises(ValueError, match="not a number"):
        root(lambda x: math.nan if 0.2 < x < 0.8 else x - 0.5, 0.0, 1.0)


@pytest.mark.parametrize(
    ("function", "low", "high", "place"),
    [
        (lambda x: (x - 0.3) ** 2, 0.0, 1.0, 0.3),
        (lambda x: math.cosh(x - 0.7), -3.0, 5.0, 0.7),
        (lambda x: abs(x - 0.123), 0.0, 1.0, 0.123),
        (lambda x: x, 2.0, 3.0, 2.0),
        (lambda x: math.inf if x > 0.5 else -x, 0.0, 1.0, 0.5),
    ],
)
def test_minima_are_found(function: Callable[[float], float], low: float, high: float, place: float) -> None:
    found, value = minimum(function, low, high)
    assert found == pytest.approx(place, abs=1e-7)
    assert low <= found <= high
    assert value == function(found)


@pytest.mark.parametrize("place", [1e-300, 0.3, 1.0, 7e12])
def test_a_condition_stops_between_two_neighbours(place: float) -> None:
    good, bad = switch(lambda x: x <= place, 0.0, 1e13)
    assert (good, bad) == (place, math.nextafter(place, math.inf))
    bad, good = switch(lambda x: x > place, 1e13, 0.0)[::-1]
    assert (bad, good) == (place, math.nextafter(place, math.inf))
    good, bad = switch(lambda x: x <= place, 0.0, 1e13, relative=1e-3)
    assert good <= place < bad
    assert bad - good <= 1e-3 * bad


def test_a_condition_that_meets_nan_is_not_taken_to_hold() -> None:
    good, bad = switch(lambda x: (math.nan if x > 0.5 else x) <= 1.0, 0.0, 1.0)
    assert good == 0.5 < bad
    with pytest.raises(ValueError, match="no interval"):
        switch(lambda x: True, 0.0, math.nan)
    with pytest.raises(ValueError, match="no interval"):
        switch(lambda x: True, 0.0, math.inf)


@pytest.mark.parametrize("last", [0, 1, 41, 98, 10**18])
def test_the_last_whole_number_is_found(last: int) -> None:
    assert whole_switch(lambda n: n <= last, 0, 10**18 + 1) == last
    assert whole_switch(lambda n: n > last, 10**18 + 1, -1) == last + 1


@pytest.mark.parametrize("near", [None, -5, 0, 1, 2, 36, 37, 38, 50, 98, 99, 100, 1000])
@pytest.mark.parametrize(("place", "good", "bad"), [(37, 0, 100), (1, 0, 100), (99, 0, 100), (37, 100, 0), (2, 1, 5)])
def test_a_whole_switch_is_where_it_is_whatever_is_known_of_it(
    near: int | None, place: int, good: int, bad: int
) -> None:
    asked: list[int] = []

    def holds(number: int) -> bool:
        asked.append(number)
        return number <= place if good < bad else number >= place

    assert whole_switch(holds, good, bad, near) == place
    assert good not in asked and bad not in asked and len(asked) == len(set(asked))
    if near is not None and abs(near - place) <= 1 and min(good, bad) < near < max(good, bad):
        assert len(asked) <= 4
