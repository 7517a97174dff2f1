"""`dpcheckin issuer …`: run an issuer of report tokens, prepare its folder, enroll clients."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dpcheckin.cli.arguments.folders import check_exists
from dpcheckin.cli.certificates import TEST_HOSTS, make_test_certificates
from dpcheckin.cli.parties.enrolling import client_id, enroll_clients, show
from dpcheckin.errors import InvalidParameter

if TYPE_CHECKING:
    from dpcheckin.service.issuer.store import IssuerStore

_FOLDER = typer.Option(
    Path("issuer-data"), "--folder", "-f", help="Settings, identity, analyzer's token, database."
)


def init(
    folder: Path = _FOLDER,
    hosts: list[str] = TEST_HOSTS,
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Prepare a folder: identity, the analyzer's token and, for trials, an own test CA."""
    from dpcheckin.service.access import TOKEN_FILE, analyzer_token
    from dpcheckin.service.files import make_folder
    from dpcheckin.service.identity import load_identity
    from dpcheckin.service.issuer import settings
    from dpcheckin.service.wire.signing import public_identity

    make_folder(folder)
    analyzer_token(folder)
    made = {
        "folder": str(folder),
        "identity": public_identity(load_identity(folder)).hex(),
        "analyzer_token_file": str(folder / TOKEN_FILE),
    }
    made |= make_test_certificates(folder, hosts, settings.FILE, table="issuer")
    show(made, as_json)


def serve(
    folder: Path = _FOLDER,
    host: str | None = typer.Option(None, help="Address for clients and analyzer."),
    port: int | None = typer.Option(None, help="Port for clients and analyzer; 0: any."),
    admin_host: str | None = typer.Option(None, help="Address for health and metrics."),
    admin_port: int | None = typer.Option(None, help="Port for health and metrics; 0: any."),
    rounds_ahead: int | None = typer.Option(
        None, help="Rounds for which clients can fetch tokens in advance."
    ),
    tls_certificate: str | None = typer.Option(None, help="PEM file."),
    tls_key: str | None = typer.Option(None, help="PEM file."),
    dev: bool | None = typer.Option(None, "--dev", help="Plain HTTP, on loopback only."),
    analyzer_identity: str | None = typer.Option(
        None, help="Analyzer's public identity in hex; without it, plans are refused."
    ),
    log_level: str | None = typer.Option(None, help="debug, info, warning or error."),
) -> None:
    """Run an issuer until it is stopped.

    Options go before issuer.toml in the folder. Without TLS files only --dev is served.
    """
    from dpcheckin.service.issuer.server import serve as run
    from dpcheckin.service.issuer.settings import load

    options = {
        "host": host,
        "port": port,
        "admin_host": admin_host,
        "admin_port": admin_port,
        "rounds_ahead": rounds_ahead,
        "tls_certificate": tls_certificate,
        "tls_key": tls_key,
        "dev": dev,
        "analyzer_identity": analyzer_identity,
        "log_level": log_level,
    }
    run(load(folder, options))


def identity(folder: Path = _FOLDER) -> None:
    """Print the issuer's public identity, for plans and for the configurations of clients."""
    from dpcheckin.service.identity import load_identity
    from dpcheckin.service.wire.signing import public_identity

    _check(folder)
    typer.echo(public_identity(load_identity(folder)).hex())


def enroll(
    folder: Path = _FOLDER,
    count: int = typer.Option(1, min=1, max=1_000_000, help="How many clients."),
    out: Path | None = typer.Option(None, help="Write the access tokens to this new file."),
) -> None:
    """Make access tokens for new clients: one JSON object a line, with the client's id and token.

    They are shown once; the issuer keeps only their digests. A running issuer knows the new clients
    within a second.
    """
    enroll_clients(lambda: _opened(folder), count, out)


def revoke(
    client: str = typer.Argument(help="The client's id, as `enroll` printed it."),
    folder: Path = _FOLDER,
) -> None:
    """Give a client no more report tokens; a running issuer notices within a second."""
    raw = client_id(client)
    opened = _opened(folder)
    try:
        found = opened.revoke(raw)
    finally:
        opened.close()
    if not found:
        raise InvalidParameter("client", client, "an enrolled client")


def rekey(folder: Path = _FOLDER) -> None:
    """Destroy the keys of all rounds to come: new ones are made when they are asked for.

    Every round has a key of its own anyway. This is for keys that may have been seen: tokens signed
    with them are worth nothing from the next round on, and clients fetch new ones.
    """
    opened = _opened(folder)
    try:
        gone = opened.forget_keys()
    finally:
        opened.close()
    typer.echo(f"{gone} keys destroyed")


def _check(folder: Path) -> None:
    check_exists(folder, "a folder that `dpcheckin issuer init` made")


def _opened(folder: Path) -> IssuerStore:
    from dpcheckin.service.issuer.settings import STORE
    from dpcheckin.service.issuer.store import IssuerStore

    _check(folder)
    return IssuerStore(folder / STORE)
