"""From a plan to the check of its own guarantee: neighbours, attack and certified claim.

`plan_named` reads the words of the command line; `check_plan` attacks a whole run as it is released; `check_report`
attacks a single report, which is all that protects a client when the shuffler colludes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from dpcheckin.accounting import local_guarantee
from dpcheckin.audit.evidence import needed_capital
from dpcheckin.audit.examination import PILOT, Check
from dpcheckin.audit.finding import Finding, Verdict
from dpcheckin.audit.simulated import Simulated, fast_system
from dpcheckin.audit.statistics import LikelihoodRatio, Statistic, WindowRatio, accepted_in_window, standard_statistics
from dpcheckin.audit.systems import Neighbours, OneReport, System
from dpcheckin.audit.turns import can_take_turns
from dpcheckin.errors import InvalidParameter, OutsideTheorem, Superfluous
from dpcheckin.numerals import open_probability
from dpcheckin.protocols import FullShuffle, Plan, RandomCheckIns, Reveals, ShuffledCheckIn, Window
from dpcheckin.protocols.plan import RoundPlan
from dpcheckin.protocols.questions import PLANNED, PROTOCOLS, RunQuestion, protocol_name
from dpcheckin.randomizers import DaryResponse, IntegerVector, Randomizer
from dpcheckin.special.roots import switch

AUDITED = tuple(name for name in PLANNED if "rounds" in PROTOCOLS[name].fields)
DEFAULT_CONFIDENCE = 0.99


def plan_named(
    protocol: str, randomizer: Randomizer, population: int, rate: float, rounds: int, slots: int | None = None
) -> Plan:
    """The plan of a protocol (one of `AUDITED`, or an alias); a check-in rate of 1 is a full shuffle.

    `rate` is the check-in probability or the share of a cohort of the population, `slots` those of a random check-in
    window; `randomizer` makes the reports of all rounds.
    """
    name = protocol_name(protocol, AUDITED)
    if slots is not None and "slots" not in PROTOCOLS[name].fields:
        raise Superfluous("slots", slots, "leave it out but for random-check-in-fixed")
    if name == "random-check-in-fixed" and rounds != 1:
        raise InvalidParameter("rounds", rounds, "1: a window is one run of its slots")
    if name == "shuffled-check-in" and rate == 1:
        name = "shuffle"
    numbers = {"rate": rate, "cohort": round(rate * population), "slots": slots or population}
    return RunQuestion.of(name, population, rounds, randomizer=randomizer, **numbers).plan()


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
        turns: let every client be the target in turn where that is possible (`audit.turns`).
        fast: coins and orders in batches of the audit's own (`simulated.CoinByCoin`), not the plan's.
    """
    open_probability("delta", delta)
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
    return Check(name, system or OneReport(randomizer), data, statistics, epsilon, delta, confidence)


_SAFE = 1.5  # of the pairs that would do on average
_MORE = 4  # times the pairs, when the event that was bet on shows nothing


def judged(check: Check, finding: Finding) -> Finding:
    """The finding of `check`, with the exact loss beside it where that changes the verdict.

    A finding compares its lower bound with what is claimed. Where the claim is looser than anything an attack could
    show, the exact loss of the neighbours that are played is the better measure.
    """
    plan = check.system.audited_plan()
    if finding.verdict is not Verdict.INCONCLUSIVE or plan is None:
        return finding
    return replace(finding, expected=exact_loss(plan, check.delta))


def exact_loss(plan: Plan, delta: float) -> float:
    """What the neighbours that are played lose at `delta`, so that no attack on them in this plan shows more."""
    if isinstance(plan.randomizer, IntegerVector):  # of its sums no exact figure is known
        return plan.guarantee(delta).epsilon.upper
    if isinstance(plan, RoundPlan):
        return plan.lower_bound(delta).epsilon.lower
    return plan.guarantee(delta).epsilon.lower


def needed_pairs(check: Check, finding: Finding) -> int:
    """About how many pairs of runs, pilot included, make this check conclusive, after an inconclusive finding.

    From the excess of the best event where it can be computed, else of the event that was bet on, a standard error
    pessimistically; and from the variance that was seen.
    """
    used, plan = finding.pairs + finding.pilot_pairs, check.system.audited_plan()
    variance = finding.counts.variance(finding.wanted)
    if isinstance(plan, ShuffledCheckIn | FullShuffle) and isinstance(plan.randomizer, DaryResponse):
        excess = exact_delta(plan, finding.wanted, check.delta) - check.delta
    else:
        seen = finding.counts.mean(finding.wanted) - finding.delta
        excess = seen - math.sqrt(variance / finding.pairs)
    if excess <= 0.0 or variance <= 0.0:
        return _MORE * used
    square = variance + excess**2
    needed = _SAFE * 2 * needed_capital(finding.confidence) * square / excess**2 / (1 - PILOT)
    return max(math.ceil(needed), 2 * used)


def exact_delta(plan: Plan, epsilon: float, delta: float) -> float:
    """The delta at which the exact loss of a plan of shuffled reports is this epsilon; at least the given delta."""
    if not isinstance(plan, ShuffledCheckIn | FullShuffle):
        raise OutsideTheorem("a forecast needs shuffled reports")
    if exact_loss(plan, delta) <= epsilon:
        return delta
    low, _ = switch(
        lambda power: exact_loss(plan, math.exp(power)) > epsilon,
        math.log(delta),
        0.0,
        absolute=-math.log(delta) / 4000,
    )
    return math.exp(low)


def advice(check: Check, finding: Finding) -> str:
    """What to do about an inconclusive finding of `check`."""
    needed = needed_pairs(check, finding)
    return (
        f"On sound code this attack shows epsilon ≥ {finding.wanted:.4g} from about {needed:,} "
        f"{finding.unit}: begin anew with --budget {needed} or more, since a short pilot bets on "
        "another event than a long one."
    )
