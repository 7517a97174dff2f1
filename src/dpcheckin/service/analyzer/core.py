"""What the analyzer does next, and when: functions of its state, its ledger and what the shuffler says.

No network, no disk, no clock: the daemon carries out what is decided here. The order of the steps is the whole of crash
safety: announce (written down first), wait, charge, claim, collect, checkpoint, delete. After a crash the shuffler is
asked where the round stands, and the step that follows can be taken again without harm.

A round that is void by population costs nothing, but wears its clients out for nothing: each makes the next one twice
as long, up to a limit; after a while the pauses grow too; and after so many in a row the run ends and says why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpcheckin.errors import InvalidParameter, ServiceError
from dpcheckin.service.analyzer.batches import Decoded
from dpcheckin.service.analyzer.state import AnalyzerState
from dpcheckin.service.tasks import CountingTask, Task
from dpcheckin.service.wire.canonical import digest
from dpcheckin.service.wire.documents import OCTETS, PlanDocument, RoundDocument
from dpcheckin.service.wire.problems import Malformed
from dpcheckin.service.wire.schema import integer

RELEASED, VOID_BY_CHECKS = "released", "void by checks"
"""Outcomes of a batch that was fetched: used, or too little of it held when it was checked."""
CHARGED_OUTCOMES = (RELEASED, VOID_BY_CHECKS, "void by batch", "lost")
STATES = ("open", "closed", "void", "claimed", "done")


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
            if count is not None:
                integer(0)(name, count)
        if value["state"] == "void" and value.get("reason") not in ("population", "batch"):
            raise Malformed("a void round without a reason")
        return Status(value["state"], value.get("present"), value.get("reports"), value.get("reason"))


def doubt(plan: PlanDocument, status: Status, holders: int | None = None) -> str | None:
    """Why a closed round of a `plan` is not released, or None: what the shuffler says of its crowd (`status`) is less
    than the plan wants, or cannot be. `holders`: clients that may have a token of it, by the issuer's word."""
    present, reports = status.present, 1 if plan.keeps_one else status.reports
    if present is None or not present >= plan.minimum_present:
        return f"{present} clients were present, the plan wants {plan.minimum_present}"
    if holders is not None and present > holders:
        return f"{present} clients were present, the issuer knows {holders}"
    if reports is None or not plan.minimum_batch <= reports <= present:
        return f"{reports} reports of {present} clients, the plan wants {plan.minimum_batch}"
    return None


class PlanChanged(ServiceError):
    """The checkpoint belongs to another plan than the one in the configuration."""


class LedgerBehind(ServiceError):
    """The ledger does not hold what the checkpoint says was paid for."""


def check_ledger(state: AnalyzerState, charged: Callable[[int], bool]) -> None:
    """Charges are written before checkpoints: a ledger in which not every round that `state` knows is `charged` was put
    back."""
    for line in state.log:
        if line["state"] in CHARGED_OUTCOMES and not charged(line["round"]):
            raise LedgerBehind(
                f"round {line['round']} is in the checkpoint and not in the ledger: the ledger "
                "is an older copy, and would spend the same budget twice"
            )


def begin(plan: PlanDocument, task: Task) -> AnalyzerState:
    """The state before the first round. `plan`: as announced; `task`: whose first model it is."""
    return AnalyzerState(plan.to_object(), task.start())


def check_same_plan(state: AnalyzerState, plan: PlanDocument) -> PlanDocument:
    """The plan of the checkpoint `state`, if the configuration's `plan` (whose nonce is drawn anew) agrees with it."""
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
    """The announcement of the next round of a `plan`, by its number and model in the `state`; it opens `now` (seconds
    since the epoch) and takes `factor` times the plan's length. `key_id` is that of the opening key, `token_key` (in
    hex) the issuer's."""
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
    """A line of the log, for the round of a `state` that had this `status` and ended as `what`, with `more` figures
    that the analyzer may publish."""
    return {"round": state.round, "state": what, "present": status.present, "reports": status.reports, **more}


def check_task(plan: PlanDocument, task: Task) -> None:
    """Reports as their randomizer lays them out are for a `task` that counts, and only for it; the `plan` says which
    come."""
    if isinstance(task, CountingTask) != (plan.encoding == OCTETS):
        allowed = f"one that counts reports with encoding {OCTETS}, and another without"
        raise InvalidParameter("task", type(task).__name__, allowed)


def count(state: AnalyzerState, task: CountingTask, decoded: Decoded, status: Status) -> AnalyzerState:
    """The `state` with the reports of a round of this `status` counted by the `task`; a round without reports is asked
    again. Nothing of what was `decoded` counts when too few reports are left."""
    rows = np.zeros(0) if decoded.rows is None else decoded.rows
    present = status.present or decoded.reports
    after = task.count(state.task, rows, state.steps, present, decoded.dropped)
    return replace(state, task=after, steps=state.steps + (len(rows) > 0))


def learn(state: AnalyzerState, plan: PlanDocument, task: Task, decoded: Decoded, steps: int) -> AnalyzerState:
    """The `state` with what was `decoded` of a batch taken in; the `task` takes a step of the model, one of at most
    `steps`, when as many slots as the `plan` wants are together."""
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


VOID = "void by population"
_PATIENCE = 3  # void rounds in a row before pauses begin
_CALM = 5  # rounds that went well before they become shorter again


class TooManyVoidRounds(ServiceError):
    """So many rounds in a row were void that going on would wear clients out for nothing."""


@dataclass(frozen=True)
class Pacing:
    """What an operator allows."""

    longest: float = 8.0
    """Times the plan's `round_seconds` that a round may take."""
    most_void_rounds: int = 24
    """In a row, before the run ends; 0: it never ends for that."""
    largest_pause: float = 600.0
    """Seconds between two rounds."""

    def __post_init__(self) -> None:
        if not 1 <= self.longest < float("inf"):
            raise InvalidParameter("analyzer.longest_rounds", self.longest, "at least 1")
        if self.most_void_rounds < 0:
            raise InvalidParameter("analyzer.most_void_rounds", self.most_void_rounds, "at least 0")
        if not 0 <= self.largest_pause < float("inf"):
            raise InvalidParameter("analyzer.largest_pause", self.largest_pause, "at least 0")

    def factor(self, log: Sequence[dict[str, Any]]) -> float:
        """Times the plan's length that the next round takes. `log`: of all rounds, oldest first."""
        factor, calm = 1.0, 0
        for row in log:
            if row["state"] == VOID:
                factor, calm = min(2 * factor, self.longest), 0
                continue
            calm += 1
            if calm == _CALM:
                factor, calm = max(1.0, factor / 2), 0
        return factor

    def pause(self, log: Sequence[dict[str, Any]], seconds: float) -> float:
        """Seconds to wait after the rounds in the `log`, each of so many `seconds`, beyond what the schedule says."""
        void = void_in_a_row(log)
        if void <= _PATIENCE:
            return 0.0
        return float(min(self.largest_pause, seconds * 2.0 ** min(void - _PATIENCE, 40)))

    def check(self, log: Sequence[dict[str, Any]]) -> None:
        """Raise `TooManyVoidRounds` at the limit. `log`: of the rounds since the analyzer was started, oldest first."""
        void = void_in_a_row(log)
        if not self.most_void_rounds or void < self.most_void_rounds:
            return
        there = [row["present"] or 0 for row in log[-void:]]
        raise TooManyVoidRounds(
            f"{void:,} rounds in a row were void: {min(there):,} to {max(there):,} clients were "
            "there in time; start again when enough of them are"
        )


@dataclass(frozen=True)
class Schedule:
    """How the analyzer keeps time and rotates keys."""

    rotate_every: int = 0
    """Rounds between new opening keys; 0: never."""
    pause_seconds: float = 0.0
    """Time between the end of one round and the beginning of the next."""
    now: Callable[[], float] = time.time
    pacing: Pacing = field(default_factory=Pacing)


def void_in_a_row(log: Sequence[dict[str, Any]]) -> int:
    """Void rounds at the end of a log.

    >>> void_in_a_row([{"state": VOID}, {"state": "released"}, {"state": VOID}])
    1
    """
    return next((i for i, row in enumerate(reversed(log)) if row["state"] != VOID), len(log))
