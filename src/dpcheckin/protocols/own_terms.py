"""What a client is guaranteed on its own terms: with a local epsilon of its own, or not there from the first round.

The plan is everybody's; the statement is one client's (docs/own-terms.md).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dpcheckin.accounting import Guarantee, PersonalRound, Round, ShuffledRound, guarantee
from dpcheckin.errors import InvalidParameter, OutsideTheorem
from dpcheckin.numerals import count
from dpcheckin.protocols.plan import Plan, RoundPlan

if TYPE_CHECKING:
    from dpcheckin.protocols.questions import RunQuestion

_FEW = 6  # local epsilons of clients that choose their own, told one by one


def own_guarantee(
    plan: Plan, delta: float, *, local_epsilon: float | None = None, joins: int = 1, leaves: int | None = None
) -> Guarantee:
    """What one client of the plan is guaranteed at delta that is there from the round it joins to that it leaves after.

    Rounds before it came say nothing of its data, and rounds after it left only what the earlier ones said.
    local_epsilon is its own, at most that of the plan's randomizer (`accounting.PersonalRound`).

    >>> from dpcheckin.protocols import ShuffledCheckIn
    >>> from dpcheckin.randomizers import BinaryResponse
    >>> plan = ShuffledCheckIn(10_000, 0.1, 100, BinaryResponse(4.0))
    >>> one = own_guarantee(plan, 1e-6, local_epsilon=1.0, joins=91)
    >>> one.epsilon.upper < plan.guarantee(1e-6, 10).epsilon.upper
    True
    """
    if not isinstance(plan, RoundPlan):
        raise OutsideTheorem("clients come and go, or choose their own epsilon, in rounds that are all alike")
    last = plan.rounds if leaves is None else count("leaves", leaves, 1, plan.rounds)
    one: Round = plan.accounting_round()
    if local_epsilon is not None:
        if not isinstance(one, ShuffledRound):
            raise OutsideTheorem("clients choose their own epsilon where reports are shuffled")
        if not local_epsilon <= one.pair.local_epsilon:
            raise InvalidParameter("local_epsilon", local_epsilon, f"at most {one.pair.local_epsilon:g}")
        one = PersonalRound(one, local_epsilon)
    return guarantee([(one, last - count("joins", joins, 1, last) + 1)], delta=delta)


def asked_guarantee(question: RunQuestion, delta: float) -> Guarantee:
    """The statement at delta about a question whose client joins late, or may choose its own epsilon.

    What is guaranteed at the largest epsilon is everybody's. The question's plan has the client's own rounds only.
    """
    plan = question.plan()
    if question.lowest_local_epsilon is None:
        stated = plan.guarantee(delta)
    else:
        stated = own_guarantee(plan, delta, local_epsilon=question.local_epsilon)
    if question.joins == 1:
        return stated
    here = f"the client takes part from round {question.joins:,} on, which does not depend on its data"
    return replace(stated, assumptions=(*stated.assumptions, here))


def own_guarantees(question: RunQuestion, delta: float) -> dict[float, Guarantee]:
    """What clients with each of some local epsilons are guaranteed at delta, from the question's lowest to its largest.

    None where all have the same.
    """
    low, high = question.lowest_local_epsilon, question.local_epsilon
    if low is None or high is None:
        return {}
    some = [low + i for i in range(1, _FEW) if low + i < high * (1 - 1e-9)]
    if low + _FEW < high:
        some = [low + i * (high - low) / _FEW for i in range(1, _FEW)]
    plan = question.plan()
    return {own: own_guarantee(plan, delta, local_epsilon=own) for own in dict.fromkeys((low, *some, high))}
