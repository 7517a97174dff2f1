"""Pages that may ask: cross-origin rules by the operator's own list (docs/browser.md). Without one, no page may.

A browser shows a page the answer of another origin only where that answer names the page's. Nothing else is decided
here: who asks still needs a token, and what is asked with a foreign page's name is answered as it always was, without a
word that would let the page read it. Report and cover are asked about alike.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.web.requests import header

_ORIGIN = re.compile(r"(https?)://([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?")
_NEAR = ("localhost", "127.0.0.1", "::1")
_ASKED = [
    (b"access-control-allow-methods", b"GET, PUT, POST"),
    (b"access-control-allow-headers", b"authorization, content-type"),
    (b"access-control-max-age", b"7200"),
    (b"cache-control", b"no-store"),
]
_EXPOSED = (b"access-control-expose-headers", b"date, content-encoding, retry-after")
_VARY = (b"vary", b"origin")


def read_origins(text: str) -> frozenset[bytes]:
    """The origins in a comma-separated `text`: https, or http on the machine itself; no wildcard, no path."""
    found = [part.strip() for part in text.split(",") if part.strip()]
    for origin in found:
        parts = _ORIGIN.fullmatch(origin)
        if parts is None or (parts[1] == "http" and urlsplit(origin).hostname not in _NEAR):
            raise InvalidParameter("origins", origin, "origins such as https://survey.example, separated by commas")
    return frozenset(origin.encode() for origin in found)


class CrossOrigin:
    """A public `app` that pages of some `origins` may use."""

    def __init__(self, app: ASGIApp, origins: frozenset[bytes]) -> None:
        self._app, self._origins = app, origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        origin = header(scope, b"origin") if scope["type"] == "http" else None
        if origin is None or origin not in self._origins:
            await self._app(scope, receive, send)
            return
        allowed = [(b"access-control-allow-origin", origin), _VARY]
        if scope["method"] == "OPTIONS" and header(scope, b"access-control-request-method") is not None:
            await send({"type": "http.response.start", "status": 204, "headers": [*allowed, *_ASKED]})
            await send({"type": "http.response.body", "body": b""})
            return

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *allowed, _EXPOSED]}
            await send(message)

        await self._app(scope, receive, told)
