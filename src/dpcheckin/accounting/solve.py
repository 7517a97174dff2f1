"""Inverse questions: how many rounds, which rate, how many clients, which local epsilon?

Every answer lies on the safe side of the target, and one step further fails: one round or client,
or one unit in the fourth digit of a rate or a local epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from dpcheckin.accounting.account import compose
from dpcheckin.accounting.parameters import open_probability, positive
from dpcheckin.accounting.preview import CoarseRounds
from dpcheckin.accounting.rounds import Round
from dpcheckin.errors import InvalidParameter, NumericalFailure, OutsideTheorem, Unreachable
from dpcheckin.numerals import written

Build = Callable[[float], tuple[Round, int]]
Upper = Callable[[Round, int, float], float]
LARGEST = {"rounds": 10**9, "population": 10**12}


def _certified(one: Round, count: int, delta: float) -> float:
    return compose([(one, count)]).epsilon(delta).upper


def solve(
    free: str, build: Build, *, epsilon: float, delta: float, upper: Upper | None = None
) -> float:
    """The extreme value of the parameter `free` for which build(value) meets the target.

    Rounds, rate and local epsilon are made as large, the population as small as possible. A coarse
    bound finds out where to look, so that only few questions are asked in full.

    Args:
        free: rounds, rate, population or local_epsilon.
        build: The round, and how many of them, for a value of the parameter.
        epsilon: The target.
        delta: Of the statement.
        upper: The certified bound that has to meet the target, instead of the tightest; a looser
            one gives a safe answer sooner.
    """
    target = positive("epsilon", epsilon)
    open_probability("delta", delta)
    if free not in _SEARCHES:
        raise InvalidParameter("free", free, "rounds, rate, population or local_epsilon")
    search = _SEARCHES[free]
    if upper is not None:
        return search(_Question(build, upper, target, delta), None)
    start = None
    with suppress(Unreachable, NumericalFailure):
        start = search(_Question(build, _Coarse(), target, delta), None)
    return search(_Question(build, _certified, target, delta), start)


class _Coarse:
    """Coarse bounds of equal rounds; the curve of one round is kept for every number of them."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Round, int, float], CoarseRounds] = {}

    def __call__(self, one: Round, count: int, delta: float) -> float:
        if one.is_function:  # a sum is quick as it is
            return _certified(one, count, delta)
        most = 10 ** math.ceil(math.log10(max(count, 1)))
        key = (one, most, delta)
        if key not in self._kept:
            self._kept[key] = CoarseRounds(one, most, delta)
        return self._kept[key].epsilon(count, delta)


@dataclass(frozen=True)
class _Question:
    """Does a value of the parameter meet the target?"""

    build: Build
    upper: Upper
    target: float
    delta: float

    def met_by(self, value: float) -> bool:
        try:
            one, count = self.build(value)
            return self.upper(one, count, self.delta) <= self.target
        except OutsideTheorem:
            return False

    def unreachable(self, why: str) -> Unreachable:
        return Unreachable(f"epsilon = {self.target:g} cannot be met{why}")


def _most_rounds(question: _Question, start: float | None) -> int:
    meets, most = question.met_by, LARGEST["rounds"]
    good = int(start or 1)
    if start and not meets(good):
        good = 1  # the coarse bound was the better one: begin anew
    if good == 1 and not meets(1):
        raise question.unreachable(": even rounds = 1 exceeds it")
    step = max(1, good // 500) if start else 1
    bad = min(good + step, most)
    while bad > good and meets(bad):
        if bad >= most:
            raise Unreachable(f"every rounds up to {most:,} meets epsilon = {question.target:g}")
        step *= 2 if start else 3
        good, bad = bad, min(bad + step, most)
    return _between(meets, good, bad)


def _fewest_clients(question: _Question, start: float | None) -> int:
    meets, most = question.met_by, LARGEST["population"]
    if start is not None and meets(start):
        good, step = int(start), max(1, int(start) // 500)
        bad = max(good - step, 0)
        while bad > 0 and meets(bad):
            step *= 2
            good, bad = bad, max(bad - step, 0)
        return _between(meets, good, bad)
    if meets(1):
        return 1
    bad, good = 1, 16
    while not meets(good):
        if good >= most:
            raise question.unreachable(f" by any population up to {most:,}")
        bad, good = good, min(16 * good, most)
    return _between(meets, good, bad)


def _between(meets: Callable[[float], bool], good: int, bad: int) -> int:
    while abs(good - bad) > 1:
        # halve the ratio while it is large, the distance once it is small
        wide = max(good, bad) > 1.5 * max(min(good, bad), 1)
        middle = round(math.sqrt(max(good, 1) * max(bad, 1))) if wide else (good + bad) // 2
        middle = min(max(middle, min(good, bad) + 1), max(good, bad) - 1)
        if meets(middle):
            good = middle
        else:
            bad = middle
    return good


def _largest_decimal(
    least: float, most: float, name: str, question: _Question, start: float | None
) -> float:
    """The largest number of four digits that meets the target."""
    meets = question.met_by
    good, bad = _bracket(meets, least, most, start)
    if good == most:
        return most
    if math.isnan(good):
        raise question.unreachable(f" by any {name} from {written(least)} up")
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


def _bracket(
    meets: Callable[[float], bool], least: float, most: float, start: float | None
) -> tuple[float, float]:
    """A value that meets the target and a larger one that does not; NaN if none does."""
    if start is not None and meets(start):
        good, bad = start, min(1.005 * start, most)
        while meets(bad):
            if bad == most:
                return most, most
            good, bad = bad, min(bad * (bad / good) ** 2, most)
        return good, bad
    if meets(most):
        return most, most
    trial = bad = most
    while trial > least:
        trial = max(trial / 8, least)
        if meets(trial):
            return trial, bad
        bad = trial
    return math.nan, bad


def _decimal(steps: int, unit: float) -> float:
    return float(f"{steps * unit:.4g}")


_SEARCHES: dict[str, Callable[[_Question, float | None], float]] = {
    "rounds": _most_rounds,
    "population": _fewest_clients,
    "rate": partial(_largest_decimal, 1e-12, 1.0, "rate"),
    "local_epsilon": partial(_largest_decimal, 1e-6, 20.0, "local_epsilon"),
}
