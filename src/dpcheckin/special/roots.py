"""Functions of one number between two bounds: roots, where a condition ends, smallest values."""

from __future__ import annotations

import math
from collections.abc import Callable

_GOLDEN = (3.0 - math.sqrt(5.0)) / 2.0
_MOST = 500  # bisection alone needs fewer for every pair of doubles with a relative tolerance


def root(
    function: Callable[[float], float], low: float, high: float, *, relative: float = 4e-16, absolute: float = 1e-300
) -> float:
    """Where a continuous function changes sign: interpolation within a bracket (Brent, 1973).

    The function has opposite signs at `low` and `high`, or is zero at one of them. The point returned has the smallest
    value seen, and a sign change within the tolerance of it: `relative`, in parts of the root, and `absolute` besides.

    >>> round(root(lambda x: x**3 - 2.0, 0.0, 2.0), 12)
    1.259921049895
    """
    before, at_before = low, _number(function, low)
    here, at_here = high, _number(function, high)
    if at_before == 0.0 or at_here == 0.0:
        return before if at_before == 0.0 else here
    if (at_before > 0.0) == (at_here > 0.0):
        raise ValueError(f"no sign change between {low!r} and {high!r}: {at_before!r}, {at_here!r}")
    other, at_other = before, at_before  # the root is between here and the other end
    step = last = here - before
    for _ in range(_MOST):
        if (at_here > 0.0) != (at_before > 0.0):
            other, at_other = before, at_before
            step = last = here - before
        if abs(at_other) < abs(at_here):
            before, here, other = here, other, here
            at_before, at_here, at_other = at_here, at_other, at_here
        tolerance = 0.5 * (absolute + relative * abs(here))
        half = 0.5 * (other - here)
        if at_here == 0.0 or abs(half) < tolerance:
            return here
        tried = None
        if abs(last) > tolerance and abs(at_here) < abs(at_before):
            tried = _interpolated(before, here, other, at_before, at_here, at_other)
        if tried is not None and 2 * abs(tried) < min(abs(last), 3 * abs(half) - tolerance):
            last, step = step, tried
        else:
            last = step = half
        before, at_before = here, at_here
        here += step if abs(step) > tolerance else math.copysign(tolerance, half)
        at_here = _number(function, here)
    raise ValueError(f"no root found between {low!r} and {high!r}")


def _number(function: Callable[[float], float], place: float) -> float:
    value = function(place)
    if math.isnan(value):
        raise ValueError(f"not a number at {place!r}")
    return value


def _interpolated(
    before: float, here: float, other: float, at_before: float, at_here: float, at_other: float
) -> float | None:
    """The step to zero of a line through two points, or of an inverse parabola through three."""
    if before == other:
        return -at_here * (here - before) / (at_here - at_before)
    slope = (at_before - at_here) / (before - here)
    opposite = (at_other - at_here) / (other - here)
    below = opposite * slope * (at_other - at_before)
    return -at_here * (at_other * opposite - at_before * slope) / below if below else None


def switch(
    holds: Callable[[float], bool], good: float, bad: float, *, absolute: float = 0.0, relative: float = 0.0
) -> tuple[float, float]:
    """Where a condition stops to hold: a place where it does and one nearby where it does not, by bisection.

    It `holds` at `good` and not at `bad`, on either side; it is not asked there, and NaN must not make it true. The two
    end up `absolute` apart, or `relative` to the larger one; with neither, as neighbours.

    >>> good, bad = switch(lambda x: x * x <= 2.0, 0.0, 2.0)
    >>> round(good, 12), bad > good
    (1.414213562373, True)
    """
    if not math.isfinite(bad - good):
        raise ValueError(f"no interval: {good!r} to {bad!r}")
    while abs(bad - good) > absolute + relative * max(abs(good), abs(bad)):
        middle = good + 0.5 * (bad - good)
        if middle in (good, bad):
            break
        if holds(middle):
            good = middle
        else:
            bad = middle
    return good, bad


def whole_switch(holds: Callable[[int], bool], good: int, bad: int, near: int | None = None) -> int:
    """The last whole number on the way from `good` to `bad` for which a condition `holds`, by bisection.

    It holds at `good` and not at `bad`, on either side; it is not asked there. Where it ends `near` a number that is
    known, that number and its neighbours are asked first.

    >>> whole_switch(lambda n: n * n <= 90, 0, 100), whole_switch(lambda n: n > 7, 100, 0)
    (9, 8)
    """
    step = 1
    while near is not None and min(good, bad) < near < max(good, bad):
        towards = holds(near)
        good, bad = (near, bad) if towards else (good, near)
        near += step if towards == (bad > good) else -step
        step *= 2
    while abs(bad - good) > 1:
        middle = (good + bad) // 2
        if holds(middle):
            good = middle
        else:
            bad = middle
    return good


def least(holds: Callable[[float], bool], start: float, most: float = math.inf, *, halvings: int = 60) -> float:
    """A number from which on a condition `holds`, found by doubling from `start` and then so many `halvings`.

    It is infinite where the condition does not hold at `most` either. Below it, by the width of the last halving, the
    condition does not hold, or lies zero.

    >>> round(least(lambda x: x * x >= 50.0, 1.0), 9)
    7.071067812
    """
    low, high = 0.0, start
    while not holds(high):
        if high >= most:
            return math.inf
        low, high = high, min(2.0 * high, most)
    return switch(holds, high, low, absolute=(high - low) * 2.0**-halvings)[0]


def minimum(
    function: Callable[[float], float], low: float, high: float, *, absolute: float = 1e-10
) -> tuple[float, float]:
    """A local minimum between `low` and `high` and its value: golden sections and parabolas (Brent).

    Rounding of the values limits how well the place is known, to about the root of 2⁻⁵² times the scale on which the
    function bends, or `absolute`; the value is as good as the function's, which may be infinite in places.

    >>> place, value = minimum(lambda x: (x - 0.3) ** 2, 0.0, 1.0)
    >>> round(place, 6), round(value, 12)
    (0.3, 0.0)
    """
    best = second = third = low + _GOLDEN * (high - low)
    at_best = at_second = at_third = function(best)
    last = before = 0.0
    for _ in range(_MOST):
        middle = 0.5 * (low + high)
        tolerance = 1.5e-8 * abs(best) + absolute / 3.0
        if abs(best - middle) <= 2.0 * tolerance - 0.5 * (high - low):
            return best, at_best
        step = _parabola((best, second, third), (at_best, at_second, at_third), before, tolerance)
        if step is not None and low < best + step < high:
            before, last = last, step
            if min(best + step - low, high - best - step) < 2.0 * tolerance:
                last = math.copysign(tolerance, middle - best)
        else:
            before = (high if best < middle else low) - best
            last = _GOLDEN * before
        tried = best + (last if abs(last) >= tolerance else math.copysign(tolerance, last))
        value = function(tried)
        if value <= at_best:
            low, high = (best, high) if tried >= best else (low, best)
            third, at_third, second, at_second = second, at_second, best, at_best
            best, at_best = tried, value
            continue
        low, high = (tried, high) if tried < best else (low, tried)
        if value <= at_second or second == best:
            third, at_third, second, at_second = second, at_second, tried, value
        elif value <= at_third or third in (best, second):
            third, at_third = tried, value
    return best, at_best


def _parabola(
    places: tuple[float, float, float], values: tuple[float, float, float], before: float, tolerance: float
) -> float | None:
    """The step from the first place to the lowest point of a parabola through all three.

    None where there is none, or where the steps do not shrink by half.
    """
    if abs(before) <= tolerance or not all(map(math.isfinite, values)):
        return None
    (x, w, v), (at_x, at_w, at_v) = places, values
    r, q = (x - w) * (at_x - at_v), (x - v) * (at_x - at_w)
    p, q = (x - v) * q - (x - w) * r, 2.0 * (q - r)
    if q == 0.0:
        return None
    step = -p / q
    return step if abs(step) < abs(0.5 * before) else None
