"""The whole distribution of a bounded number, and quantiles of it.

Numbers fall into equal bins. One round asks for the bin, or for a node of a tree over the bins,
and the figures of all levels are made one consistent histogram by weighted least squares. The
distribution function is its running sum; it is made non-decreasing last.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.protocols.plan import Plan
from dpcheckin.randomizers import Randomizer, TreeResponse
from dpcheckin.randomizers.base import at_least
from dpcheckin.survey.estimates import Estimate
from dpcheckin.survey.questions.histogram import ShareLaw
from dpcheckin.survey.questions.numbers import beyond, check_bounds
from dpcheckin.survey.questions.query import Query, Values, number_between, numbers_of, plain_values
from dpcheckin.survey.questions.tree_estimates import even_variance, reach_of, running_shares
from dpcheckin.survey.received import Received
from dpcheckin.survey.sampling import Sample, normal_interval

MOST_BINS = 1 << 14
MOST_LEAVES_OF_A_TREE = 1024
MOST_BINS_IN_FULL = 256  # above, the error of a tree is predicted roughly
_BRANCHING = (2, 3, 4, 6, 8, 12, 16, 24, 32)


@dataclass(frozen=True)
class Distribution(Query):
    """The distribution function at the upper edge of every bin.

    Args:
        low: smallest number.
        high: largest number; numbers beyond a bound count as the bound.
        bins: equal parts of the interval.
    """

    kind = "distribution"
    unit = "of the population"
    low: float
    high: float
    bins: int = 64

    def __post_init__(self) -> None:
        check_bounds(self.low, self.high)
        at_least("bins", self.bins, 2)
        if self.bins > MOST_BINS:
            raise InvalidParameter("bins", self.bins, f"at most {MOST_BINS:,}")

    @property
    def edges(self) -> NDArray[np.float64]:
        """Lower edge of the first bin, then the upper edge of every bin."""
        return np.linspace(self.low, self.high, self.bins + 1)

    def encode(self, values: Any) -> Values:
        # by the edges that answers name: what lies on one is never put below it by rounding
        numbers = np.clip(numbers_of(plain_values(values)), self.low, self.high)
        return np.searchsorted(self.edges[1:-1], numbers, side="right").astype(np.int64)

    def nearest(self, value: Any) -> Any:
        return number_between(value, self.low, self.high)

    def clipped(self, values: Any) -> tuple[int, str]:
        return beyond(values, self.low, self.high)

    def mechanisms(self) -> Sequence[str]:
        trees = [f"tree:{b}" for b in _BRANCHING if b * b <= 2 * self.bins]
        return ["flat", *(trees if self.bins <= MOST_LEAVES_OF_A_TREE else [])]

    def randomizer(self, local_epsilon: float, mechanism: str | None = None) -> TreeResponse:
        if mechanism in (None, "flat"):
            return TreeResponse(local_epsilon, self.bins, self.bins)
        if self.bins > MOST_LEAVES_OF_A_TREE:
            allowed = f"flat, or tree:CHILDREN with at most {MOST_LEAVES_OF_A_TREE:,} bins"
            raise InvalidParameter("mechanism", mechanism, allowed)
        return self.made(TreeResponse, mechanism, local_epsilon, leaves=self.bins)

    def answer(self, received: Received) -> Estimate:
        shares, deviation, parts = self._running(received)
        z = received.deviations(self.bins - 1)
        lower, upper = normal_interval(shares, deviation, z)
        values = non_decreasing(shares)
        lower, upper = np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
        if received.simultaneous:
            lower, upper = _band(lower, upper)
        return received.estimate(
            names=tuple(f"{edge:.6g}" for edge in self.edges[1:]),
            values=values,
            lower=np.minimum(lower, values),
            upper=np.maximum(upper, values),
            deviation=deviation,
            more={"unbiased": shares, "edges": self.edges[1:]},
            parts=parts,
        )

    def _running(
        self, received: Received
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], tuple[int, ...]]:
        """Unbiased running shares, deviations, and the reports of each level."""
        tree, together = _tree(received.plan.randomizer), received.together
        shares, variance = running_shares(tree, together, received.sample)
        levels = np.bincount(together[:, 0], minlength=len(tree.levels))
        return shares, np.sqrt(variance), tuple(map(int, levels))

    def predicted_error(self, randomizer: Randomizer, sample: Sample) -> float:
        """Mean over the edges, for numbers spread evenly."""
        tree = _tree(randomizer)
        places = np.arange(1, self.bins) / self.bins
        if len(tree.sizes) == 1 and tree.levels[0].other_support < 0.5:
            p, q = tree.levels[0].own_support, tree.levels[0].other_support
            below = p + (places * self.bins - 1) * q
            above = places * self.bins * q
            coins = places * below * (1 - below) + (1 - places) * above * (1 - above)
            variance = coins / (sample.reports * (p - q) ** 2) + sample.who * places * (1 - places)
            return math.sqrt(float(np.mean(variance)))
        levels = len(tree.sizes)
        part = Sample(sample.population, tuple(size / levels for size in sample.sizes))
        if self.bins <= MOST_BINS_IN_FULL:
            variance = even_variance(tree) * levels / sample.reports
            spared = places * (1 - places) * sample.repeated / sample.reports
            return math.sqrt(float(np.mean(np.maximum(variance[:-1] - spared, 0.0))))
        # from above: as if a running share were the sum of half of every node's children
        total = float(np.mean(places * (1 - places))) * part.who
        for level, size in zip(tree.levels, tree.sizes, strict=True):
            law = ShareLaw(level.own_support, level.other_support, part)
            whole = float(law.deviation(np.array([1.0 / size]))[0]) ** 2
            node = whole - part.who * (size - 1) / (size * size)
            total += (tree.branching - 1) / 2 * max(node, 0.0)
        return math.sqrt(total)

    def reach(self, plan: Plan) -> NDArray[np.float64]:
        """Of the distribution function at each edge, level by level."""
        return reach_of(_tree(plan.randomizer))

    def moved(self, estimate: Estimate, bounds: NDArray[np.float64]) -> tuple[Values, Values]:
        """Making a function non-decreasing keeps order: the ends of the band are made so too."""
        shares = estimate.more["unbiased"]
        return non_decreasing(shares - bounds), non_decreasing(shares + bounds)

    def truth_of(self, values: Values, estimate: Estimate) -> NDArray[np.float64]:
        seen = np.bincount(values, minlength=self.bins).cumsum()
        return np.asarray(seen / len(values), dtype=np.float64)


@dataclass(frozen=True)
class Quantiles(Distribution):
    """Numbers below which given parts of the population lie.

    Args:
        low: smallest number.
        high: largest number; numbers beyond a bound count as the bound.
        bins: equal parts of the interval. Estimates take numbers as spread evenly within one;
            intervals take nothing for granted and begin and end at edges.
        probabilities: of the quantiles; ½ is the median.
    """

    kind = "quantiles"
    figure_unit = "of the numbers' unit"
    probabilities: tuple[float, ...] = (0.25, 0.5, 0.75)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.probabilities or not all(0 < p < 1 for p in self.probabilities):
            raise InvalidParameter("probabilities", self.probabilities, "strictly between 0 and 1")

    def answer(self, received: Received) -> Estimate:
        shares, deviation, parts = self._running(received)
        z = received.deviations(len(self.probabilities))
        lower, upper = _outer(*normal_interval(shares, deviation, z))
        whole = non_decreasing(shares)
        first, last = self._inverse(upper), self._inverse(lower)
        # Fewer than p lie below any edge up to the quantile of p, and p or more below any edge
        # beyond it, however numbers lie within their bins: the interval is between such edges.
        begin = np.searchsorted(upper[:-1], self.probabilities)
        end = 1 + np.searchsorted(lower[:-1], self.probabilities)
        return received.estimate(
            names=tuple(f"{p:g}" for p in self.probabilities),
            values=self._inverse(whole),
            lower=self.edges[begin],
            upper=self.edges[end],
            deviation=(last - first) / (2 * z),
            parts=parts,
            more={
                "edges": self.edges[1:],
                "unbiased": shares,
                "shares": whole,
                "shares_lower": lower,
                "shares_upper": upper,
            },
        )

    def moved(self, estimate: Estimate, bounds: NDArray[np.float64]) -> tuple[Values, Values]:
        """Where the ends of the band of distribution functions pass each probability."""
        low, high = super().moved(estimate, bounds)
        return self._inverse(high), self._inverse(low)

    def _inverse(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where a non-decreasing function through the edges passes each probability."""
        heights = np.concatenate([[0.0], shares])
        heights[-1] = max(heights[-1], 1.0)
        found = []
        for p in self.probabilities:
            after = int(np.searchsorted(heights, p, side="left"))
            left, right = heights[after - 1], heights[after]
            part = (p - left) / (right - left) if right > left else 0.0
            found.append(self.edges[after - 1] + part * (self.edges[after] - self.edges[after - 1]))
        return np.array(found)

    def truth(self, values: Any, estimate: Estimate) -> NDArray[np.float64]:
        """Of the numbers themselves, not of their bins; beyond a bound they count as the bound."""
        numbers = np.clip(numbers_of(plain_values(values)), self.low, self.high)
        return np.quantile(numbers, self.probabilities, method="inverted_cdf")


def non_decreasing(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """The non-decreasing shares nearest to these, within [0, 1], ending at 1."""
    fitted = np.clip(_pooled(shares), 0.0, 1.0)
    fitted[-1] = 1.0
    return np.asarray(fitted)


def _pooled(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest non-decreasing numbers: neighbours in the wrong order get their mean."""
    pools: list[tuple[float, int]] = []  # mean and size
    for share in shares.tolist():
        mean, size = share, 1
        while pools and pools[-1][0] >= mean:
            before, count = pools.pop()
            mean, size = (before * count + mean * size) / (count + size), count + size
        pools.append((mean, size))
    means, sizes = zip(*pools, strict=True)
    return np.repeat(np.array(means), sizes)


def _band(
    lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What is left of a band that holds everywhere for a function that does not decrease."""
    high = np.minimum.accumulate(upper[::-1])[::-1]
    return np.maximum.accumulate(lower), np.asarray(high)


def _outer(
    lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The band that holds at each place alone, widened until it does not decrease.

    It is passed where some interval first, or last, allows a share: nothing that the intervals
    allow is lost.
    """
    low = np.clip(np.minimum.accumulate(lower[::-1])[::-1], 0.0, 1.0)
    high = np.clip(np.maximum.accumulate(upper), 0.0, 1.0)
    return low, high


def _tree(randomizer: Randomizer) -> TreeResponse:
    if not isinstance(randomizer, TreeResponse):
        raise InvalidParameter("randomizer", randomizer.describe(), "a tree of bins")
    return randomizer
