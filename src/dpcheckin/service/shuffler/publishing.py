"""What the analyzer publishes: plan, keys, models, rounds. Each is checked, kept once, and never
changed afterwards; repeating a request changes nothing.
"""

from __future__ import annotations

from dpcheckin.service.shuffler.records import RoundRecord, State
from dpcheckin.service.shuffler.rounds import Rounds
from dpcheckin.service.wire import envelope
from dpcheckin.service.wire.canonical import canonical, digest, parse
from dpcheckin.service.wire.documents import KeyDocument, PlanDocument, RoundDocument
from dpcheckin.service.wire.problems import Malformed, Problem, refuse
from dpcheckin.service.wire.signing import D, read_signed


class Publishing(Rounds):
    """The requests with which an analyzer sets things up."""

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
        """A signed opening key of the current plan."""
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
            transaction.add_round(record)
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
