"""Mean of a vector of bounded length a client."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.protocols.plan import Plan
from dpcheckin.randomizers import CapRandomizer, Randomizer
from dpcheckin.randomizers.base import at_least, clip_rows, positive
from dpcheckin.survey.estimates import Estimate
from dpcheckin.survey.questions.query import Query, Values, number_between, numbers_of
from dpcheckin.survey.received import Received
from dpcheckin.survey.sampling import Sample, normal_interval


@dataclass(frozen=True)
class VectorMean(Query):
    """The mean of vectors of Euclidean length at most `clip`; longer ones are shortened.

    Intervals count the whole spread of the reports: where most of a population is asked they are a
    little wider than they need be.

    Args:
        dimension: entries of a vector, 2 or more.
        clip: largest length.
    """

    kind = "vector-mean"
    unit = "of an entry's unit"
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
        entries = [number_between(one, -self.clip, self.clip) for one in given[: self.dimension]]
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
        return ["privunit", "hemisphere"]

    def randomizer(self, local_epsilon: float, mechanism: str | None = None) -> CapRandomizer:
        size = {"dimension": self.dimension, "clip": self.clip}
        return self.made(CapRandomizer, mechanism, local_epsilon, **size)

    def answer(self, received: Received) -> Estimate:
        made, sample = _vectors(received.plan.randomizer), received.sample
        each = made.estimate(received.together)
        spread = np.var(each, axis=0, ddof=1) if len(each) > 1 else np.full(self.dimension, np.inf)
        deviation = np.sqrt(spread / sample.reports)
        values = each.mean(axis=0)
        lower, upper = normal_interval(values, deviation, received.deviations(self.dimension))
        return received.estimate(
            names=tuple(map(str, range(self.dimension))),
            values=values,
            lower=lower,
            upper=upper,
            deviation=deviation,
        )

    def predicted_error(self, randomizer: Randomizer, sample: Sample) -> float:
        """Of one entry; vectors of full length in all directions are assumed."""
        unit = np.zeros((1, self.dimension))
        unit[0, 0] = self.clip
        noise = float(_vectors(randomizer).total_variance(unit)[0]) / sample.reports
        return math.sqrt((noise + sample.who * self.clip**2) / self.dimension)

    def reach(self, plan: Plan) -> NDArray[np.float64]:
        """Two reports are at most twice the length of one apart: in an entry, and in all of them.

        So the same bound holds for the Euclidean length of what the whole vector is moved by.
        """
        unit = np.zeros((1, self.dimension))
        unit[0, 0] = 1.0
        longest = float(np.linalg.norm(_vectors(plan.randomizer).estimate(unit)))
        # a report in single precision may be longer than one by what `well_formed` lets pass
        return np.array([[2 * longest * (1 + 1e-4)]])

    def truth_of(self, values: Values, estimate: Estimate) -> NDArray[np.float64]:
        return np.asarray(values.mean(axis=0))


def _vectors(randomizer: Randomizer) -> CapRandomizer:
    if not isinstance(randomizer, CapRandomizer):
        raise InvalidParameter("randomizer", randomizer.describe(), "one of directions")
    return randomizer
