"""The line to the shuffler: requests, waiting, refusals, and streams of records."""

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from dpcheckin.service.analyzer.core import Status
from dpcheckin.service.analyzer.parties import (
    LARGEST_ANSWER,
    RefusedBy,
    ShufflerClient,
    Stopped,
    TruncatedBatch,
    records,
)
from dpcheckin.service.wire.canonical import digest
from dpcheckin.service.wire.problems import Problem, Refusal

Handler = Callable[[httpx.Request], httpx.Response]


def line(handler: Handler, stop: threading.Event | None = None) -> ShufflerClient:
    made = ShufflerClient("http://127.0.0.1:1", "secret", stop=stop)
    headers = made._http.headers
    made.close()
    made._http = httpx.Client(transport=httpx.MockTransport(handler), base_url="http://127.0.0.1:1", headers=headers)
    return made


def test_a_shuffler_cannot_fill_the_analyzers_memory() -> None:
    """Nothing is unpacked, and reading ends where no answer can be longer."""
    read = 0

    def endless() -> Iterator[bytes]:
        nonlocal read
        while True:
            read += 1 << 16
            yield bytes(1 << 16)

    def long(request: httpx.Request) -> httpx.Response:
        assert request.headers["accept-encoding"] == "identity"
        return httpx.Response(200, content=endless())

    stop = threading.Event()
    stop.set()
    patient = line(long, stop)
    with pytest.raises(Stopped):
        patient.status(0)
    assert "more than" in (patient.away or "")
    assert read <= LARGEST_ANSWER + (1 << 17)

    def packed(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-encoding": "gzip"}, content=endless())

    patient = line(packed, stop)
    with pytest.raises(Stopped):
        patient.status(0)
    assert "gzip" in (patient.away or "")


def problem(which: Problem) -> httpx.Response:
    return httpx.Response(which.status, content=which.body())


def test_requests_are_those_of_the_table_with_the_token() -> None:
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["authorization"] == "Bearer secret"
        asked.append((request.method, request.url.path, request.content))
        return httpx.Response(200, content=b'{"present":3,"reports":2,"state":"closed"}')

    one = line(answer)
    one.put_plan(b"plan")
    one.put_key(b"\1" * 8, b"key")
    one.put_model(b"model")
    one.put_round(4, b"round")
    one.claim(4, "ab")
    one.delete(4)
    assert one.status(4) == Status("closed", 3, 2)
    assert asked == [
        ("PUT", "/v1/plan", b"plan"),
        ("PUT", "/v1/keys/" + "01" * 8, b"key"),
        ("PUT", "/v1/model/" + digest(b"model").hex(), b"model"),
        ("PUT", "/v1/rounds/4", b"round"),
        ("POST", "/v1/rounds/4/claim", b'{"charge":"ab"}'),
        ("DELETE", "/v1/rounds/4/batch", b""),
        ("GET", "/v1/rounds/4", b""),
    ]
    one.close()


def test_it_waits_for_a_busy_or_absent_shuffler_and_takes_no_for_an_answer() -> None:
    answers: list[Any] = [
        httpx.ConnectError("refused"),
        problem(Problem.BUSY),
        problem(Problem.TOO_MANY),
        problem(Problem.STORAGE),
        problem(Problem.CONFLICT),
    ]

    def answer(request: httpx.Request) -> httpx.Response:
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        assert isinstance(found, httpx.Response)
        return found

    one = line(answer)
    one._stop.wait = lambda seconds=None: False  # type: ignore[method-assign, assignment]
    with pytest.raises(Refusal) as refusal:
        one.put_plan(b"plan")
    assert refusal.value.problem is Problem.CONFLICT
    assert not answers


def test_a_lost_shuffler_is_logged_once_and_so_is_its_return(caplog: pytest.LogCaptureFixture) -> None:
    answers: list[Any] = [httpx.ConnectError("refused"), problem(Problem.BUSY)]

    def answer(request: httpx.Request) -> httpx.Response:
        found = answers.pop(0) if answers else httpx.Response(200, content=b"{}")
        if isinstance(found, Exception):
            raise found
        return found  # type: ignore[no-any-return]

    one = line(answer)
    seen = []

    def wait(seconds: float | None = None) -> bool:
        seen.append(one.away)
        return False

    one._stop.wait = wait  # type: ignore[method-assign]
    with caplog.at_level(logging.INFO, "dpcheckin.analyzer"):
        one.put_plan(b"plan")
        one.put_plan(b"plan")
        assert (seen, one.away) == (["ConnectError", "busy"], None)
        answers.append(httpx.ReadError("reset"))
        with pytest.raises(TruncatedBatch), one.batch(0, 100):
            pass
        assert one.away == "ReadError"
        answers.append(problem(Problem.CONFLICT))
        with pytest.raises(Refusal):
            one.put_plan(b"plan")
    assert caplog.messages == [
        "shuffler not reached, trying again: ConnectError",
        "shuffler reached again",
        "shuffler not reached, trying again: ReadError",
        "shuffler reached again",
    ]


@pytest.mark.parametrize(
    ("which", "hint"),
    [
        (Problem.UNAUTHORIZED, r"the shuffler answers unauthorized: .* \[shuffler\] token_file"),
        (Problem.UNKNOWN_ANALYZER, "analyzer_identity"),
        (Problem.MALFORMED, "`dpcheckin analyzer identity`"),
        (Problem.ROUND_OPEN, "another plan has to finish"),
        (Problem.CONFLICT, "another analyzer is at work there.*a new plan in a new folder"),
        (Problem.TOO_LARGE, r"too-large: [^(]*$"),
    ],
)
def test_a_refusal_says_who_refused_and_where_to_look(which: Problem, hint: str) -> None:
    with pytest.raises(RefusedBy, match=hint):
        line(lambda request: problem(which)).put_plan(b"plan")


def test_it_stops_waiting_when_it_is_told_to() -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(Stopped, match="while the shuffler was away"):
        line(lambda request: problem(Problem.BUSY), stop).put_plan(b"plan")


def test_a_round_that_is_not_known_has_no_status_and_other_refusals_pass_through() -> None:
    for which in (Problem.NOT_FOUND, Problem.NO_ROUND):
        assert line(lambda request, which=which: problem(which)).status(0) is None  # type: ignore[misc]
    with pytest.raises(Refusal, match="unauthorized"):
        line(lambda request: problem(Problem.UNAUTHORIZED)).status(0)


HTML = b"<html><h1>Bad gateway</h1></html>"
ODD = {
    "a teapot": httpx.Response(418, content=b"teapot"),
    "a 502 with HTML": httpx.Response(502, content=HTML),
    "HTML instead of an answer": httpx.Response(200, content=HTML),
    "a redirect": httpx.Response(302, headers={"location": "http://127.0.0.1:1/login"}),
    "a redirect to nowhere": httpx.Response(301, headers={"location": "http://[::"}),
    "deep JSON": httpx.Response(200, content=b"[" * 200_000),
    "a deep problem": httpx.Response(500, content=b'{"a":' * 200_000),
    "nothing": httpx.Response(200, content=b""),
    "another object": httpx.Response(200, content=b"{}"),
    "compressed": httpx.Response(200, headers={"content-encoding": "br"}, stream=httpx.ByteStream(b"x")),
    "a crowd beyond counting": httpx.Response(200, content=b'{"state":"closed","present":%d}' % 10**29),
}


@pytest.mark.parametrize("odd", ODD)
def test_one_strange_answer_is_asked_again_and_ends_nothing(odd: str) -> None:
    good = httpx.Response(200, content=b'{"present":3,"reports":2,"state":"closed"}')
    answers = [ODD[odd], ODD[odd], good]
    one = line(lambda request: answers.pop(0))
    seen: list[str | None] = []
    one._stop.wait = lambda seconds=None: bool(seen.append(one.away))  # type: ignore[method-assign, assignment]
    assert one.status(0) == Status("closed", 3, 2)
    assert len(seen) == 2 and all(seen), "said while it lasts"
    assert one.away is None


@pytest.mark.parametrize("odd", ["a 502 with HTML", "a redirect", "a deep problem"])
def test_a_strange_answer_to_a_fetch_is_fetched_again(odd: str) -> None:
    with pytest.raises(TruncatedBatch), line(lambda request: ODD[odd]).batch(0, 100):
        pass


def test_a_record_larger_than_the_plans_is_not_read() -> None:
    def endless() -> Iterator[bytes]:
        yield (1 << 30).to_bytes(4, "big")
        while True:
            yield bytes(1 << 16)

    with pytest.raises(TruncatedBatch, match="a record of 1,073,741,824 bytes"):
        list(records(endless(), 10_000))


def record(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def streamed(body: bytes) -> httpx.Response:
    return httpx.Response(200, stream=httpx.ByteStream(body))


def test_a_batch_is_its_records_or_an_error_that_is_tried_again() -> None:
    body = record(b"one") + record(b"") + record(b"three")
    with line(lambda request: streamed(body)).batch(0, 100) as found:
        assert list(found) == [b"one", b"", b"three"]
    with (
        pytest.raises(TruncatedBatch, match="2 bytes after"),
        line(lambda request: streamed(body + b"\0\0")).batch(0, 100) as found,
    ):
        list(found)
    with pytest.raises(Refusal, match="not-claimed"), line(lambda request: problem(Problem.NOT_CLAIMED)).batch(0, 100):
        pass

    def broken(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadError("reset")

    with pytest.raises(TruncatedBatch, match="ReadError"), line(broken).batch(0, 100):
        pass


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_records_are_cut_from_a_stream_of_any_chunks(size: int) -> None:
    wanted = [b"", b"a", b"bc" * 40, b"d" * 9]
    stream = b"".join(len(r).to_bytes(4, "big") + r for r in wanted)

    def chunks(content: bytes) -> Iterator[bytes]:
        return iter(content[i : i + size] for i in range(0, len(content), size))

    assert list(records(chunks(stream), 100)) == wanted
    with pytest.raises(TruncatedBatch):
        list(records(chunks(stream[:-1]), 100))
