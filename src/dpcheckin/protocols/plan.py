"""What every protocol's plan offers: a cohort for each round, and what the rounds cost.

A plan is a frozen description in the words of the field. The same object accounts (`guarantee`, `epsilon`,
`rounds_within`), simulates (`cohort`) and says what a deployment would reveal (`reveals`). The plans whose rounds are
all alike are here too: a shuffler or a secure sum stands between clients and analyzer. Models, data and training are
the learning layer's.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcheckin.accounting import (
    Bracket,
    CheckInRound,
    DiscreteGaussianRound,
    DistributedRound,
    Guarantee,
    LowerBound,
    Round,
    ShuffleRound,
    SkellamRound,
    SubsampleRound,
    compose,
    guarantee,
    lower_bound,
)
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import at_least, count, fraction_below_one, probability
from dpcheckin.randomizers import DiscreteGaussianVector, Gaussian, IntegerVector, Randomizer, SkellamVector
from dpcheckin.special.roots import root, whole_switch

Clients = NDArray[np.int64]
_COIN, _DROP, _SUM_COIN = 1, 2, 31
_LEAST = 1e-300  # has a logarithm


class Reveals(Enum):
    """What the analyzer sees of a round."""

    REPORTS = "every report, shuffled"
    SUM = "only the sum of the reports and their number"
    NAMED = "every report, with its sender"


@dataclass(frozen=True, slots=True)
class Cohort:
    """Who takes part in one round, and how many dummy reports are added."""

    clients: Clients
    dummies: int = 0
    divisor: int | None = None
    """What the sum of estimates is divided by; by default the number of reports."""
    server_noise: float = 0.0
    """Deviation of normal noise that a trusted server adds to each coordinate of the sum."""


class Plan(ABC):
    """A protocol with its parameters."""

    population: int
    rounds: int
    randomizer: Randomizer
    reveals: Reveals = Reveals.REPORTS

    @abstractmethod
    def cohort(self, seed: int, round_index: int) -> Cohort:
        """Draw the participants of round `round_index`; the draw depends on nothing but that and the `seed`."""

    @abstractmethod
    def spent(self, delta: float, rounds: int) -> Bracket:
        """The certified interval for epsilon at `delta` after at least one and at most the plan's `rounds`."""

    @abstractmethod
    def guarantee(self, delta: float, rounds: int | None = None) -> Guarantee:
        """What `rounds` rounds (default: the plan's) guarantee each client at `delta`, with the reasons."""

    @abstractmethod
    def parts(self, delta: float) -> tuple[Round, int]:
        """The run as so many rounds of one kind; delta matters to averaged windows only."""

    def lower_bound(self, delta: float) -> LowerBound:
        """What no guarantee about the run can be smaller than; zero if nothing is known."""
        return lower_bound([self.parts(delta)], delta)

    @abstractmethod
    def describe(self) -> str:
        """A few words for logs and reports."""

    def epsilon(self, delta: float, rounds: int | None = None) -> Bracket:
        """The certified interval for epsilon at `delta` after `rounds` rounds; zero before the first."""
        rounds = self.rounds if rounds is None else count("rounds", rounds, 0, self.rounds)
        if rounds == 0:
            return Bracket(0.0, 0.0)
        return _cached_epsilon(self, delta, rounds)

    def rounds_within(self, epsilon: float, delta: float) -> int:
        """The largest number of the plan's rounds whose certified epsilon at `delta` is at most `epsilon`."""
        if not epsilon >= 0:
            raise InvalidParameter("epsilon", epsilon, "a number of at least 0")
        if self.epsilon(delta, self.rounds).upper <= epsilon:
            return self.rounds
        if self.epsilon(delta, 1).upper > epsilon:
            return 0

        def excess(logarithm: float) -> float:
            """Nearly a line: epsilon grows about like a power of the number of rounds."""
            spent = self.epsilon(delta, round(math.exp(logarithm))).upper
            return math.log(max(spent, _LEAST) / max(epsilon, _LEAST))

        near = round(math.exp(root(excess, 0.0, math.log(self.rounds), absolute=0.5 / self.rounds)))
        return whole_switch(lambda rounds: self.epsilon(delta, rounds).upper <= epsilon, 1, self.rounds, near)


@lru_cache(maxsize=4096)
def _cached_epsilon(plan: Plan, delta: float, rounds: int) -> Bracket:
    return plan.spent(delta, rounds)


class RoundPlan(Plan):
    """Rounds that are all alike and compose: the ledger is one accounting round and a count."""

    @abstractmethod
    def accounting_round(self) -> Round:
        """One round as the accounting layer describes it."""

    def parts(self, delta: float) -> tuple[Round, int]:
        return self.accounting_round(), self.rounds

    def spent(self, delta: float, rounds: int) -> Bracket:
        return compose([(self.accounting_round(), rounds)]).epsilon(delta)

    def guarantee(self, delta: float, rounds: int | None = None) -> Guarantee:
        rounds = self.rounds if rounds is None else count("rounds", rounds, 0, self.rounds)
        return guarantee([(self.accounting_round(), rounds)], delta=delta)


@dataclass(frozen=True)
class CoinPlan(Plan):
    """Each client takes part with probability `rate`, on its own, in each round."""

    population: int
    rate: float
    rounds: int

    coin: ClassVar[int] = _COIN
    """What the generator of the coins is for: protocols draw apart."""

    def __post_init__(self) -> None:
        at_least("population", self.population, 1)
        at_least("rounds", self.rounds, 0)
        probability("rate", self.rate)

    def heads(self, seed: int, round_index: int) -> tuple[Clients, np.random.Generator]:
        """Clients whose coin shows heads in round `round_index`, by `seed`; and the generator, for more draws."""
        coins = generator_for(seed, round_index, self.coin)
        heads = int(coins.binomial(self.population, self.rate))
        return distinct_clients(coins, self.population, heads), coins

    def cohort(self, seed: int, round_index: int) -> Cohort:
        clients, _ = self.heads(seed, round_index)
        return Cohort(clients)


@dataclass(frozen=True)
class ShuffledCheckIn(CoinPlan, RoundPlan):
    """Each client checks in with probability `rate`, on its own, in each round (P1 section 3).

    `lowest_rate` declares that clients' rates lie between it and `rate`; the simulator spreads them evenly. `dropout`
    is the chance that a client that checked in is lost, the same for all and independent of data; `colluding` is the
    share of clients that tell all they know.
    """

    randomizer: Randomizer
    lowest_rate: float | None = None
    dropout: float = 0.0
    colluding: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        fraction_below_one("colluding", self.colluding)
        fraction_below_one("dropout", self.dropout)
        if self.lowest_rate is not None and not 0 < self.lowest_rate <= self.rate:
            raise InvalidParameter("lowest_rate", self.lowest_rate, f"in (0, {self.rate:g}]")

    def accounting_round(self) -> CheckInRound:
        return CheckInRound(
            population=self.population,
            rate=self.rate,
            pair=self.randomizer.pair,
            colluding=self.colluding,
            dropout=self.dropout,
            lowest_rate=self.lowest_rate,
        )

    def client_rates(self, clients: Clients) -> NDArray[np.float64]:
        """Each client's own rate: evenly spread over [lowest_rate, rate] by client number."""
        low = self.rate if self.lowest_rate is None else self.lowest_rate
        return np.asarray(low + (self.rate - low) * clients / max(self.population - 1, 1))

    def cohort(self, seed: int, round_index: int) -> Cohort:
        clients, coins = self.heads(seed, round_index)
        if self.lowest_rate is not None:  # thinning: the coin at the highest rate, then its share
            clients = clients[coins.random(len(clients)) < self.client_rates(clients) / self.rate]
        if self.dropout > 0:
            lost = generator_for(seed, round_index, _DROP).random(len(clients)) < self.dropout
            clients = clients[~lost]
        return Cohort(clients)

    def describe(self) -> str:
        rates = f"rate {self.rate:g}" if self.lowest_rate is None else f"rates of {self.lowest_rate:g} to {self.rate:g}"
        return f"shuffled check-in, {self.population:,} clients at {rates}"


@dataclass(frozen=True)
class SubsampledShuffle(RoundPlan):
    """A uniformly random cohort of fixed size reports through the shuffler in each round (P3)."""

    population: int
    cohort_size: int
    rounds: int
    randomizer: Randomizer
    colluding: float = 0.0

    def __post_init__(self) -> None:
        at_least("population", self.population, 1)
        at_least("rounds", self.rounds, 0)
        fraction_below_one("colluding", self.colluding)
        at_least("cohort_size", self.cohort_size, 0)
        if self.cohort_size > self.population:
            raise InvalidParameter("cohort_size", self.cohort_size, f"at most the population {self.population:,}")

    def accounting_round(self) -> SubsampleRound:
        return SubsampleRound(
            population=self.population, cohort=self.cohort_size, pair=self.randomizer.pair, colluding=self.colluding
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
        at_least("population", self.population, 1)
        at_least("rounds", self.rounds, 0)
        fraction_below_one("colluding", self.colluding)

    def accounting_round(self) -> ShuffleRound:
        return ShuffleRound(population=self.population, pair=self.randomizer.pair, colluding=self.colluding)

    def cohort(self, seed: int, round_index: int) -> Cohort:
        return Cohort(np.arange(self.population, dtype=np.int64))

    def describe(self) -> str:
        return f"full shuffle of {self.population:,} clients"


@dataclass(frozen=True)
class DistributedCheckIn(CoinPlan, RoundPlan):
    """Each client checks in with probability `rate`; a secure sum of noisy vectors comes out (P1 section 5).

    Secure aggregation reveals the sum and the number of reports. Each client adds its own noise, so the noise in the
    sum grows with the cohort. The noise is normal in simulations; a deployment adds integers modulo 2^32, so its noise
    is Skellam or discrete Gaussian, and the guarantee is the one proved for that.
    """

    randomizer: Gaussian | IntegerVector

    coin = _SUM_COIN
    reveals = Reveals.SUM

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.randomizer, Gaussian | SkellamVector | DiscreteGaussianVector):
            raise InvalidParameter("randomizer", self.randomizer, "Gaussian, SkellamVector or DiscreteGaussianVector")

    def accounting_round(self) -> DistributedRound | SkellamRound:
        noise = self.randomizer
        if isinstance(noise, Gaussian):
            return DistributedRound(self.population, self.rate, noise.noise_multiplier)
        kind = SkellamRound if isinstance(noise, SkellamVector) else DiscreteGaussianRound
        return kind(
            self.population,
            self.rate,
            noise.variance,
            l1=noise.l1_sensitivity,
            l2=noise.l2_sensitivity,
            drawing_error=self.population * noise.dimension * noise.integer_error,
        )

    def describe(self) -> str:
        return f"distributed check-in, {self.population:,} clients at rate {self.rate:g}"


def distinct_clients(generator: np.random.Generator, population: int, count: int) -> Clients:
    """A uniform subset of `count` from a `population`, drawn by a `generator`; the cost is that of the count."""
    if count * 20 >= population:
        return generator.permutation(population)[:count].astype(np.int64)
    chosen = np.unique(generator.integers(population, size=count))
    while len(chosen) < count:  # few repeats: refill, then forget which came first
        more = generator.integers(population, size=2 * (count - len(chosen)) + 8)
        fresh = np.setdiff1d(more, chosen)
        take = generator.permutation(fresh)[: count - len(chosen)]
        chosen = np.union1d(chosen, take)
    return generator.permutation(chosen).astype(np.int64)


def generator_for(seed: int, round_index: int, purpose: int) -> np.random.Generator:
    """The generator by `seed` of one `purpose` in round `round_index`: counter-based, so any round can be redrawn."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, purpose, round_index))))
