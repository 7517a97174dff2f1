"""What the protocols are compared with: no shuffler at all, and a trusted server.

`LocalOnly`: reports arrive with their senders' names, so only the local randomizer protects. `CentralDpSgd`: the
classical DP-SGD of Abadi et al., in which a trusted server samples, clips and adds noise. The first is accounted by
dp-accounting, the second by our own composition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec

import numpy as np

from dpcheckin.accounting import (
    Adjacency,
    Bracket,
    GaussianPair,
    Guarantee,
    LocalPair,
    LocalRound,
    Round,
    SampledGaussianRound,
    ThreeAtoms,
    guarantee,
)
from dpcheckin.display import needed
from dpcheckin.errors import InvalidParameter, OutsideTheorem
from dpcheckin.numerals import count, positive
from dpcheckin.protocols.plan import Cohort, CoinPlan, Reveals, RoundPlan
from dpcheckin.randomizers import ClipOnly, Randomizer

_COIN = 41


def _refuse_tiny(delta: float) -> None:
    # dp-accounting 0.6.0 composes by FFT without charging its round-off, and under-reports here
    if not 1e-9 <= delta < 1:
        raise InvalidParameter("delta", delta, "in [1e-9, 1) for the comparators")


def local_epsilon(pair: LocalPair, reports: int, delta: float) -> Bracket:
    """Epsilon at `delta` of so many `reports` of one client through a `pair`, each seen with its name.

    >>> from dpcheckin.accounting import any_pure
    >>> round(local_epsilon(any_pure(0.1), 1, 1e-9).upper, 6)
    0.1
    """
    needed("dp_accounting", "bridge")
    import dp_accounting  # slow to load, and only this comparator needs it
    from dp_accounting.pld import pld_pmf

    _refuse_tiny(delta)
    if isinstance(pair, GaussianPair):
        # reports about two points of the ball, 2 clips apart: one normal pair for all of them
        exact = dp_accounting.get_epsilon_gaussian(pair.noise_multiplier / (2 * reports**0.5), delta)
        return Bracket(exact, exact * (1 + 1e-6))
    if not isinstance(pair, ThreeAtoms) or pair.local_delta > 0:
        raise OutsideTheorem(f"no local composition for {pair.label}; use a pure randomizer")
    e0, plain = math.exp(pair.local_epsilon), reports * pair.local_epsilon
    # the losses are -1, 0 and 1 local epsilons: a grid of that width rounds nothing
    masses = np.array([pair.hit, pair.neutral, e0 * pair.hit])
    one = pld_pmf.DensePLDPmf(pair.local_epsilon, -1, masses, 0.0, pessimistic_estimate=True)
    composed = min(plain, one.self_compose(reports).get_epsilon_for_delta(delta))
    return Bracket(composed * (1 - 1e-6), composed)


def local_only_guarantee(pair: LocalPair, reports: int, delta: float) -> Guarantee:
    """What so many `reports` through a `pair`, with their sender's name on them, guarantee at `delta`, and why."""
    known = isinstance(pair, GaussianPair | ThreeAtoms) and pair.local_delta == 0
    if not known or find_spec("dp_accounting") is None:  # then our own composition says it
        return guarantee([(LocalRound(pair), reports)], delta)
    return Guarantee(
        local_epsilon(pair, reports, delta) if reports else Bracket(0.0, 0.0),
        delta,
        Adjacency.REPLACE_ONE,
        basis=("composition of the local randomizer alone, by dp-accounting",),
        assumptions=("none about others: it holds for a client that reports in every round",),
    )


@dataclass(frozen=True)
class LocalOnly(CoinPlan):
    """Reports are seen with their senders: check-in and the others' reports hide nothing."""

    randomizer: Randomizer

    coin = _COIN
    reveals = Reveals.NAMED

    def parts(self, delta: float) -> tuple[Round, int]:
        return LocalRound(self.randomizer.pair), self.rounds

    def spent(self, delta: float, rounds: int) -> Bracket:
        return local_epsilon(self.randomizer.pair, rounds, delta)

    def guarantee(self, delta: float, rounds: int | None = None) -> Guarantee:
        rounds = self.rounds if rounds is None else count("rounds", rounds, 0, self.rounds)
        return local_only_guarantee(self.randomizer.pair, rounds, delta)

    def describe(self) -> str:
        return f"local only, {self.population:,} clients at rate {self.rate:g}"


@dataclass(frozen=True)
class CentralDpSgd(CoinPlan, RoundPlan):
    """Poisson sampling at `rate`, clipping, and noise_multiplier · clip of noise by the server."""

    noise_multiplier: float
    clip: float = 1.0

    coin = _COIN
    reveals = Reveals.SUM

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("noise_multiplier", self.noise_multiplier)
        positive("clip", self.clip)

    @cached_property
    def randomizer(self) -> ClipOnly:  # type: ignore[override]
        """Clients only clip: the server is trusted."""
        return ClipOnly(self.clip)

    def cohort(self, seed: int, round_index: int) -> Cohort:
        clients, _ = self.heads(seed, round_index)
        expected = max(1, round(self.rate * self.population))
        return Cohort(clients, divisor=expected, server_noise=self.noise_multiplier * self.clip)

    def accounting_round(self) -> SampledGaussianRound:
        return SampledGaussianRound(self.rate, self.noise_multiplier)

    def describe(self) -> str:
        return f"central DP-SGD, {self.population:,} records at rate {self.rate:g}"
