"""One agent's requests: with its token, uncompressed, and never more of an answer than is wanted.

A shuffler is not trusted with this device's memory. Compression is not asked for, an answer that is
compressed all the same is not unpacked, and reading stops at the size that was expected. The time
at which the shuffler answers is kept, so that an agent can tell that its own clock is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import httpx

from dpcheckin.errors import ServiceError
from dpcheckin.service import tls
from dpcheckin.service.wire.canonical import LARGEST_DOCUMENT
from dpcheckin.service.wire.credentials import bearer_header
from dpcheckin.service.wire.problems import Problem, problem_in

LARGEST_ANSWER = 64 << 10
"""Bytes of an answer that is not a document or a model: `{}` or a problem."""


class ShufflerUnreachable(ServiceError):
    """The shuffler does not answer, or not as it should; the agent tries again."""


class Unauthorized(ShufflerUnreachable):
    """The shuffler does not know this client's token: revoked, replaced, or another shuffler."""


@dataclass(frozen=True)
class Answer:
    """Status and body, and when the shuffler says that it was sent (seconds since the epoch)."""

    status: int
    body: bytes
    date: float | None = None

    @property
    def problem(self) -> Problem | None:
        """The problem it speaks of, if any."""
        return problem_in(self.body)


def open_client(shuffler: str, authority: Path | None, **options: Any) -> httpx.AsyncClient:
    """Connections to a shuffler; certificates are always checked.

    Args:
        shuffler: its address.
        authority: PEM file of the only authority to believe; None: those of the system.
        options: further arguments of `httpx.AsyncClient`.
    """
    verify = tls.verification(shuffler, authority)
    return httpx.AsyncClient(verify=verify, timeout=30.0, trust_env=False, **options)


class Connection:
    """What one agent says to its shuffler or issuer. Several may share the connections below.

    Args:
        address: of the shuffler or issuer.
        token: the client's, for that party.
        http: the connections.
    """

    def __init__(self, address: str, token: str, http: httpx.AsyncClient) -> None:
        self._address, self._http = address, http
        self._headers = {**bearer_header(token), "accept-encoding": "identity"}

    async def get(
        self, path: str, *, missing: Problem | None = None, limit: int = LARGEST_DOCUMENT
    ) -> Answer | None:
        """The answer to a request that must succeed; None for the problem `missing`.

        Args:
            path: below the shuffler's address.
            missing: a problem that is no failure.
            limit: the largest body that is read, in bytes.
        """
        try:
            answer = await self.ask("GET", path, None, limit)
        except httpx.TransportError as failure:
            raise ShufflerUnreachable(type(failure).__name__) from None
        if answer.status == 200:
            return answer
        problem = answer.problem
        if missing is not None and problem is missing:
            return None
        if problem is Problem.UNAUTHORIZED:
            raise Unauthorized("the shuffler does not know this client's token")
        raise ShufflerUnreachable(f"{path}: {problem.slug if problem else answer.status}")

    async def put(self, path: str, content: bytes) -> Answer:
        """The answer, whatever it is; `httpx.TransportError` when there is none.

        Args:
            path: below the shuffler's address.
            content: the body.
        """
        return await self.ask("PUT", path, content, LARGEST_ANSWER)

    async def ask(
        self, method: str, path: str, content: bytes | None = None, limit: int = LARGEST_DOCUMENT
    ) -> Answer:
        """The answer, whatever it is; `httpx.TransportError` when there is none.

        Args:
            method: such as GET.
            path: below the address.
            content: the body, if any.
            limit: the largest body that is read, in bytes.
        """
        url = self._address + path
        async with self._http.stream(method, url, content=content, headers=self._headers) as answer:
            encoding = answer.headers.get("content-encoding", "identity")
            if encoding != "identity":
                raise ShufflerUnreachable(f"{path}: an answer in {encoding[:20]}, not asked for")
            body = await _read(answer, limit)
            if body is None:
                raise ShufflerUnreachable(f"{path}: an answer of more than {limit:,} bytes")
            date = _seconds(answer.headers.get("date"))
            return Answer(answer.status_code, body, date)


async def _read(answer: httpx.Response, limit: int) -> bytes | None:
    """The body as it came; None as soon as it is seen to be longer than `limit`."""
    if answer.is_stream_consumed:  # it was made in this process, such as a ring's model
        return answer.content if len(answer.content) <= limit else None
    body = bytearray()
    async for part in answer.aiter_raw():
        body += part
        if len(body) > limit:
            return None
    return bytes(body)


def _seconds(date: str | None) -> float | None:
    """An HTTP date in seconds since the epoch.

    >>> _seconds("Thu, 01 Jan 1970 00:01:00 GMT")
    60.0
    >>> _seconds("yesterday") is None
    True
    """
    try:
        return None if date is None else parsedate_to_datetime(date).replace(tzinfo=UTC).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
