"""`dpcheckin issuer …`: run an issuer of report tokens, prepare its folder, enroll clients."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dpcheckin.cli.arguments import check_exists, options_from
from dpcheckin.cli.parties import preparing
from dpcheckin.service.issuer.settings import FILE, STORE, IssuerSettings, load

if TYPE_CHECKING:
    from dpcheckin.service.issuer.store import IssuerStore

_FOLDER = typer.Option(Path("issuer-data"), "--folder", "-f", help="Settings, identity, analyzer's token, database.")
_INITIALIZED = "a folder that `dpcheckin issuer init` made"


def init(folder: Path = _FOLDER, hosts: list[str] = preparing.TEST_HOSTS, as_json: bool = preparing.AS_JSON) -> None:
    """Prepare a folder: identity, the analyzer's token and, for trials, an own test CA."""
    from dpcheckin.service.storage.files import make_folder
    from dpcheckin.service.storage.identity import TOKEN_FILE, analyzer_token, load_identity
    from dpcheckin.service.wire.signing import public_identity

    make_folder(folder)
    analyzer_token(folder)
    made = {
        "folder": str(folder),
        "identity": public_identity(load_identity(folder)).hex(),
        "analyzer_token_file": str(folder / TOKEN_FILE),
    }
    preparing.show(made | preparing.make_test_certificates(folder, hosts, FILE, table="issuer"), as_json)


@options_from(IssuerSettings, only_given=True)
def serve(folder: Path = _FOLDER, *, options: dict[str, Any]) -> None:
    """Run an issuer until it is stopped.

    Options go before issuer.toml in the folder. Without TLS files only --dev is served.
    """
    from dpcheckin.service.issuer.server import serve as run

    run(load(folder, options))


def identity(folder: Path = _FOLDER) -> None:
    """Print the issuer's public identity, for plans and for the configurations of clients."""
    preparing.print_identity(folder, _INITIALIZED)


def enroll(
    folder: Path = _FOLDER,
    count: int = preparing.COUNT,
    out: Path | None = typer.Option(None, help="Write the access tokens to this new file."),
) -> None:
    """Make access tokens for new clients: one JSON object a line, with the client's id and token.

    They are shown once; the issuer keeps only their digests. A running issuer knows the new clients within a second.
    """
    preparing.enroll_clients(lambda: _opened(folder), count, out)


def revoke(client: str = preparing.CLIENT, folder: Path = _FOLDER) -> None:
    """Give a client no more report tokens; a running issuer notices within a second."""
    with closing(_opened(folder)) as store:
        preparing.change_client(client, store.revoke)


def rekey(folder: Path = _FOLDER) -> None:
    """Destroy the keys of all rounds to come: new ones are made when they are asked for.

    Every round has a key of its own anyway. This is for keys that may have been seen: tokens signed with them are worth
    nothing from the next round on, and clients fetch new ones.
    """
    with closing(_opened(folder)) as store:
        typer.echo(f"{store.forget_keys()} keys destroyed")


def backup(out: Path = typer.Option(..., help="Write to this new file."), folder: Path = _FOLDER) -> None:
    """Write identity, the analyzer's token, clients and plans to a file; never a key of a round, nor who got tokens.

    May run beside an issuer. The file is as secret as the folder.
    """
    from dpcheckin.service.issuer.backup import backup as run

    typer.echo(f"{out}: {run(folder, out):,} records")


def restore(
    file: Path = typer.Option(..., "--from", help="What `issuer backup` wrote."), folder: Path = _FOLDER
) -> None:
    """Make an issuer's folder from a backup; rounds to come get new keys, and clients fetch new tokens.

    Never run two issuers from one backup.
    """
    from dpcheckin.service.issuer.backup import restore as run

    typer.echo(f"{folder}: {run(folder, file):,} clients, restored from {file}")


def _opened(folder: Path) -> IssuerStore:
    from dpcheckin.service.issuer.store import IssuerStore

    check_exists(folder, _INITIALIZED)
    return IssuerStore(folder / STORE)
