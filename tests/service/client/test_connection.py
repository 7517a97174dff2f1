"""What an agent lets a shuffler send it: no more than was expected, and nothing to unpack."""

import asyncio
import gzip
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from dpcheckin.service.client.connection import Connection, ShufflerUnreachable, open_client
from dpcheckin.service.wire.problems import Problem


@contextmanager
def shuffler(body: bytes, **headers: str) -> Iterator[tuple[str, list[Any]]]:
    """Answers everything with these bytes; and what it was asked."""
    asked: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(dict(self.headers))
            self.send_response(200)
            for name, text in headers.items():
                self.send_header(name.replace("_", "-"), text)
            self.end_headers()
            with suppress(OSError):  # the client has read enough
                self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


def fetch(address: str, **options: Any) -> Any:
    async def work() -> Any:
        async with open_client(address, None) as http:
            return await Connection(address, "token", http).get("/v1/round", **options)

    return asyncio.run(work())


def test_compression_is_not_asked_for_and_not_undone() -> None:
    """A megabyte of gzip that holds a gigabyte: it is refused by its header."""
    bomb = gzip.compress(bytes(64 << 20))
    with shuffler(bomb, content_encoding="gzip") as (address, asked):
        tracemalloc.start()
        try:
            with pytest.raises(ShufflerUnreachable, match="an answer in gzip, not asked for"):
                fetch(address)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 8 << 20
    accepted = [value for name, value in asked[0].items() if name.lower() == "accept-encoding"]
    assert accepted == ["identity"]


def test_reading_stops_where_an_answer_is_longer_than_it_may_be() -> None:
    with shuffler(bytes(16 << 20)) as (address, _):
        tracemalloc.start()
        try:
            with pytest.raises(ShufflerUnreachable, match="more than 1,048,576 bytes"):
                fetch(address)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 8 << 20
        assert len(fetch(address, limit=16 << 20).body) == 16 << 20


def test_an_answer_of_the_largest_size_is_read_whole_and_dated() -> None:
    with shuffler(b"x" * 100) as (address, _):
        answer = fetch(address, limit=100)
        assert answer.body == b"x" * 100
        assert answer.date is not None and answer.date > 1.7e9
        with pytest.raises(ShufflerUnreachable):
            fetch(address, limit=99)


def test_a_long_problem_does_not_fill_the_memory_either() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(503, content=Problem.BUSY.body() + b" " * (1 << 17))

    async def work() -> Any:
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
            return await Connection("http://127.0.0.1:1", "t", http).put("/v1/x", b"")

    with pytest.raises(ShufflerUnreachable, match="more than 65,536"):
        asyncio.run(work())
