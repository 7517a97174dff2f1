"""Answers, byte for byte: what is sent depends on the kind of answer and on nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dpcheckin.service.wire.problems import MEDIA_TYPE, Problem

RETRY_AFTER = 2
_PART = 256 << 10


def _headers(media_type: str, length: int, more: Iterable[tuple[str, str]] = ()) -> dict[str, str]:
    return {"content-type": media_type, "content-length": str(length), "cache-control": "no-store", **dict(more)}


def reply(body: bytes, media_type: str = "application/json", status: int = 200) -> Response:
    """Any answer whose whole `body` is known, of a `media_type` and a `status` of HTTP."""
    return Response(body, status, _headers(media_type, len(body)))


Parts = tuple[bytes, ...]


def parted(body: bytes) -> Parts:
    """A `body` cut up once, so that all who read it wait for the same bytes."""
    return tuple(body[start : start + _PART] for start in range(0, len(body), _PART))


class PartedResponse(Response):
    """Many bytes in `parts`, sent no faster than they are read: a slow reader holds one part, which others share."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(b"", 200, _headers("application/octet-stream", sum(map(len, parts))))
        self._parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        for part in self._parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def empty(status: int) -> Response:
    """`{}`."""
    return reply(b"{}", status=status)


def json_reply(value: dict[str, Any]) -> Response:
    """A small JSON object."""
    return reply(json.dumps(value, separators=(",", ":"), sort_keys=True).encode())


def _problem_headers(problem: Problem, hang_up: bool) -> dict[str, str]:
    more = []
    if problem in (Problem.TOO_MANY, Problem.BUSY):
        more.append(("retry-after", str(RETRY_AFTER)))
    if problem is Problem.UNAUTHORIZED:
        more.append(("www-authenticate", "Bearer"))
    if hang_up:
        more.append(("connection", "close"))
    return _headers(MEDIA_TYPE, len(problem.body()), more)


ACCEPTED = empty(202)
"""The answer to a report and to a cover."""

_PROBLEMS = {
    (problem, hang_up): Response(problem.body(), problem.status, _problem_headers(problem, hang_up))
    for problem in Problem
    for hang_up in (False, True)
}


def problem_response(problem: Problem, *, hang_up: bool = False) -> Response:
    """The answer that names a `problem`; `hang_up` when the request's body has not been read."""
    return _PROBLEMS[problem, hang_up]


def raw_problem(problem: Problem) -> bytes:
    """A whole HTTP response, for a connection whose request never became one."""
    response = _PROBLEMS[problem, True]
    lines = [b"HTTP/1.1 %d %s" % (problem.status, HTTPStatus(problem.status).phrase.encode())]
    lines += [name + b": " + value for name, value in response.raw_headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + bytes(response.body)
