"""Everything but reports, as Starlette routes; and the two pages of the admin port."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from dpcheckin.service.connections import RESERVED
from dpcheckin.service.shuffler.http.app import Front, ShufflerApp, upkeep
from dpcheckin.service.web.replies import PartedResponse, empty, json_reply, reply
from dpcheckin.service.web.requests import (
    Endpoint,
    answering,
    body_of,
    hex_in,
    not_found,
    number_in,
)
from dpcheckin.service.wire.canonical import LARGEST_DOCUMENT
from dpcheckin.service.wire.problems import Problem, refuse

_OCTETS = "application/octet-stream"
TICK_SECONDS = 0.5


class Routes:
    """One method per line of the table in docs/wire.md."""

    def __init__(self, front: Front) -> None:
        self.front = front
        self.core = front.core

    async def _body(self, request: Request, largest: int = LARGEST_DOCUMENT) -> bytes:
        request.scope[RESERVED] = largest  # only the analyzer comes this far: it is not held up
        return await body_of(request, largest)

    # --- clients ----------------------------------------------------------------------------

    async def get_plan(self, request: Request) -> Response:
        self.front.client(request.scope)
        if self.core.view is None:
            await self.front.refresh_view()
        return reply(self.core.plan_page())

    async def get_round(self, request: Request) -> Response:
        client = self.front.client(request.scope)
        record = self.core.current()
        asked = request.query_params.get("plan")
        if asked is not None and asked != record.plan.hex():
            return reply(record.document)  # it has yet to join this plan, and is not counted
        if self.core.planned().plan.cover:  # who is there is told by the envelopes
            return reply(record.document)
        serial, present = self.front.present_clients
        if serial != record.serial:
            present = set()
            self.front.present_clients = (record.serial, present)
        if client not in present:
            if not await self.front.committer.present(record.serial, client):
                refuse(Problem.NO_ROUND)
            present.add(client)
        return reply(record.document)

    async def get_void(self, request: Request) -> Response:
        self.front.client(request.scope)
        return reply(await asyncio.to_thread(self.core.void_statement))

    async def get_model(self, request: Request) -> Response:
        self.front.client(request.scope)
        model = hex_in(request, "digest", 32)
        return PartedResponse(await self.front.models.get(model))

    # --- analyzer ---------------------------------------------------------------------------

    async def put_plan(self, request: Request) -> Response:
        self.front.analyzer(request.scope)
        await asyncio.to_thread(self.core.publish_plan, await self._body(request))
        return empty(201)

    async def put_key(self, request: Request) -> Response:
        self.front.analyzer(request.scope)
        key_id = hex_in(request, "key", 8)
        await asyncio.to_thread(self.core.publish_key, key_id, await self._body(request))
        return empty(201)

    async def put_model(self, request: Request) -> Response:
        self.front.analyzer(request.scope)
        model = hex_in(request, "digest", 32)
        body = await self._body(request, self.front.limits.model_bytes)
        await asyncio.to_thread(self.core.publish_model, model, body)
        return empty(201)

    async def put_round(self, request: Request) -> Response:
        self.front.analyzer(request.scope)
        number = number_in(request)
        await asyncio.to_thread(self.core.open_round, number, await self._body(request))
        return empty(201)

    async def get_status(self, request: Request) -> Response:
        self.front.analyzer(request.scope)
        return json_reply(await asyncio.to_thread(self.core.status, number_in(request)))

    async def claim(self, request: Request) -> Response:
        self.front.analyzer(request.scope)
        number = number_in(request)
        await asyncio.to_thread(self.core.claim, number, await self._body(request))
        return empty(200)

    async def get_batch(self, request: Request) -> Response:
        self.front.analyzer(request.scope)
        release = await asyncio.to_thread(self.core.batch, number_in(request))
        headers = {"content-length": str(release.length), "cache-control": "no-store"}
        return StreamingResponse(
            self._streamed(release.chunks), headers=headers, media_type=_OCTETS
        )

    async def _streamed(self, chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
        while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
            yield chunk
        self.front.metrics.add("releases_total")

    async def delete_batch(self, request: Request) -> Response:
        self.front.analyzer(request.scope)
        await asyncio.to_thread(self.core.finish, number_in(request))
        return empty(200)

    # --- putting it together ----------------------------------------------------------------

    def table(self) -> list[Route]:
        """Path, method and endpoint."""
        lines: list[tuple[str, str, Endpoint]] = [
            ("GET", "/v1/plan", self.get_plan),
            ("PUT", "/v1/plan", self.put_plan),
            ("GET", "/v1/round", self.get_round),
            ("GET", "/v1/void", self.get_void),
            ("GET", "/v1/model/{digest}", self.get_model),
            ("PUT", "/v1/model/{digest}", self.put_model),
            ("PUT", "/v1/keys/{key}", self.put_key),
            ("PUT", "/v1/rounds/{round}", self.put_round),
            ("GET", "/v1/rounds/{round}", self.get_status),
            ("POST", "/v1/rounds/{round}/claim", self.claim),
            ("GET", "/v1/rounds/{round}/batch", self.get_batch),
            ("DELETE", "/v1/rounds/{round}/batch", self.delete_batch),
        ]
        return [
            Route(path, answering(endpoint, self.front.failed), methods=[method])
            for method, path, endpoint in lines
        ]


def shuffler_app(front: Front, tick_seconds: float = TICK_SECONDS) -> ShufflerApp:
    """The application of the public port; its lifespan runs the committer and the upkeep.

    Args:
        front: what all requests share.
        tick_seconds: between two looks at rounds and store.
    """

    @contextlib.asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        await asyncio.to_thread(front.maintain)
        front.committer.start()
        task = asyncio.create_task(upkeep(front, tick_seconds))
        yield
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await asyncio.to_thread(front.committer.stop)

    others = Starlette(
        routes=Routes(front).table(),
        exception_handlers={HTTPException: not_found},
        lifespan=lifespan,
    )
    others.router.redirect_slashes = False
    return ShufflerApp(front, others)


def admin_app(front: Front) -> Starlette:
    """Health and metrics; for the operator's eyes, on a port of their own."""

    async def health(request: Request) -> Response:
        ok = front.metrics.value("storage_ok") == 1
        return PlainTextResponse("ok\n" if ok else "storage\n", 200 if ok else 503)

    async def metrics(request: Request) -> Response:
        return PlainTextResponse(
            front.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8"
        )

    return Starlette(routes=[Route("/healthz", health), Route("/metrics", metrics)])
