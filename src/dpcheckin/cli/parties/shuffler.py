"""`dpcheckin shuffler …`: run a shuffler, prepare its folder, enroll clients."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dpcheckin.cli.arguments import check_exists, options_from
from dpcheckin.cli.parties import preparing
from dpcheckin.errors import InvalidParameter
from dpcheckin.service.shuffler.settings import IN_USE, SETTINGS_FILE, Settings, load

if TYPE_CHECKING:
    from dpcheckin.service.shuffler.stores.base import Store

_FOLDER = typer.Option(Path("shuffler-data"), "--folder", "-f", help="Settings, analyzer's token, database.")
_STORE = typer.Option(None, "--store", help="memory:, sqlite:FILE or postgresql://… (default: in the folder).")


@options_from(Settings, only_given=True)
def serve(folder: Path = _FOLDER, *, options: dict[str, Any]) -> None:
    """Run a shuffler until it is stopped.

    Options go before the environment (DPCHECKIN_SHUFFLER_PORT and so on), that before shuffler.toml in the folder.
    Without TLS files only --dev is served.
    """
    from dpcheckin.service.shuffler.server import serve as run

    run(load(folder, options))


def init(folder: Path = _FOLDER, hosts: list[str] = preparing.TEST_HOSTS, as_json: bool = preparing.AS_JSON) -> None:
    """Prepare a folder: the analyzer's token and, for trials, certificates of an own test CA."""
    from dpcheckin.service.storage.identity import TOKEN_FILE, analyzer_token

    analyzer_token(folder)
    made = {"folder": str(folder), "analyzer_token_file": str(folder / TOKEN_FILE)}
    preparing.show(made | preparing.make_test_certificates(folder, hosts, SETTINGS_FILE), as_json)


def identity(folder: Path = _FOLDER) -> None:
    """Print the shuffler's public identity, for the configurations of clients.

    With it a client believes the shuffler's statements that rounds were void, and does not pay for them. It is made if
    the folder, which has to exist, has none.
    """
    preparing.print_identity(folder)


def enroll(
    folder: Path = _FOLDER,
    count: int = preparing.COUNT,
    out: Path | None = typer.Option(None, help="Write the tokens to this new file."),
    store: str | None = _STORE,
) -> None:
    """Make tokens for new clients: one JSON object a line, with the client's id and its token.

    Tokens are shown once; the shuffler keeps only their digests. A running shuffler knows the new clients within a
    second.
    """
    preparing.enroll_clients(lambda: _opened(folder, store), count, out)


def revoke(client: str = preparing.CLIENT, folder: Path = _FOLDER, store: str | None = _STORE) -> None:
    """Make a client's token worthless; running shufflers notice within a second."""
    with closing(_opened(folder, store)) as opened:
        preparing.change_client(client, opened.revoke)


def rotate(client: str = preparing.CLIENT, folder: Path = _FOLDER, store: str | None = _STORE) -> None:
    """Give a client a new token; it stays the same client, the old token is worthless."""
    from dpcheckin.service.wire.credentials import new_token, token_digest

    token = new_token()
    with closing(_opened(folder, store)) as opened:
        preparing.change_client(client, lambda known: opened.replace_token(known, token_digest(token)))
    typer.echo(json.dumps({"client": client, "token": token}))


def backup(
    out: Path = typer.Option(..., help="Write to this new file."), folder: Path = _FOLDER, store: str | None = _STORE
) -> None:
    """Write clients, plans, keys and rounds to a file; never a report, nor who was present.

    May run beside a shuffler. The file is as secret as the folder.
    """
    from dpcheckin.service.shuffler.backup import backup as run
    from dpcheckin.service.storage.identity import IDENTITY, TOKEN_FILE

    kept = [folder / TOKEN_FILE, folder / IDENTITY]
    with closing(_opened(folder, store)) as opened:
        count = run(opened, out, *(f.read_text().strip() if f.is_file() else None for f in kept))
    typer.echo(f"{out}: {count:,} records")


def restore(
    file: Path = typer.Option(..., "--from", help="What `shuffler backup` wrote."),
    folder: Path = _FOLDER,
    store: str | None = _STORE,
) -> None:
    """Put a backup into an empty store, of either kind.

    Rounds that had not ended when it was taken come back as done: they are not released again.
    """
    from dpcheckin.service.shuffler.backup import read
    from dpcheckin.service.shuffler.backup import restore as run
    from dpcheckin.service.storage.files import make_folder, write_secret
    from dpcheckin.service.storage.identity import IDENTITY, TOKEN_FILE

    kept = read(file)
    make_folder(folder)
    with closing(_opened(folder, store, fresh=True)) as opened:
        run(opened, kept)
    for name, file_name in (("token", TOKEN_FILE), ("identity", IDENTITY)):
        if kept.about.get(name) and not (folder / file_name).exists():
            write_secret(folder / file_name, str(kept.about[name]).encode() + b"\n")
    typer.echo(f"{folder}: restored from {file}")


def _opened(folder: Path, store: str | None, *, fresh: bool = False) -> Store:
    """The store that `serve` would use, and the last one did unless it is a `fresh` one; TLS does not matter here."""
    from dpcheckin.service.shuffler.server import open_store

    settings = load(folder, {"store": store, "dev": True, "host": "127.0.0.1"})
    used = folder / IN_USE
    served = used.read_text().strip() if used.is_file() else settings.store_shown
    if not fresh and served != settings.store_shown:
        allowed = f"{served}, which the shuffler of this folder serves, as {used} says"
        raise InvalidParameter("store", settings.store_shown, allowed)
    place = settings.store_address.removeprefix("sqlite:")
    if place != settings.store_address:  # a database of its own, with clients whom nobody serves
        check_exists(Path(place).parent)
    return open_store(settings.store_address)
