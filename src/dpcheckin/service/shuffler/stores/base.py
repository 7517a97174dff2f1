"""What a store must do. The rules are in the core; a store only keeps, counts and destroys.

Two kinds of work. *Control* (plans, keys, rounds, claims) is rare: it runs inside `transaction()`,
one at a time over all front ends. *Reports* come by the thousand: `accept` and `mark_present` take
many at once, are atomic and durable when they return, and may run beside each other.

Nothing a store keeps may join a report to a client or to a moment: reports lie under random ids,
without time, in a table that shares no column with the list of clients already served.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from typing import Any

from dpcheckin.errors import ServiceError
from dpcheckin.service.shuffler.chance import Ids
from dpcheckin.service.shuffler.records import Counts, Entry, PlanRecord, RoundRecord, State


class IdCollision(ServiceError):
    """A random id was taken already (about once in 10^5 rounds of 10^7 reports): draw again."""


class Taken(Enum):
    """What became of one entry."""

    YES = "yes"
    DUPLICATE = "duplicate"
    CLOSED = "closed"


class Transaction(ABC):
    """Control work; all of it happens, or nothing."""

    @abstractmethod
    def plan(self) -> PlanRecord | None:
        """The current plan."""

    @abstractmethod
    def knows_plan(self, plan: bytes) -> bool:
        """Was this plan ever current?"""

    @abstractmethod
    def set_plan(self, plan: bytes, document: bytes) -> None:
        """A plan that was never current becomes it."""

    @abstractmethod
    def key(self, plan: bytes, key_id: bytes) -> tuple[int, bytes] | None:
        """First round and signed document of a key."""

    @abstractmethod
    def keys(self, plan: bytes) -> list[bytes]:
        """All signed keys of a plan, by first round and id."""

    @abstractmethod
    def put_key(self, plan: bytes, key_id: bytes, from_round: int, document: bytes) -> None:
        """A new key."""

    @abstractmethod
    def has_model(self, model: bytes) -> bool:
        """Is a model of this digest here?"""

    @abstractmethod
    def put_model(self, model: bytes, body: bytes) -> None:
        """Keep a model; one that is here already stays."""

    @abstractmethod
    def forget_models(self, keep: bytes) -> None:
        """Forget all models but this one."""

    @abstractmethod
    def round(self, plan: bytes, number: int) -> RoundRecord | None:
        """One round."""

    @abstractmethod
    def last_round(self, plan: bytes) -> RoundRecord | None:
        """The round with the highest number."""

    @abstractmethod
    def rounds(self, *states: State) -> list[RoundRecord]:
        """All rounds of any plan in one of these states, oldest first."""

    @abstractmethod
    def count_rounds(self, plan: bytes, state: State, reason: str | None = None) -> int:
        """How many rounds of a plan are in this state, for this reason."""

    @abstractmethod
    def unpurged(self) -> list[RoundRecord]:
        """Void and done rounds of which something may be left."""

    @abstractmethod
    def add_round(self, record: RoundRecord) -> None:
        """A new open round (its serial is the store's to choose)."""

    @abstractmethod
    def change_round(self, serial: int, **changes: Any) -> None:
        """Set fields of a round, and keep reports from being accepted into it meanwhile."""

    @abstractmethod
    def counts(self, serial: int) -> Counts:
        """Clients who fetched the round, clients served, reports held."""

    @abstractmethod
    def forget_attendance(self, serial: int) -> None:
        """Destroy the lists of clients present and served."""

    @abstractmethod
    def fix_release(self, serial: int, order: Ids) -> None:
        """Fix what is released in which order; reports not named in it are destroyed."""


class Store(ABC):
    """Everything the shuffler keeps."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Transaction]:
        """Control work, one at a time; an exception undoes it."""

    @abstractmethod
    def accept(self, serial: int, entries: Sequence[Entry]) -> list[Taken]:
        """Take at most one entry per client, durably; CLOSED for all if the round is not open.

        Args:
            serial: the store's number of the round.
            entries: any number, of any clients.
        """

    @abstractmethod
    def mark_present(self, serial: int, clients: Sequence[bytes]) -> bool:
        """Count clients as present, durably; False if the round is not open."""

    @abstractmethod
    def model(self, model: bytes) -> bytes | None:
        """The bytes of a model."""

    @abstractmethod
    def report_ids(self, serial: int) -> Ids:
        """The ids of all reports of a closed round, in no particular order."""

    @abstractmethod
    def each_body(self, serial: int, at_once: int) -> Iterator[list[bytes]]:
        """All bodies of a closed round, in no particular order, a few at a time.

        Args:
            serial: the store's number of the round.
            at_once: how many bodies a step yields at the most.
        """

    @abstractmethod
    def released(self, serial: int, start: int, count: int) -> list[bytes]:
        """Bodies number start, …, start + count - 1 of the fixed order.

        Args:
            serial: the store's number of the round.
            start: position of the first body.
            count: how many.
        """

    @abstractmethod
    def purge(self, serial: int, at_once: int) -> bool:
        """Destroy some reports of a round that is void or done; True when none is left.

        Args:
            serial: the store's number of the round.
            at_once: how many reports one call destroys at the most.
        """

    @abstractmethod
    def clean(self) -> None:
        """See to it that nothing destroyed is left in any file; may raise `StorageBusy`."""

    @abstractmethod
    def enroll(self, digests: Sequence[bytes]) -> list[bytes]:
        """New clients with these token digests; their ids."""

    @abstractmethod
    def replace_token(self, client: bytes, token: bytes) -> bool:
        """Another token for a client; False if there is no such client."""

    @abstractmethod
    def revoke(self, client: bytes) -> bool:
        """The client's token is worth nothing from now on; False if there is no such client."""

    @abstractmethod
    def clients(self) -> dict[bytes, bytes]:
        """Token digest → client, of all who are enrolled."""

    @abstractmethod
    def clients_version(self) -> int:
        """A number that changes whenever `clients` does."""

    def verify(self) -> None:  # noqa: B027 (nothing to do in memory)
        """Read everything but reports; raises `StorageFailure` if it is not what was written."""

    def check_room(self) -> None:  # noqa: B027 (nothing to do in memory)
        """Raises `StorageFailure` when there is no room for reports, as far as can be seen."""

    def probe(self) -> None:  # noqa: B027 (nothing to do in memory)
        """Write something that means nothing: raises `StorageFailure` when reports would fail."""

    def serve_alone(self) -> AbstractContextManager[None]:
        """Be the only one that serves this store, where there can be only one; else `InUse`."""
        return nullcontext()

    @abstractmethod
    def close(self) -> None:
        """Let go of everything."""
