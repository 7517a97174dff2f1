"""Vectors in fixed point with discrete Gaussian noise, beside Skellam noise (`skellam_vector`).

N_Z(0, v) has mass proportional to exp(-j²/(2v)) at the integer j. Unlike Skellam noise it is not
closed under addition, but nearly so. If X ~ N_Z(0, a) and Y ~ N_Z(0, b), then P(X + Y = z) is
proportional to exp(-z²/(2(a + b))) Σ_x exp(-(x - t)²/(2s)) with s = ab/(a + b) and t depending on
z; by Poisson summation that sum lies within a factor 1 ± η of √(2πs), η = 2 Σ_j exp(-2π² s j²) at
most 2.01 exp(-2π² s). Adding the reports one by one, s is at least v/2, so the sum of n of them has
masses within ((1 + η)/(1 - η))^n of N_Z(0, nv): at most 5 exp(-π² v) per report and coordinate in
total variation. From v = 10 on that is below 1e-42, and it is charged all the same. (Kairouz, Liu
and Steinke, arXiv 2102.06387v4, section 4.3, bound the same distance.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter, OutsideTheorem
from dpcheckin.randomizers.skellam import TABLE_ERROR, Table, drawn_from, table_of
from dpcheckin.randomizers.skellam_vector import IntegerVector
from dpcheckin.randomizers.source import RandomSource

if TYPE_CHECKING:
    from dpcheckin.accounting import LocalPair

SMALLEST_VARIANCE = 10.0
_DIGITS = 90  # decimal digits of the recurrence: its errors stay far below 2^-124
_UNIT = 1 << 200
_TAIL_BITS = 100


def reach(variance: float) -> int:
    """Noise beyond this has probability below 2^-100: P(X >= t) <= exp(-t²/(2v)).

    Args:
        variance: the v.
    """
    return math.ceil(math.sqrt(2.0 * variance * (_TAIL_BITS + 1) * math.log(2.0))) + 1


@lru_cache(maxsize=8)
def _cumulative(variance: float) -> Table:
    last = reach(variance)
    masses = []
    with localcontext() as context:
        context.prec = _DIGITS
        v = Decimal(variance)
        mass, ratio, fall = Decimal(_UNIT), (-1 / (2 * v)).exp(), (-1 / v).exp()
        for _ in range(last + 1):  # mass(j + 1) = mass(j) exp(-(2j + 1)/(2v))
            masses.append(int(mass))
            mass, ratio = mass * ratio, ratio * fall
    return table_of(masses, last)


def discrete_gaussian_noise(variance: float, size: int, source: RandomSource) -> NDArray[np.int64]:
    """Independent integers from N_Z(0, variance), within `TABLE_ERROR` of the law.

    Args:
        variance: the v.
        size: how many integers.
        source: where chance comes from.
    """
    return drawn_from(_cumulative(float(variance)), size, source)


@dataclass(frozen=True)
class DiscreteGaussianVector(IntegerVector):
    """Integers with discrete Gaussian noise.

    Args:
        noise_multiplier: standard deviation of the noise, in clips.
        dimension: entries of a vector.
        clip: largest l2 norm of a vector.
        steps: integers to the clip, at most 2^24.

    >>> DiscreteGaussianVector(2.0, dimension=100).describe()
    'discrete Gaussian vector, noise multiplier 2 in 1,024 steps'
    """

    name, label = "discrete-gaussian", "discrete Gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variance < SMALLEST_VARIANCE:
            least = math.sqrt(SMALLEST_VARIANCE)
            raise InvalidParameter("steps", self.steps, f"noise_multiplier · steps ≥ {least:.3g}")

    @property
    def pair(self) -> LocalPair:
        raise OutsideTheorem(
            "discrete Gaussian vectors are accounted by their Rényi divergences, not by a local "
            "pair; use them with distributed check-in"
        )

    def describe(self) -> str:
        noise = f"noise multiplier {self.noise_multiplier:g}"
        return f"discrete Gaussian vector, {noise} in {self.steps:,} steps"

    def noise(self, size: int, source: RandomSource) -> NDArray[np.int64]:
        return discrete_gaussian_noise(self.variance, size, source)

    @property
    def integer_error(self) -> float:
        return TABLE_ERROR + 5.0 * math.exp(-(math.pi**2) * self.variance)
