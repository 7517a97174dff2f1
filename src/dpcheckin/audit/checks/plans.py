"""From a plan to the check of its own guarantee: neighbours, attack and certified claim.

`plan_named` reads the words of the command line; `check_plan` attacks a whole run as it is
released; `check_report` attacks a single report, which is all that protects a client when the
shuffler colludes.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpcheckin.accounting import local_guarantee
from dpcheckin.audit.attacks.statistics import (
    LikelihoodRatio,
    Statistic,
    WindowRatio,
    accepted_in_window,
    standard_statistics,
)
from dpcheckin.audit.attacks.turns import can_take_turns
from dpcheckin.audit.examination import Check
from dpcheckin.audit.systems.base import OneReport, System
from dpcheckin.audit.systems.batches import Neighbours
from dpcheckin.audit.systems.fast import fast_system
from dpcheckin.audit.systems.simulated import Simulated
from dpcheckin.errors import InvalidParameter
from dpcheckin.protocols import (
    FullShuffle,
    Plan,
    RandomCheckIns,
    Reveals,
    Window,
)
from dpcheckin.protocols.names import protocol_name
from dpcheckin.protocols.questions import RunQuestion
from dpcheckin.randomizers import Randomizer

PROTOCOLS = (
    "shuffled-check-in",
    "subsampled-shuffle",
    "shuffle",
    "distributed-check-in",
    "random-check-in-fixed",
)
DEFAULT_CONFIDENCE = 0.99


def plan_named(
    protocol: str,
    randomizer: Randomizer,
    population: int,
    rate: float,
    rounds: int,
    slots: int | None = None,
) -> Plan:
    """The plan by name; a check-in rate of 1 is a full shuffle.

    Args:
        protocol: one of `PROTOCOLS`.
        randomizer: what makes reports.
        population: number of clients.
        rate: check-in probability, or share of a cohort.
        rounds: number of rounds.
        slots: of a random check-in window.
    """
    name = protocol_name(protocol, PROTOCOLS)
    if slots is not None and name != "random-check-in-fixed":
        raise InvalidParameter("slots", slots, "left out but for random-check-in-fixed")
    if name == "random-check-in-fixed" and rounds != 1:
        raise InvalidParameter("rounds", rounds, "1: a window is one run of its slots")
    if name == "shuffled-check-in" and rate == 1:
        name = "shuffle"
    return RunQuestion.of(
        name, population, rounds, randomizer=randomizer, rate=rate,
        cohort=round(rate * population), slots=slots or population,
    ).plan()  # fmt: skip


def attack_on(plan: Plan) -> tuple[Neighbours, Sequence[Statistic]]:
    """The neighbours that are hardest to hide in this plan, and what to look at."""
    randomizer = plan.randomizer
    data = Neighbours.worst(randomizer)
    if isinstance(plan, RandomCheckIns):
        if plan.window is not Window.FIXED or plan.minibatch != 1 or plan.check_in_probability != 1:
            raise InvalidParameter("window", plan.describe(), "a fixed window, one report a slot")
        if not isinstance(data.first, tuple):
            raise InvalidParameter("randomizer", randomizer.describe(), "vectors, for the dummies")
        dummy = tuple(0.0 for _ in data.first)
        window = Neighbours(dummy, data.first, tuple(-x for x in data.first))
        chance = accepted_in_window(plan.population, plan.slots)
        return window, (WindowRatio(randomizer, window, chance),)
    if plan.reveals is Reveals.SUM:
        return data, (LikelihoodRatio(randomizer, data, plan.population),)
    repeated = plan.rounds > 1 and not isinstance(plan, FullShuffle)
    return data, standard_statistics(randomizer, data, plan.population, repeated=repeated)


def check_plan(
    plan: Plan,
    delta: float,
    confidence: float = DEFAULT_CONFIDENCE,
    *,
    epsilon: float | None = None,
    system: System | None = None,
    turns: bool = False,
    fast: bool = False,
) -> Check:
    """Attack a plan's certified epsilon, or a claimed one.

    Args:
        plan: what is attacked.
        delta: the delta of claim and audit, strictly between 0 and 1.
        confidence: of the lower bound, in [0.5, 1).
        epsilon: a claimed epsilon, None for the certified one.
        system: what plays the plan, None for the package's own code.
        turns: let every client be the target in turn where that is possible
            (`audit.attacks.turns`).
        fast: coins and orders in batches of the audit's own (`audit.systems.fast`), not the plan's.
    """
    if not 0.0 < delta < 1.0:
        raise InvalidParameter("delta", delta, "a number strictly between 0 and 1")
    data, statistics = attack_on(plan)
    claimed = plan.guarantee(delta).epsilon.upper if epsilon is None else epsilon
    name = f"{plan.describe()}; {plan.randomizer.describe()}; {rounds_text(plan.rounds)}"
    if system is None:
        system = fast_system(plan) if fast else Simulated(plan)
    turns = turns and can_take_turns(system)
    return Check(name, system, data, tuple(statistics), claimed, delta, confidence, turns)


def rounds_text(rounds: int) -> str:
    """1 round, 2 rounds."""
    return f"{rounds:,} round" + ("" if rounds == 1 else "s")


def check_report(
    randomizer: Randomizer,
    delta: float,
    confidence: float = DEFAULT_CONFIDENCE,
    *,
    system: System | None = None,
    data: Neighbours | None = None,
    epsilon: float | None = None,
) -> Check:
    """Attack the local guarantee of one report.

    Args:
        randomizer: what makes the report.
        delta: the delta of claim and audit, strictly between 0 and 1.
        confidence: of the lower bound, in [0.5, 1).
        system: what makes reports in truth, None for the randomizer.
        data: the neighbours, None for the worst ones.
        epsilon: a claimed epsilon, None for the certified one.
    """
    data = data or Neighbours.worst(randomizer)
    if epsilon is None:
        epsilon = local_guarantee([(randomizer.pair, 1.0, 1)], delta).epsilon
    statistics = (LikelihoodRatio(randomizer, data, 1),)
    name = f"one report; {randomizer.describe()}"
    return Check(
        name, system or OneReport(randomizer), data, statistics, epsilon, delta, confidence
    )
