"""`dpcheckin shuffler …`: run a shuffler, prepare its folder, enroll clients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dpcheckin.cli.arguments.folders import check_exists
from dpcheckin.cli.certificates import TEST_HOSTS, make_test_certificates
from dpcheckin.cli.parties.enrolling import client_id, enroll_clients, show
from dpcheckin.errors import InvalidParameter

if TYPE_CHECKING:
    from dpcheckin.service.shuffler.settings import Settings
    from dpcheckin.service.shuffler.stores.base import Store

_FOLDER = typer.Option(
    Path("shuffler-data"), "--folder", "-f", help="Settings, analyzer's token, database."
)
_STORE = typer.Option(
    None, "--store", help="memory:, sqlite:FILE or postgresql://… (default: in the folder)."
)


def serve(
    folder: Path = _FOLDER,
    host: str | None = typer.Option(None, help="Address for clients and analyzer."),
    port: int | None = typer.Option(None, help="Port for clients and analyzer; 0: any."),
    admin_host: str | None = typer.Option(None, help="Address for health and metrics."),
    admin_port: int | None = typer.Option(None, help="Port for health and metrics; 0: any."),
    store: str | None = _STORE,
    tls_certificate: str | None = typer.Option(None, help="PEM file."),
    tls_key: str | None = typer.Option(None, help="PEM file."),
    dev: bool | None = typer.Option(None, "--dev", help="Plain HTTP, on loopback only."),
    analyzer_identity: str | None = typer.Option(
        None, help="Analyzer's public identity in hex; without it, plans are refused."
    ),
    any_analyzer: bool | None = typer.Option(
        None, "--any-analyzer", help="Take plans from whoever holds the token; --dev does."
    ),
    log_level: str | None = typer.Option(None, help="debug, info, warning or error."),
) -> None:
    """Run a shuffler until it is stopped.

    Options go before the environment (DPCHECKIN_SHUFFLER_PORT and so on), that before
    shuffler.toml in the folder. Without TLS files only --dev is served.
    """
    from dpcheckin.service.shuffler.server import serve as run
    from dpcheckin.service.shuffler.settings import load

    options = {
        "host": host,
        "port": port,
        "admin_host": admin_host,
        "admin_port": admin_port,
        "store": store,
        "tls_certificate": tls_certificate,
        "tls_key": tls_key,
        "dev": dev,
        "analyzer_identity": analyzer_identity,
        "any_analyzer": any_analyzer,
        "log_level": log_level,
    }
    run(load(folder, options))


def init(
    folder: Path = _FOLDER,
    hosts: list[str] = TEST_HOSTS,
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Prepare a folder: the analyzer's token and, for trials, certificates of an own test CA."""
    from dpcheckin.service.access import TOKEN_FILE, analyzer_token
    from dpcheckin.service.shuffler import settings

    analyzer_token(folder)
    made = {"folder": str(folder), "analyzer_token_file": str(folder / TOKEN_FILE)}
    made |= make_test_certificates(folder, hosts, settings.SETTINGS_FILE)
    show(made, as_json)


def identity(folder: Path = _FOLDER) -> None:
    """Print the shuffler's public identity, for the configurations of clients.

    With it a client believes the shuffler's statements that rounds were void, and does not pay for
    them. It is made if the folder, which has to exist, has none.
    """
    from dpcheckin.service.identity import load_identity
    from dpcheckin.service.wire.signing import public_identity

    check_exists(folder)
    typer.echo(public_identity(load_identity(folder)).hex())


def enroll(
    folder: Path = _FOLDER,
    count: int = typer.Option(1, min=1, max=1_000_000, help="How many clients."),
    out: Path | None = typer.Option(None, help="Write the tokens to this new file."),
    store: str | None = _STORE,
) -> None:
    """Make tokens for new clients: one JSON object a line, with the client's id and its token.

    Tokens are shown once; the shuffler keeps only their digests. A running shuffler knows the new
    clients within a second.
    """
    enroll_clients(lambda: _opened(folder, store), count, out)


def revoke(
    client: str = typer.Argument(help="The client's id, as `enroll` printed it."),
    folder: Path = _FOLDER,
    store: str | None = _STORE,
) -> None:
    """Make a client's token worthless; running shufflers notice within a second."""
    _change(folder, store, client, replace=False)


def rotate(
    client: str = typer.Argument(help="The client's id, as `enroll` printed it."),
    folder: Path = _FOLDER,
    store: str | None = _STORE,
) -> None:
    """Give a client a new token; it stays the same client, the old token is worthless."""
    _change(folder, store, client, replace=True)


def backup(
    out: Path = typer.Option(..., help="Write to this new file."),
    folder: Path = _FOLDER,
    store: str | None = _STORE,
) -> None:
    """Write clients, plans, keys and rounds to a file; never a report, nor who was present.

    May run beside a shuffler. The file is as secret as the folder.
    """
    from dpcheckin.service.access import TOKEN_FILE
    from dpcheckin.service.identity import IDENTITY
    from dpcheckin.service.shuffler.backup import backup as run

    kept = [folder / TOKEN_FILE, folder / IDENTITY]
    opened = _opened(folder, store)
    try:
        count = run(opened, out, *(f.read_text().strip() if f.is_file() else None for f in kept))
    finally:
        opened.close()
    typer.echo(f"{out}: {count:,} records")


def restore(
    file: Path = typer.Option(..., "--from", help="What `shuffler backup` wrote."),
    folder: Path = _FOLDER,
    store: str | None = _STORE,
) -> None:
    """Put a backup into an empty store, of either kind.

    Rounds that had not ended when it was taken come back as done: they are not released again.
    """
    from dpcheckin.service.access import TOKEN_FILE
    from dpcheckin.service.files import make_folder, write_secret
    from dpcheckin.service.identity import IDENTITY
    from dpcheckin.service.shuffler.backup import read
    from dpcheckin.service.shuffler.backup import restore as run

    kept = read(file)
    make_folder(folder)
    opened = _opened(folder, store)
    try:
        run(opened, kept)
    finally:
        opened.close()
    for name, file_name in (("token", TOKEN_FILE), ("identity", IDENTITY)):
        if kept.about.get(name) and not (folder / file_name).exists():
            write_secret(folder / file_name, str(kept.about[name]).encode() + b"\n")
    typer.echo(f"{folder}: restored from {file}")


def _change(folder: Path, store: str | None, client: str, *, replace: bool) -> None:
    from dpcheckin.service.wire.credentials import new_token, token_digest

    raw = client_id(client)
    opened, token = _opened(folder, store), new_token()
    try:
        found = opened.replace_token(raw, token_digest(token)) if replace else opened.revoke(raw)
    finally:
        opened.close()
    if not found:
        raise InvalidParameter("client", client, "an enrolled client")
    if replace:
        typer.echo(json.dumps({"client": client, "token": token}))


def _opened(folder: Path, store: str | None) -> Store:
    """The store that `serve` would use; TLS does not matter here."""
    from dpcheckin.service.shuffler.server import open_store
    from dpcheckin.service.shuffler.settings import load

    settings: Settings = load(folder, {"store": store, "dev": True, "host": "127.0.0.1"})
    place = settings.store_address.removeprefix("sqlite:")
    if place != settings.store_address:  # a database of its own, with clients whom nobody serves
        check_exists(Path(place).parent)
    return open_store(settings.store_address)
