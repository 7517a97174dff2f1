"""Requests as they come in: headers, names in paths, bodies of bounded size.

Whatever goes wrong on the way is answered with one of the known problems.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope

from dpcheckin.service.web.replies import problem_response
from dpcheckin.service.wire.canonical import LARGEST_DOCUMENT
from dpcheckin.service.wire.problems import Problem, refuse

_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")
_HEX = re.compile(r"(?:[0-9a-f]{2})+")
LARGEST_ROUND = 2**32 - 1

Endpoint = Callable[[Request], Awaitable[Response]]


class ClientDisconnected(Exception):
    """The client went away before its request was complete."""


def header(scope: Scope, name: bytes) -> bytes | None:
    """The first header of that (lower-case) name in a request's scope."""
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value)
    return None


def declared_length(scope: Scope) -> int | None:
    """The Content-Length, if there is one."""
    value = header(scope, b"content-length")
    return int(value) if value is not None and value.isdigit() and len(value) < 19 else None


async def read_body(receive: Receive, largest: int) -> bytes:
    """A whole body from an ASGI request's `receive`; refuses as soon as it has more than `largest` bytes."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientDisconnected
        part = message.get("body", b"")
        size += len(part)
        if size > largest:
            refuse(Problem.TOO_LARGE)
        parts.append(part)
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)


async def body_of(request: Request, largest: int = LARGEST_DOCUMENT) -> bytes:
    """The body of a request that `answering` answers. `request`: says how long it is, or not; `largest`: in bytes."""
    length = declared_length(request.scope)
    if length is not None and length > largest:
        refuse(Problem.TOO_LARGE)
    body = await read_body(request.receive, largest)
    request.state.read = True
    return body


def number_in(request: Request) -> int:
    """The round in the path."""
    text = request.path_params["round"]
    if _NUMBER.fullmatch(text) is None or int(text) > LARGEST_ROUND:
        refuse(Problem.NOT_FOUND)
    return int(text)


def hex_in(request: Request, name: str, length: int) -> bytes:
    """A digest or id of `length` bytes in the path of a `request`, at the place of this `name`."""
    text = request.path_params[name]
    if len(text) != 2 * length or _HEX.fullmatch(text) is None:
        refuse(Problem.NOT_FOUND)
    return bytes.fromhex(text)


def answering(endpoint: Endpoint, failed: Callable[[Exception], Problem]) -> Endpoint:
    """The `endpoint`, with every failure turned into a known problem by `failed`, which counts and logs it."""

    async def answer(request: Request) -> Response:
        request.state.read = request.method not in ("PUT", "POST")
        try:
            return await endpoint(request)
        except ClientDisconnected:
            return problem_response(Problem.MALFORMED, hang_up=True)
        except Exception as problem:
            return problem_response(failed(problem), hang_up=not request.state.read)

    return answer


async def not_found(request: Request, problem: Exception) -> Response:
    """The answer to a request for what is not in the table of routes; the problem is Starlette's own."""
    return problem_response(Problem.NOT_FOUND, hang_up=request.method not in ("GET", "HEAD"))
