"""Numbers in fixed steps: an openly dithered level of [0, 1], under d-ary response.

Many levels round little and hide little, few do the opposite. The dither is drawn at random, is
part of the report and is taken off again, so that what is left of rounding is spread evenly over
one step whatever the number was (subtractive dither); its last bits stay secret, which makes the
estimate unbiased without any remainder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers.base import Argument, Randomizer, at_least, positive
from dpcheckin.randomizers.formats import IntegerRows
from dpcheckin.randomizers.response import DaryResponse
from dpcheckin.randomizers.source import RandomSource

if TYPE_CHECKING:
    from dpcheckin.accounting import LocalPair

DITHERS = 256
Figures = NDArray[np.float64]


@dataclass(frozen=True)
class DitheredLevels(Randomizer):
    """A number in [0, 1] as one of `steps` + 1 levels, shifted by an open dither.

    A report is (dither, level). Given the dither it is d-ary response on the levels, and the dither
    does not depend on the number, so the local pair is that of d-ary response.

    Args:
        local_epsilon: epsilon of one report, in nats.
        steps: of the interval [0, 1], 1 or more.

    >>> DitheredLevels(local_epsilon=4.0, steps=10).report_format.limits
    (256, 11)
    """

    local_epsilon: float
    steps: int

    name, label = "levels", "dithered levels"
    arguments = (Argument("steps", "STEPS", 10),)

    def __post_init__(self) -> None:
        positive("local_epsilon", self.local_epsilon)
        at_least("steps", self.steps, 1)

    @property
    def response(self) -> DaryResponse:
        """What is done with a level."""
        return DaryResponse(self.local_epsilon, self.steps + 1)

    @property
    def pair(self) -> LocalPair:
        return self.response.pair

    @property
    def report_format(self) -> IntegerRows:
        return IntegerRows((DITHERS, self.steps + 1))

    def describe(self) -> str:
        return f"{self.steps + 1:,} dithered levels, local epsilon {self.local_epsilon:g}"

    def randomize(self, values: Figures, source: RandomSource) -> NDArray[np.int64]:
        values = np.asarray(values, dtype=np.float64)
        if values.size and not (values.min() >= 0.0 and values.max() <= 1.0):
            raise InvalidParameter("values", "some", "numbers in [0, 1]")
        dither = source.integers(DITHERS, values.shape)
        shift = (dither + source.uniform(values.shape)) / DITHERS
        levels = np.floor(self.steps * values + shift).astype(np.int64).clip(0, self.steps)
        return np.stack([dither, self.response.randomize(levels, source)], axis=1)

    def _offset(self) -> tuple[float, float]:
        """The gap of d-ary response, and what a level is on average when it is a lie."""
        one = self.response
        return one.truth - one.lie, one.lie * self.steps * (self.steps + 1) / 2

    def estimate(self, reports: NDArray[np.int64]) -> Figures:
        """An unbiased estimate of each client's number."""
        reports = np.asarray(reports)
        gap, lies = self._offset()
        levels = (reports[:, 1] - lies) / gap
        return np.asarray((levels - (reports[:, 0] + 0.5) / DITHERS + 0.5) / self.steps)

    def response_variance(self, reports: NDArray[np.int64]) -> float:
        """Unbiased estimate, from the reports, of what d-ary response adds to the variance."""
        levels = np.asarray(reports)[:, 1].astype(np.float64)
        gap, lies = self._offset()
        k = self.steps
        squares = (levels**2 - self.response.lie * k * (k + 1) * (2 * k + 1) / 6) / gap
        return float(np.mean(((levels - lies) / gap) ** 2 - squares)) / k**2

    @property
    def rounding_variance(self) -> float:
        """What is left of rounding once the dither is taken off."""
        return 1.0 / (12 * self.steps**2)

    def noise_variance(self, mean: float, square: float, rounding: float = 1 / 6) -> float:
        """What a report adds to the variance, on average over numbers of these moments.

        Args:
            mean: of the numbers.
            square: mean of their squares.
            rounding: mean of f(1 - f), f the place of a number within its step; 1/6 if anywhere.
        """
        q, k = self.response.lie, self.steps
        gap, lies = self._offset()
        level, level_square = k * mean, k * k * square + rounding
        second = gap * level_square + q * k * (k + 1) * (2 * k + 1) / 6
        first_square = gap**2 * level_square + 2 * gap * lies * level + lies**2
        return max(second - first_square, 0.0) / (gap * k) ** 2 + self.rounding_variance

    @property
    def range(self) -> float:
        """Largest minus smallest estimate that a report can have."""
        gap, _ = self._offset()
        return (self.steps / gap + (DITHERS - 1) / DITHERS) / self.steps
