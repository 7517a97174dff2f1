"""Connections: how many there may be, and how long a request may take to arrive.

The web server itself waits for ever for the end of a header or a body. Here every connection
remembers when its request began, and a sweep over all of them, once a second, drops those that are
too slow. That costs a request nothing but two looks at the clock.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dpcheckin.service.shuffler.http.limits import Limits
from dpcheckin.service.shuffler.http.metrics import Metrics
from dpcheckin.service.shuffler.http.replies import raw_problem
from dpcheckin.service.wire.problems import Problem

LARGEST_HEADERS = 32 << 10
WHOLE_BODY = 512 << 10


class Guard:
    """All guarded connections of a server.

    Args:
        limits: connections and seconds.
        metrics: where drops are counted.
        monotonic: seconds.
    """

    def __init__(
        self, limits: Limits, metrics: Metrics, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.limits = limits
        self.metrics = metrics
        self.monotonic = monotonic
        self.connections: set[GuardedProtocol] = set()
        self.by_address: Counter[str] = Counter()

    def protocol(self) -> type[GuardedProtocol]:
        """A protocol class bound to this guard, for the web server."""
        return type("BoundProtocol", (GuardedProtocol,), {"guard": self})

    def admit(self, connection: GuardedProtocol, address: str) -> bool:
        """One more, if there is room."""
        full = len(self.connections) >= self.limits.connections
        if full or self.by_address[address] >= self.limits.connections_per_address:
            self.metrics.add("connections_refused_total")
            return False
        self.connections.add(connection)
        self.by_address[address] += 1
        return True

    def leave(self, connection: GuardedProtocol, address: str) -> None:
        """One less."""
        if connection in self.connections:
            self.connections.discard(connection)
            self.by_address[address] -= 1
            if not self.by_address[address]:
                del self.by_address[address]

    def sweep(self) -> None:
        """Drop the slow ones."""
        now = self.monotonic()
        for connection in list(self.connections):
            if connection.overdue(now):
                self.metrics.add("timeouts_total")
                connection.expire()

    async def watch(self, seconds: float = 1.0) -> None:
        """Sweep again and again, until cancelled."""
        while True:
            await asyncio.sleep(seconds)
            self.sweep()


class GuardedProtocol(HttpToolsProtocol):
    """The web server's protocol, with a clock."""

    guard: Guard
    _began: float | None = None
    _in_body = False
    _address = ""
    _header_bytes = 0
    _parts: list[bytes]
    """Of a body that is not all there yet."""
    _held = 0

    def connection_made(self, transport: Any) -> None:
        peer = transport.get_extra_info("peername")
        self._address = str(peer[0]) if isinstance(peer, tuple) else ""
        self._began = self.guard.monotonic()
        super().connection_made(transport)
        if not self.guard.admit(self, self._address):
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.guard.leave(self, self._address)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        self._began = self.guard.monotonic()
        self._header_bytes = 0
        self._parts, self._held = [], 0
        super().on_message_begin()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._began is not None and not self._in_body:  # the header is not complete yet
            self._header_bytes += len(data)
            if self._header_bytes > LARGEST_HEADERS:
                self.send_400_response("")

    def on_headers_complete(self) -> None:
        size = len(self.url)
        for name, value in self.headers:
            size += len(name) + len(value)
        if size > LARGEST_HEADERS:
            raise ValueError("headers too large")  # the parser turns it into a bad request
        self._in_body = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        # A small body is handed over in one piece when it is all there: the web server's own way
        # wakes the application for every part and copies each twice more.
        self._parts.append(body)
        self._held += len(body)
        if self._held > WHOLE_BODY or self.cycle.response_complete:
            self._hand_over(super().on_body)

    def _hand_over(self, to: Callable[[bytes], None]) -> None:
        parts, self._parts, self._held = self._parts, [], 0
        to(b"".join(parts))

    def _whole(self, body: bytes) -> None:
        cycle = self.cycle
        if cycle.body:  # the beginning was handed over, and waits to be read
            cycle.body += body
        else:  # the server hands out bytes(cycle.body): of bytes that is no copy
            cycle.body = body  # type: ignore[assignment]

    def on_message_complete(self) -> None:
        self._began, self._in_body = None, False
        if self._parts:
            self._hand_over(self._whole)
        super().on_message_complete()

    def overdue(self, now: float) -> bool:
        """Has this request been under way for too long?"""
        if self._began is None:
            return False
        limits = self.guard.limits
        allowed = limits.body_seconds if self._in_body else limits.header_seconds
        return now - self._began > allowed

    def expire(self) -> None:
        """Say so, if nothing was said yet, and hang up."""
        if not getattr(self.cycle, "response_started", False):
            self.transport.write(raw_problem(Problem.MALFORMED))
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        self.transport.write(raw_problem(Problem.MALFORMED))
        self.transport.close()
