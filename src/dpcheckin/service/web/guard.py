"""Connections under guard: how many there may be, and how long each may keep others waiting.

The web server itself waits for ever: for the end of a header or a body, and for a reader that does not read. Here every
connection remembers since when its request has been under way and since when its answer has not been read, and a sweep
over all of them, once a second, drops those that are too slow. Where no place is left, the reader that has been stuck
longest makes room for a newcomer. What is held of bodies that are not complete counts in one budget with what the
application has reserved. All that costs a request nothing but a few comparisons.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dpcheckin.service.settings import Limits
from dpcheckin.service.web.limits import Budget
from dpcheckin.service.web.replies import raw_problem
from dpcheckin.service.wire.problems import Problem

LARGEST_HEADERS = 32 << 10
WHOLE_BODY = 512 << 10
_PATIENCE = 5.0
"""Seconds without reading after which a place may be given to somebody else."""
RESERVED = "dpcheckin.reserved"
"""Key of an ASGI scope: bytes that the application has reserved for the body already."""
_MALFORMED, _BUSY = raw_problem(Problem.MALFORMED), raw_problem(Problem.BUSY)


class Guard:
    """All guarded connections of a port.

    `limits`: connections, seconds and bytes. `count`: called with `timeouts_total`, `slow_readers_total` or
    `connections_refused_total`. `monotonic`: seconds. `budget`: for bodies that are not complete yet, shared with
    whoever reserves room for whole ones; None: one of its own.
    """

    def __init__(
        self,
        limits: Limits,
        count: Callable[[str], None] = lambda name: None,
        monotonic: Callable[[], float] = time.monotonic,
        budget: Budget | None = None,
    ) -> None:
        self.limits = limits
        self.count = count
        self.monotonic = monotonic
        self.budget = budget or Budget(limits.body_bytes)
        self.connections: set[GuardedProtocol] = set()
        self.by_address: Counter[str] = Counter()
        self.stuck: dict[GuardedProtocol, float] = {}
        """Connections whose answer is not being read, and since when; the longest first."""

    def protocol(self) -> type[GuardedProtocol]:
        """A protocol class bound to this guard, for the web server."""
        return type("BoundProtocol", (GuardedProtocol,), {"guard": self})

    def admit(self, connection: GuardedProtocol, address: str) -> bool:
        """One more connection from an address, if there is room, or somebody who does not read can be made to leave."""
        if len(self.connections) >= self.limits.connections and not self._evict(None):
            self.count("connections_refused_total")
            return False
        crowded = self.by_address[address] >= self.limits.connections_per_address
        if crowded and not self._evict(address):
            self.count("connections_refused_total")
            return False
        self.connections.add(connection)
        self.by_address[address] += 1
        return True

    def _evict(self, address: str | None) -> bool:
        now = self.monotonic()
        for connection, since in self.stuck.items():
            if now - since < _PATIENCE:
                break  # all others have been stuck for less
            if address is None or connection.address == address:
                connection.give_up()
                self.leave(connection, connection.address)
                return True
        return False

    def leave(self, connection: GuardedProtocol, address: str) -> None:
        """One connection less from an address."""
        self.stuck.pop(connection, None)
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
                self.count("timeouts_total")
                connection.expire()

    async def watch(self, seconds: float = 1.0) -> None:
        """Sweep again and again, until cancelled."""
        while True:
            await asyncio.sleep(seconds)
            self.sweep()


class GuardedProtocol(HttpToolsProtocol):
    """The web server's protocol, with a clock."""

    guard: Guard
    address = ""
    _began: float | None = None
    _in_body = False
    _header_bytes = 0
    _parts: list[bytes]
    """Of a body that is not all there yet."""
    _held = 0
    _counted = 0
    """Bytes of `_held` that are counted in the budget."""
    _closing: float | None = None

    def connection_made(self, transport: Any) -> None:
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if isinstance(peer, tuple) else ""
        self._began = self.guard.monotonic()
        super().connection_made(transport)
        if not self.guard.admit(self, self.address):
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.guard.leave(self, self.address)
        self._release()
        super().connection_lost(exc)

    # --- writing ----------------------------------------------------------------------------

    def pause_writing(self) -> None:
        self.guard.stuck[self] = self.guard.monotonic()
        super().pause_writing()

    def resume_writing(self) -> None:
        self.guard.stuck.pop(self, None)
        super().resume_writing()

    def _unread(self, now: float) -> bool:
        """Has nothing of an answer been taken for too long? Also of one that ends with a close."""
        if self.transport.is_closing():
            self._closing = now if self._closing is None else self._closing
        since = self.guard.stuck.get(self, self._closing)
        return since is not None and now - since > self.guard.limits.write_seconds

    def give_up(self) -> None:
        """Hang up at once: what the other side does not read is not worth waiting for."""
        self.guard.count("slow_readers_total")
        self.transport.abort()

    # --- reading ----------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._began = self.guard.monotonic()
        self._header_bytes = 0
        self._parts, self._held = [], 0
        super().on_message_begin()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._began is None:
            return  # the request is complete, and with the application
        if self._in_body:
            if self._held and not self._count():
                self._hang_up(_BUSY)
        else:
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
        if self.transport.is_closing():
            return
        self._parts.append(body)
        self._held += len(body)
        if self._held > WHOLE_BODY or self.cycle.response_complete:
            self._hand_over(super().on_body)

    def _count(self) -> bool:
        """Count what is held beyond what the application has reserved; False: no room for it."""
        more = self._held - self.scope.get(RESERVED, 0) - self._counted  # type: ignore[operator]
        if more <= 0:
            return True
        if not self.guard.budget.take(more):
            return False
        self._counted += more
        return True

    def _release(self) -> None:
        if self._counted:
            self.guard.budget.give_back(self._counted)
            self._counted = 0

    def _hand_over(self, to: Callable[[bytes], None]) -> None:
        parts, self._parts, self._held = self._parts, [], 0
        self._release()
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
        """Has this request been under way for too long, or its answer not been read?"""
        if self._unread(now):
            return True
        if self._began is None:
            return False
        limits = self.guard.limits
        allowed = limits.body_seconds if self._in_body else limits.header_seconds
        return now - self._began > allowed

    def expire(self) -> None:
        """Say so, if nothing was said yet, and hang up."""
        if self._unread(self.guard.monotonic()):
            self.give_up()
        else:
            self._hang_up(_MALFORMED)

    def _hang_up(self, answer: bytes) -> None:
        answered = getattr(self.cycle, "response_started", False)  # before any request: no cycle
        if not answered or (self.cycle.response_complete and not self._in_body):
            self.transport.write(answer)  # the answer that has begun, if any, was to another request
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        self.transport.write(_MALFORMED)
        self.transport.close()
