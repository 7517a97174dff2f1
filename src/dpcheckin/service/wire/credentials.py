"""Access tokens: how clients and the analyzer show who they are, and how servers check it.

A token is 32 bytes from the operating system in URL-safe base64. Servers keep only its SHA-256 digest, which needs no
salt or slow hash: 256 random bits cannot be guessed, and looking one up by its digest tells a guesser nothing.
"""

from __future__ import annotations

import re
import secrets

from dpcheckin.service.wire.canonical import digest

TOKEN_BYTES = 32
_TOKEN = re.compile(rb"[A-Za-z0-9_-]{43}")
_BEARER = b"bearer "


def new_token() -> str:
    """A fresh token.

    >>> len(new_token())
    43
    """
    return secrets.token_urlsafe(TOKEN_BYTES)


def token_digest(token: str | bytes) -> bytes:
    """What a server stores and compares."""
    return digest(token.encode() if isinstance(token, str) else token)


def bearer_header(token: str) -> dict[str, str]:
    """The header with which a client or the analyzer shows its token.

    >>> bearer_header("abc")
    {'Authorization': 'Bearer abc'}
    """
    return {"Authorization": f"Bearer {token}"}


def bearer_digest(header: bytes | None) -> bytes | None:
    """The digest of the token in an `Authorization` header, None if there is no token in it.

    >>> bearer_digest(b"Bearer " + b"A" * 43) == token_digest("A" * 43)
    True
    >>> bearer_digest(b"Basic abc") is None
    True
    """
    if header is None or header[: len(_BEARER)].lower() != _BEARER:
        return None
    token = header[len(_BEARER) :].strip(b" ")
    return token_digest(token) if _TOKEN.fullmatch(token) else None
