"""Answers for as long as somebody reads them: what nobody waits for is called off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
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
    """The answer that is `asked` for, as JSON; it is called off when whoever made the request leaves."""
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


async def as_answered(
    ask: Callable[..., Coroutine[Any, Any, Any]], questions: list[Any], width: int
) -> AsyncGenerator[Any, None]:
    """What `ask` gives for each of the questions (tuples of its arguments), in the order in which answers come.

    No more than `width` are asked at once, and none once nobody reads; questions may be added meanwhile.
    """
    waiting: set[asyncio.Task[Any]] = set()
    try:
        while questions or waiting:
            while questions and len(waiting) < width:
                waiting.add(asyncio.create_task(ask(*questions.pop(0))))
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                yield task.result()
    finally:
        for task in waiting:
            task.cancel()
