"""Shuffler and issuer as the analyzer sees them: one method for each line of the tables in docs/wire.md.

Everything may be repeated. When a party is away, busy or cannot store, the same request is made again, a little later
each time, until it answers or `stop` says so; that it is away is logged once, and shown. It is not trusted with the
analyzer's memory: nothing is unpacked, and no more is read than an answer or a record can have.
"""

from __future__ import annotations

import logging
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import httpx

from dpcheckin.errors import ServiceError
from dpcheckin.service import tls
from dpcheckin.service.analyzer.core import Status
from dpcheckin.service.wire.blind_signatures import PublicKey
from dpcheckin.service.wire.canonical import canonical, digest, parse
from dpcheckin.service.wire.credentials import bearer_header
from dpcheckin.service.wire.documents import MODULUS_BYTES, PlanDocument
from dpcheckin.service.wire.problems import TRANSIENT, Malformed, Problem, Refusal, problem_in
from dpcheckin.service.wire.schema import hex_bytes, mapping
from dpcheckin.service.wire.signing import read_signed_bytes
from dpcheckin.service.wire.tokens import CrowdDocument

log = logging.getLogger("dpcheckin.analyzer")

T = TypeVar("T")
_LENGTH = struct.Struct(">I")
_LARGEST_PAUSE = 5.0
LARGEST_ANSWER = 4 << 20
"""Bytes of an answer that is not a batch: the state of a round, or the issuer's keys."""


class Stopped(ServiceError):
    """The analyzer was told to stop while it waited."""


class TruncatedBatch(ServiceError):
    """The stream of a batch ended early; it is fetched again."""


_WHAT_TO_DO = {
    Problem.UNAUTHORIZED: "is [{party}] token_file in analyzer.toml its analyzer.token?",
    Problem.UNKNOWN_ANALYZER: "its operator has to set analyzer_identity",
    Problem.MALFORMED: "is its analyzer_identity what `dpcheckin analyzer identity` prints?",
    Problem.ROUND_OPEN: "the analyzer of another plan has to finish its round first",
    Problem.CONFLICT: "another analyzer is at work there, or has replaced this plan: run one at a "
    "time, and begin a new plan in a new folder",
}
"""Where an analyzer's operator looks first, by what another party says."""


class RefusedBy(Refusal):
    """Another party turned a request down; which one, and what an operator can do about it."""

    def __init__(self, problem: Problem, party: str) -> None:
        super().__init__(problem)
        self.party = party

    def __str__(self) -> str:
        hint = _WHAT_TO_DO.get(self.problem, "").format(party=self.party)
        return f"the {self.party} answers {super().__str__()}" + (f" ({hint})" if hint else "")


class PatientClient:
    """A connection to another party, at its `address` and with the analyzer's `token`, that is asked again until it
    answers.

    Only certificates of the `authority` (a PEM file; None: those of the system) are believed; `stop` ends waiting, with
    `Stopped`.
    """

    party = "shuffler"

    def __init__(
        self, address: str, token: str, authority: Path | None = None, stop: threading.Event | None = None
    ) -> None:
        self._http = httpx.Client(
            base_url=address,
            headers={**bearer_header(token), "accept-encoding": "identity"},
            verify=tls.verification(address, authority),
            timeout=60.0,
            trust_env=False,
        )
        self._stop = stop or threading.Event()
        self.away: str | None = None
        """Why there is no answer at present; other threads may look."""

    def close(self) -> None:
        """Give the connections back."""
        self._http.close()

    def _call(
        self,
        method: str,
        path: str,
        content: bytes | None = None,
        read: Callable[[bytes], T] = lambda body: body,  # type: ignore[assignment,return-value]
    ) -> T:
        """What is `read` in the answer. One in no known form is nobody's: whoever stands between may have given it."""
        pause = 0.1
        while True:
            try:
                with self._http.stream(method, path, content=content) as answer:
                    body = _body(answer)
                if answer.is_success:
                    found = read(body)
                    self._note(None)
                    return found
                refusal = self._refusal(answer.status_code, body)
                if refusal.problem not in TRANSIENT:
                    self._note(None)
                    raise refusal
                self._note(refusal.problem.slug)
            except httpx.TransportError as failure:
                self._note(type(failure).__name__)
            except Malformed as problem:
                self._note(str(problem))
            if self._stop.wait(pause):
                raise Stopped(f"told to stop while the {self.party} was away")
            pause = min(2 * pause, _LARGEST_PAUSE)

    def _note(self, why: str | None) -> None:
        """Why there is no answer, or that there is one: a change is logged."""
        if self.away is None and why is not None:
            log.warning("%s not reached, trying again: %s", self.party, why)
        elif self.away is not None and why is None:
            log.info("%s reached again", self.party)
        self.away = why

    def _refusal(self, status: int, body: bytes) -> RefusedBy:
        problem = problem_in(body)
        if problem is None:
            raise Malformed(f"the {self.party} answered {status} in no known form")
        return RefusedBy(problem, self.party)


class ShufflerClient(PatientClient):
    """The connection to the shuffler."""

    def put_plan(self, signed: bytes) -> None:
        """Announce a signed plan."""
        self._call("PUT", "/v1/plan", signed)

    def put_key(self, key_id: bytes, signed: bytes) -> None:
        """Announce a `signed` opening key under its `key_id` (eight bytes)."""
        self._call("PUT", f"/v1/keys/{key_id.hex()}", signed)

    def put_model(self, model: bytes) -> None:
        """Leave a model under its digest."""
        self._call("PUT", f"/v1/model/{digest(model).hex()}", model)

    def put_round(self, number: int, signed: bytes) -> None:
        """Open round `number` with its `signed` document."""
        self._call("PUT", f"/v1/rounds/{number}", signed)

    def status(self, number: int) -> Status | None:
        """Where a round stands; None when the shuffler does not know it."""
        try:
            return self._call("GET", f"/v1/rounds/{number}", read=lambda body: Status.from_object(parse(body)))
        except Refusal as refusal:
            if refusal.problem in (Problem.NOT_FOUND, Problem.NO_ROUND):
                return None
            raise

    def claim(self, number: int, charge: str) -> None:
        """Fix the batch of the closed round `number`; `charge` is the ledger entry's digest, in hex."""
        self._call("POST", f"/v1/rounds/{number}/claim", canonical({"charge": charge}))

    def delete(self, number: int) -> None:
        """Have a claimed batch destroyed."""
        self._call("DELETE", f"/v1/rounds/{number}/batch")

    @contextmanager
    def batch(self, number: int, largest: int) -> Iterator[Iterator[bytes]]:
        """The records of the claimed batch of round `number`, one at a time, each of at most `largest` bytes."""
        try:
            with self._http.stream("GET", f"/v1/rounds/{number}/batch") as answer:
                if answer.status_code != 200:
                    raise self._refusal(answer.status_code, _body(answer))
                self._note(None)
                yield records(answer.iter_raw(), largest)
        except (httpx.TransportError, Malformed) as problem:
            said = str(problem) if isinstance(problem, Malformed) else type(problem).__name__
            self._note(said)
            raise TruncatedBatch(said) from None


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


def records(chunks: Iterator[bytes], largest: int) -> Iterator[bytes]:
    """Split a stream of `length ‖ record`, `chunks` cut anywhere, holding little more than one record at a time, of at
    most `largest` bytes."""
    buffer = bytearray()
    start = 0
    for chunk in chunks:
        buffer += chunk
        while len(buffer) - start >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(buffer, start)
            if size > largest:
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


NO_TOKENS = "ff" * MODULUS_BYTES
"""In the place of a token key: nobody has the other half, or a token under it."""


class IssuerClient(PatientClient):
    """The connection to the issuer, with the analyzer's access token."""

    party = "issuer"

    def put_plan(self, signed: bytes) -> None:
        """Have tokens issued for a signed plan."""
        self._call("PUT", "/v1/plan", signed)

    def open_round(self, plan: bytes, number: int) -> str:
        """The key, in hex, of round `number` of a `plan` (its id) that is about to open; those before it are over."""
        return self._call("POST", f"/v1/plans/{plan.hex()}/rounds/{number}", read=_token_key)

    def crowd(self, plan: PlanDocument, number: int) -> int | None:
        """Clients that may have a token of the round `number` of a `plan`, under the issuer's signature; None when it
        has left the round behind, or states no such thing."""
        assert plan.issuer is not None
        identity = bytes.fromhex(plan.issuer)
        path = f"/v1/plans/{plan.id.hex()}/rounds/{number}"
        try:
            said = self._call("GET", path, read=lambda body: read_signed_bytes(CrowdDocument, body, identity))
        except Refusal as refusal:
            if refusal.problem is not Problem.NOT_FOUND:
                raise
            return None
        return said.clients if (said.plan, said.round) == (plan.id.hex(), number) else None


def _token_key(body: bytes) -> str:
    answer = mapping("answer", parse(body))
    key: str = hex_bytes(MODULUS_BYTES)("issuer.key", answer.get("key"))
    PublicKey.from_bytes(bytes.fromhex(key))
    return key
