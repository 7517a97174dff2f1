"""Who watches the line learns nothing of a browser's coin: times, sizes and connections of reports and covers.

A proxy stands between the browsers and a real shuffler and writes down what goes by, as a network would see it
before encryption: so it sees more. What an envelope is stands in its header, which only the parties read; here it is
the label.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from web.fleet import Fleet, people, released, say, wait_until
from web.test_end_to_end import Page

STRANGE = {"hours": "1" * 60 + "x"}
"""None of the question's values, of a kind that is slow to read as a number: every other browser answers so."""
_HEAD = re.compile(rb"(GET|PUT|OPTIONS|POST) (\S+) HTTP/1.1\r\n(.*?)\r\n\r\n", re.S)


class Watcher:
    """A proxy that writes down every request: when, how long, on which connection, after what."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self._target = parts.hostname, parts.port
        self.seen: list[dict[str, Any]] = []
        self._connections = 0

    @contextmanager
    def listening(self) -> Iterator[str]:
        ready, made = threading.Event(), dict[str, Any]()

        async def serve() -> None:
            made.update(loop=asyncio.get_running_loop(), over=asyncio.Event())
            server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
            made["port"] = server.sockets[0].getsockname()[1]
            ready.set()
            await made["over"].wait()
            server.close()

        thread = threading.Thread(target=lambda: asyncio.run(serve()))  # which ends what is still being carried
        thread.start()
        assert ready.wait(60)
        try:
            yield f"http://127.0.0.1:{made['port']}"
        finally:
            made["loop"].call_soon_threadsafe(made["over"].set)
            thread.join()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection(*self._target)
        self._connections += 1
        connection, began = self._connections, time.time()
        on_line: list[dict[str, Any]] = []

        async def out() -> None:
            held = b""
            while data := await reader.read(1 << 16):
                held = self._note(held + data, connection, began, on_line)
                there[1].write(data)
                await there[1].drain()
            there[1].close()

        async def back() -> None:
            while data := await there[0].read(1 << 16):
                if on_line and "answered" not in on_line[-1]:
                    on_line[-1] |= {"answered": time.time(), "answer": len(data)}
                writer.write(data)
                await writer.drain()
            writer.close()

        with suppress(asyncio.CancelledError):
            await asyncio.gather(out(), back(), return_exceptions=True)
        for one in (writer, there[1]):
            one.close()

    def _note(self, held: bytes, connection: int, began: float, on_line: list[dict[str, Any]]) -> bytes:
        """Requests that are complete are written down; the beginning of the next is kept."""
        while (head := _HEAD.match(held)) is not None:
            fields = dict(line.lower().split(b": ", 1) for line in head[3].split(b"\r\n"))
            size = int(fields.get(b"content-length", b"0"))
            if len(held) < head.end() + size:
                return held
            body = held[head.end() : head.end() + size]
            on_line.append(
                {
                    "at": time.time(), "method": head[1].decode(), "path": head[2].decode(),
                    "who": fields.get(b"authorization", b""), "size": head.end() + size, "connection": connection,
                    "age": time.time() - began, "before": len(on_line), "kind": body[6] if size > 6 else None,
                }
            )  # fmt: skip
            self.seen.append(on_line[-1])
            held = held[head.end() + size :]
        return held


def area(ones: Any, zeros: Any) -> float:
    """Under the curve of who tells one from zero by a figure."""
    ones, zeros = np.asarray(ones, float), np.asarray(zeros, float)
    return float(np.mean((ones[:, None] > zeros) + 0.5 * (ones[:, None] == zeros)))


def figures(seen: list[dict[str, Any]]) -> dict[str, tuple[list[float], list[float]]]:
    """What the watcher may go by, of reports and of covers."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    last: dict[bytes, dict[str, Any]] = {}
    opened: dict[str, float] = {}
    for one in seen:
        if one["method"] == "PUT" and one["path"].endswith("/report"):
            before = last.get(one["who"], one)
            row = {
                "time in the round": one["at"] - max(opened.values()),
                "time since the last request": one["at"] - before["at"],
                "size of the request": one["size"],
                "size of the answer": one.get("answer", 0),
                "time of the answer": one.get("answered", one["at"]) - one["at"],
                "age of the connection": one["age"],
                "requests on the connection": one["before"],
                "a new connection": one["connection"] != before["connection"],
            }
            for name, value in row.items():
                found.setdefault(name, ([], []))[0 if one["kind"] == 1 else 1].append(float(value))
        if one["who"]:
            last[one["who"]] = one
        if one["path"].startswith("/v1/model/"):  # every round has a model of its own, and all fetch it
            opened.setdefault(one["path"], one["at"])
    return found


def watched(folder: Path, browser: Any, origin: str, browsers: int, rounds: int, seconds: float) -> dict[str, Any]:
    everybody = people(browsers)
    with Fleet(folder, origin, browsers, poll_seconds=seconds / 8) as fleet:
        plan = {"round_seconds": seconds, "rounds": rounds, "epsilon_budget": 500.0}
        fleet.ask("mean", local_epsilon=0.5, **plan)
        watcher = Watcher(fleet.shuffler.listening["address"])
        with watcher.listening() as address:
            pages = []
            for number in range(browsers):
                config = fleet.config(number, {**everybody[number], **(STRANGE if number % 2 else {})})
                config["shuffler"]["address"] = address
                config["limits"] = {**config["limits"], "total_epsilon": 1e4, "total_local_epsilon": 1e4}
                pages.append(Page(browser, origin, config))
            wait_until(lambda: alive(fleet, pages, rounds), 4 * rounds * seconds + 120, f"{rounds} rounds")
            for page in pages:
                page.close()
        return {"seen": watcher.seen, "shot": fleet.shot()}


def alive(fleet: Fleet, pages: list[Page], rounds: int) -> bool:
    pages[0].state()
    return len(released(fleet.shot())) >= rounds


@pytest.mark.slow
def test_nothing_on_the_line_tells_a_report_from_a_cover(tmp_path: Path, browser: Any, files: str) -> None:
    """With 24 browsers in 40 rounds, areas of 960 envelopes are within 0.05 of one half: three deviations."""
    found = watched(tmp_path, browser, files, browsers=24, rounds=40, seconds=6.0)
    seen = figures(found["seen"])
    areas = {name: area(*rows) for name, rows in seen.items()}
    counts = [len(rows) for rows in seen["size of the request"]]
    say("reports and covers", counts, {name: round(found, 3) for name, found in areas.items()})
    assert min(counts) > 300
    assert {name: found for name, found in areas.items() if not abs(found - 0.5) <= 0.05} == {}
