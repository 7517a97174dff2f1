"""The issuer's HTTP shell: who asks, how often, how much; everything else is the core's.

Connections, bodies and answers are those of every party (`service.web`), refusals are of the same
closed list. The log names no client.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any, NoReturn

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from dpcheckin.service.issuer.core import Issuer
from dpcheckin.service.storage import Health, StorageBusy, StorageFailure
from dpcheckin.service.web.limits import Buckets, Limits
from dpcheckin.service.web.replies import empty, json_reply, reply
from dpcheckin.service.web.requests import (
    Endpoint,
    answering,
    body_of,
    header,
    hex_in,
    not_found,
    number_in,
)
from dpcheckin.service.wire.credentials import bearer_digest, equal_digests
from dpcheckin.service.wire.problems import Problem, Refusal, refuse

LOGGER = logging.getLogger("dpcheckin.issuer")
_TICK_SECONDS = 0.5
_COUNTED = (
    "issued",
    "refused",
    "storage_failures",
    "errors",
    "timeouts",
    "slow_readers",
    "connections_refused",
)


class Front:
    """What all requests share: core, credentials, limits, counters.

    Args:
        core: decides.
        analyzer: digest of the analyzer's access token.
        limits: how often may be asked.
        monotonic: seconds, for rates.
    """

    def __init__(
        self,
        core: Issuer,
        analyzer: bytes,
        limits: Limits | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.core, self._analyzer = core, analyzer
        self.limits = limits or Limits()
        self.counts: Counter[str] = Counter(dict.fromkeys(_COUNTED, 0))
        self.health = Health(monotonic)
        self._clients: dict[bytes, bytes] = {}
        self._version: int | None = None
        self._per_client = Buckets(self.limits.requests_per_second, self.limits.burst, monotonic)
        self._failures = Buckets(
            self.limits.failures_per_second, self.limits.failure_burst, monotonic
        )

    def refresh(self) -> None:
        """Read the list of clients again if it has changed; after a failure, try to write."""
        store = self.core.store
        try:
            version = store.clients_version()
            if version != self._version:
                self._clients = store.clients()
                self._version = version
            if self.health.worth_a_probe:
                store.probe()
                self.health.stored()
        except (StorageBusy, StorageFailure) as problem:
            self.failed(problem)

    def count(self, name: str) -> None:
        """One more of something; names may end with `_total`."""
        self.counts[name.removesuffix("_total")] += 1

    def client(self, request: Request) -> bytes:
        """The client who asks, if it may."""
        token = bearer_digest(header(request.scope, b"authorization"))
        client = None if token is None else self._clients.get(token)
        if client is None:
            self._stranger(request)
        if not self._per_client.take(client):
            refuse(Problem.TOO_MANY)
        return client

    def analyzer(self, request: Request) -> None:
        """Go on if it is the analyzer who asks."""
        token = bearer_digest(header(request.scope, b"authorization"))
        if token is None or not equal_digests(token, self._analyzer):
            self._stranger(request)

    def _stranger(self, request: Request) -> NoReturn:
        address = (request.scope.get("client") or ("",))[0].encode()
        refuse(Problem.UNAUTHORIZED if self._failures.take(address) else Problem.TOO_MANY)

    def failed(self, problem: Exception) -> Problem:
        """The answer to something that went wrong, which is counted and logged."""
        if isinstance(problem, Refusal):
            self.counts["refused"] += 1
            return problem.problem
        if isinstance(problem, StorageBusy):
            LOGGER.warning("storage busy: %s", problem)
            return Problem.BUSY
        if isinstance(problem, StorageFailure):
            self.health.failed()
            self.counts["storage_failures"] += 1
            LOGGER.error("storage: %s", problem)
            return Problem.STORAGE
        self.counts["errors"] += 1
        LOGGER.error("internal error", exc_info=problem)
        return Problem.BUSY

    def metrics(self) -> str:
        """In the Prometheus text format; no identities."""
        figures = {f"{name}_total": value for name, value in self.counts.items()}
        figures |= {"clients": len(self._clients), "storage_ok": int(self.health.ok)}
        return "".join(f"dpcheckin_issuer_{name} {value}\n" for name, value in figures.items())


class Routes:
    """One method for each line of the issuer's table in docs/wire.md."""

    def __init__(self, front: Front) -> None:
        self._front, self._core = front, front.core

    async def put_plan(self, request: Request) -> Response:
        self._front.analyzer(request)
        await asyncio.to_thread(self._core.register, await body_of(request))
        return empty(201)

    async def open_round(self, request: Request) -> Response:
        self._front.analyzer(request)
        plan, number = hex_in(request, "plan", 32), number_in(request)
        key = await asyncio.to_thread(self._core.open_round, plan, number)
        return json_reply({"key": key.hex()})

    async def get_keys(self, request: Request) -> Response:
        self._front.client(request)
        plan = hex_in(request, "plan", 32)
        return reply(await asyncio.to_thread(self._core.keys_page, plan))

    async def post_tokens(self, request: Request) -> Response:
        client, plan = self._front.client(request), hex_in(request, "plan", 32)
        body = await body_of(request)
        answer = await asyncio.to_thread(self._core.issue, client, plan, body)
        self._front.health.stored()
        self._front.count("issued")
        return reply(answer)

    def table(self) -> list[Route]:
        """Path, method and endpoint."""
        lines: list[tuple[str, str, Endpoint]] = [
            ("PUT", "/v1/plan", self.put_plan),
            ("POST", "/v1/plans/{plan}/rounds/{round}", self.open_round),
            ("GET", "/v1/plans/{plan}/keys", self.get_keys),
            ("POST", "/v1/plans/{plan}/tokens", self.post_tokens),
        ]
        return [
            Route(path, answering(made, self._front.failed), methods=[method])
            for method, path, made in lines
        ]


def issuer_app(front: Front, tick_seconds: float = _TICK_SECONDS) -> Starlette:
    """The application of the public port; its lifespan looks for new clients.

    Args:
        front: what all requests share.
        tick_seconds: between two looks at the list of clients.
    """

    async def look() -> None:
        while True:
            await asyncio.sleep(tick_seconds)
            await asyncio.to_thread(front.refresh)

    @contextlib.asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        await asyncio.to_thread(front.refresh)
        looking = asyncio.create_task(look())
        yield
        looking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await looking

    app = Starlette(
        routes=Routes(front).table(),
        exception_handlers={HTTPException: not_found},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return app


def admin_app(front: Front) -> Starlette:
    """Health and metrics, for the operator, on a port of their own."""

    async def health(request: Request) -> Response:
        ok = front.health.ok
        return PlainTextResponse("ok\n" if ok else "storage\n", 200 if ok else 503)

    async def metrics(request: Request) -> Response:
        return PlainTextResponse(
            front.metrics(), media_type="text/plain; version=0.0.4; charset=utf-8"
        )

    return Starlette(routes=[Route("/healthz", health), Route("/metrics", metrics)])
