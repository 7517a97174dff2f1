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
from collections.abc import Callable

import uvicorn
from starlette.applications import Starlette

from dpcheckin.service import json_logs
from dpcheckin.service.analyzer.board import Board
from dpcheckin.service.analyzer.daemon import Analyzer, Schedule
from dpcheckin.service.analyzer.keys import load_identity
from dpcheckin.service.analyzer.page import page_app
from dpcheckin.service.analyzer.settings import AnalyzerSettings
from dpcheckin.service.analyzer.shuffler_client import ShufflerClient
from dpcheckin.service.listening import listen
from dpcheckin.service.tasks import AnalyzerTask
from dpcheckin.service.wire.signing import public_identity

log = logging.getLogger("dpcheckin.analyzer")


def _page_server(board: Board, alive: Callable[[], bool]) -> uvicorn.Server:
    app: Starlette = page_app(board, alive)
    return uvicorn.Server(
        uvicorn.Config(
            app, log_config=None, access_log=False, server_header=False, ws="none", lifespan="off"
        )
    )


def serve(
    settings: AnalyzerSettings, task: AnalyzerTask, dimension: int, *, stay: bool = False
) -> str:
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
    schedule = Schedule(settings.rotate_every, settings.pause_seconds)
    plan = settings.plan_document(dimension)
    analyzer = Analyzer(settings.folder, plan, identity, task, shuffler, schedule, stop)
    try:
        opened = listen(settings.host, settings.port)
        where = f"http://{settings.host}:{opened.getsockname()[1]}"
        log.info(
            "listening",
            extra={"fields": {"page": where, "identity": public_identity(identity).hex()}},
        )
        return _Run(analyzer, stay).until_over(opened)
    finally:
        analyzer.close()
        shuffler.close()


class _Run:
    """The two halves, and how they end together."""

    def __init__(self, analyzer: Analyzer, stay: bool) -> None:
        self._analyzer, self._stay = analyzer, stay
        self._result: str | BaseException = "stopped"
        self._thread = threading.Thread(target=self._conduct, name="conductor")
        self._server = _page_server(analyzer.board, self._thread.is_alive)

    def _conduct(self) -> None:
        try:
            self._result = self._analyzer.run()
        except BaseException as problem:
            self._result = problem
            self._analyzer.board.finish(f"failed: {problem}")
        finally:
            if not self._stay or isinstance(self._result, BaseException):
                self._server.should_exit = True

    def until_over(self, opened: socket.socket) -> str:
        signal.signal(signal.SIGHUP, lambda *_: self._analyzer.rotate_now.set())
        # the web server stops at this signal, and raises it again when it has: an end like others
        signal.signal(signal.SIGTERM, lambda *_: self._analyzer.stop.set())
        self._thread.start()
        try:
            asyncio.run(self._server.serve([opened]))
        finally:
            self._analyzer.stop.set()
            self._thread.join()
        if isinstance(self._result, BaseException):
            raise self._result
        return self._result
