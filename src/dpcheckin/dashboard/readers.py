"""Answers for as long as somebody reads them: what nobody waits for is called off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send


class Lines(StreamingResponse):
    """Lines of JSON as they are made; whoever makes them stops when the reader leaves."""

    media_type = "application/x-ndjson"

    def __init__(self, content: AsyncGenerator[str, None]) -> None:
        super().__init__(content)
        self._content = content

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._content.aclose()


async def for_reader(request: Request, asked: Coroutine[Any, Any, Any]) -> Response:
    """The answer as JSON; it is called off when whoever asked for it leaves."""
    answer = asyncio.ensure_future(asked)
    left = asyncio.ensure_future(_departure(request))
    try:
        await asyncio.wait([answer, left], return_when=asyncio.FIRST_COMPLETED)
        return JSONResponse(answer.result()) if answer.done() else Response(status_code=204)
    finally:
        answer.cancel()
        left.cancel()


async def _departure(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
