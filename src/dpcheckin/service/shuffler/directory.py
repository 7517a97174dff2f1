"""Who holds which token: a copy of the store's list, so that no request waits for the database.

The copy is made anew when the list has changed, so a revoked token works for one interval more at
most. A stranger's token costs one look into a dictionary: guessing cannot load the database.
"""

from __future__ import annotations

from dpcheckin.service.shuffler.stores.base import Store
from dpcheckin.service.wire.credentials import equal_digests


class Directory:
    """Clients by token digest, and the analyzer."""

    def __init__(self, store: Store, analyzer: bytes) -> None:
        self._store = store
        self._analyzer = analyzer
        self._version: int | None = None
        self._clients: dict[bytes, bytes] = {}

    def refresh(self) -> None:
        """Copy the list if it has changed."""
        version = self._store.clients_version()
        if version != self._version:
            self._clients = self._store.clients()
            self._version = version

    def client(self, token: bytes | None) -> bytes | None:
        """The client with this token digest."""
        return None if token is None else self._clients.get(token)

    def is_analyzer(self, token: bytes | None) -> bool:
        """Is this the analyzer's token digest?"""
        return token is not None and equal_digests(token, self._analyzer)

    def __len__(self) -> int:
        return len(self._clients)
