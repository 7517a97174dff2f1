"""What the analyzer takes: the state of a round, its batch in a fixed random order, its end.

The order is drawn over ids, not over bodies, and written down before the first byte leaves: a batch
larger than memory streams, and is the same every time it is asked for until it is destroyed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from dpcheckin.service.shuffler.chance import Ids
from dpcheckin.service.shuffler.records import RoundRecord, State
from dpcheckin.service.shuffler.rounds import CHUNK_BYTES, Release, Rounds
from dpcheckin.service.storage import StorageFailure
from dpcheckin.service.wire.canonical import parse
from dpcheckin.service.wire.documents import SHARES, KeyDocument, PlanDocument, RoundDocument
from dpcheckin.service.wire.envelope import Sizes
from dpcheckin.service.wire.problems import Malformed, Problem, refuse
from dpcheckin.service.wire.signing import read_signed

_DIGEST = re.compile("[0-9a-f]{64}")


class Releasing(Rounds):
    """The requests with which an analyzer takes a batch."""

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
        """Fix the order of a closed batch for a charge that stands in the analyzer's ledger."""
        charge = _charge(body)
        record = self.find(number)
        order, share_sum = np.empty(0, dtype=np.int64), None
        if record.state is State.CLOSED:  # its reports change no more: no need to hold up others
            plan = self.planned().plan
            order = self._order(record, plan)
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
            transaction.change_round(
                again.serial, state=State.CLAIMED, charge=charge, share_sum=share_sum
            )
        if plan.keeps_one:
            self.clean_if_possible()

    def _order(self, record: RoundRecord, plan: PlanDocument) -> Ids:
        ids = self.store.report_ids(record.serial)
        order: Ids = ids[self.chance.permutation(len(ids))]
        return order[:1] if plan.keeps_one else order

    def _dummy(self, record: RoundRecord, plan: PlanDocument) -> bytes:
        """What fills an empty slot: a report about nothing, sealed to the round's key.

        The analyzer must not learn that the slot was empty, or it would know who was missing.
        """
        # imported here: randomizers bring all of accounting along, and few shufflers need any
        from dpcheckin.randomizers import SecureSource
        from dpcheckin.service.pricing import randomizer_of
        from dpcheckin.service.reports import neutral_envelope

        found = read_signed(RoundDocument, parse(record.document), None)
        with self.store.transaction() as transaction:
            held = [parse(key) for key in transaction.keys(record.plan)]
        keys = [read_signed(KeyDocument, key, None) for key in held]
        public = next(key.public_key for key in keys if key.key_id == found.key_id)
        made, source = randomizer_of(plan), SecureSource()
        return neutral_envelope(plan, made, record.number, found.model_digest, public, source)

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
