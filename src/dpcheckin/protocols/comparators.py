"""What the protocols are compared with: no shuffler at all, and a trusted server.

`LocalOnly`: reports arrive with their senders' names, so only the local randomizer protects.
`CentralDpSgd`: the classical DP-SGD of Abadi et al., in which a trusted server samples, clips and
adds noise. Both are accounted by dp-accounting.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from dpcheckin.accounting import Guarantee
from dpcheckin.errors import InvalidParameter, OutsideTheorem
from dpcheckin.protocols.plan import Cohort, Plan, Reveals, distinct_clients, generator_for
from dpcheckin.randomizers import ClipOnly, Randomizer
from dpcheckin.randomizers.base import at_least, positive

_COIN = 41


def _check(population: int, rate: float, rounds: int) -> None:
    at_least("population", population, 2)
    at_least("rounds", rounds, 1)
    if not 0 < rate <= 1:
        raise InvalidParameter("rate", rate, "in (0, 1]")


def _coins(plan: LocalOnly | CentralDpSgd, seed: int, round_index: int) -> Cohort:
    coins = generator_for(seed, round_index, _COIN)
    count = int(coins.binomial(plan.population, plan.rate))
    return Cohort(distinct_clients(coins, plan.population, count))


@dataclass(frozen=True)
class LocalOnly(Plan):
    """Reports are seen with their senders: check-in and the others' reports hide nothing."""

    population: int
    rate: float
    rounds: int
    randomizer: Randomizer

    reveals = Reveals.NAMED

    def __post_init__(self) -> None:
        _check(self.population, self.rate, self.rounds)

    def cohort(self, seed: int, round_index: int) -> Cohort:
        return _coins(self, seed, round_index)

    def guarantee(self, delta: float, rounds: int | None = None) -> Guarantee:
        raise OutsideTheorem("not yet")

    def describe(self) -> str:
        return f"local only, {self.population:,} clients at rate {self.rate:g}"


@dataclass(frozen=True)
class CentralDpSgd(Plan):
    """Poisson sampling at `rate`, clipping, and noise_multiplier · clip of noise by the server."""

    population: int
    rate: float
    rounds: int
    noise_multiplier: float
    clip: float = 1.0

    reveals = Reveals.SUM

    def __post_init__(self) -> None:
        _check(self.population, self.rate, self.rounds)
        positive("noise_multiplier", self.noise_multiplier)
        positive("clip", self.clip)

    @cached_property
    def randomizer(self) -> ClipOnly:  # type: ignore[override]
        """Clients only clip: the server is trusted."""
        return ClipOnly(self.clip)

    def cohort(self, seed: int, round_index: int) -> Cohort:
        drawn = _coins(self, seed, round_index)
        expected = max(1, round(self.rate * self.population))
        return Cohort(
            drawn.clients, divisor=expected, server_noise=self.noise_multiplier * self.clip
        )

    def guarantee(self, delta: float, rounds: int | None = None) -> Guarantee:
        raise OutsideTheorem("not yet")

    def describe(self) -> str:
        return f"central DP-SGD, {self.population:,} records at rate {self.rate:g}"
