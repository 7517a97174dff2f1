"""Room for many large bodies in memory: appended one after the other, wiped and reused together.

Memory that is touched for the first time costs several times what receiving a body does, so the
pieces of a destroyed batch are overwritten and kept for the next one, up to a limit.
"""

from __future__ import annotations

import mmap

_PIECE = 64 << 20
_KEPT_PIECES = 32
SMALL = 16 << 10
"""Bodies up to this size are kept as they are."""

Place = tuple[int, int, int] | bytes


class Pool:
    """Wiped pieces that wait for the next batch."""

    def __init__(self) -> None:
        self._free: list[mmap.mmap] = []

    def take(self, size: int) -> mmap.mmap:
        """A piece of at least that size."""
        if size <= _PIECE and self._free:
            return self._free.pop()
        return mmap.mmap(-1, max(size, _PIECE), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

    def give_back(self, piece: mmap.mmap, used: int) -> None:
        """Overwritten, then kept or returned to the system."""
        piece[:used] = bytes(used)
        if len(piece) == _PIECE and len(self._free) < _KEPT_PIECES:
            self._free.append(piece)
        else:
            piece.close()


class Arena:
    """Bodies of one batch."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._pieces: list[mmap.mmap] = []
        self._used: list[int] = []

    def keep(self, body: bytes) -> Place:
        """Where it was put."""
        size = len(body)
        if size <= SMALL:
            return body
        if not self._pieces or self._used[-1] + size > len(self._pieces[-1]):
            self._pieces.append(self._pool.take(size))
            self._used.append(0)
        start = self._used[-1]
        self._pieces[-1][start : start + size] = body
        self._used[-1] += size
        return len(self._pieces) - 1, start, size

    def read(self, place: Place) -> bytes:
        """What was put there."""
        if isinstance(place, bytes):
            return place
        piece, start, size = place
        return self._pieces[piece][start : start + size]

    def wipe(self) -> None:
        """Overwrite everything and give it back."""
        for piece, used in zip(self._pieces, self._used, strict=True):
            self._pool.give_back(piece, used)
        self._pieces, self._used = [], []
