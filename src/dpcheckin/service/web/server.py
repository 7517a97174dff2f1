"""A party as a process: its two ports, TLS, signals, and the order in which everything begins and ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from dpcheckin.errors import InvalidParameter
from dpcheckin.service import logs
from dpcheckin.service.settings import ServedSettings
from dpcheckin.service.tls import Pair, server_context
from dpcheckin.service.web.front import Front, admin_app
from dpcheckin.service.web.guard import Guard
from dpcheckin.service.web.origins import CrossOrigin, read_origins


def listen(host: str, port: int) -> socket.socket:
    """A listening socket on an IPv4 or IPv6 address or name of a `host`; `port` 0 takes any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((host, port))
    except OSError as problem:
        opened.close()
        raise InvalidParameter("port", port, f"free on {host} ({problem.strerror})") from None
    opened.listen(2048)
    opened.setblocking(False)
    return opened


def configuration(app: ASGIApp, guard: Guard, **more: Any) -> uvicorn.Config:
    """How the web server of every party's `app` is set up: quiet, no websockets, with its `guard` and `more`."""
    return uvicorn.Config(
        app,
        http=guard.protocol(),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=guard.limits.keep_alive_seconds,
        timeout_graceful_shutdown=10,
        **more,
    )


async def serve_guarded(server: uvicorn.Server, guard: Guard, opened: socket.socket) -> None:
    """Serve on the listening socket `opened`, and let the `guard` drop slow connections, until the `server` stops."""
    watch = asyncio.create_task(guard.watch())
    try:
        await server.serve([opened])
    finally:
        watch.cancel()


class _Server(uvicorn.Server):
    """A web server that leaves signals to us: its own way ends before the store is shut."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve_party(
    settings: ServedSettings,
    log: logging.Logger,
    opened: Callable[[contextlib.ExitStack], tuple[Front, ASGIApp]],
    **facts: Any,
) -> None:
    """Run a party with its `settings` and `log` until it is told to stop.

    `opened` opens its store, to be closed by the stack, and gives what its requests share and its public application;
    `facts` are told in the line that says it is listening.
    """
    import uvloop

    logs.set_up(log.name, settings.log_level)
    origins = read_origins(settings.origins)
    with contextlib.ExitStack() as stack:
        # first, as a port that is taken is no reason to make a folder and a database
        public = stack.enter_context(listen(settings.host, settings.port))
        admin = stack.enter_context(listen(settings.admin_host, settings.admin_port))
        front, app = opened(stack)
        app = CrossOrigin(app, origins) if origins else app
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve_ports(settings, front, app, public, admin, **facts))


async def serve_ports(
    settings: ServedSettings, front: Front, app: ASGIApp, public: socket.socket, admin: socket.socket, **facts: Any
) -> None:
    """Serve `app` on `public`, health and metrics on `admin`; `settings`, `front`, `facts`: those of `serve_party`."""
    guard = Guard(front.limits, front.metrics.add, budget=front.budget)
    inner_guard = Guard(front.limits, front.metrics.add)
    outer = configuration(app, guard)
    outer.load()
    if not settings.dev:
        folder = settings.folder  # a path in the settings file is relative to it
        outer.ssl = server_context(Pair(folder / settings.tls_certificate, folder / settings.tls_key))
    main, inner = _Server(outer), _Server(configuration(admin_app(front), inner_guard))
    for signal_ in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signal_, setattr, main, "should_exit", True)
    side = asyncio.create_task(serve_guarded(inner, inner_guard, admin))
    logs.event(
        front.log,
        "listening",
        address=f"{'http' if settings.dev else 'https'}://{settings.host}:{public.getsockname()[1]}",
        admin=f"http://{settings.admin_host}:{admin.getsockname()[1]}",
        **facts,
    )
    if settings.identity is None and not settings.trusts_any_analyzer:
        refused = "plans are refused: set analyzer_identity to what `dpcheckin analyzer identity` prints"
        logs.event(front.log, refused, level=logging.WARNING)
    try:
        await serve_guarded(main, guard, public)
    finally:
        inner.should_exit = True
        await side
        logs.event(front.log, "stopped")
