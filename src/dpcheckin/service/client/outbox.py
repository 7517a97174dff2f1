"""The one envelope that a client has still to send, kept so that a restart sends it all the same.

It is written before the owner's data are touched, with the cover or the neutral report, and written
again, whatever it is to hold, before the first byte is sent. So a process that is killed, for
whatever reason, and started again within the round sends what it would have sent, and never two
different envelopes: that they differ would tell that its computation had succeeded. Both times the
file has the same size, whatever it holds, and what it holds is sealed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dpcheckin.service.journal import replace_file
from dpcheckin.service.wire.canonical import canonical, parse
from dpcheckin.service.wire.problems import Malformed


@dataclass(frozen=True)
class Parcel:
    """What is sent in which round, and when.

    Args:
        plan: its id, in hex.
        round: its number.
        opens: seconds since the epoch, of the round.
        closes: the same.
        moment: when it is sent.
        envelope: all of it; nothing in a plan without cover whose coin was tails.
    """

    plan: str
    round: int
    opens: float
    closes: float
    moment: float
    envelope: bytes

    def to_bytes(self) -> bytes:
        """The facts on one line, then the envelope as it is."""
        facts = {**self.__dict__, "envelope": len(self.envelope)}
        return canonical(facts) + b"\n" + self.envelope

    @staticmethod
    def from_bytes(content: bytes) -> Parcel | None:
        """What `to_bytes` wrote; None of anything else."""
        line, _, envelope = content.partition(b"\n")
        try:
            facts = parse(line)
            whole = facts.pop("envelope") == len(envelope)
            return Parcel(**facts, envelope=envelope) if whole else None
        except (Malformed, TypeError, AttributeError, KeyError):
            return None


class Outbox:
    """At most one parcel.

    Args:
        file: where it lies.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self.held: Parcel | None = Parcel.from_bytes(file.read_bytes()) if file.exists() else None

    def put(self, parcel: Parcel) -> None:
        """Keep this one in the place of any other, durably."""
        replace_file(self._file, parcel.to_bytes())
        self.held = parcel

    def clear(self) -> None:
        """It was sent, or its round is over. Should a crash undo this, the same bytes go again."""
        self._file.unlink(missing_ok=True)
        self.held = None
