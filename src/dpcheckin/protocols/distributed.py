"""Distributed check-in (P1 section 5): the same coins, but only the sum of the reports is seen.

Secure aggregation reveals the sum and the number of reports. Each client adds its own noise, so the
noise in the sum grows with the cohort. The noise is normal in simulations; a deployment adds
integers modulo 2^32, so its noise is Skellam or discrete Gaussian, and the guarantee is the one
proved for that.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpcheckin.accounting import DiscreteGaussianRound, DistributedRound, SkellamRound
from dpcheckin.accounting.parameters import probability
from dpcheckin.errors import InvalidParameter
from dpcheckin.protocols.plan import Cohort, Reveals, RoundPlan, distinct_clients, generator_for
from dpcheckin.randomizers import DiscreteGaussianVector, Gaussian, IntegerVector, SkellamVector
from dpcheckin.randomizers.base import at_least

_COIN = 31


@dataclass(frozen=True)
class DistributedCheckIn(RoundPlan):
    """Each client checks in with probability `rate`; a secure sum of noisy vectors comes out."""

    population: int
    rate: float
    rounds: int
    randomizer: Gaussian | IntegerVector

    reveals = Reveals.SUM

    def __post_init__(self) -> None:
        at_least("population", self.population, 1)
        at_least("rounds", self.rounds, 0)
        probability("rate", self.rate)
        if not isinstance(self.randomizer, Gaussian | SkellamVector | DiscreteGaussianVector):
            raise InvalidParameter(
                "randomizer", self.randomizer, "Gaussian, SkellamVector or DiscreteGaussianVector"
            )

    def cohort(self, seed: int, round_index: int) -> Cohort:
        coins = generator_for(seed, round_index, _COIN)
        count = int(coins.binomial(self.population, self.rate))
        return Cohort(distinct_clients(coins, self.population, count))

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
