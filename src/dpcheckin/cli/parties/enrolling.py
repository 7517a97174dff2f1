"""`enroll` of every party that knows clients: access tokens are shown once, or written once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import typer

from dpcheckin.errors import InvalidParameter


class Enrolling(Protocol):
    """A store of clients."""

    def enroll(self, tokens: list[bytes]) -> list[bytes]: ...

    def close(self) -> None: ...


def enroll_clients(opened: Callable[[], Enrolling], count: int, out: Path | None) -> None:
    """Enroll new clients and hand out their tokens: one JSON object a line.

    Args:
        opened: the store; it is closed again.
        count: of clients.
        out: a new file for the tokens; None: they are printed.
    """
    from dpcheckin.service.files import write_secret
    from dpcheckin.service.wire.credentials import new_token, token_digest

    if out is not None and (out.exists() or not out.parent.is_dir()):
        # found out afterwards, clients would be enrolled whose tokens nobody knows
        raise InvalidParameter("out", str(out), "a new file in a folder that exists")
    tokens = [new_token() for _ in range(count)]
    store = opened()
    try:
        clients = store.enroll([token_digest(token) for token in tokens])
    finally:
        store.close()
    lines = "".join(
        json.dumps({"client": client.hex(), "token": token}) + "\n"
        for client, token in zip(clients, tokens, strict=True)
    )
    if out is None:
        typer.echo(lines, nl=False)
    else:
        write_secret(out, lines.encode())
        typer.echo(f"{out}: {count} client{'' if count == 1 else 's'}")


def client_id(text: str) -> bytes:
    """A client's id, as `enroll` printed it."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise InvalidParameter("client", text, "an id in hex") from None


def show(made: dict[str, str], as_json: bool) -> None:
    """What `init` has made.

    Args:
        made: by name.
        as_json: as one JSON object.
    """
    if as_json:
        typer.echo(json.dumps(made))
    else:
        for name, value in made.items():
            typer.echo(f"{name.replace('_', ' ')}: {value}")
