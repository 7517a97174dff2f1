"""The analyzer as a process: the conductor in one thread, the live page in the main one.

The page is one self-contained HTML file, one JSON snapshot that it asks for every second, health and metrics. It shows
nothing that the analyzer may not publish, loads nothing from anywhere else, and its policy forbids it to. `serve`
returns when the run is over (or, with `stay`, when it is stopped). SIGHUP makes a new opening key with the next round.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Container, Iterator
from importlib.resources import files
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from dpcheckin.service import logs
from dpcheckin.service.analyzer.board import Board
from dpcheckin.service.analyzer.core import Schedule
from dpcheckin.service.analyzer.daemon import Analyzer
from dpcheckin.service.analyzer.parties import IssuerClient, ShufflerClient
from dpcheckin.service.analyzer.settings import AnalyzerSettings
from dpcheckin.service.settings import Limits
from dpcheckin.service.storage.identity import load_identity
from dpcheckin.service.tasks import Task
from dpcheckin.service.web.guard import Guard
from dpcheckin.service.web.hosts import KnownHosts
from dpcheckin.service.web.server import configuration, listen, serve_guarded
from dpcheckin.service.wire.signing import public_identity

_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def page_app(board: Board, alive: Callable[[], bool], results: Path | None = None) -> Starlette:
    """The application that shows a `board`; `alive` says whether the conductor is at work, `results` is the folder with
    the files of an estimate, if there are any."""
    html = (files("dpcheckin.service.analyzer") / "page.html").read_text(encoding="utf-8")

    async def page(_: Request) -> Response:
        return HTMLResponse(html, headers=_HEADERS)

    async def status(_: Request) -> Response:
        return JSONResponse(board.snapshot(), headers=_HEADERS)

    async def health(_: Request) -> Response:
        if not alive() and board.snapshot()["finished"] is None:
            return PlainTextResponse("the conductor has stopped\n", 503)
        away = " and ".join(board.away())
        return PlainTextResponse(f"{away} not reached\n" if away else "ok\n", 503 if away else 200)

    async def metrics(_: Request) -> Response:
        return PlainTextResponse(board.prometheus(), media_type="text/plain; version=0.0.4")

    def result(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
        async def answer(_: Request) -> Response:
            try:
                content = b"" if results is None else (results / name).read_bytes()
            except FileNotFoundError:
                content = b""
            if not content:
                return PlainTextResponse("no estimate\n", status_code=404, headers=_HEADERS)
            return Response(content, media_type=kind, headers=_HEADERS)

        return answer

    return Starlette(
        routes=[
            Route("/", page),
            Route("/status.json", status),
            Route("/healthz", health),
            Route("/metrics", metrics),
            Route("/estimate.json", result("estimate.json", "application/json")),
            Route("/estimate.csv", result("estimate.csv", "text/csv")),
        ]
    )


log = logging.getLogger("dpcheckin.analyzer")


# a page for a few people: little of everything is enough
LIMITS = Limits(
    connections=200,
    connections_per_address=100,
    header_seconds=10.0,
    body_seconds=10.0,
    write_seconds=30.0,
    keep_alive_seconds=15,
    body_bytes=1 << 20,
)


def serve(settings: AnalyzerSettings, task: Task, dimension: int, *, stay: bool = False) -> str:
    """Run the plan of the `settings` to its end, for a `task` with reports of this `dimension`, and serve the page,
    with `stay` after the end too; returns why the run ended."""
    logs.set_up(log.name, settings.log_level)
    stop = threading.Event()
    shuffler = ShufflerClient(settings.shuffler, settings.token, settings.authority, stop)
    with open_analyzer(settings, task, dimension, shuffler, stop) as analyzer:
        opened = listen(settings.host, settings.port)
        where = f"http://{settings.host}:{opened.getsockname()[1]}"
        log.info("listening", extra={"fields": {"page": where, "identity": public_identity(analyzer.identity).hex()}})
        return _until_over(analyzer, opened, stay, {settings.host, *settings.names})


@contextlib.contextmanager
def open_analyzer(
    settings: AnalyzerSettings, task: Task, dimension: int, shuffler: ShufflerClient, stop: threading.Event
) -> Iterator[Analyzer]:
    """The analyzer that `settings` describe, for a `task` whose reports have this `dimension`. `stop` ends the run, and
    waiting; at the end ledger and connections, that to the `shuffler` too, are given back."""
    plan, identity = settings.plan_document(dimension), load_identity(settings.identity_folder or settings.folder)
    schedule = Schedule(settings.rotate_every, settings.pause_seconds, pacing=settings.pacing)
    with contextlib.ExitStack() as opened:
        opened.callback(shuffler.close)
        issuer = None
        if (access := settings.issuer) is not None:
            issuer = IssuerClient(access.address, access.token, access.authority, stop)
            opened.callback(issuer.close)
        analyzer = Analyzer(settings.folder, plan, identity, task, shuffler, schedule, stop, issuer, settings.budget)
        opened.callback(analyzer.close)
        yield analyzer


def _until_over(analyzer: Analyzer, opened: socket.socket, stay: bool, names: Container[str]) -> str:
    """The two halves, and how they end together; the page is known by these names."""
    results: list[str | BaseException] = []

    def conduct() -> None:
        try:
            results.append(analyzer.run())
        except BaseException as problem:
            results.append(problem)
            analyzer.board.finish(f"failed: {problem}")
        if not stay or isinstance(results[0], BaseException):
            server.should_exit = True

    conductor, guard = threading.Thread(target=conduct, name="conductor"), Guard(LIMITS)
    app = KnownHosts(page_app(analyzer.board, conductor.is_alive, analyzer.folder), names)
    server = uvicorn.Server(configuration(app, guard, lifespan="off"))
    signal.signal(signal.SIGHUP, lambda *_: analyzer.rotate_now.set())
    # the web server stops at this signal, and raises it again when it has: an end like others
    signal.signal(signal.SIGTERM, lambda *_: analyzer.stop.set())
    conductor.start()
    try:
        asyncio.run(serve_guarded(server, guard, opened))
    finally:
        analyzer.stop.set()
        conductor.join()
    if isinstance(results[0], BaseException):
        raise results[0]
    return results[0]
