"""The rules of the shuffler, without network, clock or randomness of their own.

Time and chance are given at the start; what must survive goes to the store. Every method may be called from any thread.
A request that cannot be granted raises `Refusal` with one of the known problems, and has then changed nothing. What the
analyzer publishes is checked, kept once, and never changed afterwards; repeating a request changes nothing. What it
takes is in a random order that is drawn over ids, not over bodies, and written down before the first byte leaves: a
batch larger than memory streams, and is the same every time it is asked for until it is destroyed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dpcheckin.service.shuffler.records import BY_POPULATION, Entry, IdCollision, RoundRecord, State, Submission
from dpcheckin.service.shuffler.rounds import CHUNK_BYTES, Release, Rounds
from dpcheckin.service.storage.database import StorageFailure
from dpcheckin.service.wire import envelope
from dpcheckin.service.wire.canonical import canonical, digest, parse
from dpcheckin.service.wire.documents import (
    MOST_VOID_ROUNDS,
    SHARES,
    KeyDocument,
    PlanDocument,
    RoundDocument,
    VoidDocument,
)
from dpcheckin.service.wire.envelope import Sizes
from dpcheckin.service.wire.problems import Malformed, Problem, refuse
from dpcheckin.service.wire.signing import D, read_signed, signed_bytes

_TRIES = 5
_DIGEST = re.compile("[0-9a-f]{64}")


class Shuffler(Rounds):
    """One shuffler, or one of several front ends over the same store."""

    # --- what everybody is shown ------------------------------------------------------------

    def plan_page(self) -> bytes:
        """The signed plan and its signed keys."""
        return self.planned().page

    def current(self) -> RoundRecord:
        """The round that is open now."""
        view = self.view
        if view is None or view.round is None or not self.is_open(view.round):
            refuse(Problem.NO_ROUND)
        return view.round

    def model(self, model: bytes) -> bytes:
        """The bytes of a model."""
        body = self.store.model(model)
        return refuse(Problem.NOT_FOUND) if body is None else body

    def void_statement(self) -> bytes:
        """The rounds of this plan that were void by population, signed; refuses without a key."""
        view = self.planned()
        if self.signer is None:
            refuse(Problem.NOT_FOUND)
        record = view.round
        if record is not None and record.state is State.OPEN and not self.may_be_open(record):
            self.close_due()
            view = self.planned()
        last = None if view.round is None else (view.round.number, view.round.state)
        known = (view.plan.nonce, last)
        if self._stated is None or self._stated[0] != known:
            self._stated = (known, self._state_void(view.plan.id))
        return self._stated[1]

    def _state_void(self, plan: bytes) -> bytes:
        assert self.signer is not None
        with self.store.transaction() as transaction:
            void = [
                record.number
                for record in transaction.rounds(State.VOID)
                if record.plan == plan and record.reason == BY_POPULATION
            ]
        return signed_bytes(VoidDocument(plan.hex(), tuple(sorted(void)[-MOST_VOID_ROUNDS:])), self.signer)

    # --- reports ----------------------------------------------------------------------------

    def examine(self, client: bytes, number: int, body: bytes) -> Submission:
        """Look at a client's envelope without opening it: is the `body` of this plan, round `number`, key and size?"""
        view = self.planned()
        record = view.round
        if record is None or number > record.number:
            refuse(Problem.NO_ROUND)
        if number < record.number or not self.may_be_open(record):
            refuse(Problem.ROUND_CLOSED)
        if self.clock() < record.opens:
            refuse(Problem.NO_ROUND)
        if len(body) != view.sizes.envelope:
            refuse(Problem.TOO_LARGE if len(body) > view.sizes.envelope else Problem.WRONG_SIZE)
        header = body[: envelope.HEADER_BYTES]
        if header != view.report_header and header != view.cover_header:
            refuse(Problem.MALFORMED)
        # from here on both go the same way: what a cover costs must be what a report costs
        cover = header != view.report_header
        return Submission(client, record.serial, record.closes, body, cover)

    def accept(self, submissions: Sequence[Submission]) -> list[Problem | None]:
        """Take many of any rounds at once, durably; None for each that was taken, else why it was not."""
        now = self.clock()
        answers: list[Problem | None] = [Problem.ROUND_CLOSED] * len(submissions)
        by_round: dict[int, list[int]] = {}
        for place, submission in enumerate(submissions):
            if now < submission.closes and submission.serial not in self.ended:
                by_round.setdefault(submission.serial, []).append(place)
        for serial, places in by_round.items():
            taken = self._accept(serial, [submissions[place] for place in places])
            for place, problem in zip(places, taken, strict=True):
                answers[place] = problem
        return answers

    def _accept(self, serial: int, submissions: Sequence[Submission]) -> list[Problem | None]:
        for _ in range(_TRIES):
            ids = self.chance.ids(len(submissions))
            if len(set(ids)) < len(ids):
                continue
            entries = [Entry(s.client, ~i if s.cover else i, s.body) for s, i in zip(submissions, ids, strict=True)]
            try:
                return self.store.accept(serial, entries)
            except IdCollision:
                continue
        raise StorageFailure("random ids keep colliding: the generator is broken")

    def mark_present(self, serial: int, clients: Sequence[bytes]) -> bool:
        """Count clients as present in the round `serial`, durably; False if it is over."""
        return serial not in self.ended and self.store.mark_present(serial, clients)

    # --- what the analyzer publishes ----------------------------------------------------------

    def publish_plan(self, body: bytes) -> None:
        """A signed plan. It becomes the current one when nothing of the last is under way."""
        plan, document = self._signed(PlanDocument, body)
        if envelope.sizes(plan).envelope > self.largest_envelope:
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
            self.view = self.read_view(transaction)

    def publish_key(self, key_id: bytes, body: bytes) -> None:
        """A signed opening key `key_id` of the current plan, with the `body` of its request."""
        key, document = self._signed(KeyDocument, body)
        if key.key_id != key_id:
            refuse(Problem.MALFORMED)
        with self.store.transaction() as transaction:
            plan = self.current_plan(transaction)
            if bytes.fromhex(key.plan) != plan.id or key.suite != plan.suite:
                refuse(Problem.CONFLICT)
            known = transaction.key(plan.id, key_id)
            if known is None:
                transaction.put_key(plan.id, key_id, key.from_round, document)
            elif known[1] != document:
                refuse(Problem.CONFLICT)
            self.view = self.read_view(transaction)

    def publish_model(self, model: bytes, body: bytes) -> None:
        """The `body` of a model under its digest."""
        if digest(body) != model:
            refuse(Problem.MALFORMED)
        with self.store.transaction() as transaction:
            transaction.put_model(model, body)

    def open_round(self, number: int, body: bytes) -> None:
        """A signed round in `body`; from `opens` on clients see it under its number."""
        opened, document = self._signed(RoundDocument, body)
        if opened.round != number:
            refuse(Problem.MALFORMED)
        self.close_due()
        with self.store.transaction() as transaction:
            plan = self.current_plan(transaction)
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
            if self.used(transaction, plan) >= plan.rounds:
                refuse(Problem.PLAN_EXHAUSTED)
            record = RoundRecord(0, plan.id, number, document, opened.opens, opened.closes)
            transaction.create_round_tables(transaction.insert_round(record))
            transaction.forget_models(keep=opened.model_digest)
            self.view = self.read_view(transaction)

    def _signed(self, kind: type[D], body: bytes) -> tuple[D, bytes]:
        """A signed document and its canonical bytes."""
        if self.needs_identity and self.identity is None:
            refuse(Problem.UNKNOWN_ANALYZER)
        try:
            value = parse(body)
            return read_signed(kind, value, self.identity), canonical(value)
        except Malformed:
            refuse(Problem.MALFORMED)

    # --- what the analyzer takes --------------------------------------------------------------

    def status(self, number: int) -> dict[str, Any]:
        """State and, once it is not open, counts of a round."""
        record = self.find(number)
        secret = self.planned().plan.keeps_one
        return {
            "state": record.state.value,
            "present": record.present,
            "reports": None if secret else record.reports,
            "reason": record.reason,
        }

    def claim(self, number: int, body: bytes) -> None:
        """Fix the order of the closed batch `number` for a charge that stands in the analyzer's ledger, says `body`."""
        charge = _charge(body)
        record = self.find(number)
        order, share_sum = np.empty(0, dtype=np.int64), None
        if record.state is State.CLOSED:  # its reports change no more: no need to hold up others
            plan = self.planned().plan
            ids = self.store.report_ids(record.serial)
            order = ids[self.chance.permutation(len(ids))][: 1 if plan.keeps_one else None]
            share_sum = self._share_sum(record) if plan.encoding == SHARES else None
            if plan.keeps_one and not len(order):
                share_sum = self._dummy(record, plan)
        with self.store.transaction() as transaction:
            again = transaction.round(record.plan, number)
            assert again is not None
            if again.state is State.CLAIMED:
                if again.charge != charge:
                    refuse(Problem.CONFLICT)
                return
            if again.state is not State.CLOSED:
                refuse(Problem.ROUND_OPEN if again.state is State.OPEN else Problem.NOT_CLAIMED)
            plan = self.current_plan(transaction)
            if self.used(transaction, plan, waiting=False) >= plan.rounds:
                refuse(Problem.PLAN_EXHAUSTED)
            transaction.fix_release(again.serial, order)
            transaction.change_round(again.serial, state=State.CLAIMED, charge=charge, share_sum=share_sum)
        if plan.keeps_one:
            self.clean_if_possible()

    def _dummy(self, record: RoundRecord, plan: PlanDocument) -> bytes:
        """What fills an empty slot: a report about nothing, sealed to the round's key.

        The analyzer must not learn that the slot was empty, or it would know who was missing.
        """
        # imported here: randomizers bring all of accounting along, and few shufflers need any
        from dpcheckin.randomizers import SecureSource
        from dpcheckin.service.pricing import randomizer_of
        from dpcheckin.service.reports import make_envelope, neutral_value

        opened = read_signed(RoundDocument, parse(record.document), None)
        with self.store.transaction() as transaction:
            keys = [read_signed(KeyDocument, parse(key), None) for key in transaction.keys(record.plan)]
        public = next(key.public_key for key in keys if key.key_id == opened.key_id)
        randomizer, source = randomizer_of(plan), SecureSource()
        value = neutral_value(plan, randomizer)
        return make_envelope(plan, randomizer, record.number, opened.model_digest, public, value, source)

    def _share_sum(self, record: RoundRecord) -> bytes:
        sizes = self.planned().sizes
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
        record = self.find(number)
        if record.state is not State.CLAIMED or record.reports is None:
            refuse(Problem.NOT_CLAIMED)
        view = self.planned()
        return Release(view.size_of_release(record.reports), self._chunks(record, view.sizes))

    def _chunks(self, record: RoundRecord, sizes: Sizes) -> Iterator[bytes]:
        assert record.reports is not None
        if record.share_sum is not None:  # before shares their sum, in an empty slot the dummy
            yield len(record.share_sum).to_bytes(4, "big") + record.share_sum
            if self.planned().plan.keeps_one:
                return
        length, at_once = sizes.released.to_bytes(4, "big"), self._at_once(sizes)
        for start in range(0, record.reports, at_once):
            count = min(at_once, record.reports - start)
            bodies = self.store.released(record.serial, start, count)
            if len(bodies) != count:
                raise StorageFailure("a claimed batch is no longer complete")
            yield b"".join(part for body in bodies for part in (length, body[: sizes.released]))

    def finish(self, number: int) -> None:
        """The analyzer has the batch: destroy it. Returns when nothing is left of it."""
        record = self.find(number)
        with self.store.transaction() as transaction:
            again = transaction.round(record.plan, number)
            assert again is not None
            if again.state is State.CLAIMED:
                transaction.change_round(again.serial, state=State.DONE, share_sum=None)
            elif again.state is not State.DONE:
                refuse(Problem.NOT_CLAIMED)
        if not again.purged:
            self.purge(again, wait=True)


def _charge(body: bytes) -> bytes:
    try:
        value = parse(body)
    except Malformed:
        refuse(Problem.MALFORMED)
    text = value.get("charge") if isinstance(value, dict) and len(value) == 1 else None
    # one spelling only: `bytes.fromhex` would also take capitals and blanks
    if not isinstance(text, str) or _DIGEST.fullmatch(text) is None:
        refuse(Problem.MALFORMED)
    return bytes.fromhex(text)
