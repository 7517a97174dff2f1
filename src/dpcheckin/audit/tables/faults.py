"""Faults: one shipped attribute exchanged for a wrong one while an audit runs.

The wrong one is put where the right one stood, in the module or class that everybody uses, so that
what is audited is the package with one fault and not a copy of it. Only in this process: an audit
of a fault uses no worker processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpcheckin.accounting import Guarantee, LocalPair, gaussian
from dpcheckin.protocols import ShuffledCheckIn
from dpcheckin.protocols.plan import Cohort, RoundPlan
from dpcheckin.randomizers import Gaussian, SeededSource, additive
from dpcheckin.service.shuffler.chance import Ids, SecureChance


@dataclass(frozen=True)
class Fault:
    """What is exchanged.

    Args:
        owner: a shipped class or module.
        attribute: its attribute.
        broken: from the shipped attribute to the wrong one.
    """

    owner: Any
    attribute: str
    broken: Callable[[Any], Any]

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The fault is there within the block, and gone after it."""
        shipped = vars(self.owner)[self.attribute]
        setattr(self.owner, self.attribute, self.broken(shipped))
        try:
            yield
        finally:
            setattr(self.owner, self.attribute, shipped)

    def __str__(self) -> str:
        module = getattr(self.owner, "__module__", None)
        return f"{module + '.' if module else ''}{self.owner.__name__}.{self.attribute}"


_CohortOf = Callable[[ShuffledCheckIn, int, int], Cohort]


def _eager(shipped: _CohortOf) -> _CohortOf:
    def cohort(plan: ShuffledCheckIn, seed: int, round_index: int) -> Cohort:
        return shipped(replace(plan, rate=2 * plan.rate), seed, round_index)

    return cohort


def _repeating(shipped: _CohortOf) -> _CohortOf:
    def cohort(plan: ShuffledCheckIn, seed: int, round_index: int) -> Cohort:
        return shipped(plan, seed, 0)

    return cohort


def _doubling(shipped: _CohortOf) -> _CohortOf:
    def cohort(plan: ShuffledCheckIn, seed: int, round_index: int) -> Cohort:
        drawn = shipped(plan, seed, round_index)
        return replace(drawn, clients=np.repeat(drawn.clients, 2 - drawn.clients % 2))

    return cohort


def _still(shipped: object) -> Callable[[SecureChance, int], Ids]:
    return lambda chance, count: np.arange(count)


def _weak(shipped: Callable[..., Any]) -> Callable[..., Any]:
    def randomize(noisy: Gaussian, values: Any, source: Any) -> Any:
        return shipped(
            replace(noisy, noise_multiplier=0.9 * noisy.noise_multiplier), values, source
        )

    return randomize


def _forgetful(part: int) -> Callable[[Any], Any]:
    """A source that leaves one part of its seed out: the round, or the client."""

    def broken(shipped: Callable[..., None]) -> Callable[..., None]:
        def start(source: SeededSource, seed: Any, *others: Any) -> None:
            known = list(seed) if isinstance(seed, tuple) else [seed]
            shipped(source, known[:part] + known[part + 1 :], *others)

        return start

    return broken


def _half(shipped: Callable[..., Guarantee]) -> Callable[..., Guarantee]:
    def guarantee(plan: RoundPlan, delta: float, rounds: int | None = None) -> Guarantee:
        return shipped(plan, delta, (plan.rounds if rounds is None else rounds) // 2)

    return guarantee


def _near(shipped: object) -> property:
    def pair(noisy: Gaussian) -> LocalPair:
        return gaussian(2 * noisy.noise_multiplier)

    return property(pair)


def failure_as_cover() -> Fault:
    """A task that fails sends a cover, so that who reports tells for whom it does not fail."""
    # agents need the service extra
    from dpcheckin.service.client.core import Agent
    from dpcheckin.service.client.parts import Action, Entered, Part
    from dpcheckin.service.wire.envelope import cover

    def telling(shipped: Callable[..., Part]) -> Callable[..., Part]:
        def complete(agent: Agent, entered: Entered, value: Callable[[], Any]) -> Part:
            part = shipped(agent, entered, value)
            if not part.failed or agent.joined is None:
                return part
            key, number = entered.key.public_key, entered.found.round
            return Part(Action.COVER, cover(agent.joined.plan, key, number), failed=True)

        return complete

    return Fault(Agent, "complete", telling)


DOUBLED_RATE = Fault(ShuffledCheckIn, "cohort", _eager)
SAME_CLIENTS = Fault(ShuffledCheckIn, "cohort", _repeating)
SENT_TWICE = Fault(ShuffledCheckIn, "cohort", _doubling)
NO_PERMUTATION = Fault(SecureChance, "permutation", _still)
LESS_NOISE = Fault(Gaussian, "randomize", _weak)
NO_CLIPPING = Fault(additive, "clip_rows", lambda shipped: lambda values, clip: values)
SAME_NOISE_EVERY_ROUND = Fault(SeededSource, "__init__", _forgetful(1))
SAME_NOISE_FOR_ALL = Fault(SeededSource, "__init__", _forgetful(2))
HALF_LEDGER = Fault(RoundPlan, "guarantee", _half)
HALF_SENSITIVITY = Fault(Gaussian, "pair", _near)
NOT_SNAPPED = Fault(additive, "_snapped", lambda shipped: lambda reports, scale, source: reports)
