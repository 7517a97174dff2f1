"""Between the doorbell and the agents of a node: one file, replaced as a whole.

The doorbell (code that the server ships) may only drop a ring; the agent (code of the data's owner) looks at it when it
likes. Dropping takes the same time whether agents are there, busy or gone, and nothing flows back. The box holds the
latest ring only: the round's signed document and the model's bytes. Nothing in it is believed: agents check the
signature and follow the shuffler.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dpcheckin.errors import InvalidParameter

_MAGIC = b"DPRING1\0"
_HEAD = struct.Struct(">8sI")
FILE = "ring"
LARGEST = 1 << 30


@dataclass(frozen=True)
class Ring:
    """What the server sends to every node: a round is open, and here is its model."""

    round: bytes
    model: bytes

    def to_bytes(self) -> bytes:
        """As it lies in the box."""
        return _HEAD.pack(_MAGIC, len(self.round)) + self.round + self.model

    @staticmethod
    def from_bytes(content: bytes) -> Ring | None:
        """None when it is no ring."""
        if len(content) < _HEAD.size:
            return None
        magic, length = _HEAD.unpack_from(content)
        end = _HEAD.size + length
        if magic != _MAGIC or len(content) < end:
            return None
        return Ring(content[_HEAD.size : end], content[end:])


class Mailbox:
    """A folder that doorbell and agents both reach."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seen: tuple[int, int] | None = None

    def make(self) -> None:
        """Make the folder, for its owner only; give a doorbell of another user its own group."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as problem:
            raise InvalidParameter("doorbell", str(self.folder), f"a folder ({problem})") from None

    def drop(self, ring: Ring) -> None:
        """Leave a ring; what goes wrong here must not be seen outside, so nothing is raised."""
        fresh = self.folder / f".{FILE}.{os.getpid()}"
        with suppress(OSError):
            fresh.write_bytes(ring.to_bytes())
            os.replace(fresh, self.folder / FILE)

    def take(self) -> Ring | None:
        """The ring, if there is one that has not been taken from this object before."""
        try:
            descriptor = os.open(self.folder / FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            facts = os.fstat(file.fileno())
            mark = (facts.st_ino, facts.st_mtime_ns)
            if mark == self._seen or facts.st_size > LARGEST:
                return None
            content = file.read(LARGEST)
        self._seen = mark
        return Ring.from_bytes(content)
