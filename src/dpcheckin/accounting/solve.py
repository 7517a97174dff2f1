"""Inverse questions: how many rounds, which rate, how many clients, which local epsilon?

Every answer lies on the safe side of the target, and one step further fails: one round or client,
or one unit in the fourth digit of a rate or a local epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dpcheckin.accounting.account import compose
from dpcheckin.accounting.parameters import open_probability, positive
from dpcheckin.accounting.rounds import Round
from dpcheckin.errors import InvalidParameter, OutsideTheorem, Unreachable

Build = Callable[[float], tuple[Round, int]]
Upper = Callable[[Round, int, float], float]
LARGEST = {"rounds": 10**9, "population": 10**12}


def _certified(one: Round, count: int, delta: float) -> float:
    return compose([(one, count)]).epsilon(delta).upper


def solve(
    free: str, build: Build, *, epsilon: float, delta: float, upper: Upper = _certified
) -> float:
    """The extreme value of the parameter `free` for which build(value) meets the target.

    Rounds, rate and local epsilon are made as large, the population as small as possible. `upper`
    is the certified bound that has to meet the target; a looser one gives a safe answer sooner.
    """
    target = positive("epsilon", epsilon)
    open_probability("delta", delta)

    def meets(value: float) -> bool:
        one, count = build(value)
        try:
            return upper(one, count, delta) <= target
        except OutsideTheorem:
            return False

    if free == "rounds":
        return _largest_integer(meets, LARGEST["rounds"], free, target)
    if free == "population":
        return _smallest_integer(meets, LARGEST["population"], free, target)
    if free == "rate":
        return _largest_decimal(meets, 1e-12, 1.0, free, target)
    if free == "local_epsilon":
        return _largest_decimal(meets, 1e-6, 20.0, free, target)
    raise InvalidParameter("free", free, "rounds, rate, population or local_epsilon")


def _largest_integer(meets: Callable[[float], bool], most: int, name: str, target: float) -> int:
    if not meets(1):
        raise Unreachable(f"epsilon = {target:g} cannot be met: even {name} = 1 exceeds it")
    good, bad = 1, 2
    while meets(bad):
        if bad >= most:
            raise Unreachable(f"every {name} up to {most:,} meets epsilon = {target:g}")
        good, bad = bad, min(4 * bad, most)
    return _between(meets, good, bad)


def _smallest_integer(meets: Callable[[float], bool], most: int, name: str, target: float) -> int:
    if meets(1):
        return 1
    bad, good = 1, 16
    while not meets(good):
        if good >= most:
            raise Unreachable(f"epsilon = {target:g} cannot be met by any {name} up to {most:,}")
        bad, good = good, min(16 * good, most)
    return _between(meets, good, bad)


def _between(meets: Callable[[float], bool], good: int, bad: int) -> int:
    while abs(good - bad) > 1:
        # halve the ratio while it is large, the distance once it is small
        wide = max(good, bad) > 1.5 * min(good, bad)
        middle = round(math.sqrt(good * bad)) if wide else (good + bad) // 2
        middle = min(max(middle, min(good, bad) + 1), max(good, bad) - 1)
        if meets(middle):
            good = middle
        else:
            bad = middle
    return good


def _largest_decimal(
    meets: Callable[[float], bool], least: float, most: float, name: str, target: float
) -> float:
    """The largest number of four digits that meets the target."""
    if meets(most):
        return most
    good, bad = math.nan, most
    trial = most
    while trial > least:
        trial = max(trial / 8, least)
        if meets(trial):
            good = trial
            break
        bad = trial
    if math.isnan(good):
        raise Unreachable(f"epsilon = {target:g} cannot be met by any {name} from {least:g} up")
    while bad / good > 1 + 2e-5:
        middle = math.sqrt(good * bad)
        good, bad = (middle, bad) if meets(middle) else (good, middle)
    unit = 10.0 ** (math.floor(math.log10(good)) - 3)
    steps = math.floor(good / unit * (1 + 1e-12))
    while steps > 1 and not meets(_decimal(steps, unit)):
        steps -= 1
    while _decimal(steps + 1, unit) <= most and meets(_decimal(steps + 1, unit)):
        steps += 1
    return _decimal(steps, unit)


def _decimal(steps: int, unit: float) -> float:
    return float(f"{steps * unit:.4g}")
