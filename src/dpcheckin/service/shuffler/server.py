"""Putting a shuffler together: store, core and front."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.shuffler.chance import SecureChance
from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.http import LOGGER, ShufflerApp, ShufflerFront, shuffler_app
from dpcheckin.service.shuffler.rounds import Settled
from dpcheckin.service.shuffler.settings import IN_USE, Settings
from dpcheckin.service.shuffler.stores.base import Store
from dpcheckin.service.shuffler.stores.sqlite import MemoryStore, SqliteStore
from dpcheckin.service.storage.files import replace_file, without_password
from dpcheckin.service.storage.identity import analyzer_token, load_identity
from dpcheckin.service.web.server import serve_party


def open_store(address: str) -> Store:
    """`memory:`, `sqlite:FILE` or `postgresql://…`."""
    if address == "memory:":
        return MemoryStore()
    if address.startswith("sqlite:") and len(address) > len("sqlite:"):
        return SqliteStore(Path(address.removeprefix("sqlite:")))
    if address.startswith(("postgresql://", "postgres://")):
        from dpcheckin.service.shuffler.stores.postgres import PostgresStore

        return PostgresStore(address)
    raise InvalidParameter("store", without_password(address), "memory:, sqlite:FILE or postgresql://…")


def build(settings: Settings, store: Store, clock: Callable[[], float] = time.time) -> ShufflerFront:
    """The front of a shuffler with an operator's `settings` over a `store`; its `clock` gives seconds since 1970."""

    def settled(round_: Settled) -> None:
        front.settled(round_)  # no round can settle before the front below is there

    core = Shuffler(
        store,
        clock=clock,
        chance=SecureChance(),
        identity=settings.identity,
        signer=load_identity(settings.folder),
        needs_identity=not settings.trusts_any_analyzer,
        on_settled=settled,
    )
    front = ShufflerFront(core, analyzer_token(settings.folder), limits=settings.limits)
    front.metrics.set("start_time_seconds", clock())
    return front


def serve(settings: Settings) -> None:
    """Run until told to stop."""

    def opened(stack: contextlib.ExitStack) -> tuple[ShufflerFront, ShufflerApp]:
        store = stack.enter_context(contextlib.closing(open_store(settings.store_address)))
        stack.enter_context(store.serve_alone())
        store.verify()
        front = build(settings, store)
        replace_file(settings.folder / IN_USE, settings.store_shown.encode() + b"\n")
        return front, shuffler_app(front)

    serve_party(settings, LOGGER, opened, store=settings.store_address.split(":", 1)[0])
