"""Inverse questions: how many rounds, which rate, how many clients, which local epsilon or noise?

Every answer lies on the safe side of the target, and one step further fails: one round or client, or one unit in the
fourth digit of a rate, a local epsilon or a noise multiplier.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

from dpcheckin.accounting.composition.account import compose
from dpcheckin.accounting.composition.preview import CoarseRounds
from dpcheckin.accounting.rounds.base import Round
from dpcheckin.errors import InvalidParameter, NumericalFailure, OutsideTheorem, Unreachable
from dpcheckin.numerals import open_probability, positive, written
from dpcheckin.options import listed

Build = Callable[[float], tuple[Round, int]]
Upper = Callable[[Round, int, float], float]
LARGEST = {"rounds": 10**9, "population": 10**12}


def _certified(one: Round, count: int, delta: float) -> float:
    return compose([(one, count)]).epsilon(delta).upper


def solve(free: str, build: Build, *, epsilon: float, delta: float, upper: Upper | None = None) -> float:
    """The extreme value of the parameter `free` for which build(value) meets the target.

    Rounds, rate and local epsilon are made as large, population and noise multiplier as small as possible. A coarse
    bound finds out where to look, so that only few questions are asked in full.

    Args:
        free: rounds, rate, population, local_epsilon or noise_multiplier.
        build: The round, and how many of them, for a value of the parameter.
        epsilon: The target.
        delta: Of the statement.
        upper: The certified bound that has to meet the target, instead of the tightest; a looser
            one gives a safe answer sooner.
    """
    target = positive("epsilon", epsilon)
    open_probability("delta", delta)
    if free not in _SCALES:
        raise InvalidParameter("free", free, listed(tuple(_SCALES)))
    scale = _SCALES[free]
    if upper is not None:
        return _search(_Question(build, upper, target, delta), scale, None)
    start = None
    with suppress(Unreachable, NumericalFailure):
        start = _search(_Question(build, _coarse(), target, delta), scale, None)
    return _search(_Question(build, _certified, target, delta), scale, start)


def _coarse() -> Upper:
    """Coarse bounds of equal rounds; the curve of one round is kept for every number of them."""
    kept = cache(CoarseRounds)

    def upper(one: Round, count: int, delta: float) -> float:
        if one.is_function:  # a sum is quick as it is
            return _certified(one, count, delta)
        return kept(one, 10 ** math.ceil(math.log10(max(count, 1))), delta).epsilon(count, delta)

    return upper


@dataclass(frozen=True)
class _Question:
    """Which epsilon does a value of the parameter cost, and which one is wanted?"""

    build: Build
    upper: Upper
    target: float
    delta: float
    refusals: list[OutsideTheorem | None] = field(default_factory=list)
    """What theorems said of values they do not cover; None first once one was covered."""

    def at(self, value: float) -> float:
        """Epsilon at a value; infinite where no theorem speaks."""
        try:
            one, count = self.build(value)
            found = self.upper(one, count, self.delta)
            self.refusals[:] = [None]
            return found
        except OutsideTheorem as problem:
            self.refusals.append(problem)
            return math.inf

    def say_outside(self) -> None:
        """If no theorem spoke of any value, that is the answer."""
        if self.refusals and self.refusals[0] is not None:
            raise self.refusals[0]

    def unreachable(self, why: str) -> Unreachable:
        return Unreachable(f"epsilon = {self.target:g} cannot be met{why}")


@dataclass(frozen=True)
class _Scale:
    """Values that a parameter may take, in order of cost: from the safest on. These are whole numbers."""

    name: str  # of the parameter
    least: float  # smallest value
    most: float  # largest value
    dearer: int  # 1 if larger values cost more privacy, -1 if smaller ones do
    first: float  # where to look if nothing is known
    power: float  # rough exponent with which epsilon follows the value

    def value(self, place: int) -> float:
        """What stands at a place."""
        return self.number(self.dearer * place)

    def place(self, value: float) -> int:
        """The last place up to a value, in the order of cost."""
        return self.dearer * self.index(min(max(value, self.least), self.most))

    @property
    def ends(self) -> tuple[int, int]:
        """The safest and the dearest place."""
        return min(ends := [self.place(self.least), self.place(self.most)]), max(ends)

    def number(self, index: int) -> float:
        """The value with this index; indices rise with values."""
        return index

    def index(self, value: float) -> int:
        """Of the value, or of the nearest one on its safe side."""
        return math.floor(value) if self.dearer > 0 else math.ceil(value)


class _Decimal(_Scale):
    """Numbers of four digits: nine thousand in every power of ten."""

    def number(self, index: int) -> float:
        power, digits = divmod(index, 9000)
        return float(f"{1000 + digits}e{power - 3}")

    def index(self, value: float) -> int:
        power = math.floor(math.log10(value) + 1e-12)
        scaled = value / 10.0 ** (power - 3)
        digits = math.floor(scaled * (1 + 1e-12)) if self.dearer > 0 else math.ceil(scaled - 1e-8)
        return 9000 * power + digits - 1000


_SCALES: dict[str, _Scale] = {
    "rounds": _Scale("rounds", 1, LARGEST["rounds"], 1, 1, 0.5),
    "population": _Scale("population", 1, LARGEST["population"], -1, 1, 0.5),
    "rate": _Decimal("rate", 1e-12, 1.0, 1, 1.0, 1.0),
    "local_epsilon": _Decimal("local_epsilon", 1e-6, 20.0, 1, 20.0, 1.0),
    "noise_multiplier": _Decimal("noise_multiplier", 0.01, 1e6, -1, 1.0, 2.0),
}
_LINES = 16  # questions that are chosen by a line before the rest is halved
_LEAP = 64.0  # most by which a value is multiplied or divided while one end is not known


def _search(question: _Question, scale: _Scale, start: float | None) -> float:
    """The dearest value that meets the target; the next one does not.

    Epsilon is nearly a power of each parameter, so a line through logarithms finds the place in a few questions; if it
    does not, what is left is halved.
    """
    safest, dearest = scale.ends
    asked: dict[int, float] = {}
    good: int | None = None
    bad: int | None = None
    place, narrowed = scale.place(scale.first if start is None else start), [dearest - safest]
    while True:
        asked[place] = question.at(scale.value(place))
        if asked[place] <= question.target:
            good = place
        else:
            bad = place
        if good == dearest or bad == safest:
            return _end(question, scale, good)
        if bad is None:
            place = min(_leap(question, scale, asked, place, 1), dearest)
        elif good is None:
            place = max(_leap(question, scale, asked, place, -1), safest)
        elif bad - good == 1:
            return scale.value(good)
        else:
            narrowed.append(bad - good)
            place = _between(question, scale, asked, good, bad, narrowed)


def _end(question: _Question, scale: _Scale, good: int | None) -> float:
    """What is said when the target lies beyond all values."""
    if good is None:
        question.say_outside()
        if scale.name == "rounds":
            raise question.unreachable(": even rounds = 1 exceeds it")
        if scale.dearer < 0:
            raise question.unreachable(f" by any {scale.name} up to {written(scale.most)}")
        raise question.unreachable(f" by any {scale.name} from {written(scale.least)} up")
    if scale.name == "rounds":
        raise Unreachable(f"every rounds up to {scale.most:,} meets epsilon = {question.target:g}")
    return scale.value(good)


def _leap(question: _Question, scale: _Scale, asked: dict[int, float], known: int, way: int) -> int:
    """Where the target should be, and a little further, seen from one side of it."""
    found, value = asked[known], scale.value(known)
    factor = _LEAP
    if 0 < found < math.inf:
        ratio = question.target / found
        factor = max(ratio, 1 / ratio) ** (1 / _power(scale, asked, known))
        factor = min(factor * 1.002, _LEAP)
    further = value * factor if way * scale.dearer > 0 else value / factor
    place = scale.place(further)
    return max(place, known + 1) if way > 0 else min(place, known - 1)


def _power(scale: _Scale, asked: dict[int, float], known: int) -> float:
    """Exponent of epsilon in the value, between the last two questions if they tell."""
    others = [p for p in asked if p != known and 0 < asked[p] < math.inf]
    if not others:
        return scale.power
    other = others[-1]
    rise = math.log(asked[known] / asked[other])
    run = math.log(scale.value(known) / scale.value(other)) * scale.dearer
    return min(max(rise / run, 0.2), 5.0) if run else scale.power


def _between(
    question: _Question, scale: _Scale, asked: dict[int, float], good: int, bad: int,
    narrowed: list[int],
) -> int:  # fmt: skip
    """A place strictly between: on the line through both ends, or in the middle.

    Beside an end that is all but the answer its neighbour settles it, or the one two, four, … further, as long as what
    is left (`narrowed`, question by question) is not halved.
    """
    x, y, low, high = scale.value(good), scale.value(bad), asked[good], asked[bad]
    if len(narrowed) < _LINES and 0 < low < high < math.inf:
        share = math.log(question.target / low) / math.log(high / low)
        place = scale.place(x * (y / x) ** share)
        slow = sum(after > before / 2 for before, after in pairwise(narrowed[-4:]))
        step = min(1 << max(slow - 1, 0), (bad - good) // 2)
        return min(max(place, good + step), bad - step)
    wide = max(x, y) > 1.5 * min(x, y)
    place = scale.place(math.sqrt(x) * math.sqrt(y)) if wide else (good + bad) // 2
    return min(max(place, good + 1), bad - 1)
