"""What the analyzer does next: a function of its state, its ledger and what the shuffler says.

No network, no disk, no clock: the daemon carries out what is decided here. The order of the steps
is the whole of crash safety: announce (written down first), wait, charge, claim, collect,
checkpoint, delete. After a crash the shuffler is asked where the round stands, and the step that
follows from the answer can be taken again without harm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from dpcheckin.errors import InvalidParameter, ServiceError
from dpcheckin.service.analyzer.batches import Decoded
from dpcheckin.service.analyzer.state import AnalyzerState
from dpcheckin.service.tasks import CountingTask, Task
from dpcheckin.service.wire.canonical import digest
from dpcheckin.service.wire.documents import OCTETS, PlanDocument, RoundDocument
from dpcheckin.service.wire.problems import Malformed

RELEASED, VOID_BY_CHECKS = "released", "void by checks"
"""Outcomes of a batch that was fetched: used, or too little of it held when it was checked."""
CHARGED_OUTCOMES = (RELEASED, VOID_BY_CHECKS, "void by batch", "lost")
STATES = ("open", "closed", "void", "claimed", "done")


class Step(Enum):
    """The next thing to do with the round under way."""

    ANNOUNCE = "announce"  # the shuffler has not seen it
    WAIT = "wait"  # it is open
    SKIP = "skip"  # void by population: costs nothing
    CHARGE_AND_SKIP = "charge and skip"  # void by batch: its number of reports was seen
    CHARGE_AND_COLLECT = "charge and collect"  # closed or claimed: charge, claim, open, learn
    CHARGE_AS_LOST = "charge as lost"  # taken and deleted, and not in our checkpoint


@dataclass(frozen=True)
class Status:
    """What the shuffler says about a round."""

    state: str
    present: int | None = None
    reports: int | None = None
    reason: str | None = None

    @staticmethod
    def from_object(value: Any) -> Status:
        """Read the answer; anything unexpected is an error, not a guess."""
        if not isinstance(value, dict) or value.get("state") not in STATES:
            raise Malformed("not the state of a round")
        for name in ("present", "reports"):
            count = value.get(name)
            if count is not None and (type(count) is not int or count < 0):
                raise Malformed(f"{name} is not a count")
        if value["state"] == "void" and value.get("reason") not in ("population", "batch"):
            raise Malformed("a void round without a reason")
        return Status(
            value["state"], value.get("present"), value.get("reports"), value.get("reason")
        )


def next_step(status: Status | None) -> Step:
    """What follows from the shuffler's answer (None: it does not know the round)."""
    if status is None:
        return Step.ANNOUNCE
    if status.state == "void":
        return Step.SKIP if status.reason == "population" else Step.CHARGE_AND_SKIP
    return {
        "open": Step.WAIT,
        "closed": Step.CHARGE_AND_COLLECT,
        "claimed": Step.CHARGE_AND_COLLECT,
        "done": Step.CHARGE_AS_LOST,
    }[status.state]


class PlanChanged(ServiceError):
    """The checkpoint belongs to another plan than the one in the configuration."""


class LedgerBehind(ServiceError):
    """The ledger does not hold what the checkpoint says was paid for."""


def check_ledger(state: AnalyzerState, charged: Callable[[int], bool]) -> None:
    """Charges are written before checkpoints: a ledger that lacks one has been put back.

    Args:
        state: the checkpoint.
        charged: whether the ledger holds a charge of a round, by its number.
    """
    for line in state.log:
        if line["state"] in CHARGED_OUTCOMES and not charged(line["round"]):
            raise LedgerBehind(
                f"round {line['round']} is in the checkpoint and not in the ledger: the ledger "
                "is an older copy, and would spend the same budget twice"
            )


def begin(plan: PlanDocument, task: Task) -> AnalyzerState:
    """The state before the first round.

    Args:
        plan: as announced.
        task: whose first model it is.
    """
    return AnalyzerState(plan.to_object(), task.start())


def check_same_plan(state: AnalyzerState, plan: PlanDocument) -> PlanDocument:
    """The checkpoint's plan, if the configuration (whose nonce is drawn anew) agrees with it.

    Args:
        state: the checkpoint.
        plan: as the configuration has it.
    """
    kept = PlanDocument.from_object(state.plan)
    if replace(plan, nonce=kept.nonce) != kept:
        raise PlanChanged("the folder holds a run of another plan; use a new one")
    return kept


def round_document(
    plan: PlanDocument,
    state: AnalyzerState,
    key_id: bytes,
    now: float,
    token_key: str | None = None,
    factor: float = 1.0,
) -> RoundDocument:
    """The announcement of the next round.

    Args:
        plan: the plan of the run.
        state: number of the round and model.
        key_id: eight bytes, of the opening key.
        now: seconds since the epoch: when the round opens.
        token_key: the issuer's of the round, in hex; None in a plan without an issuer.
        factor: times the plan's length that this round takes.
    """
    return RoundDocument(
        plan=plan.id.hex(),
        round=state.round,
        model=digest(state.task.model).hex(),
        key=key_id.hex(),
        opens=now,
        closes=now + factor * plan.round_seconds,
        token_key=token_key,
    )


def row(state: AnalyzerState, status: Status, what: str, **more: Any) -> dict[str, Any]:
    """A line of the log: figures that the analyzer may know and publish.

    Args:
        state: before the round is left behind.
        status: what the shuffler says of it.
        what: the outcome, such as `released`.
        more: further figures.
    """
    return {
        "round": state.round,
        "state": what,
        "present": status.present,
        "reports": status.reports,
        **more,
    }


def check_task(plan: PlanDocument, task: Task) -> None:
    """Reports as their randomizer lays them out are for tasks that count, and only for them.

    Args:
        plan: of the run.
        task: that is to take its reports.
    """
    if isinstance(task, CountingTask) != (plan.encoding == OCTETS):
        allowed = f"one that counts reports with encoding {OCTETS}, and another without"
        raise InvalidParameter("task", type(task).__name__, allowed)


def count(
    state: AnalyzerState, task: CountingTask, decoded: Decoded, status: Status
) -> AnalyzerState:
    """The state with the reports of a round counted; a round without reports is asked again.

    Args:
        state: before the batch.
        task: counts reports.
        decoded: what the batch came to; nothing of it counts when too few reports are left.
        status: what the shuffler says of the round.
    """
    rows = np.zeros(0) if decoded.rows is None else decoded.rows
    present = status.present or decoded.reports
    after = task.count(state.task, rows, state.steps, present, decoded.dropped)
    return replace(state, task=after, steps=state.steps + (len(rows) > 0))


def learn(
    state: AnalyzerState, plan: PlanDocument, task: Task, decoded: Decoded, steps: int
) -> AnalyzerState:
    """The state with a batch taken in; a step of the model when enough slots are together.

    Args:
        state: before the batch.
        plan: says how many slots make one step.
        task: takes the step.
        decoded: what the batch came to.
        steps: at most so many steps will be taken in all.
    """
    minibatch = int(plan.participation.get("minibatch", 1))
    total, reports = state.partial, state.partial_reports
    assert not isinstance(task, CountingTask)
    if decoded.total is not None:
        total = decoded.total if total is None else total + decoded.total
        reports += decoded.reports
    if (state.round + 1) % minibatch:
        return replace(state, partial=total, partial_reports=reports)
    done = replace(state, partial=None, partial_reports=0)
    if total is None:
        return done
    after = task.step(state.task, total, reports, state.steps, steps)
    return replace(done, task=after, steps=state.steps + 1)
