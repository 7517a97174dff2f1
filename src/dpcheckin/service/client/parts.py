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
    """A client's part in one round: what to do, and the bytes.

    `failed`: the task failed, and the bytes are the neutral report. For a counter on the device;
    why is kept nowhere, since it may say something about the data.
    """

    action: Action
    envelope: bytes
    failed: bool = False


@dataclass(frozen=True)
class Entered:
    """A round whose coin has fallen, and what is sent unless the owner's report is ready in time.

    On heads that is a report of the neutral value, sealed like any other.
    """

    found: RoundDocument
    key: KeyDocument
    heads: bool
    prepared: Part
