"""Plans in which a shuffler stands between clients and analyzer.

`ShuffledCheckIn` (P1 section 3): every client flips its own coin each round. `SubsampledShuffle`
(P3): a fixed number of clients is picked. `FullShuffle`: everybody reports, every round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpcheckin import accounting
from dpcheckin.accounting.parameters import fraction_below_one, probability
from dpcheckin.errors import InvalidParameter
from dpcheckin.protocols.plan import Cohort, RoundPlan, distinct_clients, generator_for
from dpcheckin.randomizers import Randomizer
from dpcheckin.randomizers.base import at_least

if TYPE_CHECKING:
    from numpy.typing import NDArray

_COIN, _DROP = 1, 2


def _check_crowd(plan: ShuffledCheckIn | SubsampledShuffle | FullShuffle) -> None:
    at_least("population", plan.population, 1)
    at_least("rounds", plan.rounds, 0)
    fraction_below_one("colluding", plan.colluding)


@dataclass(frozen=True)
class ShuffledCheckIn(RoundPlan):
    """Each client checks in with probability `rate`, on its own, in each round.

    `lowest_rate` declares that clients' rates lie between it and `rate`; the simulator spreads
    them evenly. `dropout` is the chance that a client that checked in is lost, the same for all
    and independent of data; `colluding` is the share of clients that tell all they know.
    """

    population: int
    rate: float
    rounds: int
    randomizer: Randomizer
    lowest_rate: float | None = None
    dropout: float = 0.0
    colluding: float = 0.0

    def __post_init__(self) -> None:
        _check_crowd(self)
        probability("rate", self.rate)
        fraction_below_one("dropout", self.dropout)
        if self.lowest_rate is not None and not 0 < self.lowest_rate <= self.rate:
            raise InvalidParameter("lowest_rate", self.lowest_rate, f"in (0, {self.rate:g}]")

    def accounting_round(self) -> accounting.CheckInRound:
        return accounting.CheckInRound(
            population=self.population,
            rate=self.rate,
            pair=self.randomizer.pair,
            colluding=self.colluding,
            dropout=self.dropout,
            lowest_rate=self.lowest_rate,
        )

    def client_rates(self, clients: NDArray[np.int64]) -> NDArray[np.float64]:
        """Each client's own rate: evenly spread over [lowest_rate, rate] by client number."""
        low = self.rate if self.lowest_rate is None else self.lowest_rate
        return np.asarray(low + (self.rate - low) * clients / max(self.population - 1, 1))

    def cohort(self, seed: int, round_index: int) -> Cohort:
        coins = generator_for(seed, round_index, _COIN)
        count = int(coins.binomial(self.population, self.rate))
        clients = distinct_clients(coins, self.population, count)
        if self.lowest_rate is not None:  # thinning: the coin at the highest rate, then its share
            keep = coins.random(count) < self.client_rates(clients) / self.rate
            clients = clients[keep]
        if self.dropout > 0:
            lost = generator_for(seed, round_index, _DROP).random(len(clients)) < self.dropout
            clients = clients[~lost]
        return Cohort(clients)

    def describe(self) -> str:
        return f"shuffled check-in, {self.population:,} clients at rate {self.rate:g}"


@dataclass(frozen=True)
class SubsampledShuffle(RoundPlan):
    """A uniformly random cohort of fixed size reports through the shuffler in each round."""

    population: int
    cohort_size: int
    rounds: int
    randomizer: Randomizer
    colluding: float = 0.0

    def __post_init__(self) -> None:
        _check_crowd(self)
        at_least("cohort_size", self.cohort_size, 0)
        if self.cohort_size > self.population:
            most = f"at most the population {self.population:,}"
            raise InvalidParameter("cohort_size", self.cohort_size, most)

    def accounting_round(self) -> accounting.SubsampleRound:
        return accounting.SubsampleRound(
            population=self.population,
            cohort=self.cohort_size,
            pair=self.randomizer.pair,
            colluding=self.colluding,
        )

    def cohort(self, seed: int, round_index: int) -> Cohort:
        draw = generator_for(seed, round_index, _COIN)
        return Cohort(distinct_clients(draw, self.population, self.cohort_size))

    def describe(self) -> str:
        return f"subsampled shuffle, {self.cohort_size:,} of {self.population:,} clients"


@dataclass(frozen=True)
class FullShuffle(RoundPlan):
    """Every client reports through the shuffler in every round."""

    population: int
    rounds: int
    randomizer: Randomizer
    colluding: float = 0.0

    def __post_init__(self) -> None:
        _check_crowd(self)

    def accounting_round(self) -> accounting.ShuffleRound:
        return accounting.ShuffleRound(
            population=self.population, pair=self.randomizer.pair, colluding=self.colluding
        )

    def cohort(self, seed: int, round_index: int) -> Cohort:
        return Cohort(np.arange(self.population, dtype=np.int64))

    def describe(self) -> str:
        return f"full shuffle of {self.population:,} clients"
