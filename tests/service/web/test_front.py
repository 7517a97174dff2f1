"""Who holds which token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.http import ShufflerFront
from dpcheckin.service.shuffler.stores.sqlite import MemoryStore
from dpcheckin.service.wire.credentials import token_digest
from dpcheckin.service.wire.problems import Problem, Refusal
from service.shuffler_world import Clock, SeededChance

TOKEN, CLIENT = "A" * 43, "C" * 43


def scope(token: str | None) -> dict[str, Any]:
    return {"headers": [] if token is None else [(b"authorization", f"Bearer {token}".encode())]}


def refused(ask: Callable[[dict[str, Any]], object], token: str | None) -> bool:
    try:
        ask(scope(token))
    except Refusal as refusal:
        return refusal.problem is Problem.UNAUTHORIZED
    return False


def test_the_front_follows_the_store_and_knows_nobody_else() -> None:
    store = MemoryStore()
    front = ShufflerFront(Shuffler(store, clock=Clock(), chance=SeededChance()), token_digest(TOKEN))
    front.refresh_clients()
    (one,) = store.enroll([token_digest(CLIENT)])
    assert refused(front.client, CLIENT)
    front.refresh_clients()
    assert front.client(scope(CLIENT)) == one
    assert refused(front.client, None)
    assert len(front.clients) == 1
    front.analyzer(scope(TOKEN))
    assert refused(front.analyzer, CLIENT)
    assert refused(front.analyzer, None)
    store.revoke(one)
    front.refresh_clients()
    assert refused(front.client, CLIENT)
