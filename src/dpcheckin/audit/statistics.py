"""Scores by which an adversary tells neighbours apart.

`LikelihoodRatio` is the optimal attack when the others all hold one value, by the accountant's own pair: given k
reports out of n clients the density of a batch relative to "the target is one of the others" is (n - k + Σ W_i)/n, and
rounds add up. The other statistics are blind on an honest system, or nearly so. A wrong density weakens an attack,
never its validity. Scores are rounded to a billionth, as the last bits of a simulated report betray its input by the
rounding of the addition alone (Mironov, CCS 2012); `exact` keeps them, to attack just that.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcheckin.audit.systems import FloatArray, Neighbours, Released, RoundBatches
from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers import Gaussian, IntegerVector, Randomizer
from dpcheckin.randomizers.base import Value, clip_rows

_DIGITS = 9


class Statistic(ABC):
    """A score for each run; larger speaks for the first neighbour."""

    name: str

    @abstractmethod
    def scores(self, released: Released) -> FloatArray:
        """One number per run."""


@dataclass(frozen=True)
class _Summed(Statistic):
    """A score about neighbours `data` that adds up over rounds, of reports that `randomizer` should make."""

    randomizer: Randomizer
    data: Neighbours

    @abstractmethod
    def _of_round(self, batches: RoundBatches, others: Value, first: Value, second: Value) -> FloatArray:
        """What one round's batches add when clients hold these values."""

    def unrounded(self, released: Released) -> FloatArray:
        """The score with its last bits."""
        total = np.zeros(released[0].runs)
        for t, batches in enumerate(released):
            total += self._of_round(batches, *self.data.in_round(t))
        return total

    def scores(self, released: Released) -> FloatArray:
        return np.round(self.unrounded(released), _DIGITS)


@dataclass(frozen=True)
class LikelihoodRatio(_Summed):
    """Log likelihood ratio of all batches of a population when the others all hold one value; `exact`: all digits."""

    population: int
    exact: bool = False

    name = "log likelihood ratio"

    def scores(self, released: Released) -> FloatArray:
        return self.unrounded(released) if self.exact else super().scores(released)

    def _of_round(self, batches: RoundBatches, others: Value, first: Value, second: Value) -> FloatArray:
        return self._log_density(batches, first, others) - self._log_density(batches, second, others)

    def _log_density(self, batches: RoundBatches, value: Value, others: Value) -> FloatArray:
        if value == others:
            return np.zeros(batches.runs)
        weights: FloatArray
        with np.errstate(over="ignore"):
            if batches.only_sums:
                weights = batches.sizes.astype(float) * np.exp(self._of_sum(batches, value, others))
            else:
                reports = batches.reports
                weights = batches.total(np.exp(self.randomizer.log_ratio(reports, value, others)))
        seats = np.maximum(self.population - batches.sizes, 0)
        return np.log((seats + np.minimum(weights, 1e300)) / self.population + 1e-300)

    def _of_sum(self, batches: RoundBatches, value: Value, others: Value) -> FloatArray:
        """Log ratio of a sum of k normal reports, one of which may be about the target."""
        made = self.randomizer
        if not isinstance(made, Gaussian | IntegerVector):
            raise InvalidParameter("randomizer", made.describe(), "Gaussian noise for sums")
        both = clip_rows(np.array([value, others], dtype=np.float64), made.clip)[:, 0]
        away, usual = float(both[0] - both[1]), float(both[1])
        centred = batches.reports - batches.sizes * usual
        noise = np.maximum(batches.sizes, 1) * made.deviation**2
        return np.asarray(away * (centred - away / 2) / noise)


@dataclass(frozen=True)
class WindowRatio(Statistic):
    """Log likelihood ratio when the target's report stands in at most one round, each a slot with one report."""

    randomizer: Randomizer
    data: Neighbours
    accepted: float  # probability that the target's report is used at all

    name = "log likelihood ratio"

    def scores(self, released: Released) -> FloatArray:
        ratios: tuple[list[FloatArray], list[FloatArray]] = ([], [])
        for t, batches in enumerate(released):
            others, *values = self.data.in_round(t)
            for side, value in zip(ratios, values, strict=True):
                side.append(np.exp(self.randomizer.log_ratio(batches.reports, value, others)))
        both = [1 - self.accepted + self.accepted * np.mean(side, axis=0) for side in ratios]
        return np.asarray(np.round(np.log(both[0]) - np.log(both[1]), _DIGITS))


@dataclass(frozen=True)
class MeanReport(Statistic):
    """Largest mean report of any round; supposes nothing about clipping, so it misses none."""

    name = "largest mean report"

    def scores(self, released: Released) -> FloatArray:
        means = [b.reports / np.maximum(b.sizes, 1) for b in released if b.only_sums]
        return np.asarray(np.round(np.max(means, axis=0), _DIGITS))


@dataclass(frozen=True)
class NumberOfReports(Statistic):
    """How many reports there are in all rounds: coins alone decide that, or it tells."""

    name = "number of reports"

    def scores(self, released: Released) -> FloatArray:
        return np.asarray(sum(batches.sizes for batches in released), dtype=np.float64)


@dataclass(frozen=True)
class Place(_Summed):
    """What the reports in one `place` of all batches (0: the first, -1: the last) say about the target."""

    place: int

    @property
    def name(self) -> str:  # type: ignore[override]
        return {0: "first report", -1: "last report"}.get(self.place, f"report {self.place}")

    def _of_round(self, batches: RoundBatches, others: Value, first: Value, second: Value) -> FloatArray:
        if batches.only_sums or len(batches.reports) == 0:
            return np.zeros(batches.runs)
        reports, there = batches.at(self.place)
        return np.where(there, self.randomizer.log_ratio(reports, first, second), 0.0)


@dataclass(frozen=True)
class FrontAgainstBack(_Summed):
    """What reports say about the target, those at the front for it and those at the back against.

    Sees every order that leans the way reports came in, however far each of them was moved.
    """

    name = "front against back"

    def _of_round(self, batches: RoundBatches, others: Value, first: Value, second: Value) -> FloatArray:
        if batches.only_sums or len(batches.reports) == 0:
            return np.zeros(batches.runs)
        return batches.total(self.randomizer.log_ratio(batches.reports, first, second) * _leaning(batches))


def _leaning(batches: RoundBatches) -> FloatArray:
    """From 1 for the first report of a batch to -1 for its last; 0 for a report that is alone."""
    starts = np.cumsum(batches.sizes) - batches.sizes
    place = np.arange(len(batches.reports)) - np.repeat(starts, batches.sizes)
    behind = np.repeat(batches.sizes, batches.sizes) - 1 - place
    return np.asarray((behind - place) / np.maximum(behind + place, 1))


@dataclass(frozen=True)
class AllOrNone(Statistic):
    """Log likelihood ratio if the target reported in every round or in none: the best attack on cohorts that stay."""

    randomizer: Randomizer
    data: Neighbours
    population: int

    name = "in every round or in none"

    def scores(self, released: Released) -> FloatArray:
        sides = [np.zeros(released[0].runs), np.zeros(released[0].runs)]
        for t, batches in enumerate(released):
            others, *values = self.data.in_round(t)
            for total, value in zip(sides, values, strict=True):
                ratio = self.randomizer.log_ratio(batches.reports, value, others)
                weights = batches.total(np.exp(np.minimum(ratio, 300.0)))
                # an empty batch: the target was not there
                total += np.log(np.maximum(weights / np.maximum(batches.sizes, 1), 1e-300))
        share = np.mean([batches.sizes for batches in released], axis=0) / self.population
        share = np.minimum(share, 1.0)
        with np.errstate(divide="ignore"):  # nobody, or everybody
            mixed = [np.logaddexp(np.log1p(-share), np.log(share) + x) for x in sides]
        return np.asarray(np.round(mixed[0] - mixed[1], _DIGITS))


@dataclass(frozen=True)
class Differences(Statistic):
    """How often two reports differ by exactly what the first neighbour's values differ by.

    Of one round (a target's report against another's), or of the first and the last round (the target's two reports).
    Noise that is independent makes exact differences impossible.
    """

    step: float
    across: bool
    tolerance: float = 1e-9

    @property
    def name(self) -> str:  # type: ignore[override]
        return "exact differences " + ("across rounds" if self.across else "within a round")

    def scores(self, released: Released) -> FloatArray:
        one, other = released[0], released[-1 if self.across else 0]
        matches = [_matches(one, other, sign * self.step, self.tolerance) for sign in (1, -1)]
        # a step found in one direction only names the target's value; cap what chance may add
        return np.clip(matches[0], 0, 3) - np.clip(matches[1], 0, 3)


def _matches(one: RoundBatches, other: RoundBatches, step: float, tolerance: float) -> FloatArray:
    """Runs' numbers of reports of `one` that equal a report of `other` plus step, one by one."""
    ends = [np.cumsum(batches.sizes) for batches in (one, other)]
    matches = np.zeros(one.runs)
    for run in range(one.runs):
        a = one.reports[ends[0][run] - one.sizes[run] : ends[0][run], 0]
        b = np.sort(other.reports[ends[1][run] - other.sizes[run] : ends[1][run], 0])
        if a.size and b.size:
            near = np.searchsorted(b, a - step - tolerance)
            close = b[np.minimum(near, b.size - 1)] - (a - step)
            matches[run] = np.count_nonzero(np.abs(close) <= tolerance)
    return matches


def standard_statistics(
    randomizer: Randomizer, data: Neighbours, population: int, *, repeated: bool = False
) -> Sequence[Statistic]:
    """The optimal attack on an honest round, and those that only a careless system fears.

    Of neighbours `data` in a population whose clients should use `randomizer`; `repeated` if there are several rounds,
    whose cohorts might be the same.
    """
    honest = (LikelihoodRatio(randomizer, data, population),)
    order = (Place(randomizer, data, 0), Place(randomizer, data, -1), FrontAgainstBack(randomizer, data))
    cohorts = (AllOrNone(randomizer, data, population),) if repeated else ()
    return (*honest, *order, *cohorts)


def accepted_in_window(population: int, slots: int) -> float:
    """Probability that a fixed window of so many slots uses a given client's report, out of a population."""
    # the others in one's slot are Binomial(population - 1, 1/slots); E[1/(1 + X)] in closed form
    return slots / population * -math.expm1(population * math.log1p(-1.0 / slots))
