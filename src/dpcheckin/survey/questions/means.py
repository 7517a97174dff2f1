"""Means: of one bounded number a client, the sum of such numbers, and of a vector of bounded length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import at_least, positive, written
from dpcheckin.protocols.plan import Plan
from dpcheckin.randomizers import CapRandomizer, DitheredLevels, LdpSgd, PrivUnit, Randomizer
from dpcheckin.randomizers.base import clip_rows
from dpcheckin.survey.estimates import Estimate, Figures, Received, Sample, normal_interval
from dpcheckin.survey.questions.query import Query, Values, number_between, numbers_of, plain_values

_STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)


@dataclass(frozen=True)
class Bounded(Query):
    """A question about one number a client, from `low` to `high`; numbers beyond a bound count as the bound."""

    low: float
    high: float

    def __post_init__(self) -> None:
        bounds: tuple[object, ...] = (self.low, self.high)
        fine = all(isinstance(bound, int | float) and math.isfinite(bound) for bound in bounds)
        if not fine or not self.low < self.high:
            raise InvalidParameter("low", self.low, f"a finite number below high = {self.high}")

    def numbers(self, values: Any) -> NDArray[np.float64]:
        """The values as numbers within the bounds."""
        return np.clip(numbers_of(plain_values(values)), self.low, self.high)

    def nearest(self, value: Any) -> Any:
        return number_between(value, self.low, self.high)

    def clipped(self, values: Any) -> tuple[int, str]:
        """How many of the values lie beyond the bounds, and the words for it.

        >>> Mean(0, 10).clipped([1, 5, 12])
        (1, 'beyond 0 … 10')
        """
        numbers = numbers_of(plain_values(values))
        outside = (numbers < self.low) | (numbers > self.high)
        return int(outside.sum()), f"beyond {written(self.low)} … {written(self.high)}"


@dataclass(frozen=True)
class Mean(Bounded):
    """The mean of a number from `low` to `high`; numbers beyond a bound count as the bound.

    >>> Mean(0, 10).encode([5, 12]).tolist()
    [0.5, 1.0]
    """

    kind = "mean"
    unit = "of the numbers' unit"
    reads = DitheredLevels, "dithered levels"

    def encode(self, values: Any) -> Values:
        numbers = numbers_of(plain_values(values))
        return np.clip((numbers - self.low) / (self.high - self.low), 0.0, 1.0)

    def mechanisms(self) -> Sequence[str]:
        return [f"levels:{steps}" for steps in _STEPS]

    def _scale(self, population: int) -> tuple[float, float]:
        """What a mean in [0, 1] is multiplied by, and what is added."""
        return self.high - self.low, self.low

    def answer(self, received: Received) -> Estimate:
        made: DitheredLevels = self.readable(received.plan.randomizer)
        sample, together = received.sample, received.together
        each = made.estimate(together)
        spread = float(np.var(each, ddof=1)) if len(each) > 1 else 1.0
        noise = made.response_variance(together) + made.rounding_variance
        variance = sample.mean_variance(np.array([spread]), np.array([max(spread - noise, 0.0)]))
        times, plus = self._scale(received.plan.population)
        deviation = np.sqrt(variance) * times
        value = np.array([each.mean() * times + plus])
        lower, upper = normal_interval(value, deviation, received.deviations(1))
        ends = np.maximum(lower, plus), np.minimum(upper, plus + times)
        return received.estimate((self.kind,), value, ends, deviation)

    def predicted_error(self, randomizer: Randomizer, sample: Sample) -> float:
        """That of the randomizer, for a sample of numbers spread evenly between the bounds."""
        noise = self.readable(randomizer).noise_variance(1 / 2, 1 / 3)
        variance = noise / sample.reports + sample.who / 12
        return math.sqrt(variance) * self._scale(sample.population)[0]

    def reach(self, plan: Plan) -> Figures:
        """From the lowest level with the largest dither to the highest with the smallest."""
        return np.array([[self.readable(plan.randomizer).range * self._scale(plan.population)[0]]])

    def truth_of(self, values: Values, estimate: Estimate) -> Figures:
        times, plus = self._scale(len(values))
        return np.array([values.mean() * times + plus])


@dataclass(frozen=True)
class Sum(Mean):
    """The sum over all clients of a number from `low` to `high`; numbers beyond a bound count as the bound."""

    kind = "sum"

    def _scale(self, population: int) -> tuple[float, float]:
        return (self.high - self.low) * population, self.low * population


@dataclass(frozen=True)
class VectorMean(Query):
    """The mean of vectors of so many entries (`dimension`, 2 or more) and length at most `clip`.

    Longer ones are shortened. Intervals count the whole spread of the reports: where most of a population is asked they
    are a little wider than they need be.
    """

    kind = "vector-mean"
    unit = "of an entry's unit"
    reads = CapRandomizer, "one of directions"
    dimension: int
    clip: float = 1.0

    def __post_init__(self) -> None:
        at_least("dimension", self.dimension, 2)
        positive("clip", self.clip)

    def encode(self, values: Any) -> Values:
        return np.asarray(clip_rows(self._rows(values), self.clip))

    def nearest(self, value: Any) -> Any:
        """As many entries as are asked for, 0 where there is no number, none beyond the length."""
        given = list(value) if isinstance(value, list | tuple | np.ndarray) else [value]
        entries = [number_between(entry, -self.clip, self.clip) for entry in given[: self.dimension]]
        return entries + [0.0] * (self.dimension - len(entries))

    def clipped(self, values: Any) -> tuple[int, str]:
        lengths = np.linalg.norm(self._rows(values), axis=1)
        return int((lengths > self.clip * (1 + 1e-9)).sum()), f"longer than {self.clip:g}"

    def _rows(self, values: Any) -> NDArray[np.float64]:
        given = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
        rows = numbers_of(given)
        if rows.ndim != 2 or rows.shape[1] != self.dimension:
            raise InvalidParameter("values", rows.shape, f"rows of {self.dimension} numbers")
        return rows

    def mechanisms(self) -> Sequence[str]:
        return [PrivUnit.name, LdpSgd.name]

    def known(self) -> dict[str, Any]:
        return {"dimension": self.dimension, "clip": self.clip}

    def answer(self, received: Received) -> Estimate:
        each = self.readable(received.plan.randomizer).estimate(received.together)
        spread = np.var(each, axis=0, ddof=1) if len(each) > 1 else np.full(self.dimension, np.inf)
        deviation = np.sqrt(spread / received.sample.reports)
        values = each.mean(axis=0)
        ends = normal_interval(values, deviation, received.deviations(self.dimension))
        return received.estimate(tuple(map(str, range(self.dimension))), values, ends, deviation)

    def predicted_error(self, randomizer: Randomizer, sample: Sample) -> float:
        """That of the randomizer in one entry, for a sample of vectors of full length in all directions."""
        unit = np.zeros((1, self.dimension))
        unit[0, 0] = self.clip
        noise = float(self.readable(randomizer).total_variance(unit)[0]) / sample.reports
        return math.sqrt((noise + sample.who * self.clip**2) / self.dimension)

    def reach(self, plan: Plan) -> Figures:
        """Two reports are at most twice the length of one apart: in an entry, and in all of them.

        So the same bound holds for the Euclidean length of what the whole vector is moved by.
        """
        unit = np.zeros((1, self.dimension))
        unit[0, 0] = 1.0
        longest = float(np.linalg.norm(self.readable(plan.randomizer).estimate(unit)))
        # a report in single precision may be longer than one by what `well_formed` lets pass
        return np.array([[2 * longest * (1 + 1e-4)]])

    def truth_of(self, values: Values, estimate: Estimate) -> Figures:
        return np.asarray(values.mean(axis=0))
