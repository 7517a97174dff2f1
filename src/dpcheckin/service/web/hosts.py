"""Which names a page answers to: a browser that was led astray must not read it.

A page on the loopback interface has no password. Any site could have its own name point to 127.0.0.1 and let a
visitor's browser fetch the page under that name (DNS rebinding). An address in place of a name cannot be pointed
elsewhere, so addresses are always known.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Container
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send


def is_known(host: str, names: Container[str]) -> bool:
    """Whether a `Host` header is an address, this machine's own name, or one of `names`.

    Args:
        host: as it was sent, with or without a port.
        names: what else the page is known by, in lower case.

    >>> is_known("127.0.0.1:8442", ()), is_known("[::1]:8442", ()), is_known("evil.example", ())
    (True, True, False)
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if not name or name == "localhost" or name in names:
            return bool(name)
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class KnownHosts:
    """The application `app` behind a check of the `Host` header; besides addresses and `localhost` it is known by
    `names`.
    """

    def __init__(self, app: ASGIApp, names: Container[str]) -> None:
        self._app, self._names = app, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._knows(scope["headers"]):
            refusal = PlainTextResponse("unknown host\n", HTTPStatus.MISDIRECTED_REQUEST)
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _knows(self, headers: Any) -> bool:
        hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
        return len(hosts) == 1 and is_known(hosts[0], self._names)
