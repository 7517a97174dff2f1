"""What all requests to a party share: who may ask, how often, what is answered when something fails, and the upkeep.

A party adds its routes, and what it counts besides. Who holds which token is a copy of the store's list, so that no
request waits for the database, and guessing cannot load it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, NoReturn, Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from dpcheckin.service import logs
from dpcheckin.service.settings import Limits
from dpcheckin.service.storage.database import StorageBusy, StorageFailure
from dpcheckin.service.web.limits import Buckets, Budget
from dpcheckin.service.web.metrics import Metrics
from dpcheckin.service.web.requests import Endpoint, answering, header, not_found
from dpcheckin.service.wire.credentials import bearer_digest
from dpcheckin.service.wire.problems import Problem, Refusal, refuse

TICK_SECONDS = 0.5
_DOUBT_SECONDS = 5.0
"""After a failure, so long without another one before it is worth trying to write something."""


class Enrolled(Protocol):
    """A party's store, as far as a front needs it."""

    def clients(self) -> dict[bytes, bytes]: ...
    def clients_version(self) -> int: ...
    def probe(self) -> None: ...


class Front:
    """Credentials, limits, counters and the health of the `store`, which knows who is enrolled.

    `analyzer` is the digest of the analyzer's token; `metrics` count, the `log` is the party's, `monotonic` gives
    seconds for rates within the `limits`.
    """

    ENROLLED: str
    ERRORS: str
    """The party's names for clients that hold a token, and for errors nobody foresaw."""

    def __init__(
        self,
        store: Enrolled,
        analyzer: bytes,
        limits: Limits,
        metrics: Metrics,
        log: logging.Logger,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits, self.metrics, self.log = limits, metrics, log
        self.clients: dict[bytes, bytes] = {}
        """By token digest: a copy of the store's list, made anew when that has changed."""
        self._version: int | None = None
        self._analyzer = analyzer
        self.budget = Budget(limits.body_bytes)
        self._store = store
        self._monotonic = monotonic
        self._failed_at: float | None = None
        """When the store last failed to take something, until it has taken something again."""
        self._per_client = Buckets(limits.requests_per_second, limits.burst, monotonic)
        self._failures = Buckets(limits.failures_per_second, limits.failure_burst, monotonic)

    # --- who asks ---------------------------------------------------------------------------

    def client(self, scope: Scope) -> bytes:
        """The client who asks, if it may."""
        token = bearer_digest(header(scope, b"authorization"))
        client = None if token is None else self.clients.get(token)
        if client is None:
            self._refuse_stranger(scope)
        if not self._per_client.take(client):
            refuse(Problem.TOO_MANY)
        return client

    def analyzer(self, scope: Scope) -> None:
        """Go on if it is the analyzer who asks."""
        token = bearer_digest(header(scope, b"authorization"))
        if token is None or not hmac.compare_digest(token, self._analyzer):
            self._refuse_stranger(scope)

    def _refuse_stranger(self, scope: Scope) -> NoReturn:
        address = (scope.get("client") or ("",))[0].encode()
        refuse(Problem.UNAUTHORIZED if self._failures.take(address) else Problem.TOO_MANY)

    # --- upkeep -----------------------------------------------------------------------------

    def stop(self) -> None:
        """After the last request."""

    def do_what_is_due(self) -> None:
        """Whatever a party has to look after again and again."""

    def refresh_clients(self) -> None:
        """Copy the list if it has changed: a revoked token works for one interval more at most."""
        version = self._store.clients_version()
        if version != self._version:
            self.clients, self._version = self._store.clients(), version

    def maintain(self) -> None:
        """Read what others may have changed, do what is due, see whether the store takes what it is given."""
        try:
            self.refresh_clients()
            self.do_what_is_due()
            failed = self._failed_at
            if failed is not None and self._monotonic() - failed > _DOUBT_SECONDS:
                # a store that can be read may still take nothing: only something written ends a failure
                self._store.probe()
                self.stored()
        except (StorageFailure, StorageBusy) as problem:
            self.failed(problem)
        self.metrics.set("storage_ok", int(self._failed_at is None))
        self.metrics.set(self.ENROLLED, len(self.clients))

    async def keep_up(self, seconds: float) -> None:
        """Look after things again and again, so many seconds apart, until cancelled."""
        while True:
            await asyncio.sleep(seconds)
            try:
                await asyncio.to_thread(self.maintain)
            except Exception as problem:
                self.failed(problem)

    def stored(self) -> None:
        """Something was written: whatever was wrong is over."""
        if self._failed_at is not None:
            self._failed_at = None
            self.metrics.set("storage_ok", 1)

    def count_refusal(self, problem: Problem) -> None:
        """One more request was refused."""
        raise NotImplementedError

    def failed(self, problem: Exception) -> Problem:
        """The answer to something that went wrong, which is counted and logged."""
        if isinstance(problem, Refusal):
            self.count_refusal(problem.problem)
            return problem.problem
        if isinstance(problem, StorageBusy):
            logs.event(self.log, "storage busy", level=logging.WARNING, reason=str(problem))
            return Problem.BUSY
        if isinstance(problem, StorageFailure):
            self._failed_at = self._monotonic()
            self.metrics.set("storage_ok", 0)
            self.metrics.add("storage_failures_total")
            logs.event(self.log, "storage failure", level=logging.ERROR, reason=str(problem))
            return Problem.STORAGE
        self.metrics.add(self.ERRORS)
        self.log.error("internal error", exc_info=problem)
        return Problem.BUSY

    # --- putting it together ----------------------------------------------------------------

    def routes(self, table: Sequence[tuple[str, str, Endpoint]], tick_seconds: float) -> Starlette:
        """The routes of the public port, a `table` of method, path and endpoint.

        Their lifespan starts and stops the party, and looks after it every `tick_seconds`.
        """

        @contextlib.asynccontextmanager
        async def lifespan(app: Any) -> AsyncIterator[None]:
            await asyncio.to_thread(self.maintain)
            upkeep = asyncio.create_task(self.keep_up(tick_seconds))
            yield
            upkeep.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await upkeep
            await asyncio.to_thread(self.stop)

        routes = [Route(path, answering(endpoint, self.failed), methods=[method]) for method, path, endpoint in table]
        app = Starlette(routes=routes, exception_handlers={HTTPException: not_found}, lifespan=lifespan)
        app.router.redirect_slashes = False
        return app


def admin_app(front: Front) -> Starlette:
    """Health and metrics; for the operator's eyes, on a port of their own."""

    async def health(request: Request) -> Response:
        ok = front.metrics.value("storage_ok") == 1
        return PlainTextResponse("ok\n" if ok else "storage\n", 200 if ok else 503)

    async def metrics(request: Request) -> Response:
        return PlainTextResponse(front.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return Starlette(routes=[Route("/healthz", health), Route("/metrics", metrics)])
