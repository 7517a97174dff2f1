"""What every store must do beyond taking reports: clients, and transactions that are undone."""

from __future__ import annotations

import pytest

from dpcheckin.service.shuffler.stores.base import Store
from dpcheckin.service.wire.canonical import digest
from service.shuffler_world import Analyzer


def test_clients_are_enrolled_rotated_and_revoked(store: Store) -> None:
    tokens = [digest(b"t%d" % i) for i in range(3)]
    version = store.clients_version()
    made = store.enroll(tokens)
    assert store.clients() == dict(zip(tokens, made, strict=True))
    assert store.clients_version() != version
    fresh = digest(b"fresh")
    assert store.replace_token(made[0], fresh)
    assert store.revoke(made[1])
    assert not store.revoke(made[1])
    assert not store.replace_token(made[1], tokens[1])
    assert store.clients() == {fresh: made[0], tokens[2]: made[2]}


def test_an_exception_undoes_control_work(store: Store, analyzer: Analyzer) -> None:
    with pytest.raises(RuntimeError), store.transaction() as transaction:
        transaction.set_plan(analyzer.plan.id, analyzer.signed_plan())
        raise RuntimeError
    with store.transaction() as transaction:
        assert transaction.plan() is None
