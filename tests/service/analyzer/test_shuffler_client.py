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
from dpcheckin.service.wire.problems import Malformed, Problem, Refusal

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

    with pytest.raises(Malformed, match="more than"):
        line(long).status(0)
    assert read <= LARGEST_ANSWER + (1 << 17)

    def packed(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-encoding": "gzip"}, content=endless())

    with pytest.raises(Malformed, match="gzip"):
        line(packed).status(0)
    with pytest.raises(TruncatedBatch, match="record of"):
        list(records(iter([b"\xff\xff\xff\xff" + bytes(100)])))


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
        with pytest.raises(TruncatedBatch), one.batch(0):
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
    with pytest.raises(Malformed, match="answered 418 in no known form"):
        line(lambda request: httpx.Response(418, content=b"teapot")).status(0)


def record(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def streamed(body: bytes) -> httpx.Response:
    return httpx.Response(200, stream=httpx.ByteStream(body))


def test_a_batch_is_its_records_or_an_error_that_is_tried_again() -> None:
    body = record(b"one") + record(b"") + record(b"three")
    with line(lambda request: streamed(body)).batch(0) as found:
        assert list(found) == [b"one", b"", b"three"]
    with (
        pytest.raises(TruncatedBatch, match="2 bytes after"),
        line(lambda request: streamed(body + b"\0\0")).batch(0) as found,
    ):
        list(found)
    with pytest.raises(Refusal, match="not-claimed"), line(lambda request: problem(Problem.NOT_CLAIMED)).batch(0):
        pass

    def broken(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadError("reset")

    with pytest.raises(TruncatedBatch, match="ReadError"), line(broken).batch(0):
        pass


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_records_are_cut_from_a_stream_of_any_chunks(size: int) -> None:
    wanted = [b"", b"a", b"bc" * 40, b"d" * 9]
    stream = b"".join(len(r).to_bytes(4, "big") + r for r in wanted)

    def chunks(content: bytes) -> Iterator[bytes]:
        return iter(content[i : i + size] for i in range(0, len(content), size))

    assert list(records(chunks(stream))) == wanted
    with pytest.raises(TruncatedBatch):
        list(records(chunks(stream[:-1])))
