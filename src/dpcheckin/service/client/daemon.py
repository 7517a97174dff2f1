"""The client agent at work: polls the shuffler, keeps time, sends, tries again.

All decisions are `core.Agent`'s. Seen from outside, a client that reports and one that does not do
the same requests: round, model, and (in plans with cover) one envelope of the same size at a random
moment. Retries carry the same bytes. Nothing secret is logged: neither token, nor coin, nor data.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from dpcheckin.errors import ServiceError
from dpcheckin.randomizers import SecureSource
from dpcheckin.service import tls
from dpcheckin.service.client.config import ClientConfig
from dpcheckin.service.client.core import Agent, Refused
from dpcheckin.service.client.ledger import ClientLedger
from dpcheckin.service.tasks import ClientTask
from dpcheckin.service.wire.credentials import bearer_header
from dpcheckin.service.wire.documents import RoundDocument
from dpcheckin.service.wire.problems import TRANSIENT, Problem, problem_in

log = logging.getLogger("dpcheckin.client")

LEDGER = "client.ledger"
_LARGEST_PAUSE = 30.0
_MARGIN_SHARE = 0.15  # of the window, kept free for retries before it closes


class ShufflerUnreachable(ServiceError):
    """The shuffler does not answer; the agent tries again."""


@dataclass
class Clock:
    """Time and sleeping, so that tests can have their own."""

    now: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep


@dataclass
class Counts:
    """What an agent did, for its owner's eyes."""

    rounds: int = 0
    reports: int = 0
    covers: int = 0
    undelivered: int = 0
    failures: int = 0
    seen: set[int] = field(default_factory=set)


def http_client(config: ClientConfig, **options: Any) -> httpx.AsyncClient:
    """A connection to the shuffler; certificates are always checked."""
    verify = tls.verification(config.shuffler, config.authority)
    return httpx.AsyncClient(verify=verify, timeout=30.0, trust_env=False, **options)


class Daemon:
    """One agent and its connection. Several may share a connection in one process.

    Args:
        config: the owner's file.
        task: the owner's data and what is computed from it.
        http: the connection; see `http_client`.
        clock: time and sleeping.
        agent: further arguments of `Agent`.
    """

    def __init__(
        self,
        config: ClientConfig,
        task: ClientTask,
        http: httpx.AsyncClient,
        clock: Clock | None = None,
        **agent: Any,
    ) -> None:
        self.config, self._task, self._http = config, task, http
        self._clock = clock or Clock()
        self._source = SecureSource()
        self.counts = Counts()
        self.ledger = ClientLedger(config.state / LEDGER)
        self.agent = Agent(config, self.ledger, self._source, **agent)

    def close(self) -> None:
        """Give the ledger back."""
        self.ledger.close()

    async def run(self, stop: asyncio.Event | None = None) -> None:
        """Take part until `stop` is set; raises `Refused` when this client will not go on."""
        pause = self.config.poll_seconds
        while stop is None or not stop.is_set():
            try:
                until = await self.once()
                pause = self.config.poll_seconds
                if until is None:
                    await self._sleep_about(pause)
                else:
                    await self._clock.sleep(max(0.0, until - self._clock.now()))
                    await self._sleep_about(0.2 * pause)
            except ShufflerUnreachable as problem:
                log.warning("shuffler not reached, trying again: %s", problem)
                await self._sleep_about(pause)
                pause = min(2 * pause, _LARGEST_PAUSE)

    async def once(self) -> float | None:
        """One look at the current round; returns its end if there is one, dealt with by then."""
        agent = self.agent
        if agent.joined is None:
            page = await self._get("/v1/plan", missing=Problem.NOT_FOUND)
            if page is None:
                return None
            joined = agent.read_plan(page)
            log.info("taking part", extra={"fields": {"plan": joined.id}})
        agent.check_budget()
        body = await self._get("/v1/round", missing=Problem.NO_ROUND)
        if body is None:
            return None
        found = agent.read_round(body)
        if agent.is_done(found):
            return found.closes
        if not agent.knows_key(found):
            agent.read_plan(await self._get("/v1/plan"))
        model = await self._model_of(found)
        moment = agent.moment(self._clock.now(), found, self._margin(found))
        part = await asyncio.to_thread(agent.take_part, found, lambda: self._task.value(model))
        if part.failure is not None:
            self.counts.failures += 1
            log.error("the task failed: %s", part.failure)
        self.counts.rounds += 1
        self.counts.seen.add(found.round)
        if part.envelope:
            await self._clock.sleep(max(0.0, moment - self._clock.now()))
            delivered = await self._send(found, part.envelope)
            self.counts.undelivered += not delivered
        self.counts.reports += part.action.value == "report"
        self.counts.covers += part.action.value == "cover"
        return found.closes

    def _margin(self, found: RoundDocument) -> float:
        return _MARGIN_SHARE * (found.closes - found.opens)

    async def _model_of(self, found: RoundDocument) -> bytes:
        """Fetched every round, whatever the coin will say: who asks must not depend on it."""
        model: bytes = await self._get(f"/v1/model/{found.model}")
        self.agent.check_model(found, model)
        return model

    async def _send(self, found: RoundDocument, envelope: bytes) -> bool:
        """The same bytes again and again, until they are taken or the window is over."""
        pause = 0.05 * (found.closes - found.opens)
        url = f"{self.config.shuffler}/v1/rounds/{found.round}/report"
        while True:
            try:
                answer = await self._http.put(url, content=envelope, headers=self._headers())
                problem = problem_in(answer.content)
                if answer.status_code == 202 or problem is Problem.DUPLICATE:
                    return True  # a duplicate after a lost answer means delivered
                if problem is Problem.UNAUTHORIZED:
                    raise Refused("the shuffler does not know this client's token")
                if problem not in (*TRANSIENT, Problem.NO_ROUND):
                    log.warning("report not taken: %s", problem or answer.status_code)
                    return False
            except httpx.TransportError as failure:
                log.warning("report not sent, trying again: %s", type(failure).__name__)
            if self._clock.now() + pause >= found.closes:
                return False
            await self._sleep_about(pause)
            pause *= 2

    async def _get(self, path: str, *, missing: Problem | None = None) -> Any:
        try:
            answer = await self._http.get(self.config.shuffler + path, headers=self._headers())
        except httpx.TransportError as failure:
            raise ShufflerUnreachable(type(failure).__name__) from None
        if answer.status_code == 200:
            return answer.content
        problem = problem_in(answer.content)
        if missing is not None and problem is missing:
            return None
        if problem is Problem.UNAUTHORIZED:
            raise Refused("the shuffler does not know this client's token")
        raise ShufflerUnreachable(f"{path}: {problem.slug if problem else answer.status_code}")

    def _headers(self) -> dict[str, str]:
        return bearer_header(self.config.token)

    async def _sleep_about(self, seconds: float) -> None:
        """Sleep between half and one and a half times as long."""
        await self._clock.sleep(seconds * (0.5 + float(self._source.uniform(1)[0])))


def run_agent(config: ClientConfig, task: ClientTask) -> Counts:
    """Run one agent until it is stopped or refuses; the ledger's folder is made if needed.

    Args:
        config: the owner's file.
        task: the owner's data and what is computed from it.
    """
    Path(config.state).mkdir(parents=True, exist_ok=True)

    async def work() -> Counts:
        async with http_client(config) as http:
            daemon = Daemon(config, task, http)
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
