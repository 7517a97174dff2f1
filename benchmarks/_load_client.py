"""A load generator as lean as Python allows: prepared bytes, raw connections, one event loop.

Every connection sends a request, waits for the answer, sends the next. Nothing here knows what the
requests mean.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import uvloop


@dataclass
class Outcome:
    """What one run saw."""

    seconds: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)

    @property
    def per_second(self) -> float:
        """Answers a second."""
        return sum(self.statuses.values()) / self.seconds


class _Caller(asyncio.Protocol):
    def __init__(self, load: _Load) -> None:
        self._load = load
        self._seen = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._next()

    def _next(self) -> None:
        parts = next(self._load.requests, None)
        if parts is None:
            self._transport.close()
            return
        self._transport.writelines(parts)

    def data_received(self, data: bytes) -> None:
        seen = self._seen + data
        end = seen.find(b"\r\n\r\n")
        if end < 0:
            self._seen = seen
            return
        place = seen.find(b"content-length: ") + 16
        length = int(seen[place : seen.find(b"\r\n", place)])
        if len(seen) < end + 4 + length:
            self._seen = seen
            return
        self._seen = b""
        self._load.outcome.statuses[int(seen[9:12])] += 1
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        self._load.left()


class _Load:
    def __init__(self, requests: Iterator[tuple[bytes, bytes]], connections: int) -> None:
        self.requests = requests
        self.outcome = Outcome()
        self._open = connections
        self._done = asyncio.get_running_loop().create_future()

    def left(self) -> None:
        self._open -= 1
        if not self._open:
            self._done.set_result(None)

    async def run(self, port: int) -> Outcome:
        loop = asyncio.get_running_loop()
        start = time.perf_counter()
        await asyncio.gather(
            *(loop.create_connection(lambda: _Caller(self), "127.0.0.1", port) for _ in range(self._open))
        )
        await self._done
        self.outcome.seconds = time.perf_counter() - start
        return self.outcome


def send_all(requests: Callable[[], Iterator[tuple[bytes, bytes]]], port: int, connections: int) -> Outcome:
    """Send all requests (head and body) over that many connections; no faster than answered."""

    async def run() -> Outcome:
        return await _Load(requests(), connections).run(port)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run())
