"""The package with one thing wrong, each time beside the check that must catch it.

A mutant is a fault of the shipped code (`audit.tables.faults`) and a check: claim, neighbours,
statistics and budget. The same check is run on the package without the fault, which must pass. An
audit that has never caught anything proves nothing; these show what ours can see, with how many
runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from dpcheckin.audit.attacks.statistics import Differences, LikelihoodRatio
from dpcheckin.audit.budget import Budget
from dpcheckin.audit.checks.plans import check_plan, check_report
from dpcheckin.audit.examination import Check, examine
from dpcheckin.audit.finding import Finding
from dpcheckin.audit.systems.base import OneReport
from dpcheckin.audit.systems.batches import Neighbours, Released, RoundBatches
from dpcheckin.audit.systems.per_client import PerClient
from dpcheckin.audit.tables import faults
from dpcheckin.audit.tables.faults import Fault
from dpcheckin.protocols import ShuffledCheckIn
from dpcheckin.randomizers import DaryResponse, Gaussian, Laplace, SecureSource

CONFIDENCE = 0.999
"""Of each check: all of them together then flag an honest system at most once in eighty times."""


@dataclass(frozen=True)
class Mutant:
    """A fault of the package, the check that must catch it, and a budget.

    An honest system uses up its whole budget, so it is audited with every few of the mutant's
    repetitions only; fewest where clients are played one by one, which is slow.

    Args:
        name: a few words.
        wrong: what the fault is.
        fault: where it is put.
        check: makes the check; claims are computed with the fault in place.
        pairs: budget of one audit.
        honest_every: repetitions to one audit of the honest twin.
    """

    name: str
    wrong: str
    fault: Fault
    check: Callable[[], Check]
    pairs: int
    honest_every: int = 3

    @cached_property
    def broken(self) -> Check:
        """The check as the broken package makes it."""
        with self.fault.applied():
            return self.check()

    @cached_property
    def honest(self) -> Check:
        """The check as the package makes it."""
        return self.check()

    def audit(self, seed: int, pairs: int | None = None) -> Finding:
        """Audit the broken package.

        Args:
            seed: of the audit.
            pairs: its budget, None for the mutant's.
        """
        check = self.broken
        with self.fault.applied():
            return _examined(check, seed, pairs or self.pairs)

    def audit_honest(self, seed: int, pairs: int | None = None) -> Finding:
        """Audit the package as it is, by the same check.

        Args:
            seed: of the audit.
            pairs: its budget, None for the mutant's.
        """
        return _examined(self.honest, seed, pairs or self.pairs)


def _examined(check: Check, seed: int, pairs: int) -> Finding:
    return examine(check, Budget(pairs=pairs), seed=seed, stop_when_refuted=True)


@dataclass(frozen=True)
class SecureReport(OneReport):
    """A report made as a deployed client makes it, from the operating system's chance."""

    paired = False

    def play(self, data: Neighbours, which: int, seed: tuple[int, ...], runs: int) -> Released:
        values = data.values(np.zeros(runs, dtype=np.int64), which, 0)
        reports = self.randomizer.randomize(values, SecureSource())
        return (RoundBatches(reports, np.ones(runs, dtype=np.int64)),)


def _plan_check(
    population: int, rate: float, rounds: int, local_epsilon: float, delta: float
) -> Callable[[], Check]:
    """3-ary response in shuffled check-in, played by the shipped cohorts and in their order."""
    plan = ShuffledCheckIn(population, rate, rounds, DaryResponse(local_epsilon, 3))
    return lambda: check_plan(plan, delta, CONFIDENCE)


def _one_report(delta: float) -> Callable[[], Check]:
    return lambda: check_report(Gaussian(2.0), delta, CONFIDENCE)


def _outside() -> Check:
    """A value that nobody may report as it is."""
    return replace(_one_report(0.05)(), data=Neighbours((-10.0,), (10.0,), (-10.0,)))


def _linked() -> Check:
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
    claim = check_plan(plan, 0.02, CONFIDENCE)
    return replace(claim, data=data, statistics=looks, system=PerClient(plan))


def _last_bits() -> Check:
    randomizer = Laplace(1.0)
    check = check_report(randomizer, 0.01, CONFIDENCE, system=SecureReport(randomizer))
    return replace(check, statistics=(LikelihoodRatio(randomizer, check.data, 1, exact=True),))


def _deployed() -> Check:
    # agents, envelopes and stores: imported here, as they need the service extra
    from dpcheckin.audit.checks.service import Deployed, check_service

    return check_service(Deployed(16, 0.95, 1, 2.0, 3, 0.2), CONFIDENCE)


def _failing() -> Check:
    from dpcheckin.audit.checks.service import Deployed, check_failure

    return check_failure(Deployed(2, 0.97, 1, 1.0, 3, 0.2), CONFIDENCE)


@cache
def mutants() -> tuple[Mutant, ...]:
    """All of them."""
    return (
        Mutant(
            "noise 10% too small", "σ = 1.8 for σ = 2",
            faults.LESS_NOISE, _one_report(0.2), 60_000,
        ),
        Mutant(
            "rate 2γ", "clients check in at rate 0.9 for 0.45",
            faults.DOUBLED_RATE, _plan_check(6, 0.45, 1, 3.0, 0.1), 6_000,
        ),
        Mutant(
            "clipping skipped", "a value of norm 10 goes through a clip of 1",
            faults.NO_CLIPPING, _outside, 4_000,
        ),
        Mutant(
            "same clients every round", "the plan draws the cohort of its first round again",
            faults.SAME_CLIENTS, _plan_check(20, 0.1, 6, 3.0, 0.02), 8_000,
        ),
        Mutant(
            "shuffler that does not permute", "the shuffler's order is that of arrival",
            faults.NO_PERMUTATION, _plan_check(100, 0.5, 1, 4.0, 0.02), 2_000,
        ),
        Mutant(
            "deployed shuffler that does not permute", "the same, among agents and envelopes",
            faults.NO_PERMUTATION, _deployed, 240, 10,
        ),
        Mutant(
            "data-dependent failure", "a client whose task fails sends a cover",
            faults.failure_as_cover(), _failing, 120, 10,
        ),
        Mutant(
            "non-independent noise seeds (rounds)", "a client adds the same noise in every round",
            faults.SAME_NOISE_EVERY_ROUND, _linked, 800, 5,
        ),
        Mutant(
            "non-independent noise seeds (clients)", "all clients of a round add the same noise",
            faults.SAME_NOISE_FOR_ALL, _linked, 800, 5,
        ),
        Mutant(
            "report sent twice", "every other client is drawn twice",
            faults.SENT_TWICE, _plan_check(3, 0.8, 1, 2.0, 0.05), 12_000,
        ),
        Mutant(
            "ledger that counts half the rounds", "4 rounds are played, 2 are charged",
            faults.HALF_LEDGER, _plan_check(10, 0.4, 4, 2.0, 0.1), 8_000,
        ),
        Mutant(
            "replace-one sensitivity taken as 1",
            "values of the ball taken to be 1 clip apart, not 2",
            faults.HALF_SENSITIVITY, _one_report(0.05), 10_000,
        ),
        Mutant(
            "reports not snapped to a grid", "the last bits of value + noise are sent along",
            faults.NOT_SNAPPED, _last_bits, 80_000,
        ),
    )  # fmt: skip
