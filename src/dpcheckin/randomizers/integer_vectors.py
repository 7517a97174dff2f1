"""Vectors in fixed point with noise on integers: the reports of distributed check-in.

A client clips its vector, multiplies it so that the clip becomes `steps`, rounds every coordinate at random to an
integer and adds noise, Skellam or discrete Gaussian; sums are taken modulo 2^32. Rounding may lengthen a vector, so it
is repeated until the integers' norm is within a bound that is checked exactly (conditional rounding; Kairouz, Liu,
Steinke, arXiv 2102.06387v4, section 4.1). Everything that accounting needs follows from that bound: how far one client
can move the sum in l2 and in l1.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcheckin import accounting
from dpcheckin.errors import InvalidParameter, OutsideTheorem
from dpcheckin.numerals import at_least, positive
from dpcheckin.randomizers.base import Argument, SummableRandomizer, SummedReports, check_rows, clip_rows
from dpcheckin.randomizers.integers import (
    LARGEST_VARIANCE,
    SMALLEST_GAUSSIAN_VARIANCE,
    TABLE_ERROR,
    discrete_gaussian_noise,
    skellam_noise,
    stochastic_round,
)
from dpcheckin.randomizers.source import Array, RandomSource

MODULUS = 2**32
_TRIES = 1000
_MISS = 1e-9  # about how often a rounding is drawn again


@dataclass(frozen=True)
class IntegerVector(SummableRandomizer):
    """Clip to l2 norm `clip`, fixed point with `steps` to the clip, and noise on integers.

    Subclasses say which noise; it has standard deviation noise_multiplier · clip, that is noise_multiplier · steps in
    the integers of a report.

    Args:
        noise_multiplier: standard deviation of the noise, in clips.
        dimension: entries of a vector.
        clip: largest l2 norm of a vector.
        steps: integers to the clip, at most 2^24.
    """

    noise_multiplier: float
    dimension: int
    clip: float = 1.0
    steps: int = 1024

    description = "{0.label} vector, noise multiplier {0.noise_multiplier:g} in {0.steps:,} steps"
    noise_field = "noise_multiplier"
    arguments = (Argument("noise_multiplier", "SIGMA", 1.0), Argument("dimension", "DIM", 1000))
    smallest = TABLE_ERROR

    def __post_init__(self) -> None:
        positive("noise_multiplier", self.noise_multiplier)
        at_least("dimension", self.dimension, 1)
        positive("clip", self.clip)
        at_least("steps", self.steps, 1)
        if self.steps > 2**24:
            raise InvalidParameter("steps", self.steps, "at most 2**24")
        if self.variance > LARGEST_VARIANCE:
            most = math.sqrt(LARGEST_VARIANCE)
            raise InvalidParameter("steps", self.steps, f"noise_multiplier · steps ≤ {most:g}")

    @property
    def pair(self) -> accounting.LocalPair:
        raise OutsideTheorem(
            f"{self.label} vectors are accounted by their Rényi divergences, not by a local pair; "
            "use them with distributed check-in"
        )

    @property
    def variance(self) -> float:
        """Variance of the noise in each integer of a report."""
        return float((self.noise_multiplier * self.steps) ** 2)

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise in each coordinate of a vector."""
        return self.noise_multiplier * self.clip

    @property
    def largest_square(self) -> int:
        """No rounded vector has a larger squared norm: checked in integers for every report."""
        d, s = self.dimension, float(self.steps)
        likely = s * s + d / 4 + math.sqrt(2 * math.log(1 / _MISS)) * (s + math.sqrt(d) / 2)
        return math.ceil(min((s + math.sqrt(d)) ** 2, likely))

    @property
    def l2_sensitivity(self) -> float:
        """How far the sum moves when one client's vector is replaced, in integers of a report."""
        return 2 * math.sqrt(self.largest_square) * (1 + 1e-12)

    @property
    def l1_sensitivity(self) -> float:
        """The same in l1: at most √d times l2, and no more than its square, as for all integers."""
        return min(math.sqrt(self.dimension) * self.l2_sensitivity, self.l2_sensitivity**2)

    @abstractmethod
    def noise(self, size: int, source: RandomSource) -> NDArray[np.int64]:
        """Independent noise for so many (`size`) integers, with chance from `source`."""

    @property
    @abstractmethod
    def integer_error(self) -> float:
        """Distance of one integer's noise from the law that accounting speaks of.

        In total variation, its share in a sum of many reports included.
        """

    def rounded(self, values: Array, source: RandomSource) -> NDArray[np.int64]:
        """The `values`, clipped and rounded with chance from `source`, every row within the bound."""
        check_rows(values, self.dimension)
        scaled = np.asarray(clip_rows(np.asarray(values, np.float64), self.clip))
        scaled = scaled * (self.steps / self.clip)
        rows = stochastic_round(scaled, source)
        for row in range(len(rows)):
            for _ in range(_TRIES):
                if int(rows[row] @ rows[row]) <= self.largest_square:
                    break
                rows[row] = stochastic_round(scaled[row], source)
            else:  # towards zero no vector gets longer
                rows[row] = np.trunc(scaled[row]).astype(np.int64)
        return rows

    def randomize(self, values: Array, source: RandomSource) -> Array:
        rows = self.rounded(values, source)
        return (rows + self.noise(rows.size, source).reshape(rows.shape)) % MODULUS

    def estimate(self, reports: Array) -> Array:
        """A client's vector from its integers, whichever way they are written modulo 2^32."""
        signed = (np.asarray(reports, np.int64) + MODULUS // 2) % MODULUS - MODULUS // 2
        return signed * (self.clip / self.steps)

    def sum_estimates(self, reports: Array) -> Array:
        return self.estimate(np.asarray(reports, np.int64).sum(axis=0) % MODULUS)

    def most_reports(self) -> int:
        """Reports whose sum cannot wrap around, but for an event of probability below 2^-90.

        A coordinate is at most the norm's bound, its noise after k reports at most k times the reach of one; what wraps
        around costs no privacy, it only spoils the model.
        """
        one = math.isqrt(self.largest_square) + 1
        most = (MODULUS // 2 - 1) // one
        while most > 0 and most * one + 12 * math.sqrt(most * self.variance) + 100 >= MODULUS // 2:
            most = most * 9 // 10
        return most

    def total_variance(self, values: Array) -> NDArray[np.float64]:
        """Noise and rounding; the rare repeated rounding is left out."""
        scaled = np.asarray(clip_rows(np.asarray(values, np.float64), self.clip))
        parts = np.mod(scaled * (self.steps / self.clip), 1.0)
        unit = self.clip / self.steps
        rounding = (parts * (1 - parts)).sum(axis=1)
        return np.asarray(unit**2 * (self.dimension * self.variance + rounding))

    def summed(self, norms: NDArray[np.float64], dimension: int, source: RandomSource) -> SummedReports:
        # the normal limit, with the mean variance 1/6 of rounding
        each = math.sqrt(self.variance + 1 / 6) * self.clip / self.steps
        return SummedReports(self.clipping_weights(norms), each * math.sqrt(norms.size))


@dataclass(frozen=True)
class SkellamVector(IntegerVector):
    """Integers with Skellam noise, whose sums carry exactly Skellam noise.

    >>> SkellamVector(2.0, dimension=100).describe()
    'Skellam vector, noise multiplier 2 in 1,024 steps'
    """

    name, label = "skellam", "Skellam"

    def noise(self, size: int, source: RandomSource) -> NDArray[np.int64]:
        return skellam_noise(self.variance, size, source)

    @property
    def integer_error(self) -> float:
        return TABLE_ERROR


@dataclass(frozen=True)
class DiscreteGaussianVector(IntegerVector):
    """Integers with discrete Gaussian noise.

    >>> DiscreteGaussianVector(2.0, dimension=100).describe()
    'discrete Gaussian vector, noise multiplier 2 in 1,024 steps'
    """

    name, label = "discrete-gaussian", "discrete Gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variance < SMALLEST_GAUSSIAN_VARIANCE:
            least = math.sqrt(SMALLEST_GAUSSIAN_VARIANCE)
            raise InvalidParameter("steps", self.steps, f"noise_multiplier · steps ≥ {least:.3g}")

    def noise(self, size: int, source: RandomSource) -> NDArray[np.int64]:
        return discrete_gaussian_noise(self.variance, size, source)

    @property
    def integer_error(self) -> float:
        return TABLE_ERROR + 5.0 * math.exp(-(math.pi**2) * self.variance)
