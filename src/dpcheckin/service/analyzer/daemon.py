"""The analyzer at work: carries out what `core` decides, in the order that survives crashes.

One thread does everything that changes anything; the page only looks at snapshots. Every step is either durable before
the next one begins or can be repeated.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.analyzer import core, state
from dpcheckin.service.analyzer.batches import BatchReader, Decoded
from dpcheckin.service.analyzer.board import Board
from dpcheckin.service.analyzer.core import VOID, Schedule, Status, TooManyVoidRounds
from dpcheckin.service.analyzer.ledger import (
    LEDGER,
    BudgetSpent,
    ChargeReason,
    FleetBudget,
    Ledger,
    TotalLedger,
    check_round,
)
from dpcheckin.service.analyzer.parties import NO_TOKENS, IssuerClient, ShufflerClient, Stopped, TruncatedBatch
from dpcheckin.service.analyzer.state import AnalyzerState, KeyRing
from dpcheckin.service.pricing import Price
from dpcheckin.service.storage.files import make_folder
from dpcheckin.service.tasks import CountingTask, Task
from dpcheckin.service.wire.canonical import canonical
from dpcheckin.service.wire.documents import SHARES, PlanDocument, RoundDocument
from dpcheckin.service.wire.envelope import sizes
from dpcheckin.service.wire.problems import Problem, Refusal
from dpcheckin.service.wire.signing import signed, signed_bytes

log = logging.getLogger("dpcheckin.analyzer")

KEYS = "keys"
_POLL = 0.1
_FETCHES = 20


class Analyzer:
    """One run of one plan in one folder, in which ledger, keys and checkpoint live; a run goes on where it stopped.

    `plan` must be the folder's, if it has one already; `identity` signs everything that is announced; `issuer` is there
    if the plan names one; `budget` is that of all plans of the fleet, if they have one in common; `stop` ends the run.
    """

    def __init__(
        self,
        folder: Path,
        plan: PlanDocument,
        identity: Ed25519PrivateKey,
        task: Task,
        shuffler: ShufflerClient,
        schedule: Schedule | None = None,
        stop: threading.Event | None = None,
        issuer: IssuerClient | None = None,
        budget: FleetBudget | None = None,
    ) -> None:
        if (plan.issuer is None) != (issuer is None):
            raise InvalidParameter("issuer", plan.issuer, "in plan and settings, or in neither")
        self._issuer = issuer
        self.folder, self._task, self.identity = folder, task, identity
        self._shuffler = shuffler
        self._schedule = schedule or Schedule()
        self.stop = stop or threading.Event()
        self.rotate_now = threading.Event()
        make_folder(folder)
        kept = state.load(folder)
        if kept is None and (folder / LEDGER).exists() and (folder / LEDGER).stat().st_size:
            raise InvalidParameter("state", str(folder), "a folder whose checkpoint is there, or an empty one")
        self._state = core.begin(plan, task) if kept is None else kept
        self.plan = core.check_same_plan(self._state, plan)
        core.check_task(self.plan, task)
        self._first = len(self._state.log)
        self.price = Price(self.plan)
        self.board = Board(self.price, [shuffler] if issuer is None else [shuffler, issuer])
        with contextlib.ExitStack() as opened:  # given back at once if anything is wrong
            total = None if budget is None else opened.enter_context(contextlib.closing(TotalLedger(budget)))
            if kept is None:
                # a run that could not play a single round is not begun: its folder takes another plan
                check_round(self.price, 0, total)
                state.save(folder, self._state)
            self._ring = KeyRing(folder / KEYS, self.plan.suite)
            self.ledger = opened.enter_context(Ledger(folder / LEDGER, self.price, total))
            core.check_ledger(self._state, lambda number: self.ledger.charge_of(number) is not None)
            self._show()
            opened.pop_all()

    def close(self) -> None:
        """Give the ledger back."""
        self.ledger.close()

    def run(self) -> str:
        """Play rounds until plan, budget or operator say stop; returns which."""
        reason = "stopped"
        try:
            self._publish()
            while not self.stop.is_set():
                self._ensure_pending()
                self._advance()
        except (BudgetSpent, TooManyVoidRounds) as problem:
            reason = str(problem)
        except Stopped:
            pass
        log.info("finished: %s", reason)
        if self.ledger.total is not None:
            self.ledger.total.close()  # the next plan of the fleet may have it
        self.board.finish(reason)
        return reason

    def close_round(self) -> str:
        """Give up the round that is under way, whatever the shuffler has of it, and destroy its reports there; what was
        done. It is charged unless the shuffler says that nothing of it was or will be seen: its reports may be out."""
        number = self._state.round
        if self._state.pending is None:
            return "no round is under way"
        try:
            status = self._shuffler.status(number)
        except Stopped:
            status = Status("closed")  # nobody says so
        known = self.ledger.charge_of(number) is not None
        if not known and (status is None or (status.state, status.reason) == ("void", "population")):
            self._finish(self._state, status or Status("void"), VOID)
            return f"round {number} is closed, and was not charged: nothing of it was released"
        if status is not None and status.state == "open":
            raise InvalidParameter("round", number, "one that has ended: it takes reports until its time is over")
        charge = self.ledger.charge(number, ChargeReason.RELEASE)
        with contextlib.suppress(Stopped, Refusal):
            self._shuffler.claim(number, charge.digest)
            self._shuffler.delete(number)
        self._finish(self._state, status or Status("done"), "lost")
        return f"round {number} is closed, and charged: {self.ledger.charged} of {self.price.allowed_rounds} rounds"

    # --- announcing ---------------------------------------------------------------------------

    def _publish(self) -> None:
        signed_plan = signed_bytes(self.plan, self.identity)
        if self._issuer is not None:
            self._issuer.put_plan(signed_plan)  # first: clients that see the plan want tokens
        self._shuffler.put_plan(signed_plan)
        last = self._state.log[-1] if self._state.log else None
        if last is not None and last["state"] in (core.RELEASED, core.VOID_BY_CHECKS):
            # a crash between checkpoint and deletion leaves the batch behind
            self._shuffler.delete(last["round"])
        for held in self._ring.keys:
            self._announce_key(held.from_round)

    def _announce_key(self, from_round: int) -> None:
        held = self._ring.rotate(from_round)
        document = held.document(self.plan)
        self._shuffler.put_key(document.key_id, signed_bytes(document, self.identity))

    def _ensure_pending(self) -> None:
        if self._state.pending is not None:
            return
        self.ledger.check_next()  # a round that could not be paid for is not even opened
        if self.plan.numbered_slots and self._state.round >= self.plan.rounds:  # a slot that was void is over too
            raise BudgetSpent(f"all {self.plan.rounds} slots of the plan are over")
        pacing, rows = self._schedule.pacing, self._state.log
        pacing.check(rows[self._first :])  # an operator who starts it again wants it to try again
        number, every = self._state.round, self._schedule.rotate_every
        if self.rotate_now.is_set() or (every and number and number % every == 0):
            self.rotate_now.clear()
            self._announce_key(number)
            log.info("new opening key from round %d", number)
        key = self._ring.for_round(number).key
        factor, token_key = pacing.factor(rows), self._token_key(number)
        document = core.round_document(self.plan, self._state, key.key_id, self._schedule.now(), token_key, factor)
        if factor != 1:
            log.info("round %d takes %g times as long as planned", number, factor)
        # written down before it is sent: after a crash the same bytes are sent again
        self._keep(replace(self._state, pending=signed(document, self.identity)))

    def _token_key(self, number: int) -> str | None:
        """The issuer's key of a round; of one that it has left behind, a key without tokens.

        Then this folder is an older copy. The round was opened before, and the shuffler says what became of it; or it
        was not, and is void, since nobody has a token for it.
        """
        if self._issuer is None:
            return None
        try:
            return self._issuer.open_round(self.plan.id, number)
        except Refusal as refusal:
            if refusal.problem is not Problem.NOT_FOUND:
                raise
            log.warning("the issuer is past round %d; this folder is an older copy", number)
            return NO_TOKENS

    # --- one round ----------------------------------------------------------------------------

    def _advance(self) -> None:
        number = self._state.round
        status = self._shuffler.status(number)
        if status is None and self.ledger.charge_of(number) is not None:
            # paid for, and the shuffler has forgotten it: it was put back in time, and would
            # release this round a second time for one charge
            log.error("round %d was charged before; the shuffler is an older copy", number)
            self._finish(self._state, Status("done"), "lost")
        elif status is None:
            self._announce()
        elif status.state == "open":
            left = self._pending().closes - self._schedule.now()
            self.stop.wait(max(_POLL, left + 0.01))
        else:
            self._settle(number, status)

    def _announce(self) -> None:
        assert self._state.pending is not None
        self._shuffler.put_model(self._state.task.model)
        try:
            self._shuffler.put_round(self._state.round, canonical(self._state.pending))
        except Refusal as refusal:
            if refusal.problem is Problem.PLAN_EXHAUSTED:
                raise BudgetSpent("the shuffler has released all rounds of the plan") from None
            if refusal.problem is not Problem.ROUND_CLOSED:
                raise
            self._keep(replace(self._state, pending=None))  # too old to open: announce it anew

    def _settle(self, number: int, status: Status) -> None:
        if status.state == "void" and status.reason == "population":
            self._finish(self._state, status, VOID)  # costs nothing
        elif status.state == "void":  # its number of reports was seen
            self.ledger.charge(number, ChargeReason.VOID)
            self._finish(self._state, status, "void by batch")
        elif status.state == "done":
            # released to somebody who knew this folder's future: the folder was put back in time
            log.warning("round %d was released before; this folder is an older copy", number)
            self.ledger.charge(number, ChargeReason.RELEASE)
            self._finish(self._state, status, "lost")
        else:
            self._collect(number, status)
        longer = self._schedule.pacing.pause(self._state.log, self.plan.round_seconds)
        if longer:
            log.warning("too few clients again and again: pausing for %g seconds", longer)
        if self._schedule.pause_seconds + longer:
            self.stop.wait(self._schedule.pause_seconds + longer)

    def _collect(self, number: int, status: Status) -> None:
        holders = None if self._issuer is None else self._issuer.crowd(self.plan, number)
        doubt = core.doubt(self.plan, status, holders)
        # durable before the claim; of a crowd that cannot be nothing is fetched, but its numbers were seen
        charge = self.ledger.charge(number, ChargeReason.VOID if doubt else ChargeReason.RELEASE)
        self._shuffler.claim(number, charge.digest)
        began = time.perf_counter()
        if doubt is None:
            decoded = self._fetch(number, 1 if self.plan.keeps_one else status.reports or 0)
        else:
            log.error("round %d is void: the shuffler says that %s", number, doubt)
            decoded = Decoded(0, 0, None, too_few=True, reasons={doubt: 1})
        steps = max(1, self.price.allowed_rounds // int(self.plan.participation.get("minibatch", 1)))
        if isinstance(self._task, CountingTask):
            learned = core.count(self._state, self._task, decoded, status)
        else:
            learned = core.learn(self._state, self.plan, self._task, decoded, steps)
        self._finish(
            learned,
            status,
            core.VOID_BY_CHECKS if decoded.too_few else core.RELEASED,
            opened=decoded.reports,
            dropped=decoded.dropped,
            reasons=dict(decoded.reasons),
            spoiled=decoded.spoiled,
            seconds=round(time.perf_counter() - began, 3),
            **{name: float(value) for name, value in learned.task.metrics.items()},
        )
        self._shuffler.delete(number)
        self._ring.forget_before(number + 1)

    def _fetch(self, number: int, reports: int) -> Decoded:
        for attempt in range(_FETCHES):
            try:
                return self._read_batch(number, reports)
            except TruncatedBatch as problem:
                log.warning("batch of round %d, attempt %d: %s", number, attempt + 1, problem)
                if self.stop.wait(min(5.0, 0.1 * 2**attempt)):
                    raise Stopped("told to stop while a batch was fetched") from None
        raise TruncatedBatch(f"round {number}: {_FETCHES} attempts failed")

    def _read_batch(self, number: int, reports: int) -> Decoded:
        """A batch of as many `reports` as were announced; of any other nothing counts."""
        document, part = self._pending(), sizes(self.plan)
        key = self._ring.by_id(document.key_id)
        if key is None:
            log.error("the key of round %d is gone; its reports cannot be opened", number)
            return Decoded(0, 0, None)
        with self._shuffler.batch(number, max(part.released, part.share)) as records:
            first = next(records, None) if self.plan.encoding == SHARES else None
            if self.plan.encoding == SHARES and first is None:
                return Decoded(0, 0, None)
            reader, there = BatchReader(self.plan, document, key, first), 0
            for envelope in islice(records, reports + 1):
                reader.add(envelope)
                there += 1
        if there != reports:
            wrong = f"{'more' if there > reports else 'fewer'} reports than were announced"
            log.error("round %d is void: %s (%d)", number, wrong, reports)
            return Decoded(0, there, None, too_few=True, reasons={wrong: there})
        decoded = reader.result()
        for why, count in reader.dropped.items():
            log.warning("round %d: %d reports dropped: %s", number, count, why)
        if decoded.spoiled is not None:
            log.error("round %d teaches nothing: %s", number, decoded.spoiled)
        return decoded

    def _pending(self) -> RoundDocument:
        assert self._state.pending is not None
        return RoundDocument.from_object(self._state.pending["document"])

    # --- keeping and showing ------------------------------------------------------------------

    def _finish(self, after: AnalyzerState, status: Status, what: str, **more: Any) -> None:
        spent = self.ledger.spent
        line = core.row(
            self._state,
            status,
            what,
            charged=self.ledger.charged,
            epsilon=spent.epsilon,
            local_epsilon=spent.to_json()["local_epsilon"],
            closed=self._pending().closes,
            **more,
        )
        self._keep(after.with_row(line))
        log.info("round %d %s", line["round"], what)

    def _keep(self, after: AnalyzerState) -> None:
        state.save(self.folder, after)
        self._state = after
        self._show()

    def _show(self) -> None:
        self.board.show(self._state, self.ledger)
