"""The rules of the shuffler, without network, clock or randomness of their own.

Time and chance are given at the start; what must survive goes to the store. Every method may be
called from any thread. A request that cannot be granted raises `Refusal` with one of the known
problems, and has then changed nothing.

A round closes when the clock reaches its end, and stays closed: the step is written down, so that a
clock set back does not open it again. Whoever notices first (a request, `tick`, another front end)
takes the step; the store lets it happen once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcheckin.service import envelope
from dpcheckin.service.canonical import canonical, digest, parse
from dpcheckin.service.documents import SHARES, KeyDocument, PlanDocument, RoundDocument
from dpcheckin.service.envelope import Sizes
from dpcheckin.service.problems import Malformed, Problem, refuse
from dpcheckin.service.shuffler.chance import Chance, Ids
from dpcheckin.service.shuffler.records import (
    BY_BATCH,
    BY_POPULATION,
    Entry,
    RoundRecord,
    State,
    Submission,
)
from dpcheckin.service.shuffler.stores.base import (
    IdCollision,
    StorageBusy,
    StorageFailure,
    Store,
    Taken,
    Transaction,
)
from dpcheckin.service.signing import read_signed

CHUNK_BYTES = 4 << 20
DEFAULT_LARGEST_ENVELOPE = 64 << 20
_TRIES = 5
_TAKEN = {Taken.YES: None, Taken.DUPLICATE: Problem.DUPLICATE, Taken.CLOSED: Problem.ROUND_CLOSED}


@dataclass(frozen=True)
class View:
    """What clients are shown, read from the store once and then handed out from memory."""

    plan: PlanDocument
    sizes: Sizes
    page: bytes
    round: RoundRecord | None
    """The last round opened, whatever became of it."""
    key_id: bytes

    def size_of_release(self, count: int) -> int:
        """Bytes of a released batch."""
        shares = 4 + self.sizes.share if self.plan.encoding == SHARES else 0
        return shares + count * (4 + self.sizes.released)


@dataclass(frozen=True)
class Release:
    """A claimed batch: how long it is, and its bytes, a few megabytes at a time."""

    length: int
    chunks: Iterator[bytes]


@dataclass(frozen=True)
class Settled:
    """A round that has just been closed, for logs and metrics."""

    round: int
    state: State
    reason: str | None
    present: int
    reports: int | None


class Shuffler:
    """One shuffler, or one of several front ends over the same store."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Callable[[], float],
        chance: Chance,
        identity: bytes | None = None,
        largest_envelope: int = DEFAULT_LARGEST_ENVELOPE,
        on_settled: Callable[[Settled], None] = lambda settled: None,
    ) -> None:
        self.store = store
        self.clock = clock
        self._chance = chance
        self._identity = identity
        self._largest_envelope = largest_envelope
        self._on_settled = on_settled
        self._over: set[int] = set()  # rounds whose end we have seen, even if it is not stored yet
        self._purging = threading.Lock()
        self.view: View | None = None

    # --- what everybody is shown ------------------------------------------------------------

    def refresh(self) -> View | None:
        """Read plan, keys and round again; another front end may have changed them."""
        with self.store.transaction() as transaction:
            self.view = self._read_view(transaction)
        return self.view

    def _read_view(self, transaction: Transaction) -> View | None:
        stored = transaction.plan()
        if stored is None:
            return None
        signed_plan = parse(stored.document)
        plan = PlanDocument.from_object(signed_plan["document"])
        keys = [parse(document) for document in transaction.keys(stored.id)]
        record = transaction.last_round(stored.id)
        key_id = b"" if record is None else _round_document(record).key_id
        page = canonical({"plan": signed_plan, "keys": keys})
        return View(plan, envelope.sizes(plan), page, record, key_id)

    def plan_page(self) -> bytes:
        """The signed plan and its signed keys."""
        return self._planned().page

    def current(self) -> RoundRecord:
        """The round that is open now."""
        view = self.view
        if view is None or view.round is None or not self._is_open(view.round):
            refuse(Problem.NO_ROUND)
        return view.round

    def model(self, model: bytes) -> bytes:
        """The bytes of a model."""
        found = self.store.model(model)
        return refuse(Problem.NOT_FOUND) if found is None else found

    def _planned(self) -> View:
        return refuse(Problem.NOT_FOUND) if self.view is None else self.view

    def _is_open(self, record: RoundRecord) -> bool:
        return self._may_be_open(record) and self.clock() >= record.opens

    def _may_be_open(self, record: RoundRecord) -> bool:
        if record.state is not State.OPEN or record.serial in self._over:
            return False
        if self.clock() < record.closes:
            return True
        self._over.add(record.serial)
        return False

    # --- reports ----------------------------------------------------------------------------

    def expect(self, number: int) -> Sizes:
        """The sizes of envelopes for a round, if that round takes any now."""
        view = self._planned()
        record = view.round
        if record is None or number > record.number:
            refuse(Problem.NO_ROUND)
        if number < record.number or not self._may_be_open(record):
            refuse(Problem.ROUND_CLOSED)
        if not self._is_open(record):
            refuse(Problem.NO_ROUND)
        return view.sizes

    def examine(self, client: bytes, number: int, body: bytes) -> Submission:
        """Look at an envelope without opening it: is it of this plan, round, key and size?"""
        sizes = self.expect(number)
        view = self._planned()
        assert view.round is not None
        if len(body) != sizes.envelope:
            refuse(Problem.TOO_LARGE if len(body) > sizes.envelope else Problem.WRONG_SIZE)
        try:
            header = envelope.read_header(body)
        except Malformed:
            refuse(Problem.MALFORMED)
        report = envelope.TWO_SHARES if view.plan.encoding == SHARES else envelope.REPORT
        expected = (view.plan.suite, view.round.number, view.key_id, sizes.sealed)
        if (
            header.suite,
            header.round,
            header.key_id,
            header.sealed_bytes,
        ) != expected or header.kind not in (envelope.COVER, report):
            refuse(Problem.MALFORMED)
        kept = None if header.kind == envelope.COVER else body
        return Submission(client, view.round.serial, view.round.closes, kept)

    def accept(self, submissions: Sequence[Submission]) -> list[Problem | None]:
        """Take many at once, durably; None for each that was taken, else why it was not."""
        answers: list[Problem | None] = [Problem.ROUND_CLOSED] * len(submissions)
        now = self.clock()
        by_round: dict[int, list[int]] = {}
        for place, submission in enumerate(submissions):
            if now < submission.closes and submission.serial not in self._over:
                by_round.setdefault(submission.serial, []).append(place)
        for serial, places in by_round.items():
            taken = self._accept(serial, [submissions[place] for place in places])
            for place, outcome in zip(places, taken, strict=True):
                answers[place] = _TAKEN[outcome]
        return answers

    def _accept(self, serial: int, submissions: Sequence[Submission]) -> list[Taken]:
        for _ in range(_TRIES):
            ids = self._chance.ids(len(submissions))
            if len(set(ids)) < len(ids):
                continue
            entries = [Entry(s.client, i, s.body) for s, i in zip(submissions, ids, strict=True)]
            try:
                return self.store.accept(serial, entries)
            except IdCollision:
                continue
        raise StorageFailure("random ids keep colliding: the generator is broken")

    def mark_present(self, serial: int, clients: Sequence[bytes]) -> bool:
        """Count clients as present in a round, durably; False if it is over."""
        return serial not in self._over and self.store.mark_present(serial, clients)

    # --- what the analyzer publishes --------------------------------------------------------

    def publish_plan(self, body: bytes) -> None:
        """A signed plan. It becomes the current one when nothing of the last is under way."""
        plan, document = self._signed(PlanDocument, body)
        if envelope.sizes(plan).envelope > self._largest_envelope:
            refuse(Problem.TOO_LARGE)
        with self.store.transaction() as transaction:
            current = transaction.plan()
            if current is None or current.id != plan.id:
                if transaction.knows_plan(plan.id):
                    refuse(Problem.CONFLICT)
                busy = transaction.rounds(State.OPEN, State.CLOSED, State.CLAIMED)
                if busy or transaction.unpurged():
                    refuse(Problem.ROUND_OPEN)
                transaction.set_plan(plan.id, document)
            elif current.document != document:
                refuse(Problem.CONFLICT)
            self.view = self._read_view(transaction)

    def publish_key(self, key_id: bytes, body: bytes) -> None:
        """A signed opening key of the current plan."""
        key, document = self._signed(KeyDocument, body)
        if key.key_id != key_id:
            refuse(Problem.MALFORMED)
        with self.store.transaction() as transaction:
            plan = self._current_plan(transaction)
            if bytes.fromhex(key.plan) != plan.id or key.suite != plan.suite:
                refuse(Problem.CONFLICT)
            known = transaction.key(plan.id, key_id)
            if known is None:
                transaction.put_key(plan.id, key_id, key.from_round, document)
            elif known[1] != document:
                refuse(Problem.CONFLICT)
            self.view = self._read_view(transaction)

    def publish_model(self, model: bytes, body: bytes) -> None:
        """A model under its digest."""
        if digest(body) != model:
            refuse(Problem.MALFORMED)
        with self.store.transaction() as transaction:
            transaction.put_model(model, body)

    def open_round(self, number: int, body: bytes) -> None:
        """A signed round; from `opens` on clients see it."""
        opened, document = self._signed(RoundDocument, body)
        if opened.round != number:
            refuse(Problem.MALFORMED)
        self.close_due()
        with self.store.transaction() as transaction:
            plan = self._current_plan(transaction)
            known = transaction.round(plan.id, number)
            if known is not None and known.document == document:
                return
            last = transaction.last_round(plan.id)
            if (
                bytes.fromhex(opened.plan) != plan.id
                or (last is not None and number <= last.number)
                or (plan.numbered_slots and number >= plan.rounds)
            ):
                refuse(Problem.CONFLICT)
            if transaction.rounds(State.OPEN):
                refuse(Problem.ROUND_OPEN)
            key = transaction.key(plan.id, opened.key_id)
            if key is None or key[0] > number or not transaction.has_model(opened.model_digest):
                refuse(Problem.NOT_FOUND)
            if self.clock() >= opened.closes:
                refuse(Problem.ROUND_CLOSED)
            if self._used(transaction, plan) >= plan.rounds:
                refuse(Problem.PLAN_EXHAUSTED)
            record = RoundRecord(0, plan.id, number, document, opened.opens, opened.closes)
            transaction.add_round(record)
            transaction.forget_models(keep=opened.model_digest)
            self.view = self._read_view(transaction)

    def _signed(self, kind: type[Any], body: bytes) -> tuple[Any, bytes]:
        """A signed document and its canonical bytes."""
        try:
            value = parse(body)
            return read_signed(kind, value, self._identity), canonical(value)
        except Malformed:
            refuse(Problem.MALFORMED)

    @staticmethod
    def _current_plan(transaction: Transaction) -> PlanDocument:
        stored = transaction.plan()
        if stored is None:
            refuse(Problem.NOT_FOUND)
        return PlanDocument.from_object(parse(stored.document)["document"])

    @staticmethod
    def _used(transaction: Transaction, plan: PlanDocument, *, waiting: bool = True) -> int:
        """Rounds the analyzer has been charged for, or (waiting) may still claim."""
        rounds = transaction.rounds(State.CLOSED, State.CLAIMED, State.DONE, State.VOID)
        return sum(
            record.plan == plan.id
            and (record.state is not State.VOID or record.reason == BY_BATCH)
            and (waiting or record.state is not State.CLOSED)
            for record in rounds
        )

    # --- closing ----------------------------------------------------------------------------

    def tick(self) -> None:
        """Close what is due, destroy what is left of void and done rounds."""
        for record in self.close_due():
            self._purge(record, wait=False)

    def close_due(self) -> list[RoundRecord]:
        """Close the rounds whose time is up; which rounds have something left to destroy?"""
        with self.store.transaction() as transaction:
            now = self.clock()
            open_rounds = transaction.rounds(State.OPEN)
            due = [r for r in open_rounds if now >= r.closes or r.serial in self._over]
            settled = [self._settle(transaction, record) for record in due]
            left = transaction.unpurged()
            self.view = self._read_view(transaction)
        for one in settled:
            self._on_settled(one)
        if settled and not left:
            self._clean_if_possible()  # who was there is nobody's business any more
        return left

    def _settle(self, transaction: Transaction, record: RoundRecord) -> Settled:
        self._over.add(record.serial)
        # First the state, which keeps further reports out, then the counts.
        transaction.change_round(record.serial, state=State.CLOSED)
        present, held = transaction.counts(record.serial)
        plan = self._plan_of(transaction, record)
        state, reason, reports = State.CLOSED, None, held if not plan.keeps_one else min(held, 1)
        told: int | None = reports
        if present < plan.population:
            # The number of reports depends on secret coins, and this round is to cost nothing.
            state, reason, told = State.VOID, BY_POPULATION, None
        elif held < plan.minimum_batch:
            state, reason = State.VOID, BY_BATCH
        transaction.change_round(
            record.serial, state=state, reason=reason, present=present, reports=told
        )
        transaction.forget_attendance(record.serial)
        return Settled(record.number, state, reason, present, told)

    @staticmethod
    def _plan_of(transaction: Transaction, record: RoundRecord) -> PlanDocument:
        stored = transaction.plan()
        # A plan is only replaced when none of its rounds is open.
        assert stored is not None and stored.id == record.plan
        return PlanDocument.from_object(parse(stored.document)["document"])

    def _purge(self, record: RoundRecord, *, wait: bool) -> None:
        if not self._purging.acquire(blocking=wait):
            return  # whoever is at it finishes it
        try:
            view = self.view
            at_once = 1 if view is None else max(1, 2 * CHUNK_BYTES // view.sizes.envelope)
            while not self.store.purge(record.serial, at_once):
                self._clean_if_possible()  # keeps the log short while much is overwritten
            self.store.clean()
            with self.store.transaction() as transaction:
                transaction.change_round(record.serial, purged=True)
        finally:
            self._purging.release()

    def _clean_if_possible(self) -> None:
        with suppress(StorageBusy):  # the next cleaning takes this with it
            self.store.clean()

    # --- what the analyzer takes ------------------------------------------------------------

    def status(self, number: int) -> dict[str, Any]:
        """State and, once it is not open, counts of a round."""
        record = self._round(number)
        return {
            "state": record.state.value,
            "present": record.present,
            "reports": record.reports,
            "reason": record.reason,
        }

    def _round(self, number: int) -> RoundRecord:
        """A round of the current plan, closed if it is time."""
        record = self._read_round(number)
        if record.state is State.OPEN and not self._may_be_open(record):
            self.close_due()
            record = self._read_round(number)
        return record

    def _read_round(self, number: int) -> RoundRecord:
        with self.store.transaction() as transaction:
            plan = transaction.plan()
            record = None if plan is None else transaction.round(plan.id, number)
            self.view = self._read_view(transaction)
        return refuse(Problem.NOT_FOUND) if record is None else record

    def claim(self, number: int, body: bytes) -> None:
        """Fix the order of a closed batch for a charge that stands in the analyzer's ledger."""
        charge = _charge(body)
        record = self._round(number)
        order, share_sum = np.empty(0, dtype=np.int64), None
        if record.state is State.CLOSED:  # its reports change no more: no need to hold up others
            plan = self._planned().plan
            order = self._order(record, plan)
            share_sum = self._share_sum(record) if plan.encoding == SHARES else None
        with self.store.transaction() as transaction:
            again = transaction.round(record.plan, number)
            assert again is not None
            if again.state is State.CLAIMED:
                if again.charge != charge:
                    refuse(Problem.CONFLICT)
                return
            if again.state is not State.CLOSED:
                refuse(Problem.ROUND_OPEN if again.state is State.OPEN else Problem.NOT_CLAIMED)
            plan = self._current_plan(transaction)
            if self._used(transaction, plan, waiting=False) >= plan.rounds:
                refuse(Problem.PLAN_EXHAUSTED)
            transaction.fix_release(again.serial, order)
            transaction.change_round(
                again.serial, state=State.CLAIMED, charge=charge, share_sum=share_sum
            )
        if plan.keeps_one:
            self._clean_if_possible()

    def _order(self, record: RoundRecord, plan: PlanDocument) -> Ids:
        ids = self.store.report_ids(record.serial)
        order: Ids = ids[self._chance.permutation(len(ids))]
        return order[:1] if plan.keeps_one else order

    def _share_sum(self, record: RoundRecord) -> bytes:
        sizes = self._planned().sizes
        total = np.zeros(sizes.share // 4, dtype=np.uint32)
        for bodies in self.store.each_body(record.serial, self._at_once(sizes)):
            for body in bodies:
                total += np.frombuffer(body, dtype="<u4", offset=sizes.released)
        return total.astype("<u4").tobytes()

    @staticmethod
    def _at_once(sizes: Sizes) -> int:
        return max(1, CHUNK_BYTES // sizes.envelope)

    def batch(self, number: int) -> Release:
        """A claimed batch in its fixed order; the same bytes every time."""
        record = self._round(number)
        if record.state is not State.CLAIMED or record.reports is None:
            refuse(Problem.NOT_CLAIMED)
        view = self._planned()
        return Release(view.size_of_release(record.reports), self._chunks(record, view.sizes))

    def _chunks(self, record: RoundRecord, sizes: Sizes) -> Iterator[bytes]:
        assert record.reports is not None
        if record.share_sum is not None:
            yield len(record.share_sum).to_bytes(4, "big") + record.share_sum
        length, at_once = sizes.released.to_bytes(4, "big"), self._at_once(sizes)
        for start in range(0, record.reports, at_once):
            count = min(at_once, record.reports - start)
            bodies = self.store.released(record.serial, start, count)
            if len(bodies) != count:
                raise StorageFailure("a claimed batch is no longer complete")
            yield b"".join(part for body in bodies for part in (length, body[: sizes.released]))

    def finish(self, number: int) -> None:
        """The analyzer has the batch: destroy it. Returns when nothing is left of it."""
        record = self._round(number)
        with self.store.transaction() as transaction:
            again = transaction.round(record.plan, number)
            assert again is not None
            if again.state is State.CLAIMED:
                transaction.change_round(again.serial, state=State.DONE)
            elif again.state is not State.DONE:
                refuse(Problem.NOT_CLAIMED)
        if not again.purged:
            self._purge(again, wait=True)


def _round_document(record: RoundRecord) -> RoundDocument:
    return RoundDocument.from_object(parse(record.document)["document"])


def _charge(body: bytes) -> bytes:
    try:
        value = parse(body)
    except Malformed:
        refuse(Problem.MALFORMED)
    text = value.get("charge") if isinstance(value, dict) and len(value) == 1 else None
    if not isinstance(text, str) or len(text) != 64:
        refuse(Problem.MALFORMED)
    try:
        return bytes.fromhex(text)
    except ValueError:
        refuse(Problem.MALFORMED)
