"""Over HTTP: who is counted as present in which plan, and the statement of void rounds."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.http import ShufflerFront, shuffler_app
from dpcheckin.service.shuffler.stores.sqlite import MemoryStore
from dpcheckin.service.wire.credentials import bearer_header, new_token, token_digest
from dpcheckin.service.wire.documents import VoidDocument
from dpcheckin.service.wire.problems import problem_in
from dpcheckin.service.wire.signing import identity_from_seed, public_identity, read_signed_bytes
from service.shuffler_world import Analyzer, Clock, SeededChance

SIGNER = identity_from_seed(b"\4" * 32)


class Open:
    """A shuffler with three clients and an open round of a plan without cover."""

    def __init__(self, signer: Any = SIGNER) -> None:
        store, self.clock = MemoryStore(), Clock()
        self.tokens = [new_token() for _ in range(3)]
        store.enroll([token_digest(token) for token in self.tokens])
        self.core = Shuffler(store, clock=self.clock, chance=SeededChance(), signer=signer)
        self.front = ShufflerFront(self.core, token_digest(new_token()))
        self.front.refresh_clients()
        self.analyzer = Analyzer.of(population=3, minimum_batch=0)
        self.analyzer.publish(self.core)
        self.analyzer.open(self.core, 0)

    def play(self, work: Callable[[httpx.AsyncClient], Awaitable[Any]]) -> Any:
        async def run() -> Any:
            transport = httpx.ASGITransport(app=shuffler_app(self.front))
            async with httpx.AsyncClient(transport=transport, base_url="http://shuffler") as http:
                return await work(http)

        return asyncio.run(run())

    def get(self, path: str, token: int = 0) -> httpx.Response:
        async def ask(http: httpx.AsyncClient) -> httpx.Response:
            return await http.get(path, headers=bearer_header(self.tokens[token]))

        found: httpx.Response = self.play(ask)
        return found


def test_who_names_another_plan_is_shown_the_round_and_not_counted() -> None:
    """A client that has yet to read the plan may refuse it: nobody may count on its coin."""
    world = Open()
    own = world.analyzer.plan.id.hex()
    answers = [
        world.get(f"/v1/round?plan={'00' * 32}", 0),
        world.get("/v1/round?plan=nonsense", 1),
        world.get(f"/v1/round?plan={own}", 2),
    ]
    assert len({answer.content for answer in answers}) == 1
    assert {answer.status_code for answer in answers} == {200}
    world.clock.now += 100
    assert world.core.status(0)["present"] == 1


def test_void_rounds_are_stated_to_enrolled_clients_alike() -> None:
    world = Open()
    world.get(f"/v1/round?plan={world.analyzer.plan.id.hex()}")
    world.clock.now += 100
    said = [world.get("/v1/void", token) for token in range(3)]
    assert len({answer.content for answer in said}) == 1
    found = read_signed_bytes(VoidDocument, said[0].content, public_identity(SIGNER))
    assert found == VoidDocument(world.analyzer.plan.id.hex(), (0,))


@pytest.mark.parametrize("signer", [SIGNER, None])
def test_nothing_is_stated_to_strangers_or_without_a_key(signer: Any) -> None:
    world = Open(signer)
    world.tokens.append("stranger")
    refused = problem_in(world.get("/v1/void", 3).content)
    assert refused is not None and refused.slug == "unauthorized"
    if signer is None:
        missing = problem_in(world.get("/v1/void").content)
        assert missing is not None and missing.slug == "not-found"
