"""How much an estimate varies: noise of the randomizer, and who happened to be asked.

A round's reports come from a uniformly random part of a finite population, so a figure varies
with who checked in, less the larger that part is, and not at all when everybody reported. Both
kinds of variance are counted here, and intervals are made of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.special.normal import log_ndtr, ndtr, ndtri

Figures = NDArray[np.float64]
Moments = Callable[[Figures], tuple[Figures, Figures, Figures]]


@dataclass(frozen=True)
class Sample:
    """How many reports came in each round, out of how many clients.

    Args:
        population: clients that may be asked.
        sizes: reports of each round.
    """

    population: int
    sizes: tuple[float, ...]

    @property
    def reports(self) -> float:
        """Reports of all rounds."""
        return float(sum(self.sizes))

    @property
    def repeated(self) -> float:
        """Σ k²/(N n): the part of the population's variance that asking everybody takes away."""
        squares = sum(size * size for size in self.sizes)
        return min(squares / (self.reports * self.population), 1.0)

    @property
    def who(self) -> float:
        """What a unit of the population's variance adds to the variance of a mean."""
        spread = self.population / max(self.population - 1, 1)
        return spread * (1.0 - self.repeated) / self.reports

    def mean_variance(self, of_reports: Figures, of_population: Figures) -> Figures:
        """Variance of the mean of all reports' estimates.

        Args:
            of_reports: variance among the estimates, noise included.
            of_population: variance of the true values among clients.
        """
        kept = np.minimum(of_population, of_reports) * self.repeated
        return np.asarray((of_reports - kept) / self.reports)


def expected_sample(population: int, rate: float, rounds: int) -> Sample:
    """The sample a plan leads one to expect.

    Args:
        population: clients.
        rate: probability that a client reports in a round.
        rounds: how many there are.
    """
    return Sample(population, (rate * population,) * rounds)


def sample_of(population: int, sizes: Sequence[int]) -> Sample:
    """The sample that came; a survey without reports has no answer."""
    if sum(sizes) == 0:
        raise InvalidParameter("reports", 0, "at least one report that can be counted")
    return Sample(population, tuple(float(size) for size in sizes))


def critical_value(confidence: float, intervals: int = 1) -> float:
    """How many standard deviations an interval reaches on either side.

    Args:
        confidence: strictly between 0 and 1.
        intervals: how many must hold at once (Bonferroni).

    >>> round(critical_value(0.95), 3), round(critical_value(0.95, 100), 3)
    (1.96, 3.481)
    """
    if not 0.0 < confidence < 1.0:
        raise InvalidParameter("confidence", confidence, "strictly between 0 and 1")
    return float(-ndtri((1.0 - confidence) / (2.0 * intervals)))


def normal_interval(values: Figures, deviation: Figures, z: float) -> tuple[Figures, Figures]:
    """Symmetric intervals, for sums of many reports."""
    return values - z * deviation, values + z * deviation


def _quantile(z: float, skewness: Figures, kurtosis: Figures) -> Figures:
    """Cornish and Fisher's expansion: how far out a skewed law has the mass beyond z."""
    corrected = (
        z
        + skewness * (z * z - 1) / 6
        + kurtosis * (z**3 - 3 * z) / 24
        - skewness**2 * (2 * z**3 - 5 * z) / 36
    )
    return np.asarray(corrected)


def score_interval(
    shares: Figures, moments: Moments, z: float, steps: int = 50
) -> tuple[Figures, Figures]:
    """Shares for which the one that was seen is not too far out, by their own law.

    The variance is taken at the share in question, not at the estimate, and small counts are skewed
    to the right, which matters for many intervals at once.

    Args:
        shares: unbiased estimates; may lie outside [0, 1].
        moments: standard deviation, skewness and excess kurtosis of the estimate at given shares.
        z: critical value.
        steps: of the bisection.
    """
    low, high = np.zeros_like(shares), np.clip(shares, 0.0, 1.0)
    for _ in range(steps):  # the smallest share that does not make this estimate too large
        middle = (low + high) / 2
        deviation, skewness, kurtosis = moments(middle)
        too_large = shares - middle > _quantile(z, skewness, kurtosis) * deviation
        low, high = np.where(too_large, middle, low), np.where(too_large, high, middle)
    lower = low
    low, high = np.clip(shares, 0.0, 1.0), np.ones_like(shares)
    for _ in range(steps):
        middle = (low + high) / 2
        deviation, skewness, kurtosis = moments(middle)
        too_small = shares - middle < _quantile(-z, skewness, kurtosis) * deviation
        low, high = np.where(too_small, low, middle), np.where(too_small, middle, high)
    return lower, high


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The mu of Gaussian differential privacy with this epsilon at this delta.

    Args:
        epsilon: above 0.
        delta: strictly between 0 and 1.

    >>> round(gaussian_mu(1.0, 1e-5), 3)
    0.268
    """

    def lost(mu: float) -> float:
        first = ndtr(-epsilon / mu + mu / 2)
        return float(first - math.exp(epsilon + log_ndtr(-epsilon / mu - mu / 2)))

    low, high = 1e-9, 1.0
    while lost(high) < delta:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if lost(middle) <= delta else (low, middle)
    return low
