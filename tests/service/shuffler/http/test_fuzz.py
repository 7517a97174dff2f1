"""Hostile input: thousands of broken requests and envelopes change nothing and break nothing.

Each request begins as a good one and is then damaged somewhere: method, path, credential, length,
document, envelope. The store is compared before and after: only an accepted request may change it,
and a damaged one is accepted only if the damage left the request good (a sealed part that the
shuffler cannot look into, a harmless header).
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import socket
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpcheckin.service.settings import Limits
from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.http import ShufflerFront, shuffler_app
from dpcheckin.service.shuffler.stores.sqlite import MemoryStore
from dpcheckin.service.wire import envelope
from dpcheckin.service.wire.canonical import digest, parse
from dpcheckin.service.wire.credentials import token_digest
from dpcheckin.service.wire.problems import Problem, problem_in
from service.asgi import Reply, ask
from service.shuffler_process import ShufflerProcess, open_round, publish
from service.shuffler_world import CHARGE, Analyzer, Clock, SeededChance, attend, send

CLIENT, ANALYZER = "C" * 43, "A" * 43
PER_SEED = 120
LIMITS = Limits(requests_per_second=1e9, burst=10**9, failures_per_second=1e9, failure_burst=10**9)


class Target:
    """A shuffler in memory with a claimed, a closed, a void and an open round."""

    def __init__(self) -> None:
        self.store, self.clock = MemoryStore(), Clock()
        self.core = Shuffler(self.store, clock=self.clock, chance=SeededChance())
        self.front = ShufflerFront(self.core, token_digest(ANALYZER), limits=LIMITS)
        self.store.enroll([token_digest(CLIENT)])
        self.analyzer = Analyzer.of(population=2, minimum_batch=1, rounds=50)
        self.analyzer.publish(self.core)
        for number in range(4):
            self.analyzer.open(self.core, number)
            if number != 2:
                attend(self.core, 2)
                send(self.core, self.analyzer, number, 0, 1)
            if number < 3:
                self.clock.now += 10
                self.core.tick()
        self.core.claim(0, CHARGE)
        self.front.maintain()
        self.app = shuffler_app(self.front)

    def fingerprint(self) -> bytes:
        """Everything that is stored."""
        self.store.read("SELECT 1")  # rows that wait are written when somebody asks
        return "\n".join(self.store.database.writer.iterdump()).encode()


Good = tuple[str, str, str, bytes]


def good_requests(target: Target) -> list[Good]:
    """One of each kind: method, path, token, body."""
    one, now = target.analyzer, target.clock.now
    model = f"/v1/model/{digest(b'm').hex()}"
    return [
        ("GET", "/v1/plan", CLIENT, b""),
        ("GET", "/v1/round", CLIENT, b""),
        ("GET", model, CLIENT, b""),
        ("PUT", "/v1/rounds/3/report", CLIENT, one.report(3, 77)),
        ("PUT", "/v1/rounds/3/report", CLIENT, one.cover(3)),
        ("PUT", "/v1/plan", ANALYZER, one.signed_plan()),
        ("PUT", "/v1/plan", ANALYZER, Analyzer.of().signed_plan()),
        ("PUT", f"/v1/keys/{one.key.key_id.hex()}", ANALYZER, one.signed_key()),
        ("PUT", model, ANALYZER, b"m"),
        ("PUT", "/v1/rounds/4", ANALYZER, one.signed_round(4, now, now + 10)),
        ("GET", "/v1/rounds/1", ANALYZER, b""),
        ("POST", "/v1/rounds/1/claim", ANALYZER, CHARGE),
        ("GET", "/v1/rounds/0/batch", ANALYZER, b""),
        ("DELETE", "/v1/rounds/2/batch", ANALYZER, b""),
    ]


ODD_VALUES: list[Any] = [None, True, -1, 0, 1.5, 2**64, 10**400, 1e308, "", "x", "00" * 32, [], {}, [[[[]]]], "\u0000"]
ODD_HEADERS = [
    (b"content-length", b"-1"),
    (b"content-length", b"99999999999999999999"),
    (b"content-length", b"abc"),
    (b"authorization", b"Bearer " + b"A" * 4000),
    (b"authorization", b"\xff\xfe"),
    (b"content-type", b"text/html"),
    (b"transfer-encoding", b"gzip"),
    (b"x-forwarded-for", b"203.0.113.7"),
]
METHODS = ["GET", "PUT", "POST", "DELETE", "HEAD", "PATCH", "OPTIONS", "BREW", ""]


def damaged_json(chance: random.Random, body: bytes) -> bytes:
    """A document with one value replaced, removed or added, somewhere."""
    value = parse(body)
    place = value
    for _ in range(chance.randrange(4)):
        inner = [v for v in place.values() if isinstance(v, dict) and v]
        if not inner:
            break
        place = chance.choice(inner)
    key = chance.choice(sorted(place))
    what = chance.randrange(3)
    if what == 0:
        del place[key]
    else:
        place[key if what == 1 else "odd"] = chance.choice(ODD_VALUES)
    return json.dumps(value).encode()


def damaged_bytes(chance: random.Random, body: bytes) -> bytes:
    what = chance.randrange(6)
    if what == 0:
        return body[: chance.randrange(len(body) + 1)]
    if what == 1:
        return body + chance.randbytes(chance.randrange(1, 200))
    if what == 2:
        return chance.randbytes(chance.choice([0, 1, 24, len(body), 5000]))
    if what == 3:
        return b"[" * chance.randrange(1, 20_000)
    changed = bytearray(body or b"\0")
    for _ in range(chance.randrange(1, 4)):
        changed[chance.randrange(min(len(changed), 40))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def damaged(chance: random.Random, good: Good) -> tuple[Good, list[tuple[bytes, bytes]]]:
    """The request with something wrong, and odd headers."""
    method, path, token, body = good
    extra: list[tuple[bytes, bytes]] = []
    what = chance.randrange(7)
    if what == 0:
        method = chance.choice(METHODS)
    elif what == 1:
        parts = path.split("/")
        odd = ["", "..", "0", "99", "4294967296", "9" * 4400, "%00", "é", "0" * 64, "-1", "0x1"]
        parts[chance.randrange(len(parts))] = chance.choice(odd)
        path = "/".join(parts)
    elif what == 2:
        token = chance.choice(["", "x", "B" * 43, CLIENT, ANALYZER, CLIENT[:-1], CLIENT + " "])
    elif what == 3:
        extra = [chance.choice(ODD_HEADERS)]
    elif what == 4 and body.startswith(b"{"):
        body = damaged_json(chance, body)
    else:
        body = damaged_bytes(chance, body)
    return (method, path, token, body), extra


def may_be_accepted(target: Target, good: Good, sent: Good) -> bool:
    """Could an honest party have sent this very request?"""
    method, path, token, body = sent
    if path.endswith("/report"):
        sizes = envelope.sizes(target.analyzer.plan)
        header = {target.analyzer.report(3)[:24], target.analyzer.cover(3)[:24]}
        return token.strip() == CLIENT and len(body) == sizes.envelope and body[:24] in header
    if method in ("GET", "HEAD"):
        return True
    if path.startswith("/v1/model/"):
        return path.endswith(digest(body).hex())
    if body.startswith(b"{") and method == "PUT":
        try:  # without an identity the shuffler leaves signatures to the clients
            value = parse(body)["document"]
        except Exception:
            return False
        return isinstance(value, dict)
    if path.endswith("/claim"):  # the name of the charge is the analyzer's own choice
        try:
            value = parse(body)
        except Exception:
            return False
        name = value.get("charge") if set(value) == {"charge"} else None
        return isinstance(name, str) and re.fullmatch("[0-9a-f]{64}", name) is not None
    return (method == "POST" and body == good[3]) or method == "DELETE"


async def attack(target: Target, seed: int, count: int) -> Counter[int]:
    chance = random.Random(seed)
    statuses: Counter[int] = Counter()
    before, requests = target.fingerprint(), good_requests(target)
    for _ in range(count):
        good = chance.choice(requests)
        sent, extra = damaged(chance, good)
        method, path, token, body = sent
        cut = chance.randrange(len(body) + 1)
        headers = [(b"authorization", b"Bearer " + token.encode()), *extra]
        hang_up = chance.random() < 0.05
        reply = await ask(target.app, method, path, headers, [body[:cut], body[cut:]], hang_up=hang_up)
        after = target.fingerprint()
        if reply is None:
            assert hang_up
            assert after == before
            continue
        check(reply)
        statuses[reply.status] += 1
        if after != before:
            assert reply.status < 300, (sent, reply)
            assert not hang_up or method not in ("PUT", "POST")  # a body was promised
            assert may_be_accepted(target, good, sent), (sent, reply)
        before = after
    assert target.front.metrics.value("internal_errors_total") == 0
    return statuses


def check(reply: Reply) -> None:
    """Every answer is one of ours; nothing is the server's fault."""
    assert reply.status < 500, reply
    if reply.status >= 400:
        assert reply.headers[b"content-type"] == b"application/problem+json"
        problem = problem_in(reply.body)
        assert problem is not None or not reply.body
        assert reply.body in (b"", problem.body() if problem else b"")


@pytest.mark.parametrize("seeds", [range(100), pytest.param(range(100, 300), marks=pytest.mark.slow)])
def test_ten_thousand_damaged_requests_change_nothing_and_break_nothing(seeds: range) -> None:
    async def all_attacks() -> Counter[int]:
        found: Counter[int] = Counter()
        for seed in seeds:
            found += await attack(Target(), seed, PER_SEED)
        return found

    statuses = asyncio.run(all_attacks())
    print(f"{sum(statuses.values())} answers: {dict(sorted(statuses.items()))}")
    assert sum(statuses.values()) >= 100 * len(seeds)
    assert {400, 401, 404} <= set(statuses)
    assert statuses[400] > 1000
    assert statuses[401] > 500


@given(st.integers(0, 2**64))
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_other_seeds_find_nothing_either(seed: int) -> None:
    asyncio.run(attack(Target(), seed, 20))


@given(st.binary(max_size=300), st.integers(0, 3))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_refused_as_an_envelope(data: bytes, number: int) -> None:
    target = _shared()
    before = target.fingerprint()
    sizes = envelope.sizes(target.analyzer.plan)
    for body in (data, data[: sizes.envelope].ljust(sizes.envelope, b"\0")):
        headers = [(b"authorization", b"Bearer " + CLIENT.encode())]
        path = f"/v1/rounds/{number}/report"
        reply = asyncio.run(ask(target.app, "PUT", path, headers, [body]))
        assert reply is not None
        assert problem_in(reply.body) in (
            Problem.WRONG_SIZE,
            Problem.TOO_LARGE,
            Problem.MALFORMED,
            Problem.ROUND_CLOSED,
        )
    assert target.fingerprint() == before


_made: list[Target] = []


def _shared() -> Target:
    if not _made:
        _made.append(Target())
    return _made[0]


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
@settings(max_examples=40, deadline=None)
def test_any_json_is_refused_as_a_document(value: Any) -> None:
    target = _shared()
    before = target.fingerprint()
    headers = [(b"authorization", b"Bearer " + ANALYZER.encode())]
    body = json.dumps({"document": value, "signature": "00" * 64}).encode()

    async def all_answers() -> list[Reply | None]:
        return [
            await ask(target.app, method, path, headers, [body])
            for method, path in (
                ("PUT", "/v1/plan"),
                ("PUT", "/v1/rounds/4"),
                ("PUT", f"/v1/keys/{'00' * 8}"),
                ("POST", "/v1/rounds/1/claim"),
            )
        ]

    for reply in asyncio.run(all_answers()):
        assert reply is not None
        assert problem_in(reply.body) is Problem.MALFORMED
    assert target.fingerprint() == before


@pytest.mark.parametrize("count", [300, pytest.param(5000, marks=pytest.mark.slow)])
def test_garbage_on_the_line_breaks_nothing(tmp_path: Path, count: int) -> None:
    """Bytes that are not even HTTP, against a real process."""
    chance = random.Random(count)
    with ShufflerProcess(tmp_path) as shuffler:
        (token,) = shuffler.enroll(1)
        shuffler.wait_for_clients(1)
        analyzer = Analyzer.of(population=2, minimum_batch=0)
        publish(shuffler.analyzer(), analyzer)
        open_round(shuffler.analyzer(), analyzer, 0, 3600)
        body = analyzer.report(0)
        good = (
            f"PUT /v1/rounds/0/report HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        ).encode()
        for _ in range(count):
            data = bytearray(good if chance.random() < 0.7 else chance.randbytes(200))
            for _ in range(chance.randrange(1, 6)):
                place = chance.randrange(len(data))
                data[place : place + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
            with socket.create_connection(("127.0.0.1", shuffler.port), timeout=120) as line:
                try:
                    line.sendall(data)
                    line.shutdown(socket.SHUT_WR)
                    answer = line.recv(4096)
                except ConnectionError:
                    continue
            assert not answer.startswith(b"HTTP/1.1 5")
        assert shuffler.metrics()["internal_errors_total"] == 0
        shuffler.caller(token).put("/v1/rounds/0/report", body).expect(202)  # none was taken
