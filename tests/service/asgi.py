"""Calling an ASGI application directly: one request in, one answer out, no sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, NamedTuple


class Reply(NamedTuple):
    status: int
    headers: dict[bytes, bytes]
    body: bytes


async def ask(
    app: Any,
    method: str,
    path: str,
    headers: Iterable[tuple[bytes, bytes]] = (),
    parts: Iterable[bytes] = (),
    *,
    hang_up: bool = False,
) -> Reply | None:
    """The answer; None if there was none, as when the client hangs up."""
    waiting: list[bytes] | None = list(parts)
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        nonlocal waiting
        if waiting is None:  # all is said, and the client waits for the answer
            await asyncio.Event().wait()
        assert waiting is not None
        if not waiting and hang_up:
            return {"type": "http.disconnect"}
        part = waiting.pop(0) if waiting else b""
        more = bool(waiting) or hang_up
        if not more:
            waiting = None
        return {"type": "http.request", "body": part, "more_body": more}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": list(headers),
        "client": ("192.0.2.1", 5),
        "server": ("192.0.2.2", 80),
        "state": {},
    }
    await app(scope, receive, send)
    if not sent:
        return None
    body = b"".join(m.get("body", b"") for m in sent[1:])
    return Reply(sent[0]["status"], dict(sent[0]["headers"]), body)
