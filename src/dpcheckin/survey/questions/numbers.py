"""Mean and sum of one bounded number a client."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.protocols.plan import Plan
from dpcheckin.randomizers import DitheredLevels, Randomizer
from dpcheckin.survey.estimates import Estimate
from dpcheckin.survey.questions.query import Query, Values, number_between, numbers_of, plain_values
from dpcheckin.survey.received import Received
from dpcheckin.survey.sampling import Sample, normal_interval

_STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)


def beyond(values: Any, low: float, high: float) -> tuple[int, str]:
    """How many numbers lie beyond the bounds, and the words for it.

    >>> beyond([1, 5, 12], 0, 10)
    (1, 'beyond 0 … 10')

    Args:
        values: one number a client.
        low: the smallest within.
        high: the largest within.
    """
    numbers = numbers_of(plain_values(values))
    return int(((numbers < low) | (numbers > high)).sum()), f"beyond {low:g} … {high:g}"


def check_bounds(low: object, high: object) -> None:
    """Refuse bounds that are none."""
    fine = all(isinstance(one, int | float) and math.isfinite(one) for one in (low, high))
    if not fine or not low < high:  # type: ignore[operator]
        raise InvalidParameter("low", low, f"a finite number below high = {high}")


@dataclass(frozen=True)
class Mean(Query):
    """The mean of a number between two bounds; numbers beyond a bound count as the bound.

    Args:
        low: smallest number.
        high: largest number.

    >>> Mean(0, 10).encode([5, 12]).tolist()
    [0.5, 1.0]
    """

    kind = "mean"
    unit = "of the numbers' unit"
    low: float
    high: float

    def __post_init__(self) -> None:
        check_bounds(self.low, self.high)

    def encode(self, values: Any) -> Values:
        numbers = numbers_of(plain_values(values))
        return np.clip((numbers - self.low) / (self.high - self.low), 0.0, 1.0)

    def nearest(self, value: Any) -> Any:
        return number_between(value, self.low, self.high)

    def clipped(self, values: Any) -> tuple[int, str]:
        return beyond(values, self.low, self.high)

    def mechanisms(self) -> Sequence[str]:
        return [f"levels:{steps}" for steps in _STEPS]

    def randomizer(self, local_epsilon: float, mechanism: str | None = None) -> DitheredLevels:
        return self.made(DitheredLevels, mechanism, local_epsilon)

    def _scale(self, population: int) -> tuple[float, float]:
        """What a mean in [0, 1] is multiplied by, and what is added."""
        return self.high - self.low, self.low

    def answer(self, received: Received) -> Estimate:
        made = _levels(received.plan.randomizer)
        sample, together = received.sample, received.together
        each = made.estimate(together)
        spread = float(np.var(each, ddof=1)) if len(each) > 1 else 1.0
        noise = made.response_variance(together) + made.rounding_variance
        variance = sample.mean_variance(np.array([spread]), np.array([max(spread - noise, 0.0)]))
        times, plus = self._scale(received.plan.population)
        deviation = np.sqrt(variance) * times
        value = np.array([each.mean() * times + plus])
        lower, upper = normal_interval(value, deviation, received.deviations(1))
        return received.estimate(
            names=(self.kind,),
            values=value,
            lower=np.maximum(lower, plus),
            upper=np.minimum(upper, plus + times),
            deviation=deviation,
        )

    def predicted_error(self, randomizer: Randomizer, sample: Sample) -> float:
        """Numbers spread evenly between the bounds are assumed."""
        noise = _levels(randomizer).noise_variance(1 / 2, 1 / 3)
        variance = noise / sample.reports + sample.who / 12
        return math.sqrt(variance) * self._scale(sample.population)[0]

    def reach(self, plan: Plan) -> NDArray[np.float64]:
        """From the lowest level with the largest dither to the highest with the smallest."""
        return np.array([[_levels(plan.randomizer).range * self._scale(plan.population)[0]]])

    def truth_of(self, values: Values, estimate: Estimate) -> NDArray[np.float64]:
        times, plus = self._scale(len(values))
        return np.array([values.mean() * times + plus])


@dataclass(frozen=True)
class Sum(Mean):
    """The sum over all clients of a number between two bounds.

    Args:
        low: smallest number.
        high: largest number.
    """

    kind = "sum"

    def _scale(self, population: int) -> tuple[float, float]:
        return (self.high - self.low) * population, self.low * population


def _levels(randomizer: Randomizer) -> DitheredLevels:
    if not isinstance(randomizer, DitheredLevels):
        raise InvalidParameter("randomizer", randomizer.describe(), "dithered levels")
    return randomizer
