"""Who holds which token."""

from __future__ import annotations

from dpcheckin.service.shuffler.directory import Directory
from dpcheckin.service.shuffler.stores.memory import MemoryStore
from dpcheckin.service.wire.credentials import token_digest

TOKEN, CLIENT = "A" * 43, "C" * 43


def test_the_directory_follows_the_store_and_knows_nobody_else() -> None:
    store = MemoryStore()
    directory = Directory(store, token_digest(TOKEN))
    directory.refresh()
    (one,) = store.enroll([token_digest(CLIENT)])
    assert directory.client(token_digest(CLIENT)) is None
    directory.refresh()
    assert directory.client(token_digest(CLIENT)) == one
    assert directory.client(None) is None
    assert len(directory) == 1
    assert directory.is_analyzer(token_digest(TOKEN))
    assert not directory.is_analyzer(token_digest(CLIENT))
    assert not directory.is_analyzer(None)
    store.revoke(one)
    directory.refresh()
    assert directory.client(token_digest(CLIENT)) is None
