"""What every protocol's plan offers: a cohort for each round, and what the rounds cost.

A plan is a frozen description in the words of the field. The same object accounts (`guarantee`,
`epsilon`, `rounds_within`), simulates (`cohort`) and says what a deployment would reveal
(`reveals`). Models, data and training are the learning layer's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpcheckin.accounting import (
    Bracket,
    Guarantee,
    LowerBound,
    Round,
    compose,
    guarantee,
    lower_bound,
)
from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers import Randomizer

Clients = NDArray[np.int64]


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
        """Draw the participants of a round; the draw depends on nothing but its arguments."""

    @abstractmethod
    def spent(self, delta: float, rounds: int) -> Bracket:
        """The certified interval for epsilon after at least one and at most the plan's rounds."""

    @abstractmethod
    def guarantee(self, delta: float, rounds: int | None = None) -> Guarantee:
        """What `rounds` rounds (default: the plan's) guarantee each client, with the reasons."""

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
        """The certified interval for epsilon after `rounds` rounds; zero before the first."""
        rounds = self._checked_rounds(rounds)
        if rounds == 0:
            return Bracket(0.0, 0.0)
        return _cached_epsilon(self, delta, rounds)

    def rounds_within(self, epsilon: float, delta: float) -> int:
        """The largest number of the plan's rounds whose certified epsilon is at most `epsilon`."""
        if not epsilon >= 0:
            raise InvalidParameter("epsilon", epsilon, "a number of at least 0")
        if self.epsilon(delta, self.rounds).upper <= epsilon:
            return self.rounds
        good, bad = 0, self.rounds
        while bad - good > 1:
            middle = (good + bad) // 2
            if self.epsilon(delta, middle).upper <= epsilon:
                good = middle
            else:
                bad = middle
        return good

    def _checked_rounds(self, rounds: int | None) -> int:
        if rounds is None:
            return self.rounds
        if not 0 <= rounds <= self.rounds:
            raise InvalidParameter("rounds", rounds, f"0 to the plan's {self.rounds:,}")
        return rounds


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
        rounds = self._checked_rounds(rounds)
        return guarantee([(self.accounting_round(), rounds)], delta=delta)


@lru_cache(maxsize=4096)
def _cached_epsilon(plan: Plan, delta: float, rounds: int) -> Bracket:
    return plan.spent(delta, rounds)


def distinct_clients(generator: np.random.Generator, population: int, count: int) -> Clients:
    """A uniform subset of the given size, at a cost that does not grow with the population."""
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
    """The generator of one purpose in one round: counter-based, so any round can be redrawn."""
    return np.random.Generator(
        np.random.PCG64(np.random.SeedSequence((seed, purpose, round_index)))
    )
