"""Putting a shuffler together and running it: store, core, two web servers, one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.access import analyzer_token
from dpcheckin.service.files import without_password
from dpcheckin.service.identity import load_identity
from dpcheckin.service.listening import listen
from dpcheckin.service.shuffler.chance import SecureChance
from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.http import logs
from dpcheckin.service.shuffler.http.app import Front
from dpcheckin.service.shuffler.http.routes import admin_app, shuffler_app
from dpcheckin.service.shuffler.rounds import Settled
from dpcheckin.service.shuffler.settings import Settings
from dpcheckin.service.shuffler.stores.base import Store
from dpcheckin.service.shuffler.stores.memory import MemoryStore
from dpcheckin.service.shuffler.stores.sqlite import SqliteStore
from dpcheckin.service.tls import Pair, server_context
from dpcheckin.service.web.guard import Guard


def open_store(address: str) -> Store:
    """`memory:`, `sqlite:FILE` or `postgresql://…`."""
    if address == "memory:":
        return MemoryStore()
    if address.startswith("sqlite:") and len(address) > len("sqlite:"):
        return SqliteStore(Path(address.removeprefix("sqlite:")))
    if address.startswith(("postgresql://", "postgres://")):
        from dpcheckin.service.shuffler.stores.postgres import PostgresStore

        return PostgresStore(address)
    raise InvalidParameter(
        "store", without_password(address), "memory:, sqlite:FILE or postgresql://…"
    )


def build(settings: Settings, store: Store, clock: Callable[[], float] = time.time) -> Front:
    """The front of a shuffler over a store.

    Args:
        settings: the operator's.
        store: keeps what must survive.
        clock: seconds since the epoch.
    """

    def settled(round_: Settled) -> None:
        front.settled(round_)  # no round can settle before the front below is there

    core = Shuffler(
        store,
        clock=clock,
        chance=SecureChance(),
        identity=settings.identity,
        signer=load_identity(settings.folder),
        needs_identity=not settings.trusts_any_analyzer,
        on_settled=settled,
    )
    front = Front(core, analyzer_token(settings.folder), limits=settings.limits)
    front.metrics.set("start_time_seconds", clock())
    return front


class _Server(uvicorn.Server):
    """A web server that leaves signals to us: its own way ends before the store is shut."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _configuration(app: object, settings: Settings, http: object) -> uvicorn.Config:
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        http=http,  # type: ignore[arg-type]
        loop="uvloop",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=settings.limits.keep_alive_seconds,
        timeout_graceful_shutdown=10,
    )


async def _run(
    settings: Settings, front: Front, public: socket.socket, admin: socket.socket
) -> None:
    guard = Guard(settings.limits, front.metrics.add, budget=front.budget)
    inner_guard = Guard(settings.limits, front.metrics.add)
    outer = _configuration(shuffler_app(front), settings, guard.protocol())
    outer.load()
    if not settings.dev:
        certificate, key = settings.tls_certificate, settings.tls_key
        outer.ssl = server_context(Pair(settings.resolved(certificate), settings.resolved(key)))
    main = _Server(outer)
    for signal_ in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signal_, setattr, main, "should_exit", True)
    inner = _Server(_configuration(admin_app(front), settings, inner_guard.protocol()))
    watches = [asyncio.create_task(one.watch()) for one in (guard, inner_guard)]
    side = asyncio.create_task(inner.serve([admin]))
    logs.event(
        "listening",
        address=f"{'http' if settings.dev else 'https'}://{settings.host}:{_port(public)}",
        admin=f"http://{settings.admin_host}:{_port(admin)}",
        store=settings.store_address.split(":", 1)[0],
    )
    if settings.identity is None and not settings.trusts_any_analyzer:
        logs.event(
            "plans are refused: set analyzer_identity to what `dpcheckin analyzer identity` prints",
            level=logging.WARNING,
        )
    try:
        await main.serve([public])
    finally:
        inner.should_exit = True
        await side
        for watch in watches:
            watch.cancel()
        logs.event("stopped")


def _port(opened: socket.socket) -> int:
    return int(opened.getsockname()[1])


def serve(settings: Settings) -> None:
    """Run until told to stop."""
    logs.set_up(settings.log_level)
    with contextlib.ExitStack() as stack:
        # first, as a port that is taken is no reason to make a folder and a database
        public = stack.enter_context(listen(settings.host, settings.port))
        admin = stack.enter_context(listen(settings.admin_host, settings.admin_port))
        store = stack.enter_context(contextlib.closing(open_store(settings.store_address)))
        stack.enter_context(store.serve_alone())
        store.verify()
        front = build(settings, store)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_run(settings, front, public, admin))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    import uvloop

    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
