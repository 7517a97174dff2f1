"""A client's part in a round, as values: what its coin said and what is sent."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dpcheckin.service.wire.documents import KeyDocument, RoundDocument


class Action(Enum):
    """What a client does in a round."""

    REPORT = "report"
    COVER = "cover"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Part:
    """A client's part in one round: what to do, the bytes, and what the task failed with."""

    action: Action
    envelope: bytes
    failure: Exception | None = None


@dataclass(frozen=True)
class Entered:
    """A round whose coin has fallen, and what is sent unless a report is ready in time."""

    found: RoundDocument
    key: KeyDocument
    heads: bool
    otherwise: Part
