"""Whether an audit that refuted nothing saw enough to mean something, and what it would take.

A finding compares its lower bound with what is claimed. Where the claim is looser than anything an
attack could show, the exact loss of the neighbours that are played is the better measure; it is
worked out here, and only when it decides.
"""

from __future__ import annotations

import math
from dataclasses import replace

from dpcheckin.audit.betting.evidence import needed_capital
from dpcheckin.audit.examination import PILOT, Check
from dpcheckin.audit.finding import Finding, Verdict
from dpcheckin.errors import OutsideTheorem
from dpcheckin.protocols import FullShuffle, Plan, ShuffledCheckIn
from dpcheckin.protocols.plan import RoundPlan
from dpcheckin.randomizers import DaryResponse, IntegerVector

_SAFE = 1.5  # of the pairs that would do on average
_MORE = 4  # times the pairs, when the event that was bet on shows nothing


def judged(check: Check, finding: Finding) -> Finding:
    """The finding, with the exact loss beside it where that changes the verdict.

    Args:
        check: what was examined.
        finding: what came of it.
    """
    plan = check.system.audited_plan()
    if finding.verdict is not Verdict.INCONCLUSIVE or plan is None:
        return finding
    return replace(finding, expected=exact_loss(plan, check.delta))


def exact_loss(plan: Plan, delta: float) -> float:
    """What the neighbours that are played lose, so that no attack on them shows more.

    Args:
        plan: what is played.
        delta: of the statement.
    """
    if isinstance(plan.randomizer, IntegerVector):  # of its sums no exact figure is known
        return plan.guarantee(delta).epsilon.upper
    if isinstance(plan, RoundPlan):
        return plan.lower_bound(delta).epsilon.lower
    return plan.guarantee(delta).epsilon.lower


def needed_pairs(check: Check, finding: Finding) -> int:
    """About how many pairs of runs, pilot included, make this audit conclusive.

    From the excess of the best event where it can be computed, else of the event that was bet on, a
    standard error pessimistically; and from the variance that was seen.

    Args:
        check: what was examined.
        finding: what came of it: inconclusive.
    """
    used, plan = finding.pairs + finding.pilot_pairs, check.system.audited_plan()
    variance = finding.counts.variance(finding.wanted)
    if isinstance(plan, ShuffledCheckIn | FullShuffle) and isinstance(
        plan.randomizer, DaryResponse
    ):
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
    """The delta at which the exact loss is this epsilon, by bisection; at least the given delta.

    Args:
        plan: shuffled reports.
        epsilon: of a claim.
        delta: of the same claim.
    """
    if not isinstance(plan, ShuffledCheckIn | FullShuffle):
        raise OutsideTheorem("a forecast needs shuffled reports")
    low, high = math.log(delta), 0.0
    if exact_loss(plan, delta) <= epsilon:
        return delta
    for _ in range(12):
        middle = 0.5 * (low + high)
        larger = exact_loss(plan, math.exp(middle)) > epsilon
        low, high = (middle, high) if larger else (low, middle)
    return math.exp(low)


def advice(check: Check, finding: Finding) -> str:
    """What to do about an inconclusive finding.

    Args:
        check: what was examined.
        finding: what came of it.
    """
    needed = needed_pairs(check, finding)
    return (
        f"On sound code this attack shows epsilon ≥ {finding.wanted:.4g} from about {needed:,} "
        f"{finding.unit}: begin anew with --budget {needed} or more, since a short pilot bets on "
        "another event than a long one."
    )
