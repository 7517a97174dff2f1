"""Damaged answers to those who only ask: nobody ends, no coin falls twice, and no round has two envelopes.

Client and analyzer serve nothing to strangers, so what can be thrown at them is answers: of another status, cut, with
changed bytes, values and headers, of another question or another time, no answer at all, or a problem that is none.
Half of them are honest. Afterwards all are, and the party goes on as if nothing had happened.
"""

import asyncio
import json
import random
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from dpcheckin.errors import ServiceError
from dpcheckin.service.analyzer.core import Status
from dpcheckin.service.analyzer.parties import RefusedBy, ShufflerClient, TruncatedBatch
from dpcheckin.service.client.daemon import LEDGER, OUTBOX
from dpcheckin.service.client.ledger import ClientLedger
from dpcheckin.service.issuer.http import IssuerFront, issuer_app
from dpcheckin.service.wire.documents import VoidDocument
from dpcheckin.service.wire.problems import Problem
from dpcheckin.service.wire.signing import public_identity, signed_bytes
from service.client.test_daemon import Scene, problem
from service.client.test_promises import SHUFFLER
from service.client.test_tokens import Fetching, fetching  # noqa: F401 (a fixture)
from service.client.timing_world import FreePrice
from service.client_world import MODEL, World
from service.plans import plan
from service.shuffler.http.test_fuzz import LIMITS, ODD_HEADERS, damaged_bytes, damaged_json

FEW, MANY = 600, 10_500
STATUSES = (200, 201, 202, 204, 206, 301, 302, 304, 400, 401, 403, 404, 409, 410, 413, 418, 429, 500, 502, 503, 507)
HEADERS = [
    *[{name.decode(): value.decode("latin-1")} for name, value in ODD_HEADERS if name != b"authorization"],
    {"content-encoding": "gzip"}, {"date": "Thu, 01 Jan 1970 00:01:00 GMT"}, {"date": "Fri, 31 Dec 9999 23:59:59 GMT"},
    {"date": "()"}, {"location": "http://[::"}, {"retry-after": "1e999"},
]  # fmt: skip
LOST = (httpx.ConnectError, httpx.ReadError, httpx.ReadTimeout, httpx.RemoteProtocolError, httpx.PoolTimeout)


def damaged(chance: random.Random, good: httpx.Response, others: list[bytes]) -> httpx.Response:
    """The answer with something wrong, or none."""
    what, body, status = chance.randrange(9), good.content, good.status_code
    if what == 0:
        raise chance.choice(LOST)("lost")
    if what == 1:
        return problem(chance.choice(list(Problem)))
    if what == 2:
        status = chance.choice(STATUSES)
    elif what == 3:
        return httpx.Response(status, headers=chance.choice(HEADERS), stream=httpx.ByteStream(body))
    elif what == 4 and others:
        body = chance.choice(others)
    elif what == 5 and body.startswith(b"{") and len(body) > 2:
        body = damaged_json(chance, body)
    elif what == 6:
        body = json.dumps(chance.choice([None, 7, [], {}, {"type": 5}, {"document": {}}, "x", [[[]]]])).encode()
    else:
        body = damaged_bytes(chance, body)
    return httpx.Response(status, content=body)


class Hostile:
    """What a client hears between it and its shuffler."""

    def __init__(self, scene: Scene, seed: int, answers: int) -> None:
        self.scene, self.chance, self.left = scene, random.Random(seed), answers
        self.sent: defaultdict[int, set[bytes]] = defaultdict(set)
        self.others: list[bytes] = [World(scene.world.folder / "other", plan(rate=0.9)).page()]
        self.odd: Counter[str] = Counter()
        self.rounds: dict[int, bytes] = {}

    def __call__(self, request: httpx.Request) -> httpx.Response:
        good = self.honest(request)
        if self.left <= 0 or self.chance.random() < 0.5:
            return good
        self.left -= 1
        if request.method == "GET" and len(self.others) < 200:
            self.others.append(good.content)
        self.odd[request.method + request.url.path[:9]] += 1
        return damaged(self.chance, good, self.others)

    def honest(self, request: httpx.Request) -> httpx.Response:
        path, number = request.url.path, int((self.scene.time - 100) // 110)
        if request.method == "PUT":
            self.sent[int(path.split("/")[3])].add(request.content)
            return httpx.Response(202, content=b"{}")
        if path == "/v1/plan":
            return httpx.Response(200, content=self.scene.world.page())
        if path == "/v1/void":
            void = [n for n in self.rounds if n % 3 == 0 and n < number][-4096:]
            return httpx.Response(
                200, content=signed_bytes(VoidDocument(self.scene.world.plan.id.hex(), void), SHUFFLER)
            )
        if path.startswith("/v1/model/"):
            return httpx.Response(200, content=MODEL)
        if self.scene.time >= 200 + 110 * number:
            return problem(Problem.NO_ROUND)
        if number not in self.rounds:
            opens = 100.0 + 110 * number
            self.rounds[number] = self.scene.world.round(number, opens=opens, closes=opens + 100)
        return httpx.Response(200, content=self.rounds[number])


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda handle: None)


@pytest.mark.parametrize("answers", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_no_answers_end_a_client_or_have_it_flip_a_coin_twice(tmp_path: Path, answers: int) -> None:
    scene = Scene(tmp_path, rounds=100_000)
    scene.config = type(scene.config)(
        **{**scene.config.__dict__, "shuffler_identity": public_identity(SHUFFLER), "poll_seconds": 20.0}
    )
    scene.price = FreePrice
    hostile = Hostile(scene, answers, answers)
    scene.script = hostile  # type: ignore[assignment]
    lives = 0
    while hostile.left > 0:  # now and then it is started again
        lives += 1
        before = hostile.left
        scene.play_for(10**9, lambda before=before: before - hostile.left >= 2000 or hostile.left <= 0)  # type: ignore[misc]
    last = max(hostile.sent)
    scene.play_for(10**5, lambda: max(hostile.sent) > last + 1)
    assert max(hostile.sent) > last + 1, "it does not go on"
    found = ClientLedger(scene.config.state / LEDGER, look=True)
    rounds, void, _ = found.plans()[scene.world.plan.id.hex()]
    print(f"{answers} damaged answers ({dict(hostile.odd)}), {lives} lives, {len(hostile.sent)} envelopes, {rounds}")
    assert all(len(bodies) == 1 for bodies in hostile.sent.values()), "two envelopes in one round"
    assert hostile.sent.keys() <= {
        n for n in hostile.rounds if found.reported(scene.world.plan.id.hex(), n) is not None
    }
    assert len(hostile.sent) > answers / 60 and void > 0
    assert not (scene.config.state / OUTBOX).exists() or scene.time < 200 + 110 * max(hostile.sent)


@pytest.mark.parametrize("answers", [60, pytest.param(1500, marks=pytest.mark.slow)])
def test_no_answers_of_an_issuer_end_a_client_or_make_a_token(fetching: Fetching, answers: int) -> None:  # noqa: F811
    """What is in the wallet at any time was signed under the announced key."""
    front = IssuerFront(fetching.issuing.issuer, b"analyzer", LIMITS)
    front.refresh_clients()
    fetching.app = issuer_app(front)
    chance, real, left = random.Random(answers), fetching.transport(), answers
    wallet, others = fetching.wallet(), list[bytes]()

    class Between(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            nonlocal left
            good = await real.handle_async_request(request)
            await good.aread()
            if left <= 0:
                return good
            left -= 1
            others.append(good.content)
            return damaged(chance, good, others[-50:]) if chance.random() < 0.7 else good

    async def work(keeper: Any) -> None:
        while left > 0:
            keeper._away._until = keeper._unknown._until = -1e300
            if chance.random() < 0.2:
                wallet._held.clear()
            await keeper.refill(fetching.plan, 0)
        keeper._away._until = keeper._unknown._until = -1e300
        wallet._held.clear()
        await keeper.refill(fetching.plan, 0)

    fetching.run(work, wallet, Between())
    keys = fetching.issuing.keys()
    assert all(wallet.token(fetching.plan.id.hex(), n, keys.key_of(n)) for n in range(4)), "it does not go on"


QUESTIONS: dict[str, tuple[Callable[[ShufflerClient], Any], httpx.Response]] = {
    "status": (lambda one: one.status(3), httpx.Response(200, content=b'{"present":3,"reports":2,"state":"closed"}')),
    "claim": (lambda one: one.claim(3, "ab" * 32), httpx.Response(200, content=b"{}")),
    "plan": (lambda one: one.put_plan(b"{}"), httpx.Response(201, content=b"{}")),
    "delete": (lambda one: one.delete(3), httpx.Response(200, content=b"{}")),
    "batch": (lambda one: _read(one), httpx.Response(200, content=b"\0\0\0\3abc\0\0\0\1d")),
}


def _read(one: ShufflerClient) -> list[bytes]:
    with one.batch(3, 100) as found:
        return list(found)


@pytest.mark.parametrize("answers", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_no_answers_leave_an_analyzer_without_a_word(answers: int) -> None:
    """It asks again, or has what was said: an answer, or a problem of the closed list. Nothing else comes out."""
    chance, found, left = random.Random(answers), Counter[str](), answers
    good = httpx.Response(200)

    def between(request: httpx.Request) -> httpx.Response:
        nonlocal left
        if left <= 0 or chance.random() < 0.3:
            return httpx.Response(good.status_code, stream=httpx.ByteStream(good.content))
        left -= 1
        odd = damaged(chance, good, [b"{}", b'{"state":"open"}', b'{"present":-1,"reports":9,"state":"done"}'])
        return (
            odd
            if odd.is_stream_consumed is False
            else httpx.Response(odd.status_code, headers=odd.headers, stream=httpx.ByteStream(odd.content))
        )

    one = ShufflerClient("http://127.0.0.1:1", "token", stop=threading.Event())
    one._http = httpx.Client(base_url="http://127.0.0.1:1", transport=httpx.MockTransport(between))
    one._stop.wait = lambda seconds=None: False  # type: ignore[method-assign, assignment]
    while left > 0:
        name = chance.choice(list(QUESTIONS))
        ask, good = QUESTIONS[name]
        try:
            said = ask(one)
            assert name != "status" or said is None or isinstance(said, Status)
            found[name] += 1
        except (RefusedBy, TruncatedBatch) as refusal:
            assert isinstance(refusal, ServiceError) and "\n" not in str(refusal)
            found[type(refusal).__name__] += 1
    print(f"{answers} damaged answers: {dict(found)}")
    assert min(found[name] for name in (*QUESTIONS, "RefusedBy", "TruncatedBatch")) > 10


def test_the_damage_is_of_every_kind() -> None:
    async def seen() -> Counter[Any]:
        chance, kinds = random.Random(1), Counter[Any]()
        for _ in range(2000):
            try:
                answer = damaged(chance, httpx.Response(200, content=b'{"a":1}'), [b"other"])
                kinds[answer.status_code] += 1
            except httpx.TransportError as lost:
                kinds[type(lost).__name__] += 1
        return kinds

    kinds = asyncio.run(seen())
    assert {200, 401, 409, 503, 507, "ReadError", "ConnectError"} <= set(kinds)
