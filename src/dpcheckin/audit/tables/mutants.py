"""Systems in which one thing is wrong, each beside the check that must catch it.

A mutant differs from the honest system in one step (or in what it claims). Its check looks at the
statistic that the fault shows in, with neighbours chosen for it, and is run on the honest system
too, which must pass. An audit that has never caught anything proves nothing; these show what ours
can see, with how many runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.accounting import gaussian, local_guarantee
from dpcheckin.audit.attacks.statistics import Differences, LikelihoodRatio
from dpcheckin.audit.checks.plans import check_plan, check_report
from dpcheckin.audit.examination import Check
from dpcheckin.audit.systems.base import OneReport
from dpcheckin.audit.systems.batches import TARGET, IntArray, Neighbours, Released, RoundBatches
from dpcheckin.audit.systems.per_client import PerClient
from dpcheckin.audit.systems.simulated import Cohorts, CoinByCoin
from dpcheckin.protocols import ShuffledCheckIn
from dpcheckin.randomizers import (
    DaryResponse,
    Gaussian,
    Laplace,
    RandomSource,
    SecureSource,
)
from dpcheckin.randomizers.base import check_rows

CONFIDENCE = 0.999
"""Of each check: all of them together then flag an honest system at most once in a hundred."""


@dataclass(frozen=True)
class Mutant:
    """A broken system with its check, the honest one under the same check, and a budget.

    An honest system uses up its whole budget, so it is audited with every few of the mutant's
    repetitions only; fewest where clients are played one by one, which is slow.
    """

    name: str
    wrong: str
    broken: Check
    honest: Check
    pairs: int
    honest_every: int = 3


class DoubledRate(CoinByCoin):
    """Clients check in twice as often as they say."""

    def _drawn(self, seed: tuple[int, ...], runs: Sequence[int]) -> Iterator[Cohorts]:
        eager = CoinByCoin(replace(self.plan, rate=2 * self.plan.rate))
        return eager._drawn(seed, runs)


class SameCoins(CoinByCoin):
    """The coin of the first round is used in all of them."""

    def _drawn(self, seed: tuple[int, ...], runs: Sequence[int]) -> Iterator[Cohorts]:
        return repeat(next(super()._drawn(seed, runs)), self.plan.rounds)


class NoPermutation(CoinByCoin):
    """Reports leave the shuffler as they came in, client by client."""

    def shuffled(
        self, reports: NDArray[Any], sizes: IntArray, seed: tuple[int, ...]
    ) -> NDArray[Any]:
        return reports


class SentTwice(CoinByCoin):
    """A client on a bad line repeats its report, and both copies are kept."""

    def delivered(
        self, reports: NDArray[Any], clients: IntArray, sizes: IntArray
    ) -> tuple[NDArray[Any], IntArray]:
        again = clients == TARGET
        owners = np.repeat(np.arange(sizes.size), sizes)
        more = np.bincount(owners[again], minlength=sizes.size)
        return np.repeat(reports, 1 + again, axis=0), sizes + more


class SameNoiseEveryRound(PerClient):
    """A client's noise is seeded by its name alone, so it repeats from round to round."""

    def own_source(self, run: int, round_index: int, client: int) -> RandomSource:
        return super().own_source(run, 0, client)


class SameNoiseForAll(PerClient):
    """Noise is seeded by the round alone, so all clients of a round add the same."""

    def own_source(self, run: int, round_index: int, client: int) -> RandomSource:
        return super().own_source(run, round_index, 0)


@dataclass(frozen=True)
class Unclipped(Gaussian):
    """Adds the noise and forgets to clip."""

    def randomize(self, values: Any, source: RandomSource) -> Any:
        check_rows(values)
        return values + self.deviation * source.normal(tuple(values.shape))


@dataclass(frozen=True)
class SecureReport(OneReport):
    """A report made as a deployed client makes it, from the operating system's chance."""

    paired = False

    def source(self) -> RandomSource:
        """Where the report's chance comes from."""
        return SecureSource()

    def play(self, data: Neighbours, which: int, seed: tuple[int, ...], runs: int) -> Released:
        values = data.values(np.zeros(runs, dtype=np.int64), which, 0)
        reports = self.randomizer.randomize(values, self.source())
        return (RoundBatches(reports, np.ones(runs, dtype=np.int64)),)


class _NotSnapped(SecureSource):
    """Secure chance that does not ask randomizers to round what they send."""

    is_secure = False


class UnsnappedReport(SecureReport):
    """The same chance, but the sum of value and noise is sent with all its bits."""

    def source(self) -> RandomSource:
        return _NotSnapped()


@cache
def mutants() -> tuple[Mutant, ...]:
    """All of them; claims are computed here, so the first call takes seconds."""
    return tuple(make() for make in _MAKERS)


def _one_report(delta: float) -> Check:
    return check_report(Gaussian(2.0), delta, CONFIDENCE)


def _less_noise() -> Mutant:
    honest = _one_report(0.2)
    broken = replace(honest, system=OneReport(Gaussian(0.9 * 2.0)))
    return Mutant("noise 10% too small", "σ = 1.8 for σ = 2", broken, honest, 60_000)


def _no_clip() -> Mutant:
    outside = Neighbours((-10.0,), (10.0,), (-10.0,))
    honest = replace(_one_report(0.05), data=outside)
    broken = replace(honest, system=OneReport(Unclipped(2.0)))
    wrong = "a value of norm 10 goes through a clip of 1"
    return Mutant("clipping skipped", wrong, broken, honest, 4_000)


def _sensitivity() -> Mutant:
    honest = _one_report(0.05)
    mistaken = local_guarantee([(gaussian(2 * 2.0), 1.0, 1)], honest.delta).epsilon
    broken = replace(honest, epsilon=mistaken)
    wrong = "values of the ball taken to be 1 clip apart, not 2"
    return Mutant("replace-one sensitivity taken as 1", wrong, broken, honest, 10_000)


_ROUNDS = ShuffledCheckIn(10, 0.4, 4, DaryResponse(2.0, 3))


def _wrong_step(
    name: str, wrong: str, system: type[CoinByCoin], plan: ShuffledCheckIn, delta: float, pairs: int
) -> Callable[[], Mutant]:
    """A mutant whose system plays the plan with one step changed."""

    def make() -> Mutant:
        honest = check_plan(plan, delta, CONFIDENCE)
        return Mutant(name, wrong, replace(honest, system=system(plan)), honest, pairs)

    return make


_doubled_rate = _wrong_step(
    "rate 2γ", "clients check in at rate 0.9 for 0.45",
    DoubledRate, ShuffledCheckIn(6, 0.45, 1, DaryResponse(3.0, 3)), delta=0.1, pairs=6_000,
)  # fmt: skip
_no_permutation = _wrong_step(
    "shuffler that does not permute", "batches are in the order of clients",
    NoPermutation, ShuffledCheckIn(100, 0.5, 1, DaryResponse(4.0, 3)), delta=0.02, pairs=2_000,
)  # fmt: skip
_sent_twice = _wrong_step(
    "report sent twice", "a retry is kept beside the first",
    SentTwice, ShuffledCheckIn(10, 0.5, 1, DaryResponse(2.0, 3)), delta=0.1, pairs=12_000,
)  # fmt: skip
_same_coins = _wrong_step(
    "coin reused across rounds", "who checks in once checks in always",
    SameCoins, ShuffledCheckIn(20, 0.1, 6, DaryResponse(3.0, 3)), delta=0.02, pairs=8_000,
)  # fmt: skip


def _half_ledger() -> Mutant:
    honest = check_plan(_ROUNDS, 0.1, CONFIDENCE)
    half = _ROUNDS.guarantee(honest.delta, _ROUNDS.rounds // 2).epsilon.upper
    broken = replace(honest, epsilon=half)
    wrong = "4 rounds are played, 2 are charged"
    return Mutant("ledger that counts half the rounds", wrong, broken, honest, 8_000)


def _linked(system: type[PerClient]) -> tuple[Check, Check]:
    """The target's value moves one way and back, the others' stay: noise must hide that."""
    plan = ShuffledCheckIn(4, 0.6, 2, Gaussian(2.0))
    zero: list[Any] = [(0.0,), (0.0,)]
    there: list[Any] = [(1.0,), (-1.0,)]
    data = Neighbours(zero, there, there[::-1])
    looks = (
        LikelihoodRatio(plan.randomizer, data, plan.population),
        Differences(step=2.0, across=True),
        Differences(step=1.0, across=False),
    )
    honest = replace(
        check_plan(plan, 0.02, CONFIDENCE), data=data, statistics=looks, system=PerClient(plan)
    )
    return replace(honest, system=system(plan)), honest


def _same_noise_every_round() -> Mutant:
    broken, honest = _linked(SameNoiseEveryRound)
    wrong = "a client adds the same noise in every round"
    return Mutant("non-independent noise seeds (rounds)", wrong, broken, honest, 800, 5)


def _same_noise_for_all() -> Mutant:
    broken, honest = _linked(SameNoiseForAll)
    wrong = "all clients of a round add the same noise"
    return Mutant("non-independent noise seeds (clients)", wrong, broken, honest, 800, 5)


def _unsnapped() -> Mutant:
    randomizer = Laplace(1.0)
    honest = check_report(randomizer, 0.01, CONFIDENCE, system=SecureReport(randomizer))
    looks = (LikelihoodRatio(randomizer, honest.data, 1, exact=True),)
    honest = replace(honest, statistics=looks)
    broken = replace(honest, system=UnsnappedReport(randomizer))
    wrong = "the last bits of value + noise are sent along"
    return Mutant("reports not snapped to a grid", wrong, broken, honest, 80_000)


_MAKERS: tuple[Callable[[], Mutant], ...] = (
    _less_noise,
    _doubled_rate,
    _no_clip,
    _same_coins,
    _no_permutation,
    _same_noise_every_round,
    _same_noise_for_all,
    _sent_twice,
    _half_ledger,
    _sensitivity,
    _unsnapped,
)
