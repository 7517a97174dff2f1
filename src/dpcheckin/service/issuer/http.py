"""The issuer's HTTP shell; everything is decided by the core. The log names no client."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from dpcheckin.service.issuer.core import Issuer
from dpcheckin.service.settings import Limits
from dpcheckin.service.web.front import TICK_SECONDS, Front
from dpcheckin.service.web.metrics import COMMON, Metrics
from dpcheckin.service.web.replies import empty, json_reply, reply
from dpcheckin.service.web.requests import body_of, hex_in, number_in
from dpcheckin.service.wire.problems import Problem

LOGGER = logging.getLogger("dpcheckin.issuer")
_COUNTED = {
    "issued_total": "Requests for tokens that were granted.",
    "refused_total": "Requests refused.",
    "errors_total": "Errors nobody foresaw: each is a bug.",
    "clients": "Clients that hold an access token.",
    **COMMON,
}


class IssuerFront(Front):
    """What all requests to an issuer share, and a method for each line of its table in docs/wire.md; `core` decides,
    `analyzer` is the digest of the analyzer's access token."""

    ENROLLED, ERRORS = "clients", "errors_total"

    def __init__(
        self,
        core: Issuer,
        analyzer: bytes,
        limits: Limits | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        metrics = Metrics("dpcheckin_issuer_", _COUNTED)
        super().__init__(core.store, analyzer, limits or Limits(), metrics, LOGGER, monotonic)
        self.core = core

    def count_refusal(self, problem: Problem) -> None:
        self.metrics.add("refused_total")

    async def put_plan(self, request: Request) -> Response:
        self.analyzer(request.scope)
        await asyncio.to_thread(self.core.register, await body_of(request))
        return empty(201)

    async def open_round(self, request: Request) -> Response:
        self.analyzer(request.scope)
        plan, number = hex_in(request, "plan", 32), number_in(request)
        key = await asyncio.to_thread(self.core.open_round, plan, number)
        return json_reply({"key": key.hex()})

    async def get_crowd(self, request: Request) -> Response:
        self.analyzer(request.scope)
        plan, number = hex_in(request, "plan", 32), number_in(request)
        return reply(await asyncio.to_thread(self.core.crowd, plan, number))

    async def get_keys(self, request: Request) -> Response:
        self.client(request.scope)
        plan = hex_in(request, "plan", 32)
        return reply(await asyncio.to_thread(self.core.keys_page, plan))

    async def post_tokens(self, request: Request) -> Response:
        client, plan = self.client(request.scope), hex_in(request, "plan", 32)
        body = await body_of(request)
        answer = await asyncio.to_thread(self.core.issue, client, plan, body)
        self.stored()
        self.metrics.add("issued_total")
        return reply(answer)


def issuer_app(front: IssuerFront, tick_seconds: float = TICK_SECONDS) -> Starlette:
    """The application of the public port, which looks for new clients of the `front` every `tick_seconds`."""
    table = [
        ("PUT", "/v1/plan", front.put_plan),
        ("POST", "/v1/plans/{plan}/rounds/{round}", front.open_round),
        ("GET", "/v1/plans/{plan}/rounds/{round}", front.get_crowd),
        ("GET", "/v1/plans/{plan}/keys", front.get_keys),
        ("POST", "/v1/plans/{plan}/tokens", front.post_tokens),
    ]
    return front.routes(table, tick_seconds)
