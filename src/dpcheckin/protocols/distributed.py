"""Distributed check-in (P1 section 5): the same coins, but only the sum of the reports is seen.

Secure aggregation reveals the sum and the number of reports. Each client adds its own noise, so the
noise in the sum grows with the cohort. The noise is normal in simulations; a deployment adds
integers modulo 2^32, so its noise is Skellam, and the guarantee is the one proved for that.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpcheckin.accounting import Bracket, Guarantee, Kind, LocalGuarantee, distributed, skellam
from dpcheckin.accounting.guarantee import REPLACE_ONE
from dpcheckin.accounting.rounds import AGGREGATORS_COLLUDE
from dpcheckin.errors import InvalidParameter
from dpcheckin.protocols.plan import Cohort, Plan, Reveals, distinct_clients, generator_for
from dpcheckin.protocols.statement import stated
from dpcheckin.randomizers import Gaussian, SkellamVector
from dpcheckin.randomizers.base import at_least
from dpcheckin.randomizers.skellam_table import TABLE_ERROR

_COIN = 31


@dataclass(frozen=True)
class DistributedCheckIn(Plan):
    """Each client checks in with probability `rate`; a secure sum of noisy vectors comes out."""

    population: int
    rate: float
    rounds: int
    randomizer: Gaussian | SkellamVector

    reveals = Reveals.SUM

    def __post_init__(self) -> None:
        at_least("population", self.population, 2)
        at_least("rounds", self.rounds, 1)
        if not 0 < self.rate < 1:
            raise InvalidParameter("rate", self.rate, "strictly between 0 and 1")
        if not isinstance(self.randomizer, Gaussian | SkellamVector):
            raise InvalidParameter("randomizer", self.randomizer, "Gaussian or SkellamVector")

    def cohort(self, seed: int, round_index: int) -> Cohort:
        coins = generator_for(seed, round_index, _COIN)
        count = int(coins.binomial(self.population, self.rate))
        return Cohort(distinct_clients(coins, self.population, count))

    def spent(self, delta: float, rounds: int) -> Bracket:
        if isinstance(self.randomizer, SkellamVector):
            noise = self.randomizer
            return skellam.vector_epsilon(
                self.population,
                self.rate,
                noise.variance,
                rounds,
                delta,
                l1=noise.l1_sensitivity,
                l2=noise.l2_sensitivity,
                drawing_error=self.population * noise.dimension * TABLE_ERROR,
            )
        sigma = self.randomizer.noise_multiplier
        return distributed.epsilon(self.population, self.rate, sigma, rounds, delta)

    def guarantee(self, delta: float, rounds: int | None = None) -> Guarantee:
        rounds = self._checked_rounds(rounds)
        if isinstance(self.randomizer, SkellamVector):
            return self._skellam_guarantee(self.randomizer, delta, rounds)
        return stated(
            self.epsilon(delta, rounds),
            delta,
            basis=(
                "P1 (arXiv 2206.03151v2) section 5 with sampling without replacement given the "
                "visible number of reports, composed as loss distributions",
            ),
            assumptions=self._assumptions(),
            reports=(self.randomizer.pair, self.rate, rounds),
            when=AGGREGATORS_COLLUDE,
        )

    def _assumptions(self) -> tuple[str, ...]:
        return (
            f"{self.population} clients flip their own secret coins",
            "secure aggregation shows nothing but the sum and the number of reports",
            "every client adds its share of the noise",
        )

    def _skellam_guarantee(self, noise: SkellamVector, delta: float, rounds: int) -> Guarantee:
        l1, l2 = noise.l1_sensitivity, noise.l2_sensitivity

        def local(reports: int, rate: float) -> float:
            return skellam.vector_local_epsilon(rate, noise.variance, reports, delta, l1=l1, l2=l2)

        left = LocalGuarantee(
            report_epsilon=local(1, 1.0),
            report_delta=delta,
            epsilon=local(rounds, self.rate) if rounds else 0.0,
            rounds=rounds,
            when=AGGREGATORS_COLLUDE,
        )
        return Guarantee(
            kind=Kind.GUARANTEE,
            epsilon=self.epsilon(delta, rounds),
            delta=delta,
            adjacency=REPLACE_ONE,
            basis=(
                "Skellam noise: Agarwal, Kairouz, Liu, arXiv 2110.04995v1, Theorem 3.5, with the "
                "exact bounds of conditional rounding",
                "sampling without replacement given the visible number of reports: Wang, Balle, "
                "Kasiviswanathan, arXiv 1808.00087v2, Theorem 9",
            ),
            assumptions=self._assumptions(),
            local=left,
        )

    def describe(self) -> str:
        return f"distributed check-in, {self.population:,} clients at rate {self.rate:g}"
