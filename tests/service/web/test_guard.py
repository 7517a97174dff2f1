"""Connections under guard: how many, how slow, how large; on real sockets, with a clock to turn."""

import asyncio
import contextlib
import hashlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
from uvicorn.server import ServerState

from dpcheckin.service.settings import Limits
from dpcheckin.service.web.guard import LARGEST_HEADERS, RESERVED, WHOLE_BODY, Guard
from dpcheckin.service.web.metrics import COMMON, Metrics
from dpcheckin.service.wire.problems import Problem, problem_in
from service.shuffler_world import Clock

Reader, Writer = asyncio.StreamReader, asyncio.StreamWriter


class Echo:
    """Answers with the digest of the body; remembers in how many parts it came."""

    def __init__(self) -> None:
        self.parts: list[int] = []
        self.ready = asyncio.Event()
        self.ready.set()
        self.answer_first = False
        self.hold_answer = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self.answer_first:
            await self._say(send, b"early")
        if self.hold_answer:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await asyncio.Event().wait()
        await self.ready.wait()
        body, parts = b"", 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return
            body, parts = body + message["body"], parts + 1
            if not message["more_body"]:
                break
        self.parts.append(parts)
        await self._say(send, hashlib.sha256(body).hexdigest().encode())

    @staticmethod
    async def _say(send: Any, said: bytes) -> None:
        headers = [(b"content-length", str(len(said)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": said})


class Server:
    """A guarded server on a port of its own."""

    def __init__(self, **limits: Any) -> None:
        self.clock, self.app = Clock(0.0), Echo()
        self.opened: list[Writer] = []
        self.metrics = Metrics("", COMMON)
        self.guard = Guard(Limits(**limits), self.metrics.add, self.clock)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        config = uvicorn.Config(
            self.app, http=self.guard.protocol(), ws="none", lifespan="off", log_config=None, access_log=False
        )
        config.load()
        shared = ServerState()

        def connection() -> Any:
            return config.http_protocol_class(  # type: ignore[operator]
                config=config, server_state=shared, app_state={}
            )

        server = await asyncio.get_running_loop().create_server(connection, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()
            for task in list(shared.tasks):
                task.cancel()
            for one in (*self.guard.connections, *self.opened):
                one.transport.abort()
            await asyncio.sleep(0.01)

    async def connect(self, limit: int = 2**16) -> tuple[Reader, Writer]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=limit)
        self.opened.append(writer)
        return reader, writer

    def count(self, name: str) -> float:
        return self.metrics.value(name)


def play(server: Server, scene: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        async with server.running():
            await asyncio.wait_for(scene(), 120)

    asyncio.run(run())


def head(length: int, *more: bytes) -> bytes:
    lines = [b"PUT /x HTTP/1.1", b"host: h", b"content-length: %d" % length, *more]
    return b"\r\n".join(lines) + b"\r\n\r\n"


async def answer_of(reader: Reader) -> bytes:
    """The body of an answer that says its length."""
    lines = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(lines.split(b"content-length: ")[1].split(b"\r\n")[0])
    return await reader.readexactly(length)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("size", [0, 1, 70_000, WHOLE_BODY])
def test_a_small_body_comes_whole_however_it_was_cut(size: int) -> None:
    server, body = Server(), os.urandom(size)

    async def scene() -> None:
        reader, writer = await server.connect()
        for cut in (1, 3, 7):  # three requests on one connection
            writer.write(head(size))
            step = max(1, size // cut)
            for start in range(0, size, step):
                writer.write(body[start : start + step])
                await writer.drain()
                await asyncio.sleep(0.005)
            assert await answer_of(reader) == hashlib.sha256(body).hexdigest().encode()
        assert server.app.parts == [1, 1, 1]
        writer.close()

    play(server, scene)


@pytest.mark.parametrize("patient", [False, True])
def test_a_large_body_streams_and_loses_nothing(patient: bool) -> None:
    """Also when the application takes its time, and the end waits behind the beginning."""
    server, body = Server(), os.urandom(WHOLE_BODY + 300_000)

    async def scene() -> None:
        if patient:
            server.app.ready.clear()
        reader, writer = await server.connect()
        writer.write(head(len(body)) + body)
        if patient:
            await asyncio.sleep(0.1)
            server.app.ready.set()
        assert await answer_of(reader) == hashlib.sha256(body).hexdigest().encode()
        assert patient or server.app.parts[0] > 1
        writer.close()

    play(server, scene)


def test_a_body_in_chunks_whose_end_comes_with_its_middle_loses_nothing() -> None:
    server, first = Server(), os.urandom(WHOLE_BODY + 1)

    async def scene() -> None:
        server.app.ready.clear()
        reader, writer = await server.connect()
        writer.write(b"PUT /x HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n")
        writer.write(b"%x\r\n" % len(first) + first[:-10])
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.write(first[-10:] + b"\r\n5\r\nhello\r\n0\r\n\r\n")
        await asyncio.sleep(0.05)
        server.app.ready.set()
        assert await answer_of(reader) == hashlib.sha256(first + b"hello").hexdigest().encode()

    play(server, scene)


def test_what_comes_after_the_answer_is_thrown_away() -> None:
    server = Server()
    server.app.answer_first = True

    async def scene() -> None:
        reader, writer = await server.connect()
        writer.write(head(100_000))
        assert await answer_of(reader) == b"early"
        writer.write(bytes(100_000))
        await writer.drain()
        writer.write(head(0))
        assert await answer_of(reader) == b"early"
        assert server.app.parts == []
        writer.close()

    play(server, scene)


def test_connections_are_counted_by_address_and_in_all() -> None:
    server = Server(connections_per_address=2)

    async def scene() -> None:
        kept = [await server.connect() for _ in range(2)]
        await until(lambda: len(server.guard.connections) == 2)
        reader, _ = await server.connect()
        assert await refused(reader)
        assert server.count("connections_refused_total") == 1
        kept[0][1].close()
        await until(lambda: len(server.guard.connections) == 1)
        await server.connect()
        await until(lambda: len(server.guard.connections) == 2)
        assert server.guard.by_address == {"127.0.0.1": 2}

    play(server, scene)
    assert not server.guard.connections
    assert not server.guard.by_address
    full = Server(connections=1)

    async def crowded() -> None:
        await full.connect()
        await until(lambda: len(full.guard.connections) == 1)
        reader, _ = await full.connect()
        assert await refused(reader)

    play(full, crowded)


async def refused(reader: Reader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("sent", [b"", b"GET / HT", head(10) + b"half"])
def test_a_slow_request_is_dropped_with_a_reason(sent: bytes) -> None:
    server = Server(header_seconds=10.0, body_seconds=60.0)

    async def scene() -> None:
        reader, writer = await server.connect()
        writer.write(sent)
        await writer.drain()
        await until(lambda: len(server.guard.connections) == 1)
        await asyncio.sleep(0.05)
        server.clock.now = 61.0 if sent.endswith(b"half") else 11.0
        server.guard.sweep()
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert problem_in(answer.split(b"\r\n\r\n", 1)[1]) is Problem.MALFORMED
        assert server.count("timeouts_total") == 1

    play(server, scene)


def test_patience_is_longer_for_bodies_and_endless_between_requests() -> None:
    server = Server(header_seconds=10.0, body_seconds=60.0)

    async def scene() -> None:
        reader, writer = await server.connect()
        writer.write(head(4))
        await writer.drain()
        await asyncio.sleep(0.05)
        server.clock.now = 59.0
        server.guard.sweep()
        writer.write(b"done")
        await answer_of(reader)
        server.clock.now = 10_000.0
        server.guard.sweep()
        assert server.count("timeouts_total") == 0
        writer.write(head(0))
        await answer_of(reader)
        writer.close()

    play(server, scene)


def test_a_slow_body_after_the_answer_has_begun_ends_without_another() -> None:
    server = Server(body_seconds=60.0)
    server.app.hold_answer = True

    async def scene() -> None:
        reader, writer = await server.connect()
        writer.write(head(10) + b"half")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        server.clock.now = 61.0
        server.guard.sweep()
        assert await reader.read() == b""

    play(server, scene)


@pytest.mark.parametrize("whole", [False, True])
def test_headers_have_a_limit_whether_they_end_or_not(whole: bool) -> None:
    server = Server()

    async def scene() -> None:
        reader, writer = await server.connect()
        long = b"x: " + b"y" * (LARGEST_HEADERS + 1)
        if whole:
            writer.write(head(0, long))
        else:
            writer.write(b"GET / HTTP/1.1\r\n" + long)
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert server.app.parts == []

    play(server, scene)


def test_the_watch_sweeps_by_itself() -> None:
    server = Server(header_seconds=10.0)

    async def scene() -> None:
        reader, _ = await server.connect()
        await until(lambda: len(server.guard.connections) == 1)
        watch = asyncio.create_task(server.guard.watch(0.01))
        server.clock.now = 11.0
        assert b"400" in await reader.read()
        watch.cancel()

    play(server, scene)


# --- readers that do not read ---------------------------------------------------------------


class Tap:
    """Answers every request with many bytes, part by part."""

    def __init__(self, size: int, part: int = 256 << 10) -> None:
        self.size, self.part = size, part

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-length", str(self.size).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for start in range(0, self.size, self.part):
            body = bytes(min(self.part, self.size - start))
            await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def ask_and_not_read(server: Server) -> Writer:
    """Ask for a lot, and take nothing: on return the server is stuck with it."""
    before = len(server.guard.stuck)
    _, writer = await server.connect(limit=1)
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n")
    await until(lambda: len(server.guard.stuck) > before)
    return writer


LOTS = 64 << 20  # more than any socket holds


def test_a_reader_that_does_not_read_is_dropped() -> None:
    server = Server(write_seconds=60.0)
    server.app = Tap(LOTS)  # type: ignore[assignment]

    async def scene() -> None:
        await ask_and_not_read(server)
        server.clock.now = 59.0
        server.guard.sweep()
        assert len(server.guard.connections) == 1
        server.clock.now = 61.0
        server.guard.sweep()
        await until(lambda: not server.guard.connections)
        assert not server.guard.stuck
        assert server.count("slow_readers_total") == 1
        assert server.count("timeouts_total") == 1

    play(server, scene)


def test_a_reader_that_takes_its_time_but_reads_is_served() -> None:
    server = Server(write_seconds=60.0)
    server.app = Tap(LOTS)  # type: ignore[assignment]

    async def scene() -> None:
        reader, writer = await server.connect()
        writer.write(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        for _ in range(16):
            await reader.readexactly(LOTS // 16)
            server.clock.now += 50.0
            server.guard.sweep()
        assert server.count("slow_readers_total") == 0

    play(server, scene)


def test_what_was_closed_but_never_read_is_dropped_too() -> None:
    """A close waits until what was written has been read: without an end, for ever."""
    server = Server(write_seconds=60.0)
    server.app = Tap(LOTS, part=LOTS)  # type: ignore[assignment]

    async def scene() -> None:
        await ask_and_not_read(server)
        (connection,) = server.guard.connections
        connection.transport.close()
        await asyncio.sleep(0.05)
        server.guard.sweep()
        assert server.guard.connections
        server.clock.now = 61.0
        server.guard.sweep()
        await until(lambda: not server.guard.connections)

    play(server, scene)


@pytest.mark.parametrize("limits", [{"connections": 3}, {"connections_per_address": 3}])
def test_a_newcomer_takes_the_place_of_whoever_has_been_stuck_longest(limits: Any) -> None:
    server = Server(write_seconds=60.0, **limits)
    server.app = Tap(LOTS)  # type: ignore[assignment]

    async def scene() -> None:
        for second in range(3):
            server.clock.now = float(second)
            await ask_and_not_read(server)
        oldest, *others = server.guard.stuck
        reader, _ = await server.connect()
        assert await refused(reader)  # stuck for two seconds: that happens to honest readers
        assert server.count("connections_refused_total") == 1
        server.clock.now = 5.5
        reader, writer = await server.connect()
        writer.write(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        assert oldest not in server.guard.connections
        assert set(others) <= server.guard.connections
        assert server.count("slow_readers_total") == 1

    play(server, scene)


# --- bodies that do not end -----------------------------------------------------------------


def test_bodies_that_do_not_end_are_counted_and_given_back() -> None:
    """A body in chunks does not say its length: what is held of it counts while it is held."""
    server = Server(body_bytes=300_000)
    chunked = b"PUT /x HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n"

    async def begin(size: int = 140_000) -> tuple[Reader, Writer]:
        reader, writer = await server.connect()
        writer.write(chunked + b"%x\r\n" % 400_000 + bytes(size))
        await writer.drain()
        return reader, writer

    def held() -> int:
        return sum(one._held for one in server.guard.connections)

    async def scene() -> None:
        kept = [await begin()]
        await until(lambda: held() == 140_000)
        kept.append(await begin())
        await until(lambda: held() == 280_000)
        reader, _ = await begin(30_000)  # read at once: nothing is left that would reset the line
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        assert problem_in(answer.split(b"\r\n\r\n", 1)[1]) is Problem.BUSY
        for _, writer in kept:
            writer.transport.abort()
        await until(lambda: not server.guard.connections)
        assert server.guard.budget.take(300_000)

    play(server, scene)


def test_a_body_that_was_reserved_for_is_not_counted_twice() -> None:
    server = Server(body_bytes=100)

    async def reserve(scope: Any, receive: Any, send: Any) -> None:
        scope[RESERVED] = 200_000
        await Echo()(scope, receive, send)

    server.app = reserve  # type: ignore[assignment]

    async def scene() -> None:
        reader, writer = await server.connect()
        writer.write(head(200_000))
        await writer.drain()
        await asyncio.sleep(0.05)
        for _ in range(4):
            writer.write(bytes(50_000))
            await writer.drain()
            await asyncio.sleep(0.02)
        assert await answer_of(reader) == hashlib.sha256(bytes(200_000)).hexdigest().encode()

    play(server, scene)


def test_a_slow_second_request_is_told_why() -> None:
    server = Server(header_seconds=10.0)

    async def scene() -> None:
        reader, writer = await server.connect()
        writer.write(head(0))
        await answer_of(reader)
        writer.write(b"GET / HT")
        await writer.drain()
        await asyncio.sleep(0.05)
        server.clock.now = 11.0
        server.guard.sweep()
        assert (await reader.read()).startswith(b"HTTP/1.1 400 ")

    play(server, scene)


# --- connections ----------------------------------------------------------------------------


class FakeConnection:
    def __init__(self, late: bool) -> None:
        self.late, self.expired = late, False

    def overdue(self, now: float) -> bool:
        return self.late

    def expire(self) -> None:
        self.expired = True


def test_the_guard_counts_connections_by_address_and_drops_the_late() -> None:
    metrics = Metrics("", COMMON)
    guard = Guard(Limits(connections=3, connections_per_address=2), metrics.add)
    made: list[Any] = [FakeConnection(late=i == 1) for i in range(5)]
    assert [guard.admit(c, a) for c, a in zip(made, "xxxyy", strict=True)] == [True, True, False, True, False]
    guard.leave(made[2], "x")  # was never in
    guard.sweep()
    assert [c.expired for c in made] == [False, True, False, False, False]
    guard.leave(made[0], "x")
    guard.leave(made[1], "x")
    assert guard.by_address == {"y": 1}
    assert metrics.value("connections_refused_total") == 2
    assert metrics.value("timeouts_total") == 1


def test_a_whole_body_written_into_the_web_servers_cycle_is_what_the_application_reads() -> None:
    """The guard writes `cycle.body`, which is the web server's own: a release that renames it must not go unnoticed."""
    cycle = RequestResponseCycle.__new__(RequestResponseCycle)
    whole = b"x" * 1000
    cycle.body, cycle.more_body, cycle.response_complete = whole, False, False  # type: ignore[assignment]
    cycle.disconnected, cycle.waiting_for_100_continue = False, False
    cycle.flow, cycle.message_event = FlowControl(asyncio.Transport()), asyncio.Event()
    cycle.message_event.set()
    message: Any = asyncio.run(cycle.receive())
    assert message == {"type": "http.request", "body": whole, "more_body": False}
    assert message["body"] is whole, "handed out without a copy"
