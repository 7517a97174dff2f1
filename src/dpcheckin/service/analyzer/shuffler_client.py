"""The shuffler as the analyzer sees it: one method for each line of the table in docs/wire.md.

Everything may be repeated. When the shuffler is away, busy or cannot store, the same request is
made again, a little later each time, until it answers or `stop` says so. It is not trusted with the
analyzer's memory: nothing is unpacked, and no more is read than an answer or a record can have.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from dpcheckin.errors import ServiceError
from dpcheckin.service import tls
from dpcheckin.service.analyzer.core import Status
from dpcheckin.service.wire.canonical import canonical, digest, parse
from dpcheckin.service.wire.credentials import bearer_header
from dpcheckin.service.wire.problems import TRANSIENT, Malformed, Problem, Refusal, problem_in

_LENGTH = struct.Struct(">I")
_LARGEST_PAUSE = 5.0
LARGEST_ANSWER = 4 << 20
"""Bytes of an answer that is not a batch: the state of a round, or the issuer's keys."""
LARGEST_RECORD = 1 << 30
"""Bytes of one record of a batch: more than any envelope that a shuffler may be set to take."""


class Stopped(ServiceError):
    """The analyzer was told to stop while it waited."""


class TruncatedBatch(ServiceError):
    """The stream of a batch ended early; it is fetched again."""


class PatientClient:
    """A connection to another party that is asked again until it answers.

    Args:
        address: such as `https://shuffler.example:8440`.
        token: the analyzer's.
        authority: PEM file of the only authority to believe; None: those of the system.
        stop: ends waiting, with `Stopped`.
    """

    party = "the shuffler"

    def __init__(
        self,
        address: str,
        token: str,
        authority: Path | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        self._http = httpx.Client(
            base_url=address,
            headers={**bearer_header(token), "accept-encoding": "identity"},
            verify=tls.verification(address, authority),
            timeout=60.0,
            trust_env=False,
        )
        self._stop = stop or threading.Event()
        self.failures = 0

    def close(self) -> None:
        """Give the connections back."""
        self._http.close()

    def _call(self, method: str, path: str, content: bytes | None = None) -> bytes:
        pause = 0.1
        while True:
            try:
                with self._http.stream(method, path, content=content) as answer:
                    body = _body(answer)
                if answer.is_success:
                    return body
                refusal = _refusal(answer.status_code, body)
                if refusal.problem not in TRANSIENT:
                    raise refusal
            except httpx.TransportError:
                pass
            self.failures += 1
            if self._stop.wait(pause):
                raise Stopped(f"told to stop while {self.party} was away")
            pause = min(2 * pause, _LARGEST_PAUSE)


class ShufflerClient(PatientClient):
    """The connection to the shuffler."""

    def put_plan(self, signed: bytes) -> None:
        """Announce a signed plan."""
        self._call("PUT", "/v1/plan", signed)

    def put_key(self, key_id: bytes, signed: bytes) -> None:
        """Announce a signed opening key under its id (eight bytes)."""
        self._call("PUT", f"/v1/keys/{key_id.hex()}", signed)

    def put_model(self, model: bytes) -> None:
        """Leave a model under its digest."""
        self._call("PUT", f"/v1/model/{digest(model).hex()}", model)

    def put_round(self, number: int, signed: bytes) -> None:
        """Open a round with its signed document."""
        self._call("PUT", f"/v1/rounds/{number}", signed)

    def status(self, number: int) -> Status | None:
        """Where a round stands; None when the shuffler does not know it."""
        try:
            return Status.from_object(parse(self._call("GET", f"/v1/rounds/{number}")))
        except Refusal as refusal:
            if refusal.problem in (Problem.NOT_FOUND, Problem.NO_ROUND):
                return None
            raise

    def claim(self, number: int, charge: str) -> None:
        """Fix the batch of a closed round; `charge` is the ledger entry's digest, in hex."""
        self._call("POST", f"/v1/rounds/{number}/claim", canonical({"charge": charge}))

    def delete(self, number: int) -> None:
        """Have a claimed batch destroyed."""
        self._call("DELETE", f"/v1/rounds/{number}/batch")

    @contextmanager
    def batch(self, number: int) -> Iterator[Iterator[bytes]]:
        """The records of a claimed batch, one at a time, however large the batch is."""
        try:
            with self._http.stream("GET", f"/v1/rounds/{number}/batch") as answer:
                if answer.status_code != 200:
                    raise _refusal(answer.status_code, _body(answer))
                yield records(answer.iter_raw())
        except httpx.TransportError as problem:
            raise TruncatedBatch(type(problem).__name__) from None


def _body(answer: httpx.Response) -> bytes:
    """The answer as it came; `Malformed` if it is packed or longer than any answer."""
    encoding = answer.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise Malformed(f"an answer in {encoding[:20]}, which was not asked for")
    body = bytearray()
    # an answer that was made in this process, as in a test, is there as a whole
    parts = [answer.content] if answer.is_stream_consumed else answer.iter_raw()
    for part in parts:
        body += part
        if len(body) > LARGEST_ANSWER:
            raise Malformed(f"an answer of more than {LARGEST_ANSWER:,} bytes")
    return bytes(body)


def _refusal(status: int, body: bytes) -> Refusal:
    problem = problem_in(body)
    if problem is None:
        raise Malformed(f"the shuffler answered {status} in no known form")
    return Refusal(problem)


def records(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Split a stream of `length ‖ record`, holding little more than one record at a time.

    Args:
        chunks: the stream, cut anywhere.
    """
    buffer = bytearray()
    start = 0
    for chunk in chunks:
        buffer += chunk
        while len(buffer) - start >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(buffer, start)
            if size > LARGEST_RECORD:
                raise TruncatedBatch(f"a record of {size:,} bytes")
            end = start + _LENGTH.size + size
            if len(buffer) < end:
                break
            yield bytes(memoryview(buffer)[start + _LENGTH.size : end])
            start = end
        del buffer[:start]
        start = 0
    if buffer:
        raise TruncatedBatch(f"{len(buffer):,} bytes after the last whole record")
