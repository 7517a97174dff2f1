"""The package with one thing wrong, each time beside the check that must catch it.

A mutant is a fault of the shipped code and a check: claim, neighbours, statistics and budget. The same check is run on
the package without the fault, which must pass. An audit that has never caught anything proves nothing; these show what
ours can see, with how many runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from dpcheckin.accounting import gaussian
from dpcheckin.audit.budget import Budget
from dpcheckin.audit.examination import Check, examine
from dpcheckin.audit.finding import Finding
from dpcheckin.audit.plans import check_plan, check_report
from dpcheckin.audit.simulated import PerClient
from dpcheckin.audit.statistics import Differences, LikelihoodRatio
from dpcheckin.audit.systems import Neighbours, OneReport
from dpcheckin.protocols import ShuffledCheckIn
from dpcheckin.protocols.plan import RoundPlan
from dpcheckin.randomizers import DaryResponse, Gaussian, Laplace, RandomSource, SecureSource, SeededSource, additive
from dpcheckin.service.shuffler.chance import SecureChance


@dataclass(frozen=True)
class Fault:
    """One shipped attribute exchanged for a wrong one, in the module or class that everybody uses.

    So what is audited is the package with one fault and not a copy of it; only in this process, without workers.

    Args:
        owner: a shipped class or module.
        attribute: its function, method or property.
        broken: called in its place, with the shipped function before the arguments.
    """

    owner: Any
    attribute: str
    broken: Callable[..., Any]

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The fault is there within the block, and gone after it."""
        shipped = vars(self.owner)[self.attribute]

        def instead(*arguments: Any, **named: Any) -> Any:
            return self.broken(shipped, *arguments, **named)

        setattr(self.owner, self.attribute, property(instead) if isinstance(shipped, property) else instead)
        try:
            yield
        finally:
            setattr(self.owner, self.attribute, shipped)

    def __str__(self) -> str:
        module = getattr(self.owner, "__module__", None)
        return f"{module + '.' if module else ''}{self.owner.__name__}.{self.attribute}"


def _times(name: str, factor: float) -> Callable[..., Any]:
    """As if a number of the plan, or the randomizer, were another."""
    return lambda shipped, made, *given: shipped(replace(made, **{name: factor * getattr(made, name)}), *given)


def _doubling(shipped: Any, plan: ShuffledCheckIn, seed: int, round_index: int) -> Any:
    drawn = shipped(plan, seed, round_index)
    return replace(drawn, clients=np.repeat(drawn.clients, 2 - drawn.clients % 2))


def _forgetful(part: int) -> Callable[..., None]:
    """A source that leaves one part of its seed out: the round, or the client."""

    def start(shipped: Any, source: SeededSource, seed: Any, *others: Any) -> None:
        known = list(seed) if isinstance(seed, tuple) else [seed]
        shipped(source, known[:part] + known[part + 1 :], *others)

    return start


def _half(shipped: Any, plan: RoundPlan, delta: float, rounds: int | None = None) -> Any:
    return shipped(plan, delta, (plan.rounds if rounds is None else rounds) // 2)


def failure_as_cover() -> Fault:
    """A task that fails sends a cover, so that who reports tells for whom it does not fail."""
    # agents need the service extra
    from dpcheckin.service.client.core import Action, Agent, Entered, Part
    from dpcheckin.service.wire.envelope import cover

    def telling(shipped: Any, agent: Agent, entered: Entered, value: Callable[[], Any]) -> Part:
        part: Part = shipped(agent, entered, value)
        if not part.failed or agent.joined is None:
            return part
        key, number = entered.key.public_key, entered.announced.round
        return Part(Action.COVER, cover(agent.joined.plan, key, number), failed=True)

    return Fault(Agent, "complete", telling)


DOUBLED_RATE = Fault(ShuffledCheckIn, "cohort", _times("rate", 2.0))
SAME_CLIENTS = Fault(ShuffledCheckIn, "cohort", lambda shipped, plan, seed, round_index: shipped(plan, seed, 0))
SENT_TWICE = Fault(ShuffledCheckIn, "cohort", _doubling)
NO_PERMUTATION = Fault(SecureChance, "permutation", lambda shipped, chance, count: np.arange(count))
LESS_NOISE = Fault(Gaussian, "randomize", _times("noise_multiplier", 0.9))
NO_CLIPPING = Fault(additive, "clip_rows", lambda shipped, values, clip: values)
SAME_NOISE_EVERY_ROUND = Fault(SeededSource, "__init__", _forgetful(1))
SAME_NOISE_FOR_ALL = Fault(SeededSource, "__init__", _forgetful(2))
HALF_LEDGER = Fault(RoundPlan, "guarantee", _half)
HALF_SENSITIVITY = Fault(Gaussian, "pair", lambda shipped, noisy: gaussian(2 * noisy.noise_multiplier))
NOT_SNAPPED = Fault(additive, "_snapped", lambda shipped, reports, scale, source: reports)

CONFIDENCE = 0.999
"""Of each check: all of them together then flag an honest system at most once in eighty times."""


@dataclass(frozen=True)
class Mutant:
    """A fault of the package (and `wrong`, what it is), the check that must catch it, and a budget of so many pairs.

    Claims are computed with the fault in place. An honest system uses up its whole budget, so it is audited with every
    few (`honest_every`) of the mutant's repetitions only; fewest where clients are played one by one, which is slow.
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
        """Audit the broken package with a seed; `pairs` is the budget, None for the mutant's."""
        check = self.broken
        with self.fault.applied():
            return self._examined(check, seed, pairs)

    def audit_honest(self, seed: int, pairs: int | None = None) -> Finding:
        """Audit the package as it is by the same check, with a seed; `pairs` is the budget, None for the mutant's."""
        return self._examined(self.honest, seed, pairs)

    def _examined(self, check: Check, seed: int, pairs: int | None) -> Finding:
        return examine(check, Budget(pairs=pairs or self.pairs), seed=seed, stop_when_refuted=True)


@dataclass(frozen=True)
class SecureReport(OneReport):
    """A report made as a deployed client makes it, from the operating system's chance."""

    paired = False

    def source(self, seed: tuple[int, ...]) -> RandomSource:
        return SecureSource()


def _plan_check(population: int, rate: float, rounds: int, local_epsilon: float, delta: float) -> Callable[[], Check]:
    """3-ary response in shuffled check-in, played by the shipped cohorts and in their order."""
    plan = ShuffledCheckIn(population, rate, rounds, DaryResponse(local_epsilon, 3))
    return partial(check_plan, plan, delta, CONFIDENCE)


def _one_report(delta: float) -> Callable[[], Check]:
    return partial(check_report, Gaussian(2.0), delta, CONFIDENCE)


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


def _deployed(check: str, population: int, rate: float, local_epsilon: float) -> Check:
    # agents, envelopes and stores: imported here, as they need the service extra
    from dpcheckin.audit import service

    made: Check = getattr(service, check)(service.Deployed(population, rate, 1, local_epsilon, 3, 0.2), CONFIDENCE)
    return made


@cache
def all_mutants() -> tuple[Mutant, ...]:
    """Every one, in the order of the table."""
    return (
        Mutant("noise 10% too small", "σ = 1.8 for σ = 2", LESS_NOISE, _one_report(0.2), 60_000),
        Mutant("rate 2γ", "clients check in at rate 0.9 for 0.45",
               DOUBLED_RATE, _plan_check(6, 0.45, 1, 3.0, 0.1), 6_000),
        Mutant("clipping skipped", "a value of norm 10 goes through a clip of 1", NO_CLIPPING, _outside, 4_000),
        Mutant("same clients every round", "the plan draws the cohort of its first round again",
               SAME_CLIENTS, _plan_check(20, 0.1, 6, 3.0, 0.02), 8_000),
        Mutant("shuffler that does not permute", "the shuffler's order is that of arrival",
               NO_PERMUTATION, _plan_check(100, 0.5, 1, 4.0, 0.02), 2_000),
        Mutant("deployed shuffler that does not permute", "the same, among agents and envelopes",
               NO_PERMUTATION, partial(_deployed, "check_service", 16, 0.95, 2.0), 240, 10),
        Mutant("data-dependent failure", "a client whose task fails sends a cover",
               failure_as_cover(), partial(_deployed, "check_failure", 2, 0.97, 1.0), 120, 10),
        Mutant("non-independent noise seeds (rounds)", "a client adds the same noise in every round",
               SAME_NOISE_EVERY_ROUND, _linked, 800, 5),
        Mutant("non-independent noise seeds (clients)", "all clients of a round add the same noise",
               SAME_NOISE_FOR_ALL, _linked, 800, 5),
        Mutant("report sent twice", "every other client is drawn twice",
               SENT_TWICE, _plan_check(3, 0.8, 1, 2.0, 0.05), 12_000),
        Mutant("ledger that counts half the rounds", "4 rounds are played, 2 are charged",
               HALF_LEDGER, _plan_check(10, 0.4, 4, 2.0, 0.1), 8_000),
        Mutant("replace-one sensitivity taken as 1", "values of the ball taken to be 1 clip apart, not 2",
               HALF_SENSITIVITY, _one_report(0.05), 10_000),
        Mutant("reports not snapped to a grid", "the last bits of value + noise are sent along",
               NOT_SNAPPED, _last_bits, 80_000),
    )  # fmt: skip
