"""The life of rounds: what everybody is shown, when a round closes, how its traces are destroyed.

A round closes when the clock reaches its end, and stays closed: the step is written down, so that a clock set back does
not open it again. Whoever notices first (a request, `tick`, another front end) takes the step; the store lets it happen
once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpcheckin.service.shuffler.chance import Chance
from dpcheckin.service.shuffler.records import BY_BATCH, BY_POPULATION, RoundRecord, State
from dpcheckin.service.shuffler.stores.base import Store
from dpcheckin.service.shuffler.stores.transaction import Transaction
from dpcheckin.service.storage.database import StorageBusy
from dpcheckin.service.wire import envelope
from dpcheckin.service.wire.canonical import parse
from dpcheckin.service.wire.documents import SHARES, PlanDocument, RoundDocument
from dpcheckin.service.wire.envelope import Sizes
from dpcheckin.service.wire.problems import Problem, refuse

CHUNK_BYTES = 4 << 20
DEFAULT_LARGEST_ENVELOPE = 64 << 20


@dataclass(frozen=True)
class View:
    """What clients are shown, read from the store once and then handed out from memory."""

    plan: PlanDocument
    sizes: Sizes
    page: bytes
    round: RoundRecord | None
    """The last round opened, whatever became of it."""
    report_header: bytes
    """The only header a report of that round can have; every field follows from plan and round."""
    cover_header: bytes

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


class Rounds:
    """The part of a shuffler that all others build on.

    Args:
        store: keeps what must survive.
        clock: seconds since the epoch.
        chance: draws ids and orders.
        identity: the analyzer's public identity, 32 bytes; None: signatures are left to the
            clients.
        signer: the shuffler's own identity, with which it states which rounds were void; None: it
            states nothing.
        needs_identity: refuse every document while there is no identity to check it against.
        largest_envelope: in bytes; a plan with larger ones is refused.
        on_settled: hears of every round that closes.
    """

    def __init__(
        self,
        store: Store,
        *,
        clock: Callable[[], float],
        chance: Chance,
        identity: bytes | None = None,
        signer: Ed25519PrivateKey | None = None,
        needs_identity: bool = False,
        largest_envelope: int = DEFAULT_LARGEST_ENVELOPE,
        on_settled: Callable[[Settled], None] = lambda settled: None,
    ) -> None:
        self.store = store
        self.clock = clock
        self.chance = chance
        self.identity = identity
        self.signer = signer
        self._stated: tuple[object, bytes] | None = None
        self.needs_identity = needs_identity
        self.largest_envelope = largest_envelope
        self._on_settled = on_settled
        self.ended: set[int] = set()  # rounds whose end we have seen, even if it is not stored yet
        self._purging = threading.Lock()
        self.view: View | None = None

    # --- what everybody is shown ------------------------------------------------------------

    def refresh(self) -> View | None:
        """Read plan, keys and round again; another front end may have changed them."""
        with self.store.transaction() as transaction:
            self.view = self.read_view(transaction)
        return self.view

    def read_view(self, transaction: Transaction) -> View | None:
        """What clients are to be shown, None before there is a plan."""
        stored = transaction.plan()
        if stored is None:
            return None
        plan = plan_in(stored.document)
        record = transaction.last_round(stored.id)
        keys = b",".join(transaction.keys(stored.id))
        # The parts are canonical already, and "keys" comes before "plan": so is the whole.
        page = b'{"keys":[' + keys + b'],"plan":' + stored.document + b"}"
        return View(plan, envelope.sizes(plan), page, record, *_headers(plan, record))

    def planned(self) -> View:
        """What clients are shown; refuses before there is a plan."""
        return refuse(Problem.NOT_FOUND) if self.view is None else self.view

    def is_open(self, record: RoundRecord) -> bool:
        """Whether a round takes reports now."""
        return self.may_be_open(record) and self.clock() >= record.opens

    def may_be_open(self, record: RoundRecord) -> bool:
        """Whether a round has not ended; its beginning may still be ahead."""
        if record.state is not State.OPEN or record.serial in self.ended:
            return False
        if self.clock() < record.closes:
            return True
        self.ended.add(record.serial)
        return False

    # --- closing ----------------------------------------------------------------------------

    def tick(self) -> None:
        """Close what is due, destroy what is left of void and done rounds."""
        for record in self.close_due():
            self.purge(record, wait=False)

    def close_due(self) -> list[RoundRecord]:
        """Close the rounds whose time is up; which rounds have something left to destroy?"""
        with self.store.transaction() as transaction:
            now = self.clock()
            open_rounds = transaction.rounds(State.OPEN)
            due = [r for r in open_rounds if now >= r.closes or r.serial in self.ended]
            settled = [self._settle(transaction, record) for record in due]
            left = transaction.unpurged()
            self.view = self.read_view(transaction)
        for one in settled:
            self._on_settled(one)
        if settled and not left:
            self.clean_if_possible()  # who was there is nobody's business any more
        return left

    def _settle(self, transaction: Transaction, record: RoundRecord) -> Settled:
        self.ended.add(record.serial)
        # First the state, which keeps further reports out, then the counts.
        transaction.change_round(record.serial, state=State.CLOSED)
        counts, plan = transaction.counts(record.serial), self.current_plan(transaction)
        # Where everybody sends an envelope, only those whose envelope was taken in time are there:
        # a report that was lost on the way hides nobody. Both kinds of envelope are lost alike, so
        # this count too is decided without the coins.
        present, held = counts.served if plan.cover else counts.fetched, counts.reports
        # of a slot one report is released, a dummy if need be: how many there were is secret
        state, reason, reports = State.CLOSED, None, 1 if plan.keeps_one else held
        published: int | None = reports
        if present < plan.minimum_present:
            # The number of reports depends on secret coins, and this round is to cost nothing.
            state, reason, published = State.VOID, BY_POPULATION, None
        elif held < plan.minimum_batch:
            state, reason = State.VOID, BY_BATCH
        transaction.change_round(record.serial, state=state, reason=reason, present=present, reports=published)
        transaction.forget_attendance(record.serial)
        return Settled(record.number, state, reason, present, published)

    def purge(self, record: RoundRecord, *, wait: bool) -> None:
        """Destroy what is left of a void or done round, the `record`'s; without `wait`, unless another is at it."""
        if not self._purging.acquire(blocking=wait):
            return  # whoever is at it finishes it
        try:
            view = self.view
            at_once = 1 if view is None else max(1, 2 * CHUNK_BYTES // view.sizes.envelope)
            while not self.store.purge(record.serial, at_once):
                self.clean_if_possible()  # keeps the log short while much is overwritten
            self.store.clean()
            with self.store.transaction() as transaction:
                transaction.change_round(record.serial, purged=True)
        finally:
            self._purging.release()

    def clean_if_possible(self) -> None:
        """Have destroyed bytes removed from files, if nobody is reading."""
        with suppress(StorageBusy):  # the next cleaning takes this with it
            self.store.clean()

    # --- reading ----------------------------------------------------------------------------

    def find(self, number: int) -> RoundRecord:
        """A round of the current plan, closed if it is time."""
        record = self._read_round(number)
        if record.state is State.OPEN and not self.may_be_open(record):
            self.close_due()
            record = self._read_round(number)
        return record

    def _read_round(self, number: int) -> RoundRecord:
        with self.store.transaction() as transaction:
            plan = transaction.plan()
            record = None if plan is None else transaction.round(plan.id, number)
            self.view = self.read_view(transaction)
        return refuse(Problem.NOT_FOUND) if record is None else record

    @staticmethod
    def current_plan(transaction: Transaction) -> PlanDocument:
        """The plan; refuses before there is one."""
        stored = transaction.plan()
        if stored is None:
            refuse(Problem.NOT_FOUND)
        return plan_in(stored.document)

    @staticmethod
    def used(transaction: Transaction, plan: PlanDocument, *, waiting: bool = True) -> int:
        """Rounds of a `plan` that the analyzer has been charged for or, with `waiting`, may still claim, in a
        `transaction`.
        """
        states = [State.CLAIMED, State.DONE] + ([State.CLOSED] if waiting else [])
        void = transaction.count_rounds(plan.id, State.VOID, BY_BATCH)
        return void + sum(transaction.count_rounds(plan.id, state) for state in states)


@lru_cache(maxsize=4)
def plan_in(signed: bytes) -> PlanDocument:
    """The plan in a signed document that was checked when it came."""
    return PlanDocument.from_object(parse(signed)["document"])


@lru_cache(maxsize=16)
def _key_id_in(signed: bytes) -> bytes:
    return RoundDocument.from_object(parse(signed)["document"]).key_id


def _headers(plan: PlanDocument, record: RoundRecord | None) -> tuple[bytes, bytes]:
    """The headers of a report and of a cover for a round."""
    if record is None:
        return b"", b""
    key_id = _key_id_in(record.document)
    return (
        envelope.header_of(plan, record.number, key_id),
        envelope.header_of(plan, record.number, key_id, cover=True),
    )
