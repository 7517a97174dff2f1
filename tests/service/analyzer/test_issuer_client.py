"""The issuer as the analyzer sees it: believed only in the form that is agreed, asked patiently."""

import threading
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.analyzer.core import Status
from dpcheckin.service.analyzer.daemon import Analyzer, Schedule
from dpcheckin.service.analyzer.parties import NO_TOKENS, IssuerClient, ShufflerClient, Stopped
from dpcheckin.service.wire.canonical import parse
from dpcheckin.service.wire.documents import PlanDocument
from dpcheckin.service.wire.problems import Problem, Refusal, refuse
from dpcheckin.service.wire.signing import identity_from_seed, signed_bytes
from dpcheckin.service.wire.tokens import CrowdDocument
from service.analyzer_world import Adding, World
from service.issuer_world import ISSUER, issued_plan
from service.minimal_parties import Toy
from service.plans import plan

ODD = "ff" * 256


def client(answer: Callable[[httpx.Request], httpx.Response], stop: threading.Event | None = None) -> IssuerClient:
    made = IssuerClient("http://127.0.0.1:1", "token", stop=stop)
    made.close()
    made._http = httpx.Client(transport=httpx.MockTransport(answer), base_url="http://issuer")
    return made


def test_it_tells_of_the_plan_and_asks_for_the_key_of_a_round() -> None:
    seen: list[tuple[str, str, bytes]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append((request.method, request.url.path, request.content))
        return httpx.Response(200, json={"key": ODD})

    made = client(answer)
    made.put_plan(b"signed")
    assert made.open_round(b"\1" * 32, 7) == ODD
    assert seen == [("PUT", "/v1/plan", b"signed"), ("POST", f"/v1/plans/{'01' * 32}/rounds/7", b"")]


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"key":"00"}', b'{"key":"' + b"fe" * 256 + b'"}'])
def test_a_key_that_is_none_is_not_announced_and_asked_for_again(content: bytes) -> None:
    answers = [httpx.Response(200, content=content), httpx.Response(200, json={"key": ODD})]
    assert client(lambda _: answers.pop(0)).open_round(bytes(32), 0) == ODD
    assert not answers


def test_a_crowd_is_believed_under_the_issuers_signature_only() -> None:
    document = issued_plan()
    good = CrowdDocument(document.id.hex(), 3, 40)
    other = CrowdDocument(document.id.hex(), 4, 40)
    forged, signed, elsewhere = (
        signed_bytes(good, identity_from_seed(bytes(32))), signed_bytes(good, ISSUER), signed_bytes(other, ISSUER)
    )  # fmt: skip
    answers = [httpx.Response(200, content=body) for body in (forged, signed, elsewhere)]
    made = client(lambda _: answers.pop(0))
    assert made.crowd(document, 3) == 40
    assert len(answers) == 1, "the forged one was asked for again"
    assert made.crowd(document, 3) is None, "of another round"
    left = client(lambda _: httpx.Response(404, content=Problem.NOT_FOUND.body()))
    assert left.crowd(document, 3) is None


def test_a_refusal_ends_it_and_an_absence_does_not() -> None:
    refused = client(lambda _: httpx.Response(409, content=Problem.CONFLICT.body()))
    with pytest.raises(Refusal, match="conflict"):
        refused.put_plan(b"")
    answers = iter([Problem.BUSY, Problem.STORAGE])

    def late(request: httpx.Request) -> httpx.Response:
        problem = next(answers, None)
        if problem is None:
            return httpx.Response(200, json={"key": ODD})
        return httpx.Response(problem.status, content=problem.body())

    assert client(late).open_round(bytes(32), 0) == ODD
    stop = threading.Event()
    stop.set()

    def away(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("away")

    with pytest.raises(Stopped, match="the issuer was away"):
        client(away, stop).put_plan(b"")


def test_plan_and_settings_name_an_issuer_or_neither_does(tmp_path: Path) -> None:
    shuffler, identity = (ShufflerClient("http://127.0.0.1:1", "token"), identity_from_seed(b"a" * 32))
    issuer = client(lambda _: httpx.Response(500))
    with pytest.raises(InvalidParameter, match="issuer"):
        Analyzer(tmp_path / "a", issued_plan(), identity, Toy(), shuffler)
    with pytest.raises(InvalidParameter, match="issuer"):
        Analyzer(tmp_path / "b", plan(), identity, Toy(), shuffler, issuer=issuer)
    shuffler.close()


class PastIssuer:
    """Has seen the analyzer open round `first`; what lies before is destroyed."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.asked: list[int] = []

    def put_plan(self, signed: bytes) -> None:
        pass

    def open_round(self, plan: bytes, number: int) -> str:
        self.asked.append(number)
        return refuse(Problem.NOT_FOUND) if number < self.first else ODD[:-2] + "f1"

    def crowd(self, plan: PlanDocument, number: int) -> int | None:
        return None


def test_an_analyzer_that_was_put_back_goes_on_past_rounds_that_the_issuer_has_left(tmp_path: Path) -> None:
    """Round 0 was released before, 1 was never opened, 2 is the first with tokens."""
    world = World(
        tmp_path,
        issued_plan(rounds=2, epsilon_budget=50.0),
        {1: Status("void", 0, None, "population"), 2: Status("void", 120, 1, "batch")},
    )
    world.shuffler.status_of[0] = Status("done", 120, 3)
    issuer = PastIssuer(2)
    made = Analyzer(
        tmp_path,
        world.document,
        world.identity,
        Adding(),
        world.shuffler,  # type: ignore[arg-type]
        Schedule(now=world._now),
        world.stop,
        issuer,  # type: ignore[arg-type]
    )
    try:
        assert made.run() == "all 2 rounds of the plan have been charged"
    finally:
        made.close()
    assert issuer.asked == [0, 1, 2]
    assert [row["state"] for row in world.kept.log] == ["lost", "void by population", "void by batch"]
    keys = {n: parse(said)["document"]["token_key"] for n, said in world.shuffler.rounds.items()}
    assert keys == {1: NO_TOKENS, 2: ODD[:-2] + "f1"}
    assert [charge["round"] for charge in world.charges()] == [0, 2]
