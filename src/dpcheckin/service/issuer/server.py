"""An issuer as a process: store, core and front."""

from __future__ import annotations

import contextlib
import os

from starlette.applications import Starlette

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.issuer.core import Issuer
from dpcheckin.service.issuer.http import LOGGER, IssuerFront, issuer_app
from dpcheckin.service.issuer.private_keys import OpenSslPower, best_power
from dpcheckin.service.issuer.settings import LOCK, STORE, IssuerSettings
from dpcheckin.service.issuer.store import IssuerStore
from dpcheckin.service.storage.files import check_folder, take_lock
from dpcheckin.service.storage.identity import analyzer_token, load_identity
from dpcheckin.service.web.server import serve_party
from dpcheckin.service.wire.signing import public_identity


def serve(settings: IssuerSettings) -> None:
    """Run until told to stop."""
    folder = settings.folder
    if not folder.is_dir():
        raise InvalidParameter("folder", str(folder), "a folder that `dpcheckin issuer init` made")
    check_folder(folder)
    identity = load_identity(folder)

    def opened(stack: contextlib.ExitStack) -> tuple[IssuerFront, Starlette]:
        stack.callback(os.close, take_lock(folder / LOCK))
        store = stack.enter_context(contextlib.closing(IssuerStore(folder / STORE)))
        store.verify()
        core = Issuer(
            store,
            identity,
            analyzer=settings.identity,
            needs_analyzer=not settings.trusts_any_analyzer,
            ahead=settings.rounds_ahead,
        )
        front = IssuerFront(core, analyzer_token(folder), settings.limits)
        return front, issuer_app(front)

    powers = "constant time" if isinstance(best_power(), OpenSslPower) else "blinded only"
    serve_party(settings, LOGGER, opened, identity=public_identity(identity).hex(), powers=powers)
