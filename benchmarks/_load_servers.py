"""The servers that `service_load.py` measures: ours, and the bare floors it is measured against.

Each is a process of its own: `python _load_servers.py KIND FOLDER PORT SIZE CLIENTS`. It prints one
line when it listens. All run uvicorn with uvloop and httptools, without access log.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sqlite3
import sys
import threading
import time
from pathlib import Path
from typing import Any

import uvicorn

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

FLOORS = ("bare-sink", "bare-keep", "bare-sqlite")
OURS = ("memory", "sqlite", "postgres")


def token(number: int) -> str:
    """The token of a client: predictable, for measuring only."""
    return f"{number:043d}"


async def bare_sink(scope: Any, receive: Any, send: Any) -> None:
    """Reads the body, says yes, forgets it."""
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body", False):
        pass
    await send(
        {
            "type": "http.response.start",
            "status": 202,
            "headers": [(b"content-type", b"application/json"), (b"content-length", b"2")],
        }
    )
    await send({"type": "http.response.body", "body": b"{}"})


_kept: list[bytes] = []


async def bare_keep(scope: Any, receive: Any, send: Any) -> None:
    """The same, but what was read stays in memory, as reports of an open round must."""

    async def kept() -> Any:
        message = await receive()
        _kept.append(message.get("body", b""))
        return message

    await bare_sink(scope, kept, send)


def bare_sqlite(folder: Path) -> Any:
    """A Starlette handler that returns when its body is committed, many commits as one."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    jobs: queue.SimpleQueue[tuple[bytes, Any]] = queue.SimpleQueue()

    def write(loop: asyncio.AbstractEventLoop) -> None:
        connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
        for pragma in ("journal_mode = WAL", "synchronous = FULL"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("CREATE TABLE IF NOT EXISTS reports (body BLOB)")
        while True:
            group = [jobs.get()]
            while len(group) < 1024 and not jobs.empty():
                group.append(jobs.get())
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO reports VALUES (?)", [(b,) for b, _ in group])
            connection.execute("COMMIT")
            loop.call_soon_threadsafe(lambda told: [f.set_result(None) for _, f in told], group)

    async def put(request: Request) -> Response:
        body = await request.body()
        done = asyncio.get_running_loop().create_future()
        jobs.put((body, done))
        await done
        return Response(b"{}", 202, media_type="application/json")

    async def start() -> None:
        threading.Thread(target=write, args=(asyncio.get_running_loop(),), daemon=True).start()

    import contextlib

    @contextlib.asynccontextmanager
    async def lifespan(app: Any) -> Any:
        await start()
        yield

    routes = [Route("/v1/rounds/{round}/report", put, methods=["PUT"])]
    return Starlette(routes=routes, lifespan=lifespan)


def ours(kind: str, folder: Path, port: int, size: int, clients: int) -> None:
    """The shuffler as it is served, with rounds that stay open and limits out of the way."""
    import uvloop

    from dpcheckin.service.settings import Limits
    from dpcheckin.service.shuffler import server
    from dpcheckin.service.shuffler.http import shuffler_app
    from dpcheckin.service.shuffler.settings import Settings
    from dpcheckin.service.web.server import listen, serve_ports
    from dpcheckin.service.wire.credentials import token_digest
    from service.shuffler_world import Analyzer

    address = {
        "memory": "memory:",
        "sqlite": f"sqlite:{folder / 'shuffler.db'}",
        "postgres": os.environ.get("DPCHECKIN_BENCH_POSTGRES", ""),
    }[kind]
    settings = Settings(folder, port=port, admin_port=0, dev=True, limits=Limits(connections_per_address=100_000))
    store = server.open_store(address)
    store.enroll([token_digest(token(i)) for i in range(clients)])
    front = server.build(settings, store)
    analyzer = Analyzer.of(
        population=2,
        minimum_batch=0,
        rounds=1000,
        randomizer={"name": "measured", "dimension": max(1, (size - 77) // 4), "clip": 1.0, "encoding": 1},
    )
    analyzer.publish(front.core)
    later = 0.0
    front.core.clock = lambda: time.time() + later
    analyzer.open(front.core, 0, seconds=60.0)
    if kind == "memory":  # not the first round of its life: memory has been used before
        body = analyzer.report(0, 7)
        for number in range(clients):
            front.core.accept([front.core.examine(number.to_bytes(16), 0, body)])
    later = 120.0
    front.core.tick()
    analyzer.open(front.core, 1, seconds=86400.0)
    (folder / "envelope").write_bytes(analyzer.report(1, 7))
    public, admin = listen("127.0.0.1", port), listen("127.0.0.1", 0)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print("ready", flush=True)
        runner.run(serve_ports(settings, front, shuffler_app(front), public, admin))


def floor(kind: str, folder: Path, port: int, size: int) -> None:
    """One of the bare floors."""
    (folder / "envelope").write_bytes(os.urandom(size))
    plain = {"bare-sink": bare_sink, "bare-keep": bare_keep}
    app = plain[kind] if kind in plain else bare_sqlite(folder)
    config = uvicorn.Config(
        app,
        port=port,
        loop="uvloop",
        http="httptools",
        log_config=None,
        access_log=False,
        lifespan="off" if kind in plain else "on",
    )
    print("ready", flush=True)
    uvicorn.Server(config).run()


if __name__ == "__main__":
    wanted, place, number, length, many = sys.argv[1:6]
    if wanted in FLOORS:
        floor(wanted, Path(place), int(number), int(length))
    else:
        ours(wanted, Path(place), int(number), int(length), int(many))
