"""What came back from a fleet, the figures it answers with, and how far these may be off.

They vary with the randomizer's noise and with who happened to be asked: a round's reports come from a uniformly random
part of a finite population. Clients that lie move them, too: a figure is a sum of means, one for each *part* of the
reports (a level of a tree, the last stage of heavy hitters, otherwise all), what one report adds to a mean lies within
a fixed range, its *reach*, and a client sends at most one report a round; docs/survey.md has the proof.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.display import needed
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import open_probability
from dpcheckin.protocols.plan import Plan
from dpcheckin.randomizers.formats import Reports
from dpcheckin.special import intervals
from dpcheckin.special.normal import gaussian_profile_at, ndtri
from dpcheckin.special.roots import switch
from dpcheckin.survey.drawing import draw

Figures = NDArray[np.float64]
Moments = Callable[[Figures], tuple[Figures, Figures, Figures]]

FAILURE = 1e-9
"""Probability, over the coins of honest clients, that a bound stated before a run fails."""
COLLUDING_CLIENTS = (1, 10, 100)
"""Of whom bounds are stated unless others are asked for."""


@dataclass(frozen=True)
class Sample:
    """How many reports came in each round (`sizes`), of a `population` that may be asked."""

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

        `of_reports` is the variance among the estimates, noise included, `of_population` that of the true values.
        """
        kept = np.minimum(of_population, of_reports) * self.repeated
        return np.asarray((of_reports - kept) / self.reports)


def sample_of(population: int, sizes: Sequence[int]) -> Sample:
    """The sample of a population that came, by the sizes of its rounds; without reports there is no answer."""
    if sum(sizes) == 0:
        raise InvalidParameter("reports", 0, "at least one report that can be counted")
    return Sample(population, tuple(float(size) for size in sizes))


def critical_value(confidence: float, intervals: int = 1) -> float:
    """How many standard deviations an interval of this confidence reaches on either side.

    So many `intervals` are to hold at once (Bonferroni).

    >>> round(critical_value(0.95), 3), round(critical_value(0.95, 100), 3)
    (1.96, 3.481)
    """
    open_probability("confidence", confidence)
    return float(-ndtri((1.0 - confidence) / (2.0 * intervals)))


def normal_interval(values: Figures, deviation: Figures, z: float) -> tuple[Figures, Figures]:
    """Intervals of z times the deviation on either side of the values, for sums of many reports."""
    return values - z * deviation, values + z * deviation


def score_interval(shares: Figures, moments: Moments, z: float, steps: int = 50) -> tuple[Figures, Figures]:
    """Shares for which the one that was seen is not too far out, by their own law.

    The variance is taken at the share in question, not at the estimate, and small counts are skewed to the right, which
    matters for many intervals at once. The `shares` are unbiased estimates and may lie outside [0, 1]; `moments` gives
    standard deviation, skewness and excess kurtosis of the estimate at given shares, `z` is the critical value, `steps`
    are those of the bisection.
    """

    def end(outside: Figures, z: float) -> Figures:
        """The last share from one bound on, 0 or 1, that the estimate is too far from."""
        far, near = outside, np.clip(shares, 0.0, 1.0)
        for _ in range(steps):
            middle = (far + near) / 2
            deviation, skewness, kurtosis = moments(middle)
            # Cornish and Fisher's expansion: how far out a skewed law has the mass beyond z
            skewed = z + skewness * (z * z - 1) / 6 + kurtosis * (z**3 - 3 * z) / 24
            reach = (skewed - skewness**2 * (2 * z**3 - 5 * z) / 36) * deviation
            too_far = shares - middle > reach if z > 0 else shares - middle < reach
            far, near = np.where(too_far, middle, far), np.where(too_far, near, middle)
        return far

    return end(np.zeros_like(shares), z), end(np.ones_like(shares), -z)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The mu of Gaussian differential privacy with this epsilon (above 0) at this delta.

    >>> round(gaussian_mu(1.0, 1e-5), 3)
    0.268
    """

    def within(mu: float) -> bool:
        return float(gaussian_profile_at(mu, np.array([epsilon]))[0]) <= delta

    high = 1.0
    while within(high):
        high *= 2
    return switch(within, 1e-9, high)[0]


def largest_moves(reach: Figures, sizes: Sequence[float], hostile: float) -> Figures:
    """The most by which so many hostile reports, put in place of others or added, move each figure.

    Whether a report counts in one part or another is its sender's choice: what leaves one part and what enters another
    both count, each at most `hostile` reports. `reach` is the largest minus the smallest part of one report in each
    figure (rows) by part (columns), `sizes` are the reports counted in each part, hostile ones included.

    >>> largest_moves(np.array([[2.0]]), [100], 10)
    array([0.2])
    >>> largest_moves(np.array([[2.0, 1.0]]), [100, 100], 10)    # from one part into the other
    array([0.3])
    """
    reach = np.asarray(reach, dtype=np.float64)
    counts = np.maximum(np.asarray(sizes, dtype=np.float64), 0.0)
    if reach.ndim != 2 or reach.shape[1] != len(counts):
        raise InvalidParameter("sizes", len(counts), "a number of reports for each part")
    most = np.minimum(counts, hostile)  # of a part, no more can be moved
    gain = reach / np.maximum(counts, 1.0)
    order = np.argsort(-gain, axis=1, kind="stable")
    left = np.cumsum(most[order], axis=1)
    whole = 2.0 * hostile if len(counts) > 1 else hostile
    taken = np.minimum(left, whole) - np.minimum(left - most[order], whole)
    # a part without a report of its own may be given its first one: then all of it has moved
    empty = (reach * (counts < 1.0)).sum(axis=1)
    moved = (np.take_along_axis(gain, order, axis=1) * taken).sum(axis=1)
    return np.asarray(moved + empty * (hostile > 0))


def least_sizes(honest: int, probability: float, parts: int) -> NDArray[np.float64]:
    """Reports that each of so many parts has at least, all of them at once, but with probability `FAILURE`.

    Honest clients may report `honest` times, and do so in a given part with this probability.
    """
    if probability >= 1.0:
        return np.full(parts, float(honest))
    return np.full(parts, float(intervals.quantile(FAILURE / parts, honest, probability)))


def check_clients(clients: object, population: int, name: str = "clients") -> int:
    """The number of colluding clients; one that a population cannot have is refused under the name of its option."""
    whole = isinstance(clients, int | np.integer) and not isinstance(clients, bool)
    if not whole or not 0 <= clients <= population:  # type: ignore[operator]
        raise InvalidParameter(name, clients, f"a whole number from 0 to {population:,}")
    return int(clients)  # type: ignore[call-overload, no-any-return]


@dataclass(frozen=True, eq=False)
class Estimate:
    """One figure for every name, such as a category, each with an interval.

    The `values` are unbiased, in the unit of the question; `lower` and `upper` are the ends of the intervals,
    `deviation` the estimated standard deviations. The `confidence` is that an interval contains the truth, or that all
    of them do at once if `simultaneous`. Of the `population` that was asked so many `reports` were counted, and so many
    `dropped`, as no client could have made them. `more` has further figures of the query, such as a whole distribution;
    `parts` the reports behind each mean that a figure is made of (levels of a tree, last stage of heavy hitters), empty
    if that is all of them.
    """

    names: tuple[str, ...]
    values: Figures
    lower: Figures
    upper: Figures
    deviation: Figures
    confidence: float
    simultaneous: bool
    population: int
    reports: int
    dropped: int = 0
    more: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[int, ...] = ()

    def as_document(self) -> dict[str, Any]:
        """Plain lists and numbers, for JSON."""
        every = {**vars(self), "names": list(self.names), "parts": list(self.parts or (self.reports,)), **self.more}
        del every["more"]
        return {name: v.tolist() if isinstance(v, np.ndarray) else v for name, v in every.items()}

    def to_frame(self) -> Any:
        """The figures as a pandas DataFrame, one row a name; needs pandas."""
        pandas = needed("pandas", "frame")
        columns = ("values", "lower", "upper", "deviation")
        return pandas.DataFrame({name: getattr(self, name) for name in columns}, index=list(self.names))

    def plot(self, axes: Any = None, truth: Figures | None = None) -> Any:
        """Bars with intervals, or a distribution with its band, on axes or a new figure; beside the truth if known."""
        return draw(self, axes, truth)

    def contains(self, truth: Figures) -> NDArray[np.bool_]:
        """Which intervals contain the truth."""
        return np.asarray((self.lower <= truth) & (truth <= self.upper))


@dataclass(frozen=True)
class Received:
    """The reports of all rounds that a client can have made, and how many were dropped because none can.

    The plan says who was asked and by which randomizer; intervals are to have the `confidence`, all of them at once if
    `simultaneous`.
    """

    rounds: tuple[Reports, ...]
    dropped: int
    plan: Plan
    confidence: float
    simultaneous: bool

    @property
    def together(self) -> Reports:
        """All reports."""
        return np.concatenate(self.rounds)

    @property
    def sample(self) -> Sample:
        """How many of how many clients were heard."""
        return sample_of(self.plan.population, [len(reports) for reports in self.rounds])

    def deviations(self, figures: int) -> float:
        """Half the width of an interval, in standard deviations, where so many figures have one."""
        return critical_value(self.confidence, figures if self.simultaneous else 1)

    def estimate(
        self, names: tuple[str, ...], values: Figures, ends: tuple[Figures, Figures], deviation: Figures, **more: Any
    ) -> Estimate:
        """The answer: names, values, both `ends` of their intervals and deviation, and `more` that it can say."""
        return Estimate(
            names, values, *ends, deviation, self.confidence, self.simultaneous,
            population=self.plan.population,
            reports=sum(map(len, self.rounds)),
            dropped=self.dropped,
            **more,
        )  # fmt: skip
