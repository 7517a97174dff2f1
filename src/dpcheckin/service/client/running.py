"""One agent as a process: connections, ledger and signals around its daemon."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import Any

import httpx

from dpcheckin.service.client.config import ClientConfig
from dpcheckin.service.client.connection import open_client
from dpcheckin.service.client.daemon import Counts, Daemon
from dpcheckin.service.files import make_folder
from dpcheckin.service.tasks import ClientTask


def http_client(config: ClientConfig, **options: Any) -> httpx.AsyncClient:
    """A connection to the shuffler; certificates are always checked."""
    return open_client(config.shuffler, config.authority, **options)


def run_agent(config: ClientConfig, task: ClientTask) -> Counts:
    """Run one agent until it is stopped or refuses; the ledger's folder is made if needed.

    Args:
        config: the owner's file.
        task: the owner's data and what is computed from it.
    """
    make_folder(config.state)

    async def work() -> Counts:
        async with contextlib.AsyncExitStack() as lines:
            http = await lines.enter_async_context(http_client(config))
            issuer_http = None
            if config.issuer is not None:
                made = open_client(config.issuer.address, config.issuer.authority)
                issuer_http = await lines.enter_async_context(made)
            daemon = Daemon(config, task, http, issuer_http=issuer_http)
            held.callback(daemon.close)
            working = asyncio.create_task(daemon.run())
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, working.cancel)
            await asyncio.wait([working])
            if not working.cancelled():
                working.result()  # raises why this client will not go on
            return daemon.counts

    # the ledger is given back last: a thread may still be writing down the round
    with contextlib.ExitStack() as held:
        return asyncio.run(work())
