"""The HTTP shell: authenticates, limits, reads bodies, asks the core, answers.

Reports take a short cut through plain ASGI, since they are nearly all of the traffic; everything
else is Starlette (`routes`). Nothing is decided here that the core could decide.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable
from typing import NoReturn

from starlette.types import ASGIApp, Receive, Scope, Send

from dpcheckin.service.connections import RESERVED
from dpcheckin.service.shuffler.committer import Committer, GroupCommitter, InlineCommitter
from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.directory import Directory
from dpcheckin.service.shuffler.http import logs
from dpcheckin.service.shuffler.http.metrics import Metrics
from dpcheckin.service.shuffler.rounds import Settled
from dpcheckin.service.shuffler.stores.memory import MemoryStore
from dpcheckin.service.storage import Health, StorageBusy, StorageFailure
from dpcheckin.service.web.limits import Buckets, Budget, Limits
from dpcheckin.service.web.replies import send_accepted, send_problem
from dpcheckin.service.web.requests import (
    LARGEST_ROUND,
    ClientDisconnected,
    declared_length,
    header,
    read_body,
)
from dpcheckin.service.wire.credentials import bearer_digest
from dpcheckin.service.wire.problems import Problem, Refusal, refuse

_REPORT = re.compile(r"/v1/rounds/(0|[1-9][0-9]{0,9})/report")
_REFRESH_SECONDS = 0.25


class Front:
    """What all requests share: core, committer, credentials, limits, counters.

    Args:
        core: decides.
        analyzer: digest of the analyzer's token.
        limits: what may be asked for, and how often.
        metrics: where things are counted.
        monotonic: seconds, for rates.
    """

    def __init__(
        self,
        core: Shuffler,
        analyzer: bytes,
        *,
        limits: Limits | None = None,
        metrics: Metrics | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.core = core
        self.limits = limits or Limits()
        self.metrics = metrics or Metrics()
        self.directory = Directory(core.store, analyzer)
        self.committer: Committer = (
            InlineCommitter(core) if isinstance(core.store, MemoryStore) else GroupCommitter(core)
        )
        self.budget = Budget(self.limits.body_bytes)
        self.models = ModelCache(core.model)
        self.present_clients: tuple[int, set[bytes]] = (0, set())
        """The open round's serial, and the clients known to be counted as present in it."""
        self._per_client = Buckets(self.limits.requests_per_second, self.limits.burst, monotonic)
        self._failures = Buckets(
            self.limits.failures_per_second, self.limits.failure_burst, monotonic
        )
        self._monotonic = monotonic
        self._refreshed = -1.0
        self._health = Health(monotonic)
        self._last_time = 0.0

    # --- who asks ---------------------------------------------------------------------------

    def client(self, scope: Scope) -> bytes:
        """The client who asks, if it may."""
        token = bearer_digest(header(scope, b"authorization"))
        client = self.directory.client(token)
        if client is None:
            self._fail(scope)
        if not self._per_client.take(client):
            refuse(Problem.TOO_MANY)
        return client

    def analyzer(self, scope: Scope) -> None:
        """Go on if it is the analyzer who asks."""
        if not self.directory.is_analyzer(bearer_digest(header(scope, b"authorization"))):
            self._fail(scope)

    def _fail(self, scope: Scope) -> NoReturn:
        address = (scope.get("client") or ("",))[0].encode()
        refuse(Problem.UNAUTHORIZED if self._failures.take(address) else Problem.TOO_MANY)

    # --- upkeep -----------------------------------------------------------------------------

    def maintain(self) -> None:
        """Close rounds, destroy what is to be destroyed, read what others may have changed."""
        now = self.core.clock()
        if now < self._last_time:
            self.metrics.add("clock_steps_back_total")
            logs.event("clock set back", level=logging.WARNING, seconds=self._last_time - now)
        self._last_time = now
        try:
            self.directory.refresh()
            self.core.tick()
            self._probe()
        except (StorageFailure, StorageBusy) as problem:
            self.failed(problem)
        self.metrics.set("storage_ok", int(self._health.ok))
        self.metrics.set("enrolled_clients", len(self.directory))
        try:
            self.core.current()
            self.metrics.set("round_open", 1)
        except Refusal:
            self.metrics.set("round_open", 0)

    def _probe(self) -> None:
        """Is there room for reports? After a failure, only something written says so."""
        self.core.store.check_room()
        if self._health.worth_a_probe:
            self.core.store.probe()
            self.stored()

    def stored(self) -> None:
        """Something was written: whatever was wrong is over."""
        if not self._health.ok:
            self._health.stored()
            self.metrics.set("storage_ok", 1)

    async def refresh_view(self) -> None:
        """Another front end may have opened a round that we have not heard of."""
        if self._monotonic() - self._refreshed > _REFRESH_SECONDS:
            self._refreshed = self._monotonic()
            await asyncio.to_thread(self.core.refresh)

    def settled(self, round_: Settled) -> None:
        """Count and log a round that was closed."""
        outcome = round_.state.value + (f"-{round_.reason}" if round_.reason else "")
        self.metrics.add("rounds_total", outcome=outcome)
        self.metrics.add("present_total", round_.present)
        self.metrics.add("reports_total", round_.reports or 0)
        logs.event(
            "round closed",
            round=round_.round,
            outcome=outcome,
            present=round_.present,
            reports=round_.reports,
        )

    def failed(self, problem: Exception) -> Problem:
        """The answer to something that went wrong, which is counted and logged."""
        if isinstance(problem, Refusal):
            self.metrics.add("refusals_total", problem=problem.problem.slug)
            return problem.problem
        if isinstance(problem, StorageBusy):
            logs.event("storage busy", level=logging.WARNING, reason=str(problem))
            return Problem.BUSY
        if isinstance(problem, StorageFailure):
            self._health.failed()
            self.metrics.set("storage_ok", 0)
            self.metrics.add("storage_failures_total")
            logs.event("storage failure", level=logging.ERROR, reason=str(problem))
            return Problem.STORAGE
        self.metrics.add("internal_errors_total")
        logs.LOGGER.error("internal error", exc_info=problem)
        return Problem.BUSY


class ModelCache:
    """The last models asked for; of many who ask at once, one reads."""

    def __init__(self, read: Callable[[bytes], bytes], kept: int = 2) -> None:
        self._read = read
        self._kept = kept
        self._found: dict[bytes, bytes] = {}
        self._one_at_a_time = asyncio.Lock()

    async def get(self, model: bytes) -> bytes:
        """The bytes of a model."""
        if model not in self._found:
            async with self._one_at_a_time:
                if model not in self._found:
                    body = await asyncio.to_thread(self._read, model)
                    while len(self._found) >= self._kept:
                        del self._found[next(iter(self._found))]
                    self._found[model] = body
        return self._found[model]


class ShufflerApp:
    """The ASGI application on the public port."""

    def __init__(self, front: Front, others: ASGIApp) -> None:
        self.front = front
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "PUT":
            match = _REPORT.fullmatch(scope["path"])
            if match is not None:
                await self._report(int(match[1]), scope, receive, send)
                return
        await self._others(scope, receive, send)

    async def _report(self, number: int, scope: Scope, receive: Receive, send: Send) -> None:
        front, read = self.front, False
        reserved = 0
        try:
            client = front.client(scope)
            size = await self._size(number)
            length = declared_length(scope)
            if length is not None and length > size:
                refuse(Problem.TOO_LARGE)
            if not front.budget.take(size):
                refuse(Problem.BUSY)
            reserved = scope[RESERVED] = size
            body = await read_body(receive, size)
            read = True
            problem = await front.committer.submit(front.core.examine(client, number, body))
            if problem is not None:
                refuse(problem)
            front.stored()
        except ClientDisconnected:
            return
        except Exception as problem:
            await send_problem(send, front.failed(problem), hang_up=not read)
        else:
            await send_accepted(send)
        finally:
            front.budget.give_back(reserved)

    async def _size(self, number: int) -> int:
        """The size of an envelope of this plan, whatever has become of the round."""
        core = self.front.core
        view = core.view
        if number <= LARGEST_ROUND and (
            view is None or view.round is None or number > view.round.number
        ):
            await self.front.refresh_view()
            view = core.view
        return refuse(Problem.NO_ROUND) if view is None else view.sizes.envelope


async def upkeep(front: Front, seconds: float) -> None:
    """Look after things again and again, until cancelled.

    Args:
        front: what is looked after.
        seconds: between two looks.
    """
    while True:
        await asyncio.sleep(seconds)
        try:
            await asyncio.to_thread(front.maintain)
        except Exception as problem:
            front.failed(problem)
