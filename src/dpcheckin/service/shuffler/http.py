"""The shuffler over HTTP: authenticates, limits, reads bodies, asks the core, answers.

Reports take a short cut through plain ASGI, since they are nearly all of the traffic; everything else is Starlette.
Nothing is decided here that the core could decide. Metrics tell no more than `GET /v1/rounds/{round}` does: reports are
counted when their round is closed, never while it is open and never for a round void by population, as the number of
check-ins is a secret until it has been charged for.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from dpcheckin.service import logs
from dpcheckin.service.settings import Limits
from dpcheckin.service.shuffler.committer import GroupCommitter
from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.rounds import Settled
from dpcheckin.service.web.front import TICK_SECONDS, Front
from dpcheckin.service.web.guard import RESERVED
from dpcheckin.service.web.metrics import COMMON, Metrics
from dpcheckin.service.web.replies import (
    ACCEPTED,
    PartedResponse,
    Parts,
    empty,
    json_reply,
    parted,
    problem_response,
    reply,
)
from dpcheckin.service.web.requests import (
    LARGEST_ROUND,
    ClientDisconnected,
    Endpoint,
    body_of,
    declared_length,
    hex_in,
    number_in,
    read_body,
)
from dpcheckin.service.wire.canonical import LARGEST_DOCUMENT
from dpcheckin.service.wire.problems import Problem, Refusal, refuse

LOGGER = logging.getLogger("dpcheckin.shuffler")
_REPORT = re.compile(r"/v1/rounds/(0|[1-9][0-9]{0,9})/report")
_REFRESH_SECONDS = 0.25
_OCTETS = "application/octet-stream"
_COUNTED = {
    "refusals_total": "Requests refused, by problem.",
    "rounds_total": "Rounds closed, by outcome.",
    "reports_total": "Reports of rounds that were closed with a count.",
    "present_total": "Clients present, summed over closed rounds.",
    "releases_total": "Batches streamed to the analyzer to their end.",
    "clock_steps_back_total": "Times the wall clock was found set back.",
    "internal_errors_total": "Errors nobody foresaw: each is a bug.",
    "enrolled_clients": "Clients that hold a token.",
    "round_open": "1 while a round is open.",
    "start_time_seconds": "When this process started.",
    **COMMON,
}


class ShufflerFront(Front):
    """What all requests to a shuffler share, and the answers to all but reports: a method for each line of the table in
    docs/wire.md. `core` decides, `analyzer` is the digest of the analyzer's token."""

    ENROLLED, ERRORS = "enrolled_clients", "internal_errors_total"

    def __init__(
        self,
        core: Shuffler,
        analyzer: bytes,
        limits: Limits | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        metrics = Metrics("dpcheckin_shuffler_", _COUNTED, ("refusals_total", "rounds_total"))
        super().__init__(core.store, analyzer, limits or Limits(), metrics, LOGGER, monotonic)
        self.core = core
        self.committer = GroupCommitter(core)
        self.models = ModelCache(core.model)
        self.present_clients: tuple[int, set[bytes]] = (0, set())
        """The open round's serial, and the clients known to be counted as present in it."""
        self._refreshed = -1.0
        self._last_time = 0.0

    def stop(self) -> None:
        self.committer.stop()

    def do_what_is_due(self) -> None:
        """Close rounds, destroy what is to be destroyed; is there room for reports?"""
        self.core.tick()
        self.core.store.check_room()

    def maintain(self) -> None:
        now = self.core.clock()
        if now < self._last_time:
            self.metrics.add("clock_steps_back_total")
            logs.event(LOGGER, "clock set back", level=logging.WARNING, seconds=self._last_time - now)
        self._last_time = now
        super().maintain()
        try:
            self.core.current()
            self.metrics.set("round_open", 1)
        except Refusal:
            self.metrics.set("round_open", 0)

    def count_refusal(self, problem: Problem) -> None:
        self.metrics.add("refusals_total", problem=problem.slug)

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
            LOGGER, "round closed", round=round_.round, outcome=outcome, present=round_.present, reports=round_.reports
        )

    # --- clients ----------------------------------------------------------------------------

    async def get_plan(self, request: Request) -> Response:
        self.client(request.scope)
        if self.core.view is None:
            await self.refresh_view()
        return reply(self.core.plan_page())

    async def get_round(self, request: Request) -> Response:
        client = self.client(request.scope)
        record = self.core.current()
        joined = request.query_params.get("plan", record.plan.hex())
        # it has yet to join this plan, and is not counted; or who is there is told by the envelopes
        if joined != record.plan.hex() or self.core.planned().plan.cover:
            return reply(record.document)
        if self.present_clients[0] != record.serial:
            self.present_clients = (record.serial, set())
        present = self.present_clients[1]
        if client not in present:
            if not await self.committer.present(record.serial, client):
                refuse(Problem.NO_ROUND)
            present.add(client)
        return reply(record.document)

    async def get_void(self, request: Request) -> Response:
        self.client(request.scope)
        return reply(await asyncio.to_thread(self.core.void_statement))

    async def get_model(self, request: Request) -> Response:
        self.client(request.scope)
        model = hex_in(request, "digest", 32)
        return PartedResponse(await self.models.get(model))

    # --- analyzer ---------------------------------------------------------------------------

    def take(
        self,
        call: Callable[..., None],
        *places: Callable[[Request], Any],
        status: int = 201,
        largest: int = LARGEST_DOCUMENT,
    ) -> Endpoint:
        """An endpoint for what the analyzer hands over: the core's `call` takes what stands at the `places` of the
        path, and a body of at most `largest` bytes; then the answer has this `status`.
        """

        async def endpoint(request: Request) -> Response:
            self.analyzer(request.scope)
            named = [place(request) for place in places]
            request.scope[RESERVED] = largest  # only the analyzer comes this far: it is not held up
            await asyncio.to_thread(call, *named, await body_of(request, largest))
            return empty(status)

        return endpoint

    async def get_status(self, request: Request) -> Response:
        self.analyzer(request.scope)
        return json_reply(await asyncio.to_thread(self.core.status, number_in(request)))

    async def get_batch(self, request: Request) -> Response:
        self.analyzer(request.scope)
        release = await asyncio.to_thread(self.core.batch, number_in(request))
        headers = {"content-length": str(release.length), "cache-control": "no-store"}
        return StreamingResponse(self._streamed(release.chunks), headers=headers, media_type=_OCTETS)

    async def _streamed(self, chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
        while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
            yield chunk
        self.metrics.add("releases_total")

    async def delete_batch(self, request: Request) -> Response:
        self.analyzer(request.scope)
        await asyncio.to_thread(self.core.finish, number_in(request))
        return empty(200)


class ModelCache:
    """The last models asked for, in parts; of many who ask at once, one reads."""

    def __init__(self, read: Callable[[bytes], bytes], kept: int = 2) -> None:
        self._read = read
        self._kept = kept
        self._found: dict[bytes, Parts] = {}
        self._one_at_a_time = asyncio.Lock()

    async def get(self, model: bytes) -> Parts:
        """The bytes of a model, the same for all who ask."""
        if model not in self._found:
            async with self._one_at_a_time:
                if model not in self._found:
                    body = await asyncio.to_thread(self._read, model)
                    while len(self._found) >= self._kept:
                        del self._found[next(iter(self._found))]
                    self._found[model] = parted(body)
        return self._found[model]


class ShufflerApp:
    """The ASGI application on the public port."""

    def __init__(self, front: ShufflerFront, others: ASGIApp) -> None:
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
            await problem_response(front.failed(problem), hang_up=not read)(scope, receive, send)
        else:
            await ACCEPTED(scope, receive, send)
        finally:
            front.budget.give_back(reserved)

    async def _size(self, number: int) -> int:
        """The size of an envelope of this plan, whatever has become of the round."""
        core = self.front.core
        view = core.view
        if number <= LARGEST_ROUND and (view is None or view.round is None or number > view.round.number):
            await self.front.refresh_view()
            view = core.view
        return refuse(Problem.NO_ROUND) if view is None else view.sizes.envelope


def shuffler_app(front: ShufflerFront, tick_seconds: float = TICK_SECONDS) -> ShufflerApp:
    """The application of the public port, which looks after the `front` every `tick_seconds`."""
    core = front.core
    digest, key = partial(hex_in, name="digest", length=32), partial(hex_in, name="key", length=8)
    table = [
        ("GET", "/v1/plan", front.get_plan),
        ("PUT", "/v1/plan", front.take(core.publish_plan)),
        ("GET", "/v1/round", front.get_round),
        ("GET", "/v1/void", front.get_void),
        ("GET", "/v1/model/{digest}", front.get_model),
        ("PUT", "/v1/model/{digest}", front.take(core.publish_model, digest, largest=front.limits.model_bytes)),
        ("PUT", "/v1/keys/{key}", front.take(core.publish_key, key)),
        ("PUT", "/v1/rounds/{round}", front.take(core.open_round, number_in)),
        ("GET", "/v1/rounds/{round}", front.get_status),
        ("POST", "/v1/rounds/{round}/claim", front.take(core.claim, number_in, status=200)),
        ("GET", "/v1/rounds/{round}/batch", front.get_batch),
        ("DELETE", "/v1/rounds/{round}/batch", front.delete_batch),
    ]
    return ShufflerApp(front, front.routes(table, tick_seconds))
