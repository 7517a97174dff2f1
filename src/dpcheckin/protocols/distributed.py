"""Distributed check-in (P1 section 5): the same coins, but only the sum of the reports is seen.

Secure aggregation reveals the sum and the number of reports. Each client adds its own normal
noise, so the noise in the sum grows with the cohort.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpcheckin.accounting import Bracket, Guarantee, distributed
from dpcheckin.errors import InvalidParameter
from dpcheckin.protocols.plan import Cohort, Plan, Reveals, distinct_clients, generator_for
from dpcheckin.protocols.statement import stated
from dpcheckin.randomizers import Gaussian
from dpcheckin.randomizers.base import at_least

_COIN = 31


@dataclass(frozen=True)
class DistributedCheckIn(Plan):
    """Each client checks in with probability `rate`; a secure sum of noisy vectors comes out."""

    population: int
    rate: float
    rounds: int
    randomizer: Gaussian

    reveals = Reveals.SUM

    def __post_init__(self) -> None:
        at_least("population", self.population, 2)
        at_least("rounds", self.rounds, 1)
        if not 0 < self.rate < 1:
            raise InvalidParameter("rate", self.rate, "strictly between 0 and 1")
        if not isinstance(self.randomizer, Gaussian):
            raise InvalidParameter("randomizer", self.randomizer, "Gaussian")

    def cohort(self, seed: int, round_index: int) -> Cohort:
        coins = generator_for(seed, round_index, _COIN)
        count = int(coins.binomial(self.population, self.rate))
        return Cohort(distinct_clients(coins, self.population, count))

    def spent(self, delta: float, rounds: int) -> Bracket:
        sigma = self.randomizer.noise_multiplier
        return distributed.epsilon(self.population, self.rate, sigma, rounds, delta)

    def guarantee(self, delta: float, rounds: int | None = None) -> Guarantee:
        rounds = self._checked_rounds(rounds)
        return stated(
            self.epsilon(delta, rounds),
            delta,
            basis=(
                "P1 (arXiv 2206.03151v2) section 5 with sampling without replacement given the "
                "visible number of reports, composed as loss distributions",
            ),
            assumptions=(
                f"{self.population} clients flip their own secret coins",
                "secure aggregation shows nothing but the sum and the number of reports",
                "every client adds its share of the noise",
            ),
            reports=(self.randomizer.pair, self.rate, rounds),
        )

    def describe(self) -> str:
        return f"distributed check-in, {self.population:,} clients at rate {self.rate:g}"
