"""How many people hold each of some known categories, or have one property at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.protocols.plan import Plan
from dpcheckin.randomizers import (
    DaryResponse,
    FrequencyRandomizer,
    HadamardResponse,
    Randomizer,
    SubsetSelection,
    UnaryEncoding,
    registry,
)
from dpcheckin.survey.drawing import WITHIN
from dpcheckin.survey.estimates import Estimate, Figures, Received, Sample, score_interval
from dpcheckin.survey.questions.query import Query, Values, no_value, number_between, numbers_of, plain_values

MOST_CATEGORIES = 1 << 20
_SUBSETS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)


@dataclass(frozen=True)
class Histogram(Query):
    """How many people hold each of the `categories`: their names, or how many there are (then values are 0, 1, …).

    >>> query = Histogram(("red", "green", "blue"))
    >>> query.encode(["blue", "red"]).tolist()
    [2, 0]
    """

    kind = "histogram"
    reads = FrequencyRandomizer, "one that counts symbols"
    categories: tuple[str, ...] | int

    def __post_init__(self) -> None:
        names = self.categories
        if isinstance(names, bool) or not isinstance(names, int | tuple):
            raise InvalidParameter("categories", names, "a number or a tuple of names")
        if isinstance(names, tuple) and len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidParameter("categories", twice, "names that differ")
        if not 2 <= self.size <= MOST_CATEGORIES:
            raise InvalidParameter("categories", self.size, f"from 2 to {MOST_CATEGORIES:,}")

    @property
    def size(self) -> int:
        """How many categories there are."""
        return self.categories if isinstance(self.categories, int) else len(self.categories)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The categories' names."""
        if isinstance(self.categories, int):
            return tuple(map(str, range(self.categories)))
        return self.categories

    def within(self, groups: tuple[str, ...] | int) -> Histogram:
        """This histogram within each of some public groups, by one report: values are pairs of group and category.

        >>> Histogram(("car", "bus")).within(("north", "south")).names
        ('north · car', 'north · bus', 'south · car', 'south · bus')
        """
        each = tuple(f"{group}{WITHIN}{name}" for group in Histogram(groups).names for name in self.names)
        return Histogram(each)

    def encode(self, values: Any) -> Values:
        given = plain_values(_joined(values))
        if isinstance(self.categories, int):
            return _symbols(given, self.size)
        index = {name: i for i, name in enumerate(self.categories)}
        return _found(given, [index.get(str(value), -1) for value in given], f"one of the categories {self._some()}")

    def _some(self) -> str:
        return f"{', '.join(self.names[:6])}{', …' if self.size > 6 else ''}"

    def nearest(self, value: Any) -> Any:
        """The category "other" if there is one, else the first; of numbers the nearest."""
        if isinstance(self.categories, int):
            return int(number_between(value, 0, self.size - 1))
        return next((name for name in self.names if name.lower() == "other"), self.names[0])

    def mechanisms(self) -> Sequence[str]:
        subsets = [f"{SubsetSelection.name}:{w}" for w in _SUBSETS if w <= self.size // 2]
        others = registry.usages(
            lambda kind: issubclass(kind, FrequencyRandomizer) and kind not in registry.BUILT_IN,
            "symbols",
            "local_epsilon",
        )
        plain = [name for name in others if ":" not in name]
        several = subsets if self.size > 2 else []
        return [DaryResponse.name, *several, UnaryEncoding.name, HadamardResponse.name, *plain]

    def known(self) -> dict[str, Any]:
        return {"symbols": self.size}

    def answer(self, received: Received) -> Estimate:
        randomizer: FrequencyRandomizer = self.readable(received.plan.randomizer)
        support = sum((randomizer.support(reports) for reports in received.rounds), np.zeros(self.size))
        law = ShareLaw(randomizer.own_support, randomizer.other_support, received.sample)
        return law.counts(received, self.names, support, self.size)

    def predicted_error(self, randomizer: Randomizer, sample: Sample) -> float:
        """That of the randomizer and sample, of a category as frequent as all are on average."""
        made: FrequencyRandomizer = self.readable(randomizer)
        law = ShareLaw(made.own_support, made.other_support, sample)
        return float(law.deviation(np.array([1.0 / self.size]))[0]) * sample.population

    def reach(self, plan: Plan) -> Figures:
        """A report supports a category or it does not."""
        made: FrequencyRandomizer = self.readable(plan.randomizer)
        return np.array([[plan.population / (made.own_support - made.other_support)]])

    def truth_of(self, values: Values, estimate: Estimate) -> Figures:
        return np.bincount(values, minlength=self.size).astype(np.float64)


@dataclass(frozen=True)
class Count(Histogram):
    """How many people have a property; values are 0 or 1, true or false, `categories` always 2."""

    kind = "count"
    categories: tuple[str, ...] | int = 2

    def __post_init__(self) -> None:
        if self.categories != 2:
            raise InvalidParameter("categories", self.categories, "2: yes or no")

    @property
    def size(self) -> int:
        return 2

    def encode(self, values: Any) -> Values:
        given = plain_values(values)
        if given.dtype.kind in "OUS":
            words = [str(value).strip().lower() for value in given]
            known = {"0": 0, "1": 1, "false": 0, "true": 1, "no": 0, "yes": 1}
            return _found(given, [known.get(word, -1) for word in words], "0 or 1, true or false, yes or no")
        return _symbols(given, 2)

    def nearest(self, value: Any) -> Any:
        """Who does not say yes says no."""
        return 0

    def mechanisms(self) -> Sequence[str]:
        return [DaryResponse.name]

    def answer(self, received: Received) -> Estimate:
        both = super().answer(replace(received, simultaneous=False))  # one figure, one interval
        yes = slice(1, 2)
        ends = both.lower[yes], both.upper[yes]
        return received.estimate(("yes",), both.values[yes], ends, both.deviation[yes])

    def truth_of(self, values: Values, estimate: Estimate) -> Figures:
        return super().truth_of(values, estimate)[1:]


@dataclass(frozen=True)
class ShareLaw:
    """The law of an estimated share: coins of the reports and the draw of who reports.

    A report supports the client's own category with probability `own`, another one with `other`. `more` is variance
    that neither coins nor the draw of the sample explain, such as that of shared hashes.
    """

    own: float
    other: float
    sample: Sample
    more: float = 0.0

    def counts(self, received: Received, names: tuple[str, ...], support: Figures, tried: int, **more: Any) -> Estimate:
        """How many people hold each of the names, by the reports that support it.

        What was `received` says how sure to be, all of so many intervals that were `tried` at once; `more` is what else
        the estimate can say.
        """
        shares = (support / self.sample.reports - self.other) / (self.own - self.other)
        lower, upper = score_interval(shares, self.moments, received.deviations(tried))
        people = received.plan.population
        deviation = self.deviation(np.clip(shares, 0.0, 1.0)) * people
        return received.estimate(names, shares * people, (lower * people, upper * people), deviation, **more)

    def deviation(self, shares: Figures) -> Figures:
        """Standard deviation of the estimate when these are the true shares."""
        return self.moments(shares)[0]

    def moments(self, shares: Figures) -> tuple[Figures, Figures, Figures]:
        """Standard deviation, skewness and excess kurtosis of the estimate at these shares.

        Third and fourth cumulants of the draw are left out: where they matter the shares are not small, and there the
        estimate is as good as normal.
        """
        p, q, n = self.own, self.other, self.sample.reports
        gap = p - q

        def mixed(own: float, other: float) -> Figures:
            return np.asarray(shares * own + (1 - shares) * other)

        coins = mixed(p * (1 - p), q * (1 - q)) / (n * gap**2)
        variance = coins + self.sample.who * shares * (1 - shares) + self.more
        deviation = np.sqrt(variance)
        third = mixed(p * (1 - p) * (1 - 2 * p), q * (1 - q) * (1 - 2 * q)) / (n**2 * gap**3)
        fourth = mixed(_fourth(p), _fourth(q)) / (n**3 * gap**4)
        return deviation, third / deviation**3, fourth / variance**2


def _fourth(p: float) -> float:
    """Fourth cumulant of a coin."""
    return p * (1 - p) * (1 - 6 * p * (1 - p))


def _joined(values: Any) -> Any:
    """Pairs of a group and a category as the names of both; anything else as it is."""
    array = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    if array.ndim != 2 or array.shape[1] != 2:
        return values
    return np.array([f"{group}{WITHIN}{name}" for group, name in array.tolist()])


def _found(given: Values, places: list[int], allowed: str) -> Values:
    """The place of each value that was given, unless one has none (-1)."""
    found = np.array(places, dtype=np.int64)
    _check_all(given, found >= 0, allowed)
    return found


def _check_all(given: Values, good: NDArray[np.bool_], allowed: str) -> None:
    """Refuse the first value that is no good."""
    if not good.all():
        place = int(np.argmin(good))
        raise no_value(given[place], place, allowed)


def _symbols(given: Values, size: int) -> Values:
    if given.dtype.kind in "OUS":
        given = numbers_of(given)
    if given.dtype.kind == "b":
        given = given.astype(np.int64)
    if given.dtype.kind == "f":
        _check_all(given, np.isfinite(given) & (given == np.floor(given)), "whole numbers")
        given = given.astype(np.int64)
    if given.dtype.kind not in "iu":
        raise InvalidParameter("values", str(given.dtype), "whole numbers")
    _check_all(given, (given >= 0) & (given < size), f"from 0 to {size - 1}")
    return given.astype(np.int64)
