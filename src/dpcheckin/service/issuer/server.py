"""An issuer as a process: store, core, two web servers, one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import uvicorn

from dpcheckin.errors import InvalidParameter
from dpcheckin.service import json_logs
from dpcheckin.service.access import analyzer_token
from dpcheckin.service.files import check_folder, take_lock
from dpcheckin.service.identity import load_identity
from dpcheckin.service.issuer.core import Issuer
from dpcheckin.service.issuer.http import LOGGER, Front, admin_app, issuer_app
from dpcheckin.service.issuer.modular_power import OpenSslPower, best_power
from dpcheckin.service.issuer.settings import LOCK, STORE, IssuerSettings
from dpcheckin.service.issuer.store import IssuerStore
from dpcheckin.service.listening import listen
from dpcheckin.service.tls import Pair, server_context
from dpcheckin.service.web.guard import Guard
from dpcheckin.service.web.limits import Limits


def build(settings: IssuerSettings, store: IssuerStore) -> Front:
    """The front of an issuer over a store.

    Args:
        settings: the operator's.
        store: keeps what must survive.
    """
    core = Issuer(
        store,
        load_identity(settings.folder),
        analyzer=settings.identity,
        needs_analyzer=not settings.dev,
        ahead=settings.rounds_ahead,
    )
    limits = replace(Limits(), requests_per_second=settings.requests_per_second)
    return Front(core, analyzer_token(settings.folder), limits)


class _Server(uvicorn.Server):
    """A web server that leaves signals to us: its own way ends before the store is shut."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _configuration(app: Any, http: Any, keep_alive: int) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=http,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=keep_alive,
        timeout_graceful_shutdown=10,
    )


async def _run(
    settings: IssuerSettings, front: Front, public: socket.socket, admin: socket.socket
) -> None:
    guard, inner_guard = (Guard(front.limits, front.count) for _ in range(2))
    keep_alive = front.limits.keep_alive_seconds
    outer = _configuration(issuer_app(front), guard.protocol(), keep_alive)
    outer.load()
    if not settings.dev:
        pair = Pair(settings.folder / settings.tls_certificate, settings.folder / settings.tls_key)
        outer.ssl = server_context(pair)
    main = _Server(outer)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, setattr, main, "should_exit", True)
    inner = _Server(_configuration(admin_app(front), inner_guard.protocol(), keep_alive))
    watches = [asyncio.create_task(one.watch()) for one in (guard, inner_guard)]
    side = asyncio.create_task(inner.serve([admin]))
    scheme = "http" if settings.dev else "https"
    _say(
        "listening",
        address=f"{scheme}://{settings.host}:{public.getsockname()[1]}",
        admin=f"http://{settings.admin_host}:{admin.getsockname()[1]}",
        identity=front.core.public_identity,
        powers="constant time" if isinstance(best_power(), OpenSslPower) else "blinded only",
    )
    if settings.identity is None and not settings.dev:
        LOGGER.warning(
            "plans are refused: set analyzer_identity to what `dpcheckin analyzer identity` prints"
        )
    try:
        await main.serve([public])
    finally:
        inner.should_exit = True
        await side
        for watch in watches:
            watch.cancel()
        _say("stopped")


def _say(event: str, **fields: Any) -> None:
    LOGGER.log(logging.INFO, event, extra={"fields": fields})


def serve(settings: IssuerSettings) -> None:
    """Run until told to stop."""
    if not settings.folder.is_dir():
        raise InvalidParameter(
            "folder", str(settings.folder), "a folder that `dpcheckin issuer init` made"
        )
    check_folder(settings.folder)
    json_logs.set_up(LOGGER.name, settings.log_level)
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, take_lock(settings.folder / LOCK))
        store = stack.enter_context(contextlib.closing(IssuerStore(settings.folder / STORE)))
        store.verify()
        public = stack.enter_context(listen(settings.host, settings.port))
        admin = stack.enter_context(listen(settings.admin_host, settings.admin_port))
        asyncio.run(_run(settings, build(settings, store), public, admin))
