"""Hostile input to the issuer: every answer is one of the known, and nobody gets a second token."""

import asyncio
import json
import random
from collections import Counter
from pathlib import Path

import pytest

from dpcheckin.service.issuer.http import IssuerFront, issuer_app
from dpcheckin.service.wire.canonical import canonical
from dpcheckin.service.wire.credentials import token_digest
from dpcheckin.service.wire.signing import signed_bytes
from service.asgi import ask
from service.issuer_world import ANALYZER, IssuerWorld
from service.shuffler.http.test_fuzz import LIMITS, Good, check, damaged

CLIENT, OWNER = "C" * 43, "A" * 43
PER_SEED = 60


async def attack(folder: Path, seed: int) -> Counter[int]:
    """Requests that were good once, against an issuer of their own."""
    chance, world = random.Random(seed), IssuerWorld(folder)
    world.store.enroll([token_digest(CLIENT)])
    front = IssuerFront(world.issuer, token_digest(OWNER), LIMITS)
    front.maintain()
    app, base = issuer_app(front), f"/v1/plans/{world.plan.id.hex()}"

    def request(number: int) -> bytes:
        blinded = world.blinded(number)[1].message.hex()
        return canonical({"rounds": [number], "blinded": [blinded]})

    good: list[Good] = [
        ("PUT", "/v1/plan", OWNER, signed_bytes(world.plan, ANALYZER)),
        ("POST", f"{base}/rounds/0", OWNER, b""),
        ("GET", f"{base}/keys", CLIENT, b""),
        *(("POST", f"{base}/tokens", CLIENT, request(n)) for n in (0, 0, 1)),
    ]
    statuses: Counter[int] = Counter()
    signed: set[str] = set()
    for _ in range(PER_SEED):
        (method, path, token, body), extra = damaged(chance, chance.choice(good))
        headers = [(b"authorization", b"Bearer " + token.encode()), *extra]
        reply = await ask(app, method, path, headers, [body], hang_up=chance.random() < 0.05)
        if reply is not None:
            check(reply)
            statuses[reply.status] += 1
            if path == f"{base}/tokens" and reply.status == 200:
                signed |= set(json.loads(reply.body)["signatures"]) - {None}
    assert front.metrics.value("errors_total") == 0
    assert len(signed) <= 2, "one client, two rounds"
    world.store.close()
    return statuses


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 350), marks=pytest.mark.slow)])
def test_damaged_requests_get_known_answers_and_no_second_token(tmp_path: Path, seeds: range) -> None:
    found: Counter[int] = Counter()
    for seed in seeds:
        (tmp_path / str(seed)).mkdir()
        found += asyncio.run(attack(tmp_path / str(seed), seed))
    print(f"{sum(found.values())} answers: {dict(sorted(found.items()))}")
    assert {200, 400, 401, 404, 409} <= set(found)
