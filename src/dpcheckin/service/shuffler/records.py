"""What the shuffler remembers of a round, and what it is told of a report. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from dpcheckin.errors import ServiceError


class State(StrEnum):
    """Life of a round: open → closed or void; closed → claimed → done."""

    OPEN = "open"
    CLOSED = "closed"
    VOID = "void"
    CLAIMED = "claimed"
    DONE = "done"


BY_POPULATION = "population"
BY_BATCH = "batch"


@dataclass(frozen=True)
class PlanRecord:
    """A plan as it was published."""

    id: bytes
    document: bytes


@dataclass(frozen=True)
class RoundRecord:
    """A round. Counts are None while it is open; nothing here speaks of a client."""

    serial: int
    plan: bytes
    number: int
    document: bytes
    opens: float
    closes: float
    state: State = State.OPEN
    present: int | None = None
    reports: int | None = None
    reason: str | None = None
    charge: bytes | None = None
    share_sum: bytes | None = None
    purged: bool = False


class RoundCounts(NamedTuple):
    """What a round came to; how many, never who."""

    fetched: int
    """Clients who fetched the round."""
    served: int
    """Clients of whom an envelope was taken, a report or a cover."""
    reports: int


class Submission(NamedTuple):
    """An envelope that has been looked at."""

    client: bytes
    serial: int
    closes: float
    body: bytes
    cover: bool = False


class Entry(NamedTuple):
    """What a store is asked to take: an envelope under an id that says nothing of its sender.

    Ids of covers are below 0. They are written like reports, or whoever times the answers could tell them apart; they
    are neither counted nor released, and destroyed with their round.
    """

    client: bytes
    id: int
    body: bytes


class IdCollision(ServiceError):
    """A random id was taken already (about once in 10^5 rounds of 10^7 reports): draw again."""
