"""What commands of parties share: test certificates, identities, and clients' access tokens, shown or written once."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import typer

from dpcheckin.cli.arguments import check_exists
from dpcheckin.errors import InvalidParameter

TEST_HOSTS = typer.Option([], "--test-certificate", help="Make a test CA and a certificate for this host.")
AS_JSON = typer.Option(False, "--json", help="Print JSON.")
CLIENT = typer.Argument(help="The client's id, as `enroll` printed it.")
COUNT = typer.Option(1, min=1, max=1_000_000, help="How many clients.")


class Enrolling(Protocol):
    """A store of clients."""

    def enroll(self, tokens: list[bytes]) -> list[bytes]: ...

    def close(self) -> None: ...


def enroll_clients(opened: Callable[[], Enrolling], count: int, out: Path | None) -> None:
    """Enroll `count` new clients in the store that is `opened`, and hand out their tokens: one JSON object a line.

    `out`: a new file for them; None: they are printed.
    """
    from dpcheckin.service.storage.files import write_secret
    from dpcheckin.service.wire.credentials import new_token, token_digest

    if out is not None and (out.exists() or not out.parent.is_dir()):
        # found out afterwards, clients would be enrolled whose tokens nobody knows
        raise InvalidParameter("out", str(out), "a new file in a folder that exists")
    tokens = [new_token() for _ in range(count)]
    with closing(opened()) as store:
        clients = store.enroll([token_digest(token) for token in tokens])
    lines = "".join(
        json.dumps({"client": client.hex(), "token": token}) + "\n"
        for client, token in zip(clients, tokens, strict=True)
    )
    if out is None:
        typer.echo(lines, nl=False)
    else:
        write_secret(out, lines.encode())
        typer.echo(f"{out}: {count} client{'' if count == 1 else 's'}")


def change_client(client: str, change: Callable[[bytes], bool]) -> None:
    """Do something to a client, by its id as `enroll` printed it; `change` says whether there is such a client."""
    try:
        known = change(bytes.fromhex(client))
    except ValueError:
        raise InvalidParameter("client", client, "an id in hex") from None
    if not known:
        raise InvalidParameter("client", client, "an enrolled client")


def print_identity(folder: Path, allowed: str = "a folder that exists", place: Path | None = None) -> None:
    """Print the public identity of the party that lives in a `folder`; one that is not there is refused for an
    `allowed` one. `place`: where the identity lies, if that is another folder.
    """
    from dpcheckin.service.storage.identity import load_identity
    from dpcheckin.service.wire.signing import public_identity

    check_exists(folder, allowed)
    typer.echo(public_identity(load_identity(place or folder)).hex())


def show(made: dict[str, str], as_json: bool) -> None:
    """Print what `init` has `made`, by name: a line each, or `as_json` one object."""
    if as_json:
        typer.echo(json.dumps(made))
    else:
        for name, value in made.items():
            typer.echo(f"{name.replace('_', ' ')}: {value}")


def show_budget(found: dict[str, Any], as_json: bool) -> None:
    """Print what was `found` about a budget: facts a line each, then a table of plans and one of totals and limits; or
    `as_json` one object."""
    if as_json:
        typer.echo(json.dumps(found))
        return
    from dpcheckin.console import print_table
    from dpcheckin.numerals import rounded_down, rounded_up

    def told(value: Any, name: str) -> str:
        if isinstance(value, float):  # what is left is never less than is said
            return (rounded_down if name in ("left", "limit") else rounded_up)(value)
        return "unbounded" if value is None else str(value)

    for name, value in found.items():
        if not isinstance(value, list):
            typer.echo(f"{name.replace('_', ' ')}: {told(value, name)}")
    for name in ("plans", "totals"):
        if rows := found.get(name):
            shown = [[told(value, name) for name, value in row.items()] for row in rows]
            print_table(shown, *(head.replace("_", " ") for head in rows[0]))


def make_test_certificates(folder: Path, hosts: Sequence[str], settings: str, table: str = "") -> dict[str, str]:
    """Certificates for trials in a party's `folder` for its `hosts`, if there are any; the files by what they are.

    They are named in the file of `settings`, in this `table`, if there is no such file yet.
    """
    if not hosts:
        return {}
    from dpcheckin.service import tls

    if (folder / "authority.key").exists():
        raise InvalidParameter("folder", str(folder), "one without certificates of its own yet")
    authority = tls.make_authority(folder)
    pair = tls.issue(folder, authority, *hosts)
    file = folder / settings
    if not file.exists():
        head = [f"[{table}]"] if table else []
        entries = [f'tls_certificate = "{pair.certificate.name}"', f'tls_key = "{pair.key.name}"']
        file.write_text("\n".join([*head, *entries, ""]), encoding="utf-8")
    return {"authority": str(authority.certificate), "tls_certificate": str(pair.certificate), "tls_key": str(pair.key)}
