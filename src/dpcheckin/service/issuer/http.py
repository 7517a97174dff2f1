"""The issuer's HTTP shell: who asks, how often, how much; everything else is the core's.

Connections are guarded by what guards the shuffler's (`shuffler.http.guard`), answers have its
form, and refusals are of its closed list. The log names no client.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NoReturn

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from dpcheckin.service.issuer.core import Issuer
from dpcheckin.service.shuffler.http.app import (
    ClientDisconnected,
    declared_length,
    header,
    read_body,
)
from dpcheckin.service.shuffler.http.limits import Buckets, Limits
from dpcheckin.service.shuffler.http.replies import empty, json_reply, problem_response, reply
from dpcheckin.service.shuffler.http.routes import hex_in, number_in
from dpcheckin.service.shuffler.stores.base import StorageBusy, StorageFailure
from dpcheckin.service.wire.canonical import LARGEST_DOCUMENT
from dpcheckin.service.wire.credentials import bearer_digest, equal_digests
from dpcheckin.service.wire.problems import Problem, Refusal, refuse

LOGGER = logging.getLogger("dpcheckin.issuer")
_TICK_SECONDS = 0.5
Endpoint = Callable[[Request], Awaitable[Response]]


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
        self.counts: Counter[str] = Counter(issued=0, refused=0, storage_failures=0, errors=0)
        self.storage_ok = True
        self._clients: dict[bytes, bytes] = {}
        self._version: int | None = None
        self._per_client = Buckets(self.limits.requests_per_second, self.limits.burst, monotonic)
        self._failures = Buckets(
            self.limits.failures_per_second, self.limits.failure_burst, monotonic
        )

    def refresh(self) -> None:
        """Read the list of clients again if it has changed."""
        try:
            version = self.core.store.clients_version()
            if version != self._version:
                self._clients = self.core.store.clients()
                self._version = version
            self.storage_ok = True
        except (StorageBusy, StorageFailure) as problem:
            self.storage_ok = isinstance(problem, StorageBusy)
            self.failed(problem)

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
        if isinstance(problem, StorageBusy | StorageFailure):
            self.counts["storage_failures"] += 1
            LOGGER.error("storage: %s", problem)
            return Problem.BUSY if isinstance(problem, StorageBusy) else Problem.STORAGE
        self.counts["errors"] += 1
        LOGGER.error("internal error", exc_info=problem)
        return Problem.BUSY

    def metrics(self) -> str:
        """In the Prometheus text format; no identities."""
        figures = {f"{name}_total": value for name, value in self.counts.items()}
        figures |= {"clients": len(self._clients), "storage_ok": int(self.storage_ok)}
        return "".join(f"dpcheckin_issuer_{name} {value}\n" for name, value in figures.items())


class Routes:
    """One method for each line of the issuer's table in docs/wire.md."""

    def __init__(self, front: Front) -> None:
        self._front, self._core = front, front.core

    async def put_plan(self, request: Request) -> Response:
        self._front.analyzer(request)
        await asyncio.to_thread(self._core.register, await _body(request))
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
        body = await _body(request)
        answer = await asyncio.to_thread(self._core.issue, client, plan, body)
        self._front.counts["issued"] += 1
        return reply(answer)

    def answering(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint, with every failure turned into one of the known problems."""

        async def answer(request: Request) -> Response:
            request.state.read = request.method == "GET"
            try:
                return await endpoint(request)
            except ClientDisconnected:
                return problem_response(Problem.MALFORMED, hang_up=True)
            except Exception as problem:
                found = self._front.failed(problem)
                return problem_response(found, hang_up=not request.state.read)

        return answer

    def table(self) -> list[Route]:
        """Path, method and endpoint."""
        lines: list[tuple[str, str, Endpoint]] = [
            ("PUT", "/v1/plan", self.put_plan),
            ("POST", "/v1/plans/{plan}/rounds/{round}", self.open_round),
            ("GET", "/v1/plans/{plan}/keys", self.get_keys),
            ("POST", "/v1/plans/{plan}/tokens", self.post_tokens),
        ]
        return [Route(path, self.answering(made), methods=[method]) for method, path, made in lines]


async def _body(request: Request) -> bytes:
    length = declared_length(request.scope)
    if length is not None and length > LARGEST_DOCUMENT:
        refuse(Problem.TOO_LARGE)
    body = await read_body(request.receive, LARGEST_DOCUMENT)
    request.state.read = True
    return body


async def _not_found(request: Request, problem: Exception) -> Response:
    return problem_response(Problem.NOT_FOUND, hang_up=request.method not in ("GET", "HEAD"))


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
        exception_handlers={HTTPException: _not_found},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return app


def admin_app(front: Front) -> Starlette:
    """Health and metrics, for the operator, on a port of their own."""

    async def health(request: Request) -> Response:
        ok = front.storage_ok
        return PlainTextResponse("ok\n" if ok else "storage\n", 200 if ok else 503)

    async def metrics(request: Request) -> Response:
        return PlainTextResponse(
            front.metrics(), media_type="text/plain; version=0.0.4; charset=utf-8"
        )

    return Starlette(routes=[Route("/healthz", health), Route("/metrics", metrics)])
