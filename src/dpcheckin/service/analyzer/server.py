"""The analyzer as a process: the conductor in one thread, the page in the main one.

`serve` returns when the run is over (or, with `stay`, when it is stopped). SIGHUP makes a new
opening key with the next round.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import threading
from collections.abc import Callable, Container
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from dpcheckin.service import json_logs
from dpcheckin.service.analyzer.board import Board
from dpcheckin.service.analyzer.daemon import Analyzer, Schedule
from dpcheckin.service.analyzer.issuer_client import issuer_client
from dpcheckin.service.analyzer.keys import load_identity
from dpcheckin.service.analyzer.page import page_app
from dpcheckin.service.analyzer.settings import AnalyzerSettings
from dpcheckin.service.analyzer.shuffler_client import ShufflerClient
from dpcheckin.service.connections import Answers, Budget, Guard
from dpcheckin.service.hosts import KnownHosts, plain_answer
from dpcheckin.service.listening import listen
from dpcheckin.service.tasks import Task
from dpcheckin.service.wire.signing import public_identity

log = logging.getLogger("dpcheckin.analyzer")


@dataclass(frozen=True)
class PageLimits:
    """A page for a few people: little of everything is enough."""

    connections: int = 200
    connections_per_address: int = 100
    header_seconds: float = 10.0
    body_seconds: float = 10.0
    write_seconds: float = 30.0


_BODY_BYTES = 1 << 20


def _page_server(
    board: Board,
    alive: Callable[[], bool],
    names: Container[str],
    guard: Guard,
    results: Path,
) -> uvicorn.Server:
    app = KnownHosts(page_app(board, alive, results), names)
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=guard.protocol(),
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            lifespan="off",
            timeout_keep_alive=15,
            timeout_graceful_shutdown=10,
        )
    )


def serve(settings: AnalyzerSettings, task: Task, dimension: int, *, stay: bool = False) -> str:
    """Run the plan to its end and serve the page; returns why it ended.

    Args:
        settings: from `analyzer.toml`.
        task: what is learned.
        dimension: coordinates of a report, or number of symbols.
        stay: serve the page after the run is over.
    """
    json_logs.set_up(log.name, settings.log_level)
    identity = load_identity(settings.folder)
    stop = threading.Event()
    shuffler = ShufflerClient(settings.shuffler, settings.token, settings.authority, stop)
    schedule = Schedule(settings.rotate_every, settings.pause_seconds, pacing=settings.pacing)
    plan = settings.plan_document(dimension)
    issuer = issuer_client(settings.issuer, stop)
    analyzer = Analyzer(
        settings.folder, plan, identity, task, shuffler, schedule, stop, issuer, settings.budget
    )
    try:
        opened = listen(settings.host, settings.port)
        where = f"http://{settings.host}:{opened.getsockname()[1]}"
        log.info(
            "listening",
            extra={"fields": {"page": where, "identity": public_identity(identity).hex()}},
        )
        return _Run(analyzer, stay, {settings.host, *settings.names}).until_over(opened)
    finally:
        analyzer.close()
        shuffler.close()
        if issuer is not None:
            issuer.close()


class _Run:
    """The two halves, and how they end together."""

    def __init__(self, analyzer: Analyzer, stay: bool, names: Container[str]) -> None:
        self._analyzer, self._stay = analyzer, stay
        self._guard = Guard(
            PageLimits(),
            Answers(plain_answer(400), plain_answer(503)),
            Budget(_BODY_BYTES),
        )
        self._result: str | BaseException = "stopped"
        self._thread = threading.Thread(target=self._conduct, name="conductor")
        self._server = _page_server(
            analyzer.board, self._thread.is_alive, names, self._guard, analyzer.folder
        )

    def _conduct(self) -> None:
        try:
            self._result = self._analyzer.run()
        except BaseException as problem:
            self._result = problem
            self._analyzer.board.finish(f"failed: {problem}")
        finally:
            if not self._stay or isinstance(self._result, BaseException):
                self._server.should_exit = True

    async def _serve(self, opened: socket.socket) -> None:
        watch = asyncio.create_task(self._guard.watch())
        try:
            await self._server.serve([opened])
        finally:
            watch.cancel()

    def until_over(self, opened: socket.socket) -> str:
        signal.signal(signal.SIGHUP, lambda *_: self._analyzer.rotate_now.set())
        # the web server stops at this signal, and raises it again when it has: an end like others
        signal.signal(signal.SIGTERM, lambda *_: self._analyzer.stop.set())
        self._thread.start()
        try:
            asyncio.run(self._serve(opened))
        finally:
            self._analyzer.stop.set()
            self._thread.join()
        if isinstance(self._result, BaseException):
            raise self._result
        return self._result
