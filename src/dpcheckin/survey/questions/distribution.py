"""The whole distribution of a bounded number, and quantiles of it.

Numbers fall into equal bins. One round asks for the bin, or for a node of a tree over the bins. Weighted least squares
makes one histogram, whose sum is one, of the estimates of all levels. That is linear in the reports, so the variance of
a running share is the variance among the reports' contributions to it, level by level. The distribution function is
that running sum; it is made non-decreasing last.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import at_least
from dpcheckin.protocols.plan import Plan
from dpcheckin.randomizers import FrequencyRandomizer, HadamardResponse, Randomizer, TreeResponse
from dpcheckin.survey.estimates import Estimate, Figures, Received, Sample, normal_interval
from dpcheckin.survey.questions.histogram import ShareLaw
from dpcheckin.survey.questions.means import Bounded
from dpcheckin.survey.questions.query import Values

MOST_BINS = 1 << 14
MOST_LEAVES_OF_A_TREE = 1024
MOST_BINS_IN_FULL = 256  # above, the error of a tree is predicted roughly
_BRANCHING = (2, 3, 4, 6, 8, 12, 16, 24, 32)


@dataclass(frozen=True)
class Distribution(Bounded):
    """The distribution function of a number from `low` to `high` at the upper edge of each of equal `bins`.

    Numbers beyond a bound count as the bound.
    """

    kind = "distribution"
    reads = TreeResponse, "a tree of bins"
    unit = "of the population"
    bins: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("bins", self.bins, 2)
        if self.bins > MOST_BINS:
            raise InvalidParameter("bins", self.bins, f"at most {MOST_BINS:,}")

    @property
    def edges(self) -> Figures:
        """Lower edge of the first bin, then the upper edge of every bin."""
        return np.linspace(self.low, self.high, self.bins + 1)

    def encode(self, values: Any) -> Values:
        # by the edges that answers name: what lies on one is never put below it by rounding
        return np.searchsorted(self.edges[1:-1], self.numbers(values), side="right").astype(np.int64)

    def mechanisms(self) -> Sequence[str]:
        trees = [f"tree:{b}" for b in _BRANCHING if b * b <= 2 * self.bins]
        return ["flat", *(trees if self.bins <= MOST_LEAVES_OF_A_TREE else [])]

    def known(self) -> dict[str, Any]:
        return {"leaves": self.bins}

    def randomizer(self, local_epsilon: float, mechanism: str | None = None) -> Randomizer:
        """A tree of bins at this local_epsilon; with `flat`, or without a mechanism, all of them are on one level."""
        if mechanism in (None, "flat"):
            return TreeResponse(local_epsilon, self.bins, self.bins)
        if self.bins > MOST_LEAVES_OF_A_TREE:
            allowed = f"flat, or tree:CHILDREN with at most {MOST_LEAVES_OF_A_TREE:,} bins"
            raise InvalidParameter("mechanism", mechanism, allowed)
        return super().randomizer(local_epsilon, mechanism)

    def answer(self, received: Received) -> Estimate:
        shares, deviation, parts = self._running(received)
        z = received.deviations(self.bins - 1)
        lower, upper = normal_interval(shares, deviation, z)
        values = non_decreasing(shares)
        lower, upper = np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
        if received.simultaneous:
            lower, upper = _band(lower, upper)
        return received.estimate(
            tuple(f"{edge:.6g}" for edge in self.edges[1:]),
            values,
            (np.minimum(lower, values), np.maximum(upper, values)),
            deviation,
            more={"unbiased": shares, "edges": self.edges[1:]},
            parts=parts,
        )

    def _running(self, received: Received) -> tuple[Figures, Figures, tuple[int, ...]]:
        """Unbiased running shares, deviations, and the reports of each level."""
        tree, together = self.readable(received.plan.randomizer), received.together
        shares, variance = _running_shares(tree, together, received.sample)
        levels = np.bincount(together[:, 0], minlength=len(tree.levels))
        return shares, np.sqrt(variance), tuple(map(int, levels))

    def predicted_error(self, randomizer: Randomizer, sample: Sample) -> float:
        """That of the randomizer, on average over the edges, for a sample of numbers spread evenly."""
        tree: TreeResponse = self.readable(randomizer)
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
            each = sum(moves.var(axis=1) for moves in _linear(tree)[1])  # if all reports are equally likely
            variance = np.asarray(each) * levels / sample.reports
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

    def reach(self, plan: Plan) -> Figures:
        """Of the distribution function at each edge (rows), level by level, in parts of the level's reports."""
        tree: TreeResponse = self.readable(plan.randomizer)
        if len(tree.levels) == 1 and not isinstance(tree.levels[0], HadamardResponse):
            return np.array([[1.0 / (tree.levels[0].own_support - tree.levels[0].other_support)]])
        _, moves = _linear(tree)
        return np.stack([each.max(axis=1) - each.min(axis=1) for each in moves], axis=1)

    def moved(self, estimate: Estimate, bounds: Figures) -> tuple[Values, Values]:
        """Making an estimate non-decreasing keeps order: the ends of the band, at these bounds, are made so too."""
        shares = estimate.more["unbiased"]
        return non_decreasing(shares - bounds), non_decreasing(shares + bounds)

    def truth_of(self, values: Values, estimate: Estimate) -> Figures:
        seen = np.bincount(values, minlength=self.bins).cumsum()
        return np.asarray(seen / len(values), dtype=np.float64)


@dataclass(frozen=True)
class Quantiles(Distribution):
    """Numbers below which given parts of the population lie, the `probabilities`; that of the median is ½.

    The numbers lie from `low` to `high`, in equal `bins`; those beyond a bound count as the bound. Estimates take them
    as spread evenly within a bin; intervals take nothing for granted and begin and end at edges.
    """

    kind = "quantiles"
    figure_unit = "of the numbers' unit"
    probabilities: tuple[float, ...] = (0.25, 0.5, 0.75)

    @property
    def figure_scale(self) -> float:
        return self.high - self.low

    @property
    def figure_rounding(self) -> float:
        return (self.high - self.low) / self.bins / 2

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
            tuple(f"{p:g}" for p in self.probabilities),
            self._inverse(whole),
            (self.edges[begin], self.edges[end]),
            (last - first) / (2 * z),
            parts=parts,
            more={
                "edges": self.edges[1:],
                "unbiased": shares,
                "shares": whole,
                "shares_lower": lower,
                "shares_upper": upper,
            },
        )

    def moved(self, estimate: Estimate, bounds: Figures) -> tuple[Values, Values]:
        """Where the ends of the band of distribution functions, an estimate with its bounds, pass each probability."""
        low, high = super().moved(estimate, bounds)
        return self._inverse(high), self._inverse(low)

    def _inverse(self, shares: Figures) -> Figures:
        """Where a non-decreasing function through the edges passes each probability."""
        heights = np.concatenate([[0.0], shares])
        heights[-1] = max(heights[-1], 1.0)
        places = []
        for p in self.probabilities:
            after = int(np.searchsorted(heights, p, side="left"))
            left, right = heights[after - 1], heights[after]
            part = (p - left) / (right - left) if right > left else 0.0
            places.append(self.edges[after - 1] + part * (self.edges[after] - self.edges[after - 1]))
        return np.array(places)

    def truth(self, values: Any, estimate: Estimate) -> Figures:
        """The quantiles of an estimate, of the values themselves and not of their bins."""
        return np.quantile(self.numbers(values), self.probabilities, method="inverted_cdf")


def _running_shares(tree: TreeResponse, reports: NDArray[np.int64], sample: Sample) -> tuple[Figures, Figures]:
    """Unbiased running shares of a tree's leaves, and their variances, from reports (level, report) of a sample."""
    seen = [
        np.bincount(reports[reports[:, 0] == i, 1], minlength=kinds).astype(np.float64)
        for i, kinds in enumerate(tree.kinds)
    ]
    plain = len(seen) == 1 and not isinstance(tree.levels[0], HadamardResponse)
    shares, variance = _flat(tree, seen[0]) if plain else _levels(tree, seen)
    inside = np.clip(shares, 0.0, 1.0)
    # what asking the same people again takes away: each level hears only its part of them
    spared = inside * (1 - inside) * sample.repeated / sample.reports
    return shares, np.maximum(variance - spared, variance * 1e-3)


def _flat(tree: TreeResponse, seen: Figures) -> tuple[Figures, Figures]:
    """d-ary response on the leaves alone: a running sum of what was seen."""
    level, total = tree.levels[0], seen.sum()
    gap = level.own_support - level.other_support
    parts = seen.cumsum() / total
    edges = np.arange(1, tree.leaves + 1)
    return (parts - edges * level.other_support) / gap, parts * (1 - parts) / (total * gap**2)


def _levels(tree: TreeResponse, seen: list[Figures]) -> tuple[Figures, Figures]:
    shares, moves = _linear(tree)
    shares, variance = shares.copy(), np.zeros(tree.leaves)
    for each, counts in zip(moves, seen, strict=True):
        total = counts.sum()
        if total == 0:
            raise InvalidParameter("reports", 0, "at least one about every level of the tree")
        mean = each @ counts / total
        shares += mean
        variance += np.maximum(each**2 @ counts / total - mean**2, 0.0) / total
    return shares, variance


@lru_cache(maxsize=8)
def _linear(tree: TreeResponse) -> tuple[Figures, list[Figures]]:
    """Running shares without any report, and what a report of each kind adds, level by level."""
    leaves = np.arange(tree.leaves)[None, :]
    # which leaves lie under each node, level by level
    places = [
        (leaves // width == np.arange(size)[:, None]).astype(np.float64)
        for width, size in zip(tree.widths, tree.sizes, strict=True)
    ]
    weights = [_weight(level) for level in tree.levels]
    normal = sum(
        (weight * place.T @ place for weight, place in zip(weights, places, strict=True)),
        np.zeros((tree.leaves, tree.leaves)),
    )
    # the sum is one: a level with one node that is known as good as exactly
    sure = 1e4 * max(weights)
    normal += sure
    running = np.linalg.solve(normal, np.triu(np.ones((tree.leaves, tree.leaves)))).T
    each = [
        running @ (weight * place.T) @ _contributions(level)
        for level, weight, place in zip(tree.levels, weights, places, strict=True)
    ]
    return running @ np.full(tree.leaves, sure), each


def _weight(level: FrequencyRandomizer) -> float:
    """One over the variance of a report's part in a node's share, for leaves spread evenly."""
    even = np.full(level.symbols, 1.0 / level.symbols)
    return 1.0 / float(level.variance(even)[0] + (1 - even[0]) * even[0])


def _contributions(level: FrequencyRandomizer) -> Figures:
    """What one report of each kind says about the share of each node."""
    every = np.arange(level.report_format.limits[0])
    supports = np.array([level.supports(every, node) for node in range(level.symbols)], float)
    gap = level.own_support - level.other_support
    return np.asarray((supports - level.other_support) / gap)


def non_decreasing(shares: Figures) -> Figures:
    """The non-decreasing shares nearest to these, within [0, 1], ending at 1."""
    fitted = np.clip(_pooled(shares), 0.0, 1.0)
    fitted[-1] = 1.0
    return np.asarray(fitted)


def _pooled(shares: Figures) -> Figures:
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


def _band(lower: Figures, upper: Figures) -> tuple[Figures, Figures]:
    """What is left of a band that holds everywhere for a function that does not decrease."""
    high = np.minimum.accumulate(upper[::-1])[::-1]
    return np.maximum.accumulate(lower), np.asarray(high)


def _outer(lower: Figures, upper: Figures) -> tuple[Figures, Figures]:
    """The band that holds at each place alone, widened until it does not decrease.

    It is passed where some interval first, or last, allows a share: nothing that the intervals allow is lost.
    """
    low = np.clip(np.minimum.accumulate(lower[::-1])[::-1], 0.0, 1.0)
    high = np.clip(np.maximum.accumulate(upper), 0.0, 1.0)
    return low, high
