"""The agents of a node, waiting for the bell: `python -m dpcheckin.flower.host SPEC BOX …`.

An agent is the one of `dpcheckin.service`: coin, clipping, noise, sealing and ledger are its own. It differs in two
ways only. It looks for a round (and for tokens, in a plan with an issuer) when the bell has rung, after a quiet time,
so that no work of its own falls into the moment in which Flower measures the doorbell; and it takes the model from the
ring if that is the model its round names, instead of fetching it. Both are the same whatever the coin will say.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import httpx

from dpcheckin.errors import InvalidParameter
from dpcheckin.flower.mailbox import Mailbox, Ring
from dpcheckin.randomizers import SecureSource
from dpcheckin.service import tls
from dpcheckin.service.client.config import Declined, NotBelieved, Refused
from dpcheckin.service.client.connection import ShufflerUnreachable
from dpcheckin.service.client.daemon import Daemon
from dpcheckin.service.client.timekeeping import Clock
from dpcheckin.service.wire.canonical import digest
from dpcheckin.service.wire.documents import RoundDocument
from dpcheckin.service.wire.problems import Malformed
from dpcheckin.service.wire.signing import read_signed_bytes

log = logging.getLogger("dpcheckin.client")

_MODEL = "/v1/model/"
_POLL_SECONDS = 0.25  # between looks into the mailbox
QUIET_SECONDS = 2.0
"""After the bell, in which nothing is done: no work of the agents is measured as the doorbell's."""
_SPREAD = 0.2
"""Share of a round over which agents ask for it, so that a fleet does not come all at once."""


class DeliveredModels(httpx.AsyncBaseTransport):
    """Answers requests for the model that came with the ring; all others go to the shuffler."""

    def __init__(self, network: httpx.AsyncBaseTransport) -> None:
        self._network = network
        self._held: tuple[str, bytes] = ("", b"")
        self.served_models = 0

    def keep(self, model: bytes) -> None:
        """Hold the latest model."""
        self._held = (digest(model).hex(), model)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        name, model = self._held
        if request.method == "GET" and request.url.path == _MODEL + name:
            self.served_models += 1
            return httpx.Response(200, content=model, request=request)
        return await self._network.handle_async_request(request)

    async def aclose(self) -> None:
        await self._network.aclose()


def delivering_client(shuffler: str, authority: Path | None) -> tuple[httpx.AsyncClient, DeliveredModels]:
    """A connection to the `shuffler` for all agents of a node, and where models are put for it. Only certificates of
    `authority` are believed; None: those of the system."""
    verify = tls.verification(shuffler, authority)
    limits = httpx.Limits(max_connections=64, max_keepalive_connections=64)
    network = httpx.AsyncHTTPTransport(verify=verify, limits=limits, trust_env=False)
    delivered = DeliveredModels(network)
    timeout = httpx.Timeout(30.0, pool=None)
    return httpx.AsyncClient(transport=delivered, timeout=timeout, trust_env=False), delivered


class Host:
    """The agents behind one doorbell, which drops its rings into `box`."""

    def __init__(
        self,
        agents: Sequence[Daemon],
        box: Mailbox,
        delivered: DeliveredModels,
        quiet: float = QUIET_SECONDS,
        clock: Clock | None = None,
    ) -> None:
        if not agents:
            raise InvalidParameter("agents", 0, "at least one")
        if not quiet >= 0:
            raise InvalidParameter("quiet", quiet, "at least 0")
        self._agents, self._box, self._delivered = list(agents), box, delivered
        self._quiet, self._clock = quiet, clock or Clock()
        self._source = SecureSource()
        self.rings = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Take part whenever the bell rings, until `stop` is set or every agent refuses."""
        self._box.make()
        while not stop.is_set() and self._agents:
            ring = self._box.take()
            closes = None if ring is None else self.verified_end(ring)
            if ring is None or closes is None:
                await self._clock.sleep(_POLL_SECONDS)
                continue
            self.rings += 1
            self._delivered.keep(ring.model)
            await self._clock.sleep(self._quiet)
            goes_on = await asyncio.gather(*(self._attend(a, closes) for a in self._agents))
            self._agents = [a for a, on in zip(self._agents, goes_on, strict=True) if on]

    def verified_end(self, ring: Ring) -> float | None:
        """When the rung round ends; None if the ring is not the analyzer's or too late."""
        try:
            identity = self._agents[0].config.identity
            closes = read_signed_bytes(RoundDocument, ring.round, identity).closes
        except Malformed:
            log.warning("a ring without the analyzer's signature is ignored")
            return None
        return closes if closes > self._clock.now() else None

    async def _attend(self, agent: Daemon, closes: float) -> bool:
        """One agent's part in the round; false when it will not go on."""
        left = max(0.0, closes - self._clock.now())
        pause = _SPREAD * left * float(self._source.uniform(1)[0])
        while True:
            await self._clock.sleep(pause)
            try:
                await agent.once()
                return True
            except (ShufflerUnreachable, NotBelieved) as problem:
                pause = max(0.5, 0.05 * left)
                if self._clock.now() + pause >= closes:
                    log.warning("shuffler not reached in this round: %s", problem)
                    return True
            except Declined as reason:
                log.warning("an agent waits for another plan: %s", reason)
                return True
            except Refused as reason:
                log.warning("an agent stops: %s", reason)
                return False


async def run_hosts(hosts: Sequence[Host]) -> None:
    """Run until SIGTERM or SIGINT, or until nobody is left."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    waiting: asyncio.Future[Any] = asyncio.create_task(stop.wait())
    working: asyncio.Future[Any] = asyncio.gather(*(host.run(stop) for host in hosts))
    both = (waiting, working)
    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    for task in both:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _run_files(pairs: Sequence[tuple[Path, Path]], quiet: float) -> None:
    from dpcheckin.deployment.agents import Specification, agents_of

    hosts, count = [], 0
    async with AsyncExitStack() as opened:
        for specification, box in pairs:
            spec = Specification.read(specification)
            authority = None if spec.authority is None else Path(spec.authority)
            http, delivered = delivering_client(spec.shuffler, authority)
            opened.push_async_callback(http.aclose)
            agents = agents_of(spec, http)
            for agent in agents:
                opened.callback(agent.close)
            hosts.append(Host(agents, Mailbox(box), delivered, quiet))
            Mailbox(box).make()
            count += len(agents)
        print(json.dumps({"event": "ready", "agents": count}), file=sys.stderr, flush=True)
        await run_hosts(hosts)


def main() -> None:
    """Run the agents of each specification behind the mailbox that is named after it."""
    import torch

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(name)s: %(message)s")
    torch.set_num_threads(1)
    os.nice(5)  # the doorbell of the same machine goes first
    names = [Path(name) for name in sys.argv[1:]]
    if not names or len(names) % 2:
        raise SystemExit("usage: python -m dpcheckin.flower.host SPEC BOX [SPEC BOX …]")
    quiet = float(os.environ.get("DPCHECKIN_QUIET_SECONDS", QUIET_SECONDS))
    asyncio.run(_run_files(list(zip(names[::2], names[1::2], strict=True)), quiet))


if __name__ == "__main__":
    main()
