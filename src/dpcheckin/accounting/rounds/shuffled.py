"""Rounds in which a shuffler permutes the reports, and their certified curves.

A round says who takes part and what a report gives away; its curve applies the empty-seat theorem (docs/theory.md).
Where perhaps no seat is empty, reports that say nothing stand for empty seats (`pairs/marking.py`).
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpcheckin import numerals
from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.curves import Curve, Unshuffled
from dpcheckin.accounting.engine.seats import Mixture, Seats
from dpcheckin.accounting.engine.seen import no_loss
from dpcheckin.accounting.pairs.local import LocalPair
from dpcheckin.accounting.rounds.base import EMPTY_SEAT, SMALLEST_DELTA, TAIL_SHARE, Round, local_pair, seen_curve
from dpcheckin.errors import InvalidParameter, OutsideTheorem
from dpcheckin.special import binomial
from dpcheckin.special.intervals import hypergeometric_masses

FEW = 6
# of rounds from which nobody stays away: how many are too many, in times what is negligible if that is known
_OFTEN, _SELDOM = 50.0, 1e-12
_SOURCE = "Balle, Bell, Gascon, Nissim, arXiv 1903.02837v2, Lemma 5.3"
BLANKET = f"no empty seat needed for this randomizer: privacy blanket ({_SOURCE})"
MARKED = "reports that say nothing stand for clients that stay away (docs/theory.md, section 4b)"
TYPES = "types of the other clients' reports (docs/theory.md)"
_LOWER_CELLS = (-4.0, -2.4, -1.6, -1.0, -0.5, 0.0, 0.5, 1.0, 1.6, 2.4, 4.0)
_CELLS = np.concatenate([[-12.0, -9.0, -7.0, -6.0, -5.0], np.arange(-4.0, 4.01, 0.5), [5.0, 6.0, 7.0, 9.0, 12.0]])


class ShuffledRound(Round):
    """A round of a population of which a fraction may work with the analyzer."""

    __slots__ = ()
    population: int
    pair: LocalPair
    colluding: float

    @abstractmethod
    def curve(self, smallest: float = SMALLEST_DELTA) -> Curve:
        """The one-round curve, good for deltas down to `smallest`."""

    def curves(self, smallest: float = SMALLEST_DELTA) -> list[tuple[Curve, int]]:
        return [(self.curve(smallest), 1)]

    @property
    def honest(self) -> int:
        """How many clients do not collude with the analyzer."""
        return self.population - math.ceil(self.colluding * self.population - 1e-9)

    def basis(self) -> tuple[str, ...]:
        if self.participation == 1.0:
            return (EMPTY_SEAT, BLANKET, MARKED) if self.pair.full_shuffle_proved else (EMPTY_SEAT, MARKED)
        return (EMPTY_SEAT, TYPES) if self.pair.typed else (EMPTY_SEAT,)

    @property
    def even(self) -> bool:
        """Does every client report with one and the same probability?"""
        return True

    def simpler(self, local_delta: float) -> ShuffledRound:
        return replace(self, pair=self.pair.simplified(local_delta))  # type: ignore[type-var]

    def _check_crowd(self) -> None:
        local_pair("pair", self.pair)
        numerals.keep_count(self, "population")
        numerals.fraction_below_one("colluding", self.colluding)
        if self.honest < 1:
            raise InvalidParameter("colluding", self.colluding, "leaving at least one honest client")


@dataclass(frozen=True, slots=True)
class CheckInRound(ShuffledRound):
    """Shuffled check-in: every client flips its own coin with the given rate.

    Args:
        population: Number of clients.
        rate: Probability that a client checks in to a round.
        pair: What one report gives away, as `any_pure(2.0)` or `gaussian(2.0)` say it.
        colluding: Fraction of the population that works with the analyzer.
        dropout: Largest probability with which a client that decided to check in fails to (not the same for all).
        lowest_rate: Given when rates differ between clients: they then lie anywhere in [lowest_rate, rate].
    """

    population: int
    rate: float
    pair: LocalPair
    colluding: float = 0.0
    dropout: float = 0.0
    lowest_rate: float | None = None

    def __post_init__(self) -> None:
        self._check_crowd()
        numerals.probability("rate", self.rate)
        numerals.fraction_below_one("dropout", self.dropout)
        if self.lowest_rate is not None:
            lowest = numerals.probability("lowest_rate", self.lowest_rate)
            if not 0.0 < lowest <= self.rate:
                raise InvalidParameter("lowest_rate", lowest, f"above 0 and at most {self.rate}")

    @property
    def participation(self) -> float:
        return self.rate

    @property
    def even(self) -> bool:
        return self._lowest == self.rate

    @property
    def _lowest(self) -> float:
        lowest = self.rate if self.lowest_rate is None else self.lowest_rate
        return lowest * (1 - self.dropout)

    def assumptions(self) -> tuple[str, ...]:
        one = self.honest == 1
        crowd = "1 honest client is" if one else f"{self.honest:,} honest clients are"
        stated = [
            f"at least {crowd} eligible in every round",
            "every client checks in by its own secret coin, independent of its data",
            "the shuffler does not collude with the analyzer",
        ]
        if self._lowest < self.rate:
            stated.append(
                f"each client's rate lies between {self._lowest:g} and {self.rate:g} and does not depend on its data"
            )
        return tuple(stated)

    def curve(self, smallest: float = SMALLEST_DELTA) -> Curve:
        n, high, low = self.honest, self.rate, self._lowest
        if high == 0.0:
            return no_loss()
        if high < 1e-100:  # below what binomial masses can carry; the crowd is not worth counting
            return no_loss(Unshuffled(self.pair.profile, high, high, self.pair.local_delta))
        if n == 1:  # there is nobody to hide among
            return seen_curve(self.pair, high)
        if low < high:
            from dpcheckin.accounting.pairs.marking import uneven_curve

            return uneven_curve(self.pair, n, low, high, min(smallest / TAIL_SHARE, 0.1), smallest)
        if high == 1.0:
            return _crowded(self.pair, n, high, smallest)
        parts = [(1.0, Seats(n, self.pair, 0.0, float(n), high, 1.0 - high))]
        nobody_absent = math.exp(n * math.log(high))
        if nobody_absent > (_OFTEN * smallest if smallest > SMALLEST_DELTA else _SELDOM) and n > FEW:
            return _crowded(self.pair, n, high, smallest)
        if self.pair.full_shuffle_proved:
            return self.pair.shuffled_curve(parts, high, smallest)
        if n <= FEW:
            # among a handful it pays to leave the round without an empty seat out of the sum
            chances = binomial.pmf(np.arange(n), n, high)
            parts = [(float(chances[k]), Seats(k, self.pair, float(n - k), float(n))) for k in range(1, n)]
        return self.pair.shuffled_curve(parts, high, smallest, nobody_absent)

    def lower_seats(self, pair: LocalPair) -> Seats:
        return Seats(self.honest, pair, 0.0, float(self.honest), self.rate, 1 - self.rate)

    def lower_parts(self, pair: LocalPair) -> Mixture:
        n, low, high = self.honest, self._lowest, self.rate
        if not 0.0 < low < high or n == 1:
            return super(CheckInRound, self).lower_parts(pair)
        # everybody else at the lowest rate: taken and empty seats weigh differently, and k is known but for its cell
        taken, empty = high / low, (1.0 - high) / (1.0 - low)
        spread = math.sqrt(n * low * (1.0 - low))
        edges = sorted({min(max(math.ceil(n * low + x * spread), 1), n + 1) for x in _LOWER_CELLS})
        parts: list[tuple[float, Seats]] = []
        for first, after in itertools.pairwise(edges):
            weight = float(binomial.cdf(after - 1, n, low) - binomial.cdf(first - 1, n, low)) - 1e-15
            whole = taken * (after - 1) + empty * (n - after + 1)
            people = whole / taken
            if weight > 0.0:
                parts.append((weight * whole / n * (1.0 - 1e-9), Seats(first, pair, max(people - first, 0.0), people)))
        return parts


@dataclass(frozen=True, slots=True)
class SubsampleRound(ShuffledRound):
    """Subsampled shuffle: a uniformly random cohort of fixed size reports.

    Args:
        population: Number of clients.
        cohort: How many of them are drawn in a round.
        pair: What one report gives away.
        colluding: Fraction of the population that works with the analyzer.
    """

    population: int
    cohort: int
    pair: LocalPair
    colluding: float = 0.0

    def __post_init__(self) -> None:
        self._check_crowd()
        numerals.keep_count(self, "cohort", 0, self.population)

    @property
    def participation(self) -> float:
        return self.cohort / self.population

    @property
    def exposed_participation(self) -> float:
        return 1.0 if self.cohort else 0.0

    def simpler(self, local_delta: float) -> ShuffledRound:
        pair = self.pair.simplified(local_delta)
        most = min(self.cohort, self.honest)
        if self.colluding and (most < self.honest or pair.full_shuffle_proved):
            # the curve grows with the honest part of the cohort: take all of it as honest
            return SubsampleRound(self.honest, most, pair)
        return replace(self, pair=pair)

    def assumptions(self) -> tuple[str, ...]:
        return (
            f"{self.population:,} clients take part in the draw, {self.honest:,} of them honest",
            "who is drawn stays secret from the analyzer",
            "the shuffler does not collude with the analyzer",
        )

    def curve(self, smallest: float = SMALLEST_DELTA) -> Curve:
        n, k, rate = self.honest, self.cohort, self.participation
        if k == 0:
            return no_loss()
        if k == self.population:  # everybody is drawn, the honest and the others
            return ShuffleRound(n, self.pair).curve(smallest)
        if n == self.population:
            parts = [(1.0, Seats(k, self.pair, float(n - k), float(n)))]
            return self.pair.shuffled_curve(parts, rate, smallest)
        return self._with_colluders(n, k, rate, smallest)

    def _with_colluders(self, n: int, k: int, rate: float, smallest: float) -> Curve:
        """The curve grows with the honest part (an empty seat becomes a report of the same mean): upper ends count."""
        parts, full, cells = [], 0.0, self._honest_parts(_CELLS)
        for _, right, weight in cells:
            if right >= n and not self.pair.full_shuffle_proved:
                full += weight
            elif right > 0 and weight > 0.0:
                seats = Seats(right, self.pair, float(n - right), float(n))
                # sums of probabilities that are good to 5e-14 each, where they matter
                parts.append((weight * (1 + 1e-12) + 1e-15, seats))
        # a sum of independent coins (Vatutin, Mikhailov 1982): Bernstein at 40 deviations and 60
        whole = (cells[0][0], cells[-1][1]) == (max(0, k - (self.population - n)), min(k, n))
        if not parts:
            raise OutsideTheorem("no honest client stays absent: lower the cohort")
        return self.pair.shuffled_curve(parts, rate, smallest, min(full + (0.0 if whole else 1e-38), 1.0))

    def _honest_parts(self, cells: Sequence[float] | Array) -> list[tuple[int, int, float]]:
        """Numbers of honest clients in a cohort, cut at these deviations: first and last of a cell, and how likely."""
        n, k, people = self.honest, self.cohort, self.population
        low, high, mean = max(0, k - (people - n)), min(k, n), k * n / people
        variance = mean * (people - n) / people * (people - k) / max(people - 1, 1)
        deviation = max(math.sqrt(variance), 1e-9)
        low = max(low, math.floor(mean - 40 * deviation - 60))
        high = min(high, math.ceil(mean + 40 * deviation + 60))
        edges = sorted({low - 1, high} | {int(x) for x in mean + deviation * np.asarray(cells) if low <= x < high})
        masses = hypergeometric_masses(edges, people, n, k)
        return [(left + 1, right, mass) for (left, right), mass in zip(itertools.pairwise(edges), masses, strict=True)]

    def lower_parts(self, pair: LocalPair) -> Mixture:
        n = self.honest
        if n == self.population:
            return super(SubsampleRound, self).lower_parts(pair)
        # who colludes knows its own reports, and the curve grows with the number of the others
        cells = [(mass * (1 - 1e-12) - 1e-15, first) for first, _, mass in self._honest_parts(_LOWER_CELLS) if first]
        return [(weight, Seats(k, pair, float(n - k), float(n))) for weight, k in cells if weight > 0.0]

    def lower_seats(self, pair: LocalPair) -> Seats:
        n = self.population  # colluders who say nothing are one case of colluding
        return Seats(self.cohort, pair, float(n - self.cohort), float(n))


@dataclass(frozen=True, slots=True)
class ShuffleRound(ShuffledRound):
    """Full shuffle: every client reports.

    Args:
        population: Number of clients.
        pair: What one report gives away.
        colluding: Fraction of the population that works with the analyzer.
    """

    population: int
    pair: LocalPair
    colluding: float = 0.0

    def __post_init__(self) -> None:
        self._check_crowd()

    @property
    def participation(self) -> float:
        return 1.0

    def assumptions(self) -> tuple[str, ...]:
        return (
            f"at least {self.honest:,} honest clients report in every round",
            "the shuffler does not collude with the analyzer",
        )

    def curve(self, smallest: float = SMALLEST_DELTA) -> Curve:
        if self.honest == 1:
            return seen_curve(self.pair, 1.0)
        return _crowded(self.pair, self.honest, 1.0, smallest)

    def lower_seats(self, pair: LocalPair) -> Seats:
        return Seats(self.honest, pair, 0.0, float(self.honest))


def _crowded(pair: LocalPair, n: int, rate: float, smallest: float) -> Curve:
    """The curve of a round from which perhaps nobody stays away."""
    from dpcheckin.accounting.pairs.marking import crowded_curve

    return crowded_curve(pair, n, rate, min(smallest / TAIL_SHARE, 0.1), smallest)
