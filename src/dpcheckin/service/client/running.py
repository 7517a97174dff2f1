"""One agent as a process: connections, ledger and signals around its daemon."""

from __future__ import annotations

import asyncio
import contextlib
import signal

import httpx

from dpcheckin.service.client.config import ClientConfig
from dpcheckin.service.client.connection import open_client
from dpcheckin.service.client.daemon import Counts, Daemon
from dpcheckin.service.storage.files import make_folder
from dpcheckin.service.tasks import ClientTask


async def opened_daemon(
    config: ClientConfig, task: ClientTask, http: httpx.AsyncClient, lines: contextlib.AsyncExitStack
) -> Daemon:
    """An agent of the owner's `config` and `task` on the connection `http`; `lines` closes its own one to an issuer."""
    issuer_http = None
    if config.issuer is not None:
        issuer_http = await lines.enter_async_context(open_client(config.issuer.address, config.issuer.authority))
    return Daemon(config, task, http, issuer_http=issuer_http)


def run_agent(config: ClientConfig, task: ClientTask) -> Counts:
    """Run one agent of the owner's `config` and `task` until it is stopped or refuses; the ledger's folder is made if
    needed."""
    make_folder(config.state)

    async def work() -> Counts:
        async with contextlib.AsyncExitStack() as lines:
            http = await lines.enter_async_context(open_client(config.shuffler, config.authority))
            daemon = await opened_daemon(config, task, http, lines)
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
