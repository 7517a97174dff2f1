"""One round of the deployed system in one process: analyzer, shuffler over HTTP, three agents.

Everything is what ships, SQLite included; only the network is left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from pathlib import Path

import httpx
import numpy as np
from numpy.typing import NDArray

from dpcheckin.service.analyzer.daemon import Analyzer
from dpcheckin.service.analyzer.parties import ShufflerClient
from dpcheckin.service.client.config import ClientConfig
from dpcheckin.service.client.daemon import Daemon
from dpcheckin.service.shuffler.chance import SecureChance
from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.http import ShufflerFront, shuffler_app
from dpcheckin.service.shuffler.stores.sqlite import SqliteStore
from dpcheckin.service.storage.identity import load_identity
from dpcheckin.service.wire.credentials import new_token, token_digest
from dpcheckin.service.wire.signing import public_identity
from service.analyzer_world import Adding
from service.asgi import ask
from service.client_world import WIDE, Coin
from service.plans import plan

ADDRESS = "http://127.0.0.1:1"
CLIENTS = 3


class Direct(httpx.BaseTransport):
    """Requests of the analyzer's thread, answered by the application in its event loop."""

    def __init__(self, app: object, loop: asyncio.AbstractEventLoop) -> None:
        self._app, self._loop = app, loop

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        headers = [(name.lower(), value) for name, value in request.headers.raw]
        asked = ask(self._app, request.method, request.url.path, headers, [request.read()])
        reply = asyncio.run_coroutine_threadsafe(asked, self._loop).result(60)
        assert reply is not None
        return httpx.Response(reply.status, stream=httpx.ByteStream(reply.body))


class Owner:
    """The owner's data."""

    def value(self, model: bytes) -> NDArray[np.float64]:
        return np.ones(20)


async def play(folder: Path) -> str:
    """The round, from the announcement to the checkpoint; what the analyzer says at the end."""
    document = plan(population=CLIENTS, rounds=1, rate=0.5, epsilon_budget=50.0, round_seconds=2.0)
    secret, tokens = new_token(), [new_token() for _ in range(CLIENTS)]
    with contextlib.closing(SqliteStore(folder / "shuffler.db")) as store:
        store.enroll([token_digest(token) for token in tokens])
        core = Shuffler(store, clock=time.time, chance=SecureChance())
        front = ShufflerFront(core, token_digest(secret))
        app = shuffler_app(front, 0.05)
        async with app._others.router.lifespan_context(app):  # type: ignore[attr-defined]
            shuffler = ShufflerClient(ADDRESS, secret)
            shuffler._http = httpx.Client(
                base_url=ADDRESS,
                headers={"authorization": f"Bearer {secret}"},
                transport=Direct(app, asyncio.get_running_loop()),
            )
            identity = load_identity(folder)
            analyzer = Analyzer(folder / "analyzer", document, identity, Adding(), shuffler, None, threading.Event())
            working = asyncio.create_task(asyncio.to_thread(analyzer.run))
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as http:
                await asyncio.gather(
                    *(
                        _report(ClientConfig(ADDRESS, token, public_identity(identity), WIDE, folder / str(i)), http)
                        for i, token in enumerate(tokens)
                    )
                )
            said = await working
            analyzer.close()
            return said


async def _report(config: ClientConfig, http: httpx.AsyncClient) -> None:
    config.state.mkdir()
    daemon = Daemon(config, Owner(), http)
    daemon._source.uniform = Coin([0.0, 0.0]).uniform  # type: ignore[method-assign]
    while await daemon.once() is None:
        await asyncio.sleep(0.05)
    daemon.close()
