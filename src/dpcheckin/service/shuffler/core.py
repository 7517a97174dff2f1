"""The rules of the shuffler, without network, clock or randomness of their own.

Time and chance are given at the start; what must survive goes to the store. Every method may be
called from any thread. A request that cannot be granted raises `Refusal` with one of the known
problems, and has then changed nothing. Here is the clients' side; `publishing` and `releasing` are
the analyzer's, `rounds` is what they share.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpcheckin.service.shuffler.publishing import Publishing
from dpcheckin.service.shuffler.records import (
    BY_POPULATION,
    Entry,
    RoundRecord,
    State,
    Submission,
)
from dpcheckin.service.shuffler.releasing import Releasing
from dpcheckin.service.shuffler.stores.base import IdCollision, Taken
from dpcheckin.service.storage import StorageFailure
from dpcheckin.service.wire import envelope
from dpcheckin.service.wire.problems import Problem, refuse
from dpcheckin.service.wire.signing import signed_bytes
from dpcheckin.service.wire.statements import MOST_VOID_ROUNDS, VoidDocument

_TRIES = 5
_TAKEN = {Taken.YES: None, Taken.DUPLICATE: Problem.DUPLICATE, Taken.CLOSED: Problem.ROUND_CLOSED}


class Shuffler(Publishing, Releasing):
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
        found = self.store.model(model)
        return refuse(Problem.NOT_FOUND) if found is None else found

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
        latest = tuple(sorted(void)[-MOST_VOID_ROUNDS:])
        return signed_bytes(VoidDocument(plan.hex(), latest), self.signer)

    # --- reports ----------------------------------------------------------------------------

    def examine(self, client: bytes, number: int, body: bytes) -> Submission:
        """Look at an envelope without opening it: is it of this plan, round, key and size?

        Args:
            client: who sent it, 16 bytes.
            number: of the round, from the path of the request.
            body: the envelope.
        """
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
        """Take many at once, durably; None for each that was taken, else why it was not.

        Args:
            submissions: as `examine` gave them, of any rounds.
        """
        now = self.clock()
        answers: list[Problem | None] = [Problem.ROUND_CLOSED] * len(submissions)
        by_round: dict[int, list[int]] = {}
        for place, submission in enumerate(submissions):
            if now < submission.closes and submission.serial not in self.ended:
                by_round.setdefault(submission.serial, []).append(place)
        for serial, places in by_round.items():
            taken = self._accept(serial, [submissions[place] for place in places])
            for place, outcome in zip(places, taken, strict=True):
                answers[place] = _TAKEN[outcome]
        return answers

    def _accept(self, serial: int, submissions: Sequence[Submission]) -> list[Taken]:
        for _ in range(_TRIES):
            ids = self.chance.ids(len(submissions))
            if len(set(ids)) < len(ids):
                continue
            entries = [
                Entry(s.client, ~i if s.cover else i, s.body)
                for s, i in zip(submissions, ids, strict=True)
            ]
            try:
                return self.store.accept(serial, entries)
            except IdCollision:
                continue
        raise StorageFailure("random ids keep colliding: the generator is broken")

    def mark_present(self, serial: int, clients: Sequence[bytes]) -> bool:
        """Count clients as present in a round, durably; False if it is over.

        Args:
            serial: the store's number of the round.
            clients: who fetched it.
        """
        return serial not in self.ended and self.store.mark_present(serial, clients)
