"""The issuer as the analyzer sees it: believed only in the form that is agreed, asked patiently."""

import threading
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.analyzer.daemon import Analyzer
from dpcheckin.service.analyzer.issuer_client import IssuerClient
from dpcheckin.service.analyzer.shuffler_client import ShufflerClient, Stopped
from dpcheckin.service.wire.problems import Malformed, Problem, Refusal
from dpcheckin.service.wire.signing import identity_from_seed
from service.issuer_world import issued_plan
from service.minimal_parties import Toy
from service.plans import plan

ODD = "ff" * 256


def client(
    answer: Callable[[httpx.Request], httpx.Response], stop: threading.Event | None = None
) -> IssuerClient:
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
    assert seen == [
        ("PUT", "/v1/plan", b"signed"),
        ("POST", f"/v1/plans/{'01' * 32}/rounds/7", b""),
    ]


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"key":"00"}', b'{"key":"' + b"fe" * 256 + b'"}']
)
def test_a_key_that_is_none_is_not_announced(content: bytes) -> None:
    with pytest.raises(Malformed):
        client(lambda _: httpx.Response(200, content=content)).open_round(bytes(32), 0)


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
    shuffler, identity = (
        ShufflerClient("http://127.0.0.1:1", "token"),
        identity_from_seed(b"a" * 32),
    )
    issuer = client(lambda _: httpx.Response(500))
    with pytest.raises(InvalidParameter, match="issuer"):
        Analyzer(tmp_path / "a", issued_plan(), identity, Toy(), shuffler)
    with pytest.raises(InvalidParameter, match="issuer"):
        Analyzer(tmp_path / "b", plan(), identity, Toy(), shuffler, issuer=issuer)
    shuffler.close()
